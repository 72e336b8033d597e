"""The definition in `docs/digest.md`: its vectors, and an implementation of its text alone, against ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.digests.packing import records
from tests.digests.reference import B, H, digests
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample

import pt2kit
from pt2kit.digests import digest
from pt2kit.digests.hashing import hash_bytes, hash_value

PAGE = (Path(__file__).parents[2] / "docs" / "digest.md").read_text()
VECTORS = re.findall(r"^\| `(\w+)\.pt2` \| (\w+) \| `(\w{64})` \|$", PAGE, re.MULTILINE)


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
    constraints = {"guards_code": [], "range_constraints": {}}
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
