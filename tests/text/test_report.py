"""A summary as one screen of text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests import samples
from tests.packages import edited, rewritten

import pt2kit
from pt2kit.package import record_names as names
from pt2kit.text.payloads import Amount
from pt2kit.text.report import MAX_MODULES, model_lines, module_lines, summary_lines
from pt2kit.text.sizes import find_sizes, size_lines
from pt2kit.text.summary import ModuleSummary, summarize, summarize_model

MLP = samples.sample("2.13.0", "mlp")


def _lines(data: Any) -> list[str]:
    with pt2kit.open(data) as package:
        return list(summary_lines(summarize(package)))


@pytest.mark.parametrize("path", samples.corpus(*samples.CURRENT_LAYOUT), ids=samples.release_id)
def test_real_files(path) -> None:
    """Every sample file fits on a screen or two; every line prints."""
    lines = _lines(path)
    assert len(lines) < 60
    assert all(line.isprintable() and line == line.rstrip() for line in lines)


def test_one_model() -> None:
    """The lines of one program are those of the whole file without what is around them."""
    with pt2kit.open(MLP) as package:
        lines = list(model_lines(summarize_model(package, "model")))
    assert lines == _lines(MLP)[3:-3]


def test_hostile_names() -> None:
    """Names of models, files, modules, operators and keys are escaped and cut."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        graph["nodes"][0]["target"] = "torch.ops.\x1b[31m." + "o" * 500
        graph["nodes"][1]["metadata"]["nn_module_stack"] = "k,sub\x1b[2J\x00,T\x1b"
        tree["verifiers"] = ["A\x1b"]
        tree["opset_version"] = {"aten\n": 10}
        tree["torch_version"] = "2\x1b]0;x\x07"
        tree["key\x1b"] = 1

    extra = {names.extra("f\x1b[31m" + "x" * 300): b""}
    lines = _lines(rewritten_after(change, extra))
    assert all(line.isprintable() for line in lines)
    assert all(len(line) < 700 for line in lines)


def rewritten_after(change: Any, extra: dict[str, bytes]) -> bytes:
    """The sample file with a changed program and further records."""
    with pt2kit.open(edited(MLP, change)) as package:
        record = names.model_json("model")
        program = bytes(package.archive.read(package.layout.record(record)))
    return rewritten(MLP, {record: program, **extra})


def test_trouble_is_listed() -> None:
    """Problems, unknown keys and what torch would run have their lines; long lists are cut."""

    def change(tree: Any) -> None:
        tree["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = "x"
        for number in range(20):
            tree[f"key_{number:02}"] = 1
            tree["graph_module"]["graph"]["nodes"][0]["target"] = "torch.os.system"

    lines = _lines(edited(MLP, change))
    assert any(line.startswith("  problems     in_spec: expected JSON") for line in lines)
    assert "  unknown keys models/model.json: $.key_00" in lines
    assert "               … 14 more" in lines
    assert any(line.startswith("  X7  models/model.json: $.graph_module.graph.nodes[0].target") for line in lines)


def test_long_signatures_are_cut() -> None:
    """A call with very many parameters shows the first of them and how many more there are."""

    def change(tree: Any) -> None:
        signature = tree["graph_module"]["module_call_graph"][0]["signature"]
        leaf: Any = {"type": None, "context": None, "children_spec": []}
        args = {"type": "builtins.tuple", "context": "null", "children_spec": [leaf] * 50}
        kwargs = {"type": "builtins.dict", "context": "[]", "children_spec": []}
        signature["in_spec"] = json.dumps(
            [1, {"type": "builtins.tuple", "context": "null", "children_spec": [args, kwargs]}]
        )
        specs = tree["graph_module"]["signature"]["input_specs"]
        specs += [specs[-1]] * 49

    lines = _lines(edited(MLP, change))
    assert "      … 20 parameters more" in lines
    assert len(lines) < 60


def _module(name: str, *children: ModuleSummary, kind: str = "m.Block", elements: int = 0) -> ModuleSummary:
    own = Amount(1, elements, 4 * elements) if elements else Amount()
    total = sum((child.total for child in children), own)
    tensors = (f"{name}.weight",) if elements else ()
    return ModuleSummary(name, name, kind, 0, tensors, own, total, children)


def test_equal_neighbours_are_folded() -> None:
    """Numbered modules that look alike are shown once, with the size of one; others are not."""
    layers = [_module(str(number), _module("fc", elements=6)) for number in range(5)]
    odd = _module("5", _module("fc", elements=7))
    root = _module("", _module("layers", *layers, odd), _module("norm", elements=1), kind="m.Net")
    assert list(module_lines(root)) == [
        "Net                       38  152 B",
        "  layers  Block           37  148 B",
        "    0 … 4  Block, each     6   24 B",
        "      fc  Block (weight)   6   24 B",
        "    5  Block               7   28 B",
        "      fc  Block (weight)   7   28 B",
        "  norm  Block (weight)     1    4 B",
    ]


def test_deep_trees_are_cut_by_depth() -> None:
    """A tree with more lines than the limit is shown as deep as it fits, and says what is missing."""
    wide = [_module(f"m{number}", *(_module(f"c{child}") for child in range(10))) for number in range(5)]
    lines = list(module_lines(_module("", *wide, kind="m.Net")))
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "… 50 lines more: pt2 show --module NAME"


def test_wide_trees_are_cut() -> None:
    """A root with more children than the limit shows the first of them."""
    lines = list(module_lines(_module("", *(_module(f"m{number}") for number in range(100)), kind="m.Net")))
    assert len(lines) == MAX_MODULES + 1
    assert lines[-1] == f"… {101 - MAX_MODULES} lines more: pt2 show --module NAME"


def test_modules_fit_the_terminal() -> None:
    """A line of the table of modules is as wide as the terminal at most, also with a long name."""
    long = _module(
        "", _module("a_name_of_a_module_that_is_longer_than_most_terminals_are_wide", elements=6), kind="m.Net"
    )
    with pt2kit.open(MLP) as package:
        summary = replace(summarize_model(package, "model"), modules=long)
    [shown] = [line for line in model_lines(summary, columns=60) if "a_name" in line]
    assert len(shown) <= 60
    assert shown.endswith("6  24 B")


def test_sizes_say_how_many_tensors_they_list() -> None:
    """A list of all tensors is called that; a shorter one names how many there are."""
    with pt2kit.open(MLP) as package:
        whole, short = (find_sizes(package, ["model"], top=top) for top in (99, 2))
    assert whole.tensor_count > 2
    assert "tensors" in list(size_lines(whole))
    assert f"largest tensors (2 of {whole.tensor_count})" in list(size_lines(short))
