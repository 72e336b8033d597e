"""Views in notebooks: the page, in a frame that may do nothing but run its own script."""

from __future__ import annotations

import html
import re

import msgspec
from tests import samples

import pt2kit

PATH = samples.sample("2.13.0", "mlp")


def test_view() -> None:
    """`pt2kit.view` takes what `open` takes, and gives the page in a frame without rights."""
    shown = pt2kit.view(PATH)._repr_html_()
    assert 'sandbox="allow-scripts"' in shown
    [source] = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(source) == pt2kit.view(PATH).page


def test_a_package_shows_itself() -> None:
    """A package at the end of a cell is its picture."""
    with pt2kit.open(PATH) as package:
        assert package._repr_html_() == pt2kit.view(package)._repr_html_()
        assert package.weights()


def test_a_diff_shows_itself() -> None:
    """The page of `pt2 diff --html`, in a frame."""
    diff = pt2kit.diff(PATH, samples.sample("2.1.2", "mlp"))
    [source] = re.findall(r'srcdoc="([^"]*)"', diff._repr_html_())
    assert "addmm" in html.unescape(source)


def test_a_program_shows_itself() -> None:
    """The lines of `pt2 show --graph`; what a file says is text in it."""
    with pt2kit.open(PATH) as package:
        program = package.programs["model"]
    shown = program._repr_html_()
    assert "%linear: f32[3, 16] = aten.linear.default(" in html.unescape(shown)
    node = program.graph_module.graph.nodes[0]
    hostile = msgspec.structs.replace(node, target="<script>alert(1)</script>")
    graph = msgspec.structs.replace(program.graph_module.graph, nodes=[hostile])
    module = msgspec.structs.replace(program.graph_module, graph=graph)
    assert "<script" not in msgspec.structs.replace(program, graph_module=module)._repr_html_()


def test_two_files() -> None:
    """With a second file it is the comparison."""
    assert "changes/0" in pt2kit.view(PATH, samples.sample("2.12.0", "mlp")).page


def test_calls_of_the_room_and_of_the_function_are_one() -> None:
    """Importing something of the subpackage does not take the function away."""
    from pt2kit.viewing.page import view

    assert pt2kit.view(PATH).page == view(PATH).page
