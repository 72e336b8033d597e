"""Calls whose result takes each element from one argument or another -> which elements of it were written.

`where` with a known mask, and the functional forms of writing into a part: rows, slices, masked and indexed elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pt2kit.checks import shadows
from pt2kit.checks.indexed_writes import write_region
from pt2kit.checks.plain_calls import Call, declared
from pt2kit.checks.shadows import Memory, Shadow

if TYPE_CHECKING:
    from pt2kit.checks.following import Follower


def merge(follower: Follower, call: Call, mask: Any, source: Shadow) -> Shadow | None:
    """A result of the declared size whose unwritten elements a mask tells; None where that is not known."""
    name = call.results[0]
    sizes = declared(follower.scope.graph.tensor_values.get(name))
    if sizes is None or mask is None:
        return None
    import numpy

    shape = tuple(1 if size is None else size for size in sizes)
    try:
        mask = numpy.broadcast_to(mask, shape) if prod(shape) <= shadows.MAX_ELEMENTS else None
    except ValueError:
        return None
    follower.assume(name)
    return None if mask is None else shadows.copied(source, mask, sizes)


def _mask(shadow: Shadow | None) -> Any:
    """What of a tensor nothing was written to: False for nothing, None where it cannot be told."""
    if shadow is None or not shadow.unwritten:
        return False
    return None if shadow.memory.spoiled else shadow.mask


def _where(follower: Follower, call: Call) -> Shadow | None:
    names = list(call.signature.parameters)
    if len(names) != 3 or not call.values.get(names[0]) or follower.shadow(call.values[names[0]][0]).unwritten:
        return None
    chosen = [follower.shadow(call.values[name][0]) if call.values.get(name) else None for name in names[1:]]
    first, second = _mask(chosen[0]), _mask(chosen[1])
    source = next((shadow for shadow in chosen if shadow is not None and shadow.unwritten), None)
    if first is None or second is None or source is None:
        return None
    import numpy

    condition = follower.numbers(call.values[names[0]])
    try:
        if condition is None:
            return merge(follower, call, numpy.logical_or(first, second), source)
        if numpy.broadcast(condition, first, second).size > shadows.MAX_ELEMENTS:
            return None
        return merge(follower, call, numpy.where(condition.astype(bool), first, second), source)
    except ValueError:
        return None


def _copy(follower: Follower, call: Call) -> Shadow | None:
    names = call.values.get("src", [])
    source = follower.shadow(names[0]) if names else None
    return None if source is None or not source.unwritten else merge(follower, call, _mask(source), source)


def _scatter(view: str) -> Callable[[Follower, Call], Shadow | None]:
    def scatter(follower: Follower, call: Call) -> Shadow | None:
        target, source = follower.first(call), follower.shadow((call.values.get("src") or [""])[0])
        put = _mask(source)
        if target.mask is None or target.sizes is None or target.memory.spoiled or put is None:
            return None if source.unwritten else shadows.copied(target)
        mask = target.mask.copy()
        target.memory.note_dependence()
        part = shadows.VIEWS[view](mask, target.sizes, call.plain)
        is_followed = isinstance(part, tuple) and (put is False or part[0].shape == put.shape)
        if isinstance(part, tuple) and is_followed:
            part[0][...] = put
        elif source.unwritten:
            return None
        return shadows.copied(target, mask, target.sizes)

    return scatter


def _masked_fill(follower: Follower, call: Call) -> Shadow | None:
    target = follower.first(call)
    others = [name for key, names in call.values.items() if key != "self" for name in names]
    if any(follower.shadow(name).unwritten for name in others):
        return None
    if not target.unwritten:
        return Shadow(Memory(), whole=True)
    kept = _mask(target)
    if (condition := follower.numbers(call.values.get("mask", []))) is not None and kept is not None:
        import numpy

        try:
            kept = numpy.logical_and(kept, ~condition.astype(bool))
        except ValueError:
            kept = None
    return merge(follower, call, kept, target) or follower.computed(call.step, [follower.first_name(call)])


def _indexed(follower: Follower, call: Call) -> Shadow | None:
    """The first argument, written where an index says."""
    target = follower.first(call)
    others = [name for key, names in call.values.items() if key != "self" for name in names]
    if any(follower.shadow(name).unwritten for name in others):
        return None
    if target.mask is None or target.memory.spoiled:
        return shadows.copied(target)
    mask = target.mask.copy()
    if write_region(follower, call, target, mask):
        target.memory.note_dependence()
    return shadows.copied(target, mask, target.sizes)


MERGES: Final[Mapping[str, Callable[[Follower, Call], Shadow | None]]] = MappingProxyType(
    {
        "where": _where,
        "copy": _copy,
        "select_scatter": _scatter("aten.select"),
        "slice_scatter": _scatter("aten.slice"),
        "masked_fill": _masked_fill,
        **dict.fromkeys(("index_put", "_unsafe_index_put", "index_fill", "index_copy"), _indexed),
    }
)
"""Operators whose result takes each element from one argument or another."""
