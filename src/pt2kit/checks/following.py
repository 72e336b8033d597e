"""One graph, call by call -> which elements of its values were written: shadows, and the uses that let memory out.

Schemas say what is written and what shares memory; `reading_table.py` says what is read; everything else is taken to
read all of its arguments and to write nothing. Calls of higher-order operators are in `following_graphs.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

from pt2kit import schema
from pt2kit.checks import known_numbers, reading_table, shadows
from pt2kit.checks.indexed_writes import write_region
from pt2kit.checks.known_targets import higher_order_name
from pt2kit.checks.memory_findings import Assumed, Findings, Use
from pt2kit.checks.merging import MERGES
from pt2kit.checks.passing_on import ITSELF
from pt2kit.checks.plain_calls import Call, asked_sizes, call_of, declared, permuted_strides
from pt2kit.checks.shadows import Memory, Shadow, Sizes
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import Scope, Step
from pt2kit.schema.operator_text import Operator

Find = Callable[[str], Operator | None]
"""Target of a node -> the signature of the operator; None for what is no operator, or not known."""

MAX_CELLS: Final = 1 << 32
"""Elements that are followed, over all calls of a program; after that every tensor is taken as a whole."""
_SHARING: Final = frozenset(("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"))
"""Operators whose results are views although their schemas do not say so."""


class Known(NamedTuple):
    """The numbers of a value, which the file tells.

    Args:
        numbers: an array, with one element for a dimension whose size is a symbol: they are all the same there.
        sizes: of the value.
        memory: where they stand; they are known until it is changed.
    """

    numbers: Any
    sizes: Sizes
    memory: Memory


def origin(shadow: Shadow) -> str:
    """The value that brought unwritten memory."""
    return shadow.memory.use.origin if shadow.memory.use is not None else shadow.memory.origin


class Follower:
    """Follows one graph.

    Args:
        scope: the graph.
        find: what says which signature an operator has.
        found: what was found so far, in all graphs; grows.
        inputs: name -> shadow of each input; grows to all values.
        run_graphs: follows a call of a higher-order operator.
    """

    def __init__(
        self,
        scope: Scope,
        find: Find,
        found: Findings,
        inputs: dict[str, Shadow],
        run_graphs: Callable[[Follower, Step], None],
    ) -> None:
        self.scope, self.find, self.found, self.shadows = scope, find, found, inputs
        self.run_graphs = run_graphs
        self.known: dict[str, Known] = {}

    def run(self) -> None:
        """Follow all calls."""
        for number, node in enumerate(self.scope.graph.nodes):
            step = Step(self.scope, number, node)
            if higher_order_name(node.target) is not None:
                self.run_graphs(self, step)
                continue
            signature = self.find(node.target)
            parts = node.target.split(".")
            if signature is None:
                self._unknown(step)
            elif parts[2:3] in (["aten"], ["prims"]) and len(parts) == 5:
                call = call_of(step, parts, signature)
                if call.name in reading_table.UNCHANGED:
                    self._rename(call)
                    continue
                self._own(call)
                self._note_numbers(call)
            else:
                self._foreign(call_of(step, ["", "", "", "", ""], signature))

    def let_out(self, name: str, position: int) -> None:
        """Note that a value leaves the program."""
        shadow = self.shadows.get(name)
        if shadow is None or not shadow.unwritten:
            return
        self.found.uses.append(shadow.memory.use or Use(None, position, name, shadow.memory.origin))

    # Calls of torch's own operators.

    def _rename(self, call: Call) -> None:
        """An operator that gives its argument itself, and writes none of its elements."""
        name = self.first_name(call)
        self._set(call, [self.shadow(name)] * len(call.results))
        if name in self.known:
            self.known |= dict.fromkeys(call.results, self.known[name])

    def _own(self, call: Call) -> None:
        """One call of an operator of torch."""
        name = call.name
        sizes = [value for values in call.numbers for value in values]
        if any(self.shadow(value).unwritten for value in sizes):
            self._set(call, [self.computed(call.step, sizes) for _ in call.results])
        elif name in reading_table.SOURCES and call.overload != "out":
            self._set(call, [self._source(call, output) for output in call.results])
        elif name in reading_table.SOURCES or name in reading_table.RESIZED:
            self._resize(call)
        elif name.removesuffix("_copy") == "as_strided":
            self._set(call, [self._restrided(call)])
        elif call.operator in shadows.VIEWS and name != "reshape":
            self._view(call)
        elif name in reading_table.COPIES or name == "reshape":
            self._copy(call)
        elif name in MERGES and len(call.results) == 1 and not self._written(call):
            self._set(call, [self._merged(call)])
        elif call.signature.is_view or name in _SHARING:
            first = self.first(call)
            for changed in self._written(call):
                first.memory.change()
                self.shadows[changed] = shadows.lost(first)  # `transpose_` and its like: another shape in place
            self._set(call, [shadows.lost(first)] * len(call.results))
        else:
            self._compute(call)

    def _source(self, call: Call, name: str) -> Shadow:
        """What `empty` and its kin give."""
        meta = self.scope.graph.tensor_values.get(name)
        if meta is not None and any(size.as_int == 0 for size in meta.sizes):
            self.assume(name)
            return Shadow(Memory(name), whole=True)  # no elements, no memory
        sizes, strides = asked_sizes(call.plain), call.plain.get("stride")
        layout = call.plain.get("physical_layout")
        if layout is not None and sizes is not None and None not in sizes:
            strides = permuted_strides(sizes, layout)
        if strides is not None:
            fits = sizes is not None and None not in sizes and shadows.are_ints(strides)
            return shadows.fresh(name, sizes if fits else None, strides if fits else None)
        if sizes is None:
            of = self.shadows.get(next(iter(call.values.get("self", [])), ""))
            known = of is not None and of.sizes is not None
            sizes = of.sizes if of is not None and known else declared(meta)
        else:
            known = True
        made = shadows.fresh(name, sizes)
        if not known:
            made.memory.depends = functools.partial(self.assume, name)
        made.memory.exact &= call.name in ("empty", "new_empty") and call.plain.get("memory_format") is None
        return made

    def _resize(self, call: Call) -> None:
        """A tensor that may have become larger."""
        target = self._written(call)
        use = self.use(call.step, (target or [self.first_name(call)])[0])
        size, old = call.plain.get("size", call.plain.get("shape")), declared(self._meta(target[0] if target else ""))
        shrinks = False
        if shadows.are_ints(size) and old is not None and None not in old:
            shrinks = prod(size) <= prod(size for size in old if size is not None)
            self.assume(target[0])
        results = []
        for name in target or [""]:
            shadow = self.shadow(name) if name else Shadow(Memory(use.origin))
            shadow.memory.change()
            if not shrinks or shadow.unwritten:
                shadow.memory.spoil(use)
            results.append(shadows.lost(shadow))
            if name:
                self.shadows[name] = results[-1]
        self._set(call, results)

    def _restrided(self, call: Call) -> Shadow:
        """`as_strided`: what it looks at is known where the tensor lies in memory as its shadow does."""
        first, name = self.first(call), self.first_name(call)
        sizes, strides, offset = (call.plain.get(key) for key in ("size", "stride", "storage_offset"))
        meta = self._meta(name)
        if (
            meta is None
            or not isinstance(sizes, list)
            or not isinstance(strides, list)
            or (not first.memory.exact and not shadows.lies_as(first, [step.as_int for step in meta.strides]))
        ):
            made = shadows.lost(first)
        else:
            if not first.memory.exact:
                self.assume(name, strides=True)
            made = shadows.restrided(first, sizes, strides, offset if type(offset) is int else None)
        return shadows.copied(made) if call.name.endswith("_copy") else made

    def _view(self, call: Call) -> None:
        """An operator whose result looks at the memory of its first argument in a way that can be followed."""
        first = self.first(call)
        made = None
        if first.mask is not None and first.sizes is not None:
            made = shadows.VIEWS[call.operator](first.mask, first.sizes, call.plain)
        names = call.results
        pieces = made if isinstance(made, list) else [made]
        if made is None or len(pieces) != len(names):
            results = [shadows.lost(first)] * len(names)
            if first.whole and call.name in ("alias", "detach", "view", "_unsafe_view"):
                results = [Shadow(first.memory, whole=True)] * len(names)
        else:
            kept = [piece for piece in pieces if piece is not None]
            whole = first.whole and call.name in ("alias", "detach", "view", "_unsafe_view", "permute", "transpose")
            results = [Shadow(first.memory, sizes, mask, whole) for mask, sizes in kept]
        if call.name.endswith("_copy"):
            results = [shadows.copied(result) for result in results]
        self._set(call, results)

    def _copy(self, call: Call) -> None:
        """A result with the elements of the first argument, which may be that argument itself."""
        first = self.first(call)
        if call.name == "reshape" and first.mask is not None and first.sizes is not None:
            made = shadows.VIEWS[call.operator](first.mask, first.sizes, call.plain)
            viewed = None if made is None or isinstance(made, list) else Shadow(first.memory, made[1], made[0])
            if viewed is not None and first.memory.exact:
                self._set(call, [viewed])
                return
            result = shadows.copied(shadows.lost(first) if viewed is None else viewed)
        else:
            result = shadows.copied(first)
        if call.signature.is_view or call.name in ITSELF:
            self._link(call, [result])
        self._set(call, [result])

    def _merged(self, call: Call) -> Shadow:
        """A result that takes each element from one argument or another."""
        merged = MERGES[call.name](self, call)
        if merged is not None:
            return merged
        return self.computed(call.step, self._read(call))

    def _compute(self, call: Call) -> None:
        """Any other operator: reads, then writes, then gives."""
        read = self._read(call)
        tainted = next((name for name in read if self.shadow(name).unwritten), None)
        overwrites = call.name in reading_table.OVERWRITING
        outs = {
            value
            for parameter in call.signature.parameters.values()
            if parameter.type.is_written and (overwrites or parameter.is_keyword_only)
            for value in call.values.get(parameter.name, ())
        }
        for name in self._written(call):
            shadow = self.shadow(name)
            shadow.memory.change()
            if tainted is not None:
                shadow.memory.spoil(self.use(call.step, tainted))
            elif name in outs and (overwrites or self._fits(call, name)):
                shadow.write()
            elif name == self.first_name(call):
                self._write_region(call, shadow)
        self._write_by_flag(call)
        if self._copies_first(call) and tainted is None:
            results = [self.computed(call.step, [self.first_name(call)])]
            if call.name not in reading_table.BROADCAST:
                results = [shadows.copied(self.first(call))]
        else:
            written = self._written(call)
            results = [self.computed(call.step, [tainted] if tainted else []) for _ in call.results]
            self._link(call, results)
            if len(written) == len(results):
                results = [self.shadow(name) for name in written]  # in-place operators return what they wrote
        self._set(call, results)
        if tainted is not None and not call.results and not self._written(call):
            self.found.uses.append(self.shadow(tainted).memory.use or self.use(call.step, tainted))

    def _link(self, call: Call, results: Iterable[Shadow]) -> None:
        """Note that results may be arguments: some operators return one as it is, and no schema says so."""
        for name in {name for values in call.values.values() for name in values}:
            memory = self.shadow(name).memory
            for result in results:
                result.memory.linked.append(memory)
                result.memory.note_alias(memory)
                memory.linked.append(result.memory)

    def _copies_first(self, call: Call) -> bool:
        """Whether the result is the first argument with a part of it written."""
        return call.name in reading_table.PARTLY_COPIED and call.overload != "out"

    def _read(self, call: Call) -> list[str]:
        """The values whose elements a call reads."""
        shape_only = reading_table.SHAPE_ONLY.get(call.name, frozenset())
        if f"{call.name}.{call.overload}" in reading_table.NOT_SHAPE_ONLY:
            shape_only = frozenset()
        flagged = reading_table.READ_OR_WRITTEN.get(call.name, ("", ""))[0]
        unread = call.name in reading_table.OVERWRITING or call.name in reading_table.PARTLY
        read: list[str] = []
        for name, values in call.values.items():
            parameter = call.signature.parameters.get(name)
            is_tensor = parameter is not None and "Tensor" in parameter.type.base
            if name == flagged or (is_tensor and name in shape_only):
                continue
            if parameter is not None and parameter.type.is_written and (unread or parameter.is_keyword_only):
                continue
            if name == "self" and self._copies_first(call):
                continue
            read += values
        return read

    def _write_region(self, call: Call, shadow: Shadow) -> None:
        if shadow.mask is not None and write_region(self, call, shadow, shadow.mask):
            shadow.memory.note_dependence()

    def _write_by_flag(self, call: Call) -> None:
        argument, flag = reading_table.READ_OR_WRITTEN.get(call.name, ("", ""))
        for name in call.values.get(argument, ()):
            if call.plain.get(flag) is True:
                self.shadow(name).write()

    def _fits(self, call: Call, name: str) -> bool:
        """Whether an `out` argument has the size of the result, and so is written as a whole and where it is."""
        position = self._written(call).index(name)
        results = call.results
        if position >= len(results):
            return False
        out, got = self._meta(name), self._meta(results[position])
        if out is None or got is None or out.sizes != got.sizes:
            return False
        self.assume(name)
        self.assume(results[position])
        return True

    # What is known of values.

    def _note_numbers(self, call: Call) -> None:
        """Keep the numbers that a call makes of numbers of the file."""
        names = call.results
        if len(names) != 1 or self._written(call):
            return
        operands = [
            self.numbers(call.values[parameter]) if parameter in call.values else call.plain.get(parameter)
            for parameter in call.signature.parameters
            if parameter in call.values or type(call.plain.get(parameter)) in (int, bool)
        ]
        sizes: Sizes | None = None
        if call.name == "as_strided" or call.operator in shadows.VIEWS:
            result, sizes = self._viewed_numbers(call)
        elif call.name in ("full", "full_like"):
            result, sizes = self._filled(call)
        else:
            result = known_numbers.made(call.operator, call.plain, operands)
            if result is not None:
                read = [self.known[values[0]].sizes for values in call.values.values() if values[0] in self.known]
                sizes = shadows.joined(result.shape, read)
        if result is not None and sizes is not None:
            self.know(names[0], result, sizes)

    def know(self, name: str, numbers: Any, sizes: Sizes) -> None:
        """Note the numbers of a value."""
        memory = self.shadow(name).memory
        memory.may_be |= {memory}
        self.known[name] = Known(numbers, sizes, memory)

    def _filled(self, call: Call) -> tuple[Any, Sizes | None]:
        sizes = asked_sizes(call.plain)
        if call.name == "full_like":
            sizes = declared(self._meta(call.results[0]))
        self.assume(call.results[0])
        value, dtype = call.plain.get("fill_value"), call.plain.get("dtype")
        meta = self._meta(call.results[0])
        exact = meta is not None and meta.dtype in known_numbers.EXACT and dtype in (None, meta.dtype)
        if exact and meta is not None and meta.dtype == schema.ScalarType.BOOL:
            value = bool(value) if type(value) in (int, bool) else None
        return (known_numbers.filled(value, sizes) if exact else None), sizes

    def _viewed_numbers(self, call: Call) -> tuple[Any, Sizes | None]:
        names = call.values.get(next(iter(call.signature.parameters), ""), [])
        numbers = self.numbers(names)
        if numbers is None:
            return None, None
        sizes = self.known[names[0]].sizes
        if call.name == "as_strided":
            made = None if None in sizes else known_numbers.restrided(numbers, call.plain)
            return made, None if made is None else made.shape
        viewed = shadows.VIEWS[call.operator](numbers, sizes, call.plain)
        if viewed is None or isinstance(viewed, list) or viewed[0].size > known_numbers.MAX_ELEMENTS:
            return None, None
        return viewed

    def numbers(self, names: Sequence[str]) -> Any:
        """The numbers of a value, where the file tells them."""
        known = self.known.get(names[0]) if len(names) == 1 else None
        return known.numbers if known is not None and not known.memory.changed else None

    def shadow(self, name: str) -> Shadow:
        """What is known of a value."""
        if not name:
            return Shadow(Memory(), whole=True)
        if name not in self.shadows:
            self.shadows[name] = Shadow(Memory(name), whole=True)
        return self.shadows[name]

    def first_name(self, call: Call) -> str:
        """The first value that a call gets."""
        for parameter in call.signature.parameters:
            if call.values.get(parameter):
                return call.values[parameter][0]
        return ""

    def first(self, call: Call) -> Shadow:
        """What is known of the first value that a call gets."""
        return self.shadow(self.first_name(call))

    def _written(self, call: Call) -> list[str]:
        parameters = call.signature.parameters.values()
        written = [parameter.name for parameter in parameters if parameter.type.is_written]
        return [value for name in written for value in call.values.get(name, ())]

    def computed(self, step: Step, names: Iterable[str]) -> Shadow:
        """A new tensor, computed from others."""
        tainted = next((name for name in names if self.shadow(name).unwritten), None)
        memory = Memory(origin(self.shadow(tainted)) if tainted else "")
        if tainted is not None:
            memory.spoil(self.use(step, tainted))
        return Shadow(memory, whole=True)

    def use(self, step: Step, name: str) -> Use:
        """How a call uses a value; how that was computed, where it is no memory of its own."""
        shadow = self.shadow(name)
        return shadow.memory.use or Use(step, 0, name, origin(shadow) or name)

    def _meta(self, name: str) -> schema.TensorMeta | None:
        return self.scope.graph.tensor_values.get(name)

    def assume(self, name: str, *, strides: bool = False) -> None:
        """Note that a value was taken for what the file declares."""
        assumed = self.found.assumed.setdefault(id(self.scope.graph), Assumed())
        assumed.sizes.add(name)
        if strides:
            assumed.strides.add(name)

    def _set(self, call: Call, results: Sequence[Shadow]) -> None:
        names = call.results
        if len(results) != len(names):
            tainted = next((result for result in results if result.unwritten), None)
            results = [tainted or Shadow(Memory())] * len(names)
        self.found.cells += sum(result.mask.size for result in results if result.mask is not None)
        if self.found.cells > MAX_CELLS:
            results = [shadows.lost(result) for result in results]
        self.shadows.update(zip(names, results, strict=True))

    # Other calls.

    def _foreign(self, call: Call) -> None:
        """An operator of a library: it writes all of what its schema says it writes, and reads the rest."""
        written = self._written(call)
        read = [name for values in call.values.values() for name in values if name not in written]
        tainted = next((name for name in read if self.shadow(name).unwritten), None)
        for name in written:
            shadow = self.shadow(name)
            shadow.write() if tainted is None else shadow.memory.spoil(self.use(call.step, tainted))
        results = [self.computed(call.step, [tainted] if tainted else []) for _ in call.results]
        self._link(call, results)
        self._set(call, results)
        if tainted is not None and not call.results:
            self.found.uses.append(self.use(call.step, tainted))

    def _unknown(self, step: Step) -> None:
        """A function over values, or an operator that nothing is known of: what the latter does is its own affair."""
        names = [name for named in step.node.inputs for name in arguments(named.arg)]
        if step.node.target.startswith("torch.ops."):
            for name in names:
                self.shadow(name).write()
            return
        for output in step.node.outputs:
            for name in arguments(output):
                self.shadows[name] = (
                    shadows.lost(self.shadow(names[0])) if len(names) == 1 else self.computed(step, names)
                )
