"""The module tree with its sizes."""

from __future__ import annotations

from typing import Any

from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit.text.payloads import Amount
from pt2kit.text.summary import ModuleSummary, summarize_modules


def _modules(data: Any) -> ModuleSummary | None:
    with pt2kit.open(data) as package:
        return summarize_modules(package.programs["model"], package.weights())


def _walk(node: ModuleSummary):
    yield node
    for child in node.children:
        yield from _walk(child)


def test_sizes() -> None:
    """A module has what it holds itself and what is below it; the root has everything."""
    root = _modules(samples.sample("2.13.0", "convnet"))
    assert root is not None
    assert str(root.type).endswith("ConvNet")
    assert root.total == Amount(9, 214, 860)
    assert root.own == Amount()
    assert {child.fqn: (child.own.elements, child.total.elements) for child in root.children} == {
        "conv": (112, 112),
        "bn": (17, 17),
        "fc": (85, 85),
    }


def test_totals_add_up() -> None:
    """In every sample file, totals are the sums of what is below, and every weight is in one module."""
    for path in samples.corpus(*samples.CURRENT_LAYOUT):
        with pt2kit.open(path) as package:
            weights = package.weights()
            root = summarize_modules(package.programs["model"], weights)
        assert root is not None
        found = [name for node in _walk(root) for name in node.tensors]
        assert sorted(found) == sorted(weights)
        assert root.total.bytes == sum(view.nbytes for view in weights.values())
        for node in _walk(root):
            assert node.total.elements == node.own.elements + sum(child.total.elements for child in node.children)


def test_nonsense_in_metadata() -> None:
    """Module stacks that cannot be read are passed over; the names of weights still make a tree."""

    def change(tree: Any) -> None:
        for node in tree["graph_module"]["graph"]["nodes"]:
            node["metadata"]["nn_module_stack"] = "a;;b,(((\x1b"

    root = _modules(edited(samples.sample("2.13.0", "convnet"), change))
    assert root is not None
    assert [child.name for child in root.children] == ["conv", "bn", "fc"]
    assert {child.type for child in root.children} == {None}


def test_too_many_modules() -> None:
    """A call graph with more modules than the tree takes has no tree; nothing is raised."""

    def change(tree: Any) -> None:
        entries = tree["graph_module"]["module_call_graph"]
        entries += [{"fqn": f"m{number}", "signature": None} for number in range(200_001)]

    assert _modules(edited(samples.sample("2.13.0", "mlp"), change)) is None
