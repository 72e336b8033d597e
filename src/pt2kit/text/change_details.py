"""Text of one change between two files: `argument dim: -1 -> -2`, `values: 12 of 4,096 differ, by at most 0.5`.

`Line` is the unit of a comparison's text; the limits on how much is shown are those of all its sections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from pt2kit import codec
from pt2kit.diffs.changes import Change, Detail
from pt2kit.diffs.tensors import ValueDifference
from pt2kit.messages import printable
from pt2kit.schema import Argument, ConstantValue, Device, RangeConstraint, ScalarType, SymFloat, SymInt, TensorMeta
from pt2kit.text.format import dotted
from pt2kit.text.program import target_text
from pt2kit.text.values import ValueTexts, argument_text, bounds_text, device_text, dtype_text

MAX_VALUE: Final = 160
"""Characters of one value."""

ALIKE: Final = 3
"""Changes of one kind that are shown; the rest of them is counted."""

SHOWN: Final = 100
"""Changes of one section that are shown."""

NAMED: Final = 5
"""Names in a list of what was left out."""

Texts = tuple[ValueTexts, ValueTexts] | None
"""Of the old and the new program; None where there is none."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a section.

    Args:
        mark: "+", "-", "~", "@" for where a piece of a graph begins, or "" for context and for details.
        text: what to print; printable.
    """

    mark: str
    text: str


def left_out(changes: Sequence[Change]) -> Line:
    """Return how many changes of one kind are not shown, and the names of the first of them."""
    names = ", ".join(dotted(change.name) for change in changes[:NAMED])
    more = ", …" * (len(changes) > NAMED)
    return Line("", f"… {len(changes):,} more {changes[0].kind} like these: {names}{more}")


def change_lines(change: Change, texts: Texts, *, full: bool = True) -> Iterator[str]:
    """Yield the properties that differ, a line each.

    Args:
        change: a modified thing.
        texts: of the old and the new program.
        full: show how the metadata of a node differs; otherwise only which metadata differs.
    """
    is_brief = change.area == "node" and not full
    for detail in change.details:
        if isinstance(detail.new, ValueDifference):
            yield f"{printable(detail.what)}: {value_differences_text([detail.new])}"
        elif not (is_brief and _is_metadata(detail)):
            old, new = differences_text(detail, texts)
            yield f"{printable(detail.what)}: {old} -> {new}"
    if is_brief and (
        keys := [detail.what.removeprefix("metadata ") for detail in change.details if _is_metadata(detail)]
    ):
        yield f"metadata: {printable(', '.join(keys))}"


def _is_metadata(detail: Detail) -> bool:
    return detail.what.startswith("metadata ")


def differences_text(detail: Detail, texts: Texts) -> tuple[str, str]:
    """Return a property before and after as text; long texts that differ late begin at the difference."""
    old, new = (_text(value, detail.what, texts and texts[side]) for side, value in enumerate((detail.old, detail.new)))
    if max(len(old), len(new)) <= MAX_VALUE:
        return printable(old, MAX_VALUE), printable(new, MAX_VALUE)
    same = next((n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), 0)
    start = max(0, same - MAX_VALUE // 4)
    prefix = "…" if start else ""
    return tuple(prefix + printable(text[start:], MAX_VALUE) for text in (old, new))  # type: ignore[return-value]


def kind_of(change: Change, texts: Texts) -> object:
    """Return the key by which changes are grouped: the same properties, and the same values except names."""
    return (
        change.kind,
        change.area,
        tuple(
            (detail.what, *(("", "") if _names_things(detail) else differences_text(detail, texts)))
            for detail in change.details
        ),
    )


def _names_things(detail: Detail) -> bool:
    """Return whether a detail is about names or numbers of its own, so that no two are equal."""
    values = (detail.old, detail.new)
    return (
        detail.what in ("name", "place", "bytes", "crc32", "write order")
        or _is_metadata(detail)
        or any(
            isinstance(value, ValueDifference)
            or (isinstance(value, Argument) and value.type in ("as_tensor", "as_tensors", "as_sym_int", "as_sym_ints"))
            for value in values
        )
    )


def value_differences_text(found: Sequence[ValueDifference]) -> str:
    """Return how far the values of some pairs of tensors are apart: how many differ, the greatest distance, the
    norms."""
    changed, elements = sum(one.changed for one in found), sum(one.elements for one in found)
    parts = [f"{changed:,} of {elements:,} differ"]
    if distances := [one.max_difference for one in found if one.max_difference is not None]:
        parts.append(f"by at most {max(distances):.6g}")
    if norms := sorted({f"{one.relative_norm:.3g}" for one in found if one.relative_norm is not None}, key=float):
        parts.append(f"relative norm {norms[0]}{f' … {norms[-1]}' if len(norms) > 1 else ''}")
    return ", ".join(parts)


def _text(value: Any, what: str, texts: ValueTexts | None) -> str:
    """Return any value of a detail as text."""
    if value is None:
        return "absent"
    if isinstance(value, str):
        return target_text(value) if what == "target" else value
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(item, what, texts) for item in value)}]"
    if isinstance(value, dict):
        return ", ".join(f"{dotted(str(key))} {_text(item, what, texts)}" for key, item in value.items()) or "nothing"
    shown = _TEXTS
    if texts is not None:
        shown = {**_TEXTS, SymInt: texts.size, SymFloat: texts.symbolic, TensorMeta: texts.meta}
    if type(value) in shown:
        return shown[type(value)](value)
    if isinstance(value, IntEnum):
        return value.name
    return str(value) if isinstance(value, int | float) else codec.encode(value).decode()


_TEXTS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    **dict.fromkeys((Argument, ConstantValue), argument_text),
    RangeConstraint: lambda value: bounds_text(value.min_val, value.max_val),
    ScalarType: dtype_text,
    Device: device_text,
}
"""Class of the schema -> how its values are shown."""
