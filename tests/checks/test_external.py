"""Payloads next to an archive: what is said of files that are missing, leave the folder or hold something else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.package.outside import relisted
from tests.samples import sample

import pt2kit
from pt2kit.checks import check
from pt2kit.checks.payloads import external_problems

NAME = "w.safetensors"


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A file whose two weights are next to it."""
    with pt2kit.open(sample("2.13.0", "shared_weights")) as package:
        pt2kit.write(package, tmp_path / "m.pt2", external=NAME)
    return tmp_path / "m.pt2"


def said(path: Path) -> list[tuple[str, str, str]]:
    """Severity, rule, and place and message of each problem with files next to an archive."""
    with pt2kit.open(path) as package:
        found = list(external_problems(package))
    return [(problem.severity, problem.rule, f"{problem.loc}: {problem.message}") for problem in found]


def test_nothing_beside_it() -> None:
    """An archive that is whole has nothing to be told."""
    assert said(sample("2.13.0", "mlp")) == []


def test_sound(apart: Path) -> None:
    """That weights are next to it is a note, with their number, bytes and file; nothing is wrong."""
    ((severity, rule, message),) = said(apart)
    with pt2kit.open(apart) as package:
        count, total = len(package.external), sum(row.nbytes for row in package.external.values())
    assert (severity, rule) == ("note", "B7")
    assert message.startswith(
        f"data/external_payloads.json: {count:,} of the payloads ({total:,} bytes) are in {NAME}: torch does not read"
    )
    assert check(apart).ok


def gone(path: Path) -> None:
    path.with_name(NAME).unlink()


def elsewhere(path: Path) -> None:
    relisted(path, url="../w.safetensors")


def no_header(path: Path) -> None:
    path.with_name(NAME).write_bytes(b"\xff" * 64)


def another_type(path: Path) -> None:
    relisted(path, dtype="I32")


def another_name(path: Path) -> None:
    relisted(path, tensor="nothing of that name")


BROKEN: list[tuple[Callable[[Path], None], str, str]] = [
    (gone, "B3", "w.safetensors"),
    (elsewhere, "B2", "../w.safetensors"),
    (no_header, "B4", "w.safetensors"),
    (another_type, "B5", "I32"),
    (another_name, "B5", "nothing of that name"),
]


@pytest.mark.parametrize(("change", "rule", "text"), BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_broken(apart: Path, change: Callable[[Path], None], rule: str, text: str) -> None:
    """After the note comes what is wrong: once for a whole file, for each payload otherwise; the file is not sound."""
    with pt2kit.open(apart) as package:
        count = len(package.external)
    change(apart)
    note, *errors = said(apart)
    assert note[1] == "B7"
    assert [(severity, found) for severity, found, _ in errors] == [("error", rule)] * (
        1 if rule in ("B2", "B3", "B4") else count
    )
    assert text in errors[0][2]
    assert not check(apart).ok


def test_each_broken_file_is_told_once(tmp_path: Path) -> None:
    """Of several files that are missing, each is reported, however many payloads it has."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        pt2kit.write(package, tmp_path / "m.pt2", external=NAME)
        first, second, *others = [row.tensor for row in package.external.values()] or package.weights()
    for tensor in (first, second, *others):
        relisted(tmp_path / "m.pt2", only=tensor, url="x.safetensors" if tensor in (first, second) else "y.safetensors")
    assert [rule for _, rule, _ in said(tmp_path / "m.pt2")] == ["B7", "B3", "B3"]


def test_other_bytes_are_told_where_payloads_are_read(apart: Path) -> None:
    """Bytes are compared with their SHA-256 with `payloads`, which reads them."""
    weights = apart.with_name(NAME)
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    os.utime(weights)
    assert check(apart).ok
    assert {problem.rule for problem in check(apart, payloads=True).errors} == {"B6"}
