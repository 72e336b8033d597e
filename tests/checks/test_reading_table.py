"""The table of what operators read: every name in it is an operator, and does to its arguments what the table says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from pt2kit.checks import reading_table, schemas
from pt2kit.schema.operator_text import Operator, parse_operator
from pt2kit.schema.operators import known_releases


def overloads(name: str) -> Iterator[Operator]:
    """The signatures that an operator of aten or prims has, in any release."""
    for release in known_releases():
        for full, text in schemas.operators(release).schemas.items():
            if full.split(".")[:2] in (["aten", name], ["prims", name]):
                yield parse_operator(text)


def missing(names: Iterable[str]) -> list[str]:
    """Names that no release has."""
    known = {full.split(".")[1] for release in known_releases() for full in schemas.operators(release).schemas}
    return sorted(set(names) - known)


@pytest.mark.parametrize(
    "table",
    [
        "SOURCES",
        "RESIZED",
        "OVERWRITING",
        "PARTLY",
        "PARTLY_COPIED",
        "BROADCAST",
        "COPIES",
        "SHAPE_ONLY",
        "READ_OR_WRITTEN",
    ],
)
def test_names(table: str) -> None:
    """Each is an operator of some release."""
    assert missing(getattr(reading_table, table)) == []


def test_other_names() -> None:
    """Copies, and arguments that a flag makes read or written, are those of operators, too."""
    assert missing(reading_table.COPIES) == missing(reading_table.READ_OR_WRITTEN) == []


def test_what_writes_is_said_to_write_by_its_schema() -> None:
    """Operators that overwrite, or write a part, have an argument that is written."""
    for name in reading_table.OVERWRITING | reading_table.PARTLY:
        assert any(p.type.is_written for found in overloads(name) for p in found.parameters.values()), name


def test_what_copies_writes_nothing() -> None:
    """Operators whose result is another tensor write into none of their arguments, but for one called out."""
    for name in reading_table.PARTLY_COPIED:
        for found in overloads(name):
            written = {p.name for p in found.parameters.values() if p.type.is_written}
            assert written <= {"out"}, name


def test_shape_only_arguments_are_tensors() -> None:
    """An argument that is looked at for its shape is a tensor, or a list of them, of some overload."""
    for name, arguments in reading_table.SHAPE_ONLY.items():
        tensors = {p.name for found in overloads(name) for p in found.parameters.values() if p.type.base == "Tensor"}
        assert tensors & arguments, name


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("torch.ops.aten.empty.memory_format", True),
        ("torch.ops.prims.empty_strided.default", True),
        ("torch.ops.aten.resize_.default", True),
        ("torch.ops.aten.zeros.default", False),
        ("torch.ops.mine.empty.default", False),
        ("empty", False),
    ],
)
def test_sources(target: str, expected: bool) -> None:
    """What brings memory that nothing was written to is an operator of torch, in its full name."""
    assert reading_table.is_source(target) is expected
