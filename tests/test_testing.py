"""`assert_same_program`: silent for one program packed twice, and a list of what differs for two."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests import samples

import pt2kit
from pt2kit.editing import passes
from pt2kit.testing import assert_same_program

MODEL = samples.sample("2.13.0", "dynamic_batch")


def test_packed_otherwise_it_is_the_same(tmp_path: Path) -> None:
    """Sanitized, without traces, with renamed values; as a path, an open package and bytes."""
    pt2kit.sanitize(MODEL, tmp_path / "clean.pt2", strip=("metadata",))
    assert_same_program(MODEL, tmp_path / "clean.pt2")
    with pt2kit.open(MODEL) as package:
        assert_same_program(package, (tmp_path / "clean.pt2").read_bytes())


def test_what_differs_is_listed() -> None:
    """Expected first: what was there goes, what is there comes."""
    with pt2kit.edit(MODEL) as editor:
        passes.rename_operators(editor, {"aten::relu": "aten::gelu"})
    with pytest.raises(AssertionError, match=r"(?s)expected the same program\n.*relu.*gelu"):
        assert_same_program(editor.result, MODEL)


def test_a_number_counts_unless_it_is_not_asked_for() -> None:
    """One weight with other numbers."""
    with pt2kit.edit(MODEL) as editor:
        editor.set_weight("b.bias", editor.weights["b.bias"].numpy() + 1)
    with pytest.raises(AssertionError, match=r"b\.bias"):
        assert_same_program(editor.result, MODEL)
    assert_same_program(editor.result, MODEL, tensors=False)


def test_records_and_metadata_count_if_asked_for(tmp_path: Path) -> None:
    """Sample inputs that were moved, traces that are gone."""
    pt2kit.sanitize(MODEL, tmp_path / "clean.pt2", strip=("metadata",))
    with pytest.raises(AssertionError, match="sample_inputs"):
        assert_same_program(tmp_path / "clean.pt2", MODEL, records=True)
    with pytest.raises(AssertionError, match="metadata"):
        assert_same_program(tmp_path / "clean.pt2", MODEL, metadata=True)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="live programs need torch")
def test_live_programs() -> None:
    """A program that was loaded is the one in the file."""
    assert_same_program(pt2kit.load(MODEL), MODEL)
