"""Sample inputs follow the call: dropped, reordered and renamed with the arguments, or left out with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.samples import sample

import pt2kit
from pt2kit.editing import passes
from pt2kit.errors import GraphError


def samples(package: Any) -> tuple[list[Any], dict[str, Any]] | None:
    """Sample inputs with tensors as (description, bytes)."""
    held = package.sample_inputs()
    if held is None:
        return None

    def plain(value: Any) -> Any:
        return (value.describe(), value.tobytes()) if hasattr(value, "tobytes") else value

    return [plain(one) for one in held[0]], {name: plain(one) for name, one in held[1].items()}


@pytest.mark.parametrize("name", ["cond", "odd_names", "scalar_inputs", "none_input", "sdpa", "embedding_bag"])
def test_reordered(name: str) -> None:
    """Each argument keeps its sample: tensors, numbers, texts and None."""
    path = sample("2.13.0", name)
    with pt2kit.open(path) as package:
        before = samples(package)
        editor = pt2kit.edit(package)
        editor.reorder_inputs(editor.calls.names("test")[::-1])
        after = samples(editor.finish())
    assert before is not None
    assert after == (before[0][::-1], before[1])
    assert editor.notes == []


def test_dropped() -> None:
    """The sample of an argument goes with it, and the others stay."""
    with pt2kit.open(sample("2.13.0", "unused_input")) as package:
        before = samples(package)
        editor = pt2kit.edit(package)
        [unused] = [number for number, one in enumerate(editor.user_inputs) if one.value and not one.value.is_used]
        editor.drop_input(editor.user_inputs[unused].name)
        after = samples(editor.finish())
    assert before is not None
    assert after == (before[0][:unused] + before[0][unused + 1 :], before[1])


def test_new_arguments_have_no_sample() -> None:
    """With an argument that was not there before, all are left out, and the editor says why."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        editor = pt2kit.edit(package)
        editor.add_input("more", editor.user_inputs[0].value)
        assert samples(editor.finish()) is None
    assert editor.notes == [
        "the sample inputs of model were left out: the program takes an argument that it did not take before"
    ]


def test_what_cannot_be_written_is_told() -> None:
    """Containers of registered classes need those classes to be written: the reason names them."""
    with pt2kit.open(sample("2.13.0", "kwargs_and_nested_inputs")) as package:
        editor = pt2kit.edit(package)
        editor.rename_input(editor.calls.names("test")[-1], "brand_new")
        assert samples(editor.finish()) is None
    [note] = editor.notes
    assert "got collections.namedtuple" in note


def test_other_edits_leave_them_alone() -> None:
    """An edit that keeps the call keeps the record."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        with pt2kit.edit(package) as editor:
            passes.rename_operators(editor, {"aten::relu": "aten::gelu"})
        assert samples(editor.result) == samples(package)
        assert editor.notes == []


@pytest.mark.parametrize("release", ["2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0"])
def test_edits_that_change_nothing_keep_the_digest(release: str) -> None:
    """Sparse weights of older layouts, too: renamed there and back, the package is the one it was."""
    path = sample(release, "sparse_buffer")
    with pt2kit.open(path) as package:
        with pt2kit.edit(package) as editor:
            name = editor.user_inputs[0].name
            editor.rename_input(name, "other")
            editor.rename_input("other", name)
        assert pt2kit.digest(editor.result) == pt2kit.digest(path)


def test_samples_fit_the_ranges_and_each_other() -> None:
    """A size outside the range of its symbol is refused, and so are two sizes for one symbol."""
    with pt2kit.edit(sample("2.13.0", "dynamic_batch")) as editor:
        [one] = [one for one in editor.user_inputs if one.value is not None]
        [symbol] = editor.ranges
        editor.ranges[symbol] = (2, 9)
        more = editor.add_input("more", one.value)
        assert one.value is not None
        assert one.value.shape is not None
        rest = [size for size in one.value.shape if isinstance(size, int)]
        fitting = np.zeros((4, *rest), np.float32)
        with pytest.raises(
            GraphError, match=rf"set_sample_inputs: '{one.name}': expected {symbol} from 2 to 9, got 12"
        ):
            editor.set_sample_inputs({one.name: np.zeros((12, *rest), np.float32), "more": fitting})
        with pytest.raises(GraphError, match=r"expected sizes \['s"):
            editor.set_sample_inputs({one.name: fitting, "more": np.zeros((5, *rest), np.float32)})
        assert editor.samples is None
        editor.set_sample_inputs({one.name: fitting, more.name: fitting})
    held = editor.result.sample_inputs()
    assert held is not None
    assert [view.sizes for view in held[0]] == [fitting.shape, fitting.shape]
