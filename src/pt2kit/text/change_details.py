"""One change -> what differs in it as text: `argument dim: -1 -> -2`, `values: 12 of 4,096 differ, by at most 0.5`."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from pt2kit import codec
from pt2kit.diffs import Change, Detail, ValueDifference
from pt2kit.schema import Argument, ConstantValue, Device, RangeConstraint, ScalarType, SymFloat, SymInt, TensorMeta
from pt2kit.text.arguments import argument_text
from pt2kit.text.names import dotted, printable
from pt2kit.text.program import target_text
from pt2kit.text.values import ValueTexts, bounds_text, device_text, dtype_text

MAX_VALUE: Final = 160
"""Characters of one value."""

Texts = tuple[ValueTexts, ValueTexts] | None
"""Of the old and the new program; None where there is none."""


def change_lines(change: Change, texts: Texts) -> Iterator[str]:
    """The properties that differ, a line each."""
    for detail in change.details:
        if isinstance(detail.new, ValueDifference):
            yield f"{printable(detail.what)}: {value_difference_text(detail.new)}"
            continue
        old, new = differences_text(detail, texts)
        yield f"{printable(detail.what)}: {old} -> {new}"


def differences_text(detail: Detail, texts: Texts) -> tuple[str, str]:
    """What a property was and is, as text; where long texts differ late, from where they differ."""
    old, new = (_text(value, detail.what, texts and texts[side]) for side, value in enumerate((detail.old, detail.new)))
    if max(len(old), len(new)) <= MAX_VALUE:
        return printable(old, MAX_VALUE), printable(new, MAX_VALUE)
    same = next((n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), 0)
    start = max(0, same - MAX_VALUE // 4)
    prefix = "…" if start else ""
    return tuple(prefix + printable(text[start:], MAX_VALUE) for text in (old, new))  # type: ignore[return-value]


def kind_of(change: Change, texts: Texts) -> object:
    """What changes must have in common to count as alike: the same properties, and the same values but names."""
    return (
        change.kind,
        change.area,
        tuple(
            (detail.what, *(("", "") if _names_things(detail) else differences_text(detail, texts)))
            for detail in change.details
        ),
    )


def _names_things(detail: Detail) -> bool:
    """Whether a detail is about names or numbers of its own, so that no two are equal."""
    values = (detail.old, detail.new)
    return detail.what in ("name", "place", "bytes", "crc32", "write order") or any(
        isinstance(value, ValueDifference)
        or (isinstance(value, Argument) and value.type in ("as_tensor", "as_tensors", "as_sym_int", "as_sym_ints"))
        for value in values
    )


def value_difference_text(found: ValueDifference) -> str:
    """How far the numbers of two tensors are apart."""
    parts = [f"{found.changed:,} of {found.elements:,} differ"]
    if found.max_difference is not None:
        parts.append(f"by at most {found.max_difference:.6g}")
    if found.relative_norm is not None:
        parts.append(f"relative norm {found.relative_norm:.3g}")
    return ", ".join(parts)


def _text(value: Any, what: str, texts: ValueTexts | None) -> str:
    """Any value of a detail."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return target_text(value) if what == "target" else value
    if isinstance(value, Argument | ConstantValue):
        return argument_text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(item, what, texts) for item in value)}]"
    if isinstance(value, dict):
        return ", ".join(f"{dotted(str(key))} {_text(item, what, texts)}" for key, item in value.items()) or "nothing"
    if isinstance(value, RangeConstraint):
        return bounds_text(value.min_val, value.max_val)
    if isinstance(value, ScalarType):
        return dtype_text(value)
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, Device):
        return device_text(value)
    if texts is not None and isinstance(value, SymInt):
        return texts.size(value)
    if texts is not None and isinstance(value, SymFloat):
        return texts.symbolic(value)
    if texts is not None and isinstance(value, TensorMeta):
        return texts.meta(value)
    return str(value) if isinstance(value, int | float) else codec.encode(value).decode()
