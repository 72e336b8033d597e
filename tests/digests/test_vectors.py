"""The definition in `docs/digest.md`: its vectors, and an implementation of its text alone, against ours."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.digests.packing import records
from tests.digests.reference import B, H, digests
from tests.digests.vectors import PATH, text, untagged
from tests.samples import CURRENT_LAYOUT, DATA, corpus, release_id, sample

import pt2kit
from pt2kit import codec, schema
from pt2kit.canonical import encode_value
from pt2kit.digests import digest, digest_program
from pt2kit.digests.result import hash_bytes, hash_value

PAGE = (Path(__file__).parents[2] / "docs" / "digest.md").read_text()
VECTORS = re.findall(r"^\| `(\w+)\.pt2` \| (\w+) \| `(\w{64})` \|$", PAGE, re.MULTILINE)


FILE = json.loads(PATH.read_text(encoding="utf-8"))


def test_the_file_of_vectors_is_up_to_date() -> None:
    """It is what `python -m tests.digests.vectors` writes, from an implementation that shares no code with pt2kit."""
    assert PATH.read_text(encoding="utf-8") == text()


def test_values_have_the_bytes_and_digests_of_the_file() -> None:
    """Every kind of value, and every kind of digest."""
    for row in FILE["encodings"]:
        assert encode_value(untagged(row["value"])).hex() == row["bytes"], row
    for row in FILE["hashes"]:
        value = untagged(row["value"])
        found = hash_bytes([value]) if row["kind"] == "bytes" else hash_value(row["kind"], value)
        assert found.hex() == row["sha256"], row


def test_programs_have_the_digests_of_the_file() -> None:
    """One for all ways to write a program, another for every other program."""
    groups: dict[str, set[tuple[str, ...]]] = {}
    for row in FILE["programs"]:
        found = digest_program(codec.convert(row["program"], schema.ExportedProgram, row["group"]).value)
        assert found == row["digests"], row["group"]
        meaning = tuple(found[part] for part in ("graph", "signature", "constraints"))
        groups.setdefault(row["group"], set()).add(meaning)
    assert all(len(found) == 1 for found in groups.values())
    assert len({(one[0], one[2]) for found in groups.values() for one in found}) == len(groups)


@pytest.mark.parametrize("name", FILE["files"])
def test_files_have_the_digests_of_the_file(name: str) -> None:
    """All of each model: parts and tensors."""
    path = DATA / "corpus" / f"{name}.pt2"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FILE["files"][name]["sha256"]
    with pt2kit.open(path) as package:
        found = {model: digest(package, model).to_tree() for model in sorted(package.layout.models)}
    assert found == FILE["files"][name]["models"]


def test_the_page_has_vectors() -> None:
    """A vector for each part, at least."""
    assert {part for _, part, _ in VECTORS} >= {"program", "graph", "signature", "constraints", "weights", "metadata"}


@pytest.mark.parametrize(("name", "part", "expected"), VECTORS)
def test_files_have_the_digests_that_the_page_says(name: str, part: str, expected: str) -> None:
    """Digests never change: they are kept and compared."""
    assert getattr(digest(sample("2.13.0", name)), part) == f"sha256:{expected}"


def test_values_have_the_digests_that_the_page_says() -> None:
    """The two hash functions."""
    found = dict(re.findall(r"^\| `(\w{64})` \| `(.+)` \|$", PAGE, re.MULTILINE))
    constraints: dict[str, Any] = {"guards_code": [], "range_constraints": {}}
    expected = {
        hash_bytes([b"a", b"bc"]).hex(): 'B("abc")',
        hash_value("constraints", constraints).hex(): 'H("constraints", {guards_code: [], range_constraints: {}})',
        hash_value("payloads", {"tensors": {}, "shared": []}).hex(): 'H("payloads", {shared: [], tensors: {}})',
    }
    assert found == expected
    assert (B(b"abc"), H("constraints", constraints)) == (hash_bytes([b"abc"]), hash_value("constraints", constraints))


@pytest.mark.parametrize("path", corpus(*CURRENT_LAYOUT), ids=release_id)
def test_the_text_of_the_page_gives_the_same_digests(path: Path) -> None:
    """Who implements the page gets what pt2kit gets."""
    with pt2kit.open(path) as package:
        for model in package.layout.models:
            found = digest(package, model).to_tree()
            assert digests(records(path), model) == found
