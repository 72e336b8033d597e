"""Programs as columns: boxes, nodes, values, weights, and what goes from one to another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.pictures import HOSTILE, written
from tests import samples

import pt2kit
from pt2kit.graph import walk
from pt2kit.viewing.columns import CALL, INPUT, OPERATION, OUTPUT, REPEAT, SUBGRAPH, Picture
from pt2kit.viewing.draw import Drawing, draw

SOME = samples.corpus()[::9]


def drawn(path: Path, model: str = "model") -> Drawing:
    """A program of a file, drawn."""
    with pt2kit.open(path) as package:
        return draw(package, model if model in package.layout.models else package.layout.models[0])


def named(picture: Picture, column: list[int]) -> list[str]:
    """A column of texts as texts."""
    return [picture.texts[number] for number in column]


def test_a_small_program() -> None:
    """Inputs, calls and outputs are nodes, parameters are chips, modules are boxes."""
    picture = drawn(samples.sample("2.13.0", "dynamic_batch")).picture
    assert picture.nodes.kind == [INPUT, OPERATION, OPERATION, OPERATION, OUTPUT]
    assert named(picture, picture.boxes.name) == ["", "a", "b"]
    assert named(picture, picture.weights.name) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert list(zip(picture.chips.source, picture.chips.target, strict=True)) == [(0, 1), (1, 1), (2, 3), (3, 3)]
    assert [picture.boxes.name[box] and picture.texts[picture.boxes.name[box]] for box in picture.nodes.box] == [
        0,
        "a",
        0,
        "b",
        0,
    ]
    assert named(picture, picture.values.type) == ["f32[s77, 8]", "f32[s77, 16]", "f32[s77, 16]", "f32[s77, 4]"]
    assert len(picture.edges.source) == 4


def test_subgraphs_are_boxes() -> None:
    """An operator with subgraphs is a box that holds it and a box for each; it leads to their inputs."""
    picture = drawn(samples.sample("2.13.0", "cond")).picture
    assert [kind for kind in picture.boxes.kind if kind] == [CALL, SUBGRAPH, SUBGRAPH]
    call = picture.boxes.kind.index(CALL)
    assert picture.nodes.box[picture.boxes.node[call]] == call
    assert picture.carries.source == [picture.boxes.node[call]] * 2
    assert all(picture.nodes.kind[node] == INPUT for node in picture.carries.target)


def test_mutations_are_named() -> None:
    """An output that changes a buffer says which."""
    picture = drawn(samples.sample("2.13.0", "buffer_mutation__decomp")).picture
    assert "buffer_mutation" in named(picture, picture.nodes.target)


@pytest.mark.parametrize("path", SOME, ids=samples.release_id)
def test_every_call_is_drawn(path: Path) -> None:
    """Each call of each graph is one node, each number points to something, boxes lead to the root."""
    with pt2kit.open(path) as package:
        for model, program in package.programs.items():
            drawing = draw(package, model)
            picture = drawing.picture
            assert [step.node for step in drawing.steps if step].__len__() == sum(1 for _ in walk(program))
            count = len(picture.nodes.kind)
            assert all(0 <= node < count for node in (*picture.edges.target, *picture.chips.target))
            assert all(0 <= value < len(picture.values.node) for value in picture.edges.source)
            for box in range(len(picture.boxes.parent)):
                seen = 0
                while box > 0:
                    box, seen = picture.boxes.parent[box], seen + 1
                    assert seen < 100
                assert box == 0


def test_equal_layers_are_put_together(tmp_path: Path) -> None:
    """Layers that are equal up to names are one box; where they are all there is, their parent says how many."""
    picture = drawn(written("layers", 28, tmp_path / "layers.json")).picture
    assert picture.boxes.repeat[named(picture, picture.boxes.path).index("layers")] == 28
    groups = [box for box, kind in enumerate(picture.boxes.kind) if kind == REPEAT]
    assert {picture.boxes.repeat[box] for box in groups} == {4}
    assert picture.guessed is False


def test_modules_are_guessed_where_a_file_names_none(tmp_path: Path) -> None:
    """Without module stacks, nodes are in the module of the parameters they use; the picture states that."""
    from benchmarks.pictures import layers

    from pt2kit import codec

    tree = codec.to_tree(layers(3))
    for node in tree["graph_module"]["graph"]["nodes"]:
        node["metadata"].clear()
    path = tmp_path / "bare.json"
    path.write_bytes(json.dumps(tree).encode())
    picture = drawn(path).picture
    assert picture.guessed is True
    boxes = named(picture, picture.boxes.path)
    places = dict(zip(named(picture, picture.nodes.name), (boxes[box] for box in picture.nodes.box), strict=True))
    assert places["mlp_1_0"] == "layers.1.mlp"
    assert places["norm2_1_3"] == "layers.1"


def test_texts_are_harmless(tmp_path: Path) -> None:
    """Whatever a file holds, no control or bidirectional character gets into a picture, and no text is long."""
    picture = drawn(written("names", 5000, tmp_path / "names.json")).picture
    assert all(text.isprintable() and len(text) <= 2001 for text in picture.texts)
    assert len([kind for kind in picture.nodes.kind if kind == OPERATION]) == len(HOSTILE) + 1
