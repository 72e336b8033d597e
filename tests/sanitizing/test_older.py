"""Formats no release writes any more: containers, bare JSON, drafts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.package.test_legacy_programs import container, packed, program_of
from tests.sanitizing.files import sanitized

import pt2kit
from pt2kit.errors import UnsupportedError

GOLDEN = Path(__file__).parents[1] / "golden" / "programs"


def test_methods_of_a_container() -> None:
    """Each method becomes a program of its own, with the weights that it has; the report names it."""
    methods = {"step": program_of("2.7.1", "sym_arith_simple"), "forward": program_of("2.6.0", "mlp")}
    data = packed(container(program={"methods": methods}))
    clean, done = sanitized(data)
    assert [text for text in done.raised if "container" in text] == [
        "model.step: a method of the container m became a program of its own",
        "model: a method of the container m became a program of its own",
    ]
    with pt2kit.open(clean) as new, pt2kit.open(data) as old:
        assert list(new.programs) == ["model.step", "model"]
        assert new.stored["model"].model is None
        for name, view in old.weights().items():
            np.testing.assert_array_equal(new.weights()[name].numpy(), view.numpy())
    assert sanitized(clean)[0] == clean


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"delegates": {"npu": {"methods": {}}}}, r"a model with delegates \(npu\)"),
        ({"deviceAllocationMap": {"cuda:0": "cpu"}}, r"a model with a map of devices \(.*cuda:0.*\)"),
    ],
)
def test_containers_that_give_more(more: dict[str, object], text: str) -> None:
    """Parts that a program alone cannot have are not dropped: the file is refused."""
    with pytest.raises(UnsupportedError, match=f"model: expected a program that stands alone, .*{text}.*Z6"):
        sanitized(packed(container(**more)))


def test_a_program_without_its_weights() -> None:
    """A JSON file of a program alone has no weights to go into the new file: they are asked for by name."""
    with pytest.raises(UnsupportedError, match=r"model: 'a\.weight': expected a weight or constant of that name.*Z4"):
        sanitized(GOLDEN / "8.8.json")


def test_a_draft_with_its_files() -> None:
    """A draft reads its tensors from next to it; they go into the new file."""
    clean, done = sanitized(GOLDEN / "draft.json")
    with pt2kit.open(clean) as new, pt2kit.open(GOLDEN / "draft.json") as old:
        assert new.layout.kind == "archive"
        assert new.weights().keys() == old.weights().keys()
        for name, view in old.weights().items():
            np.testing.assert_array_equal(new.weights()[name].numpy(), view.numpy())
    assert done.moved == ()
    assert sanitized(clean)[0] == clean
