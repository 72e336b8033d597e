"""Equal modules in a row are one box, whatever the values in them are called and in which order calls are stored."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from benchmarks.pictures import META, call, program, stack_of
from tests.viewing.test_draw import drawn, named

from pt2kit import codec, schema
from pt2kit.graph import node_outputs
from pt2kit.graph.argument_values import arguments
from pt2kit.viewing.columns import REPEAT

ADD, MUL, FILL = "torch.ops.aten.add.Tensor", "torch.ops.aten.mul.Tensor", "torch.ops.aten.relu_.default"


@dataclasses.dataclass(frozen=True)
class Layer:
    """The calls of one layer: each is (operator, arguments by schema name, result); `in` is its input."""

    calls: Sequence[tuple[str, tuple[tuple[str, str], ...], str]]


ATTENTION = Layer(
    (
        ("torch.ops.aten.linear.default", (("input", "in"), ("weight", "w")), "q"),
        ("torch.ops.aten.linear.default", (("input", "in"), ("weight", "w2")), "k"),
        ("torch.ops.aten.relu.default", (("self", "q"),), "rq"),
        ("torch.ops.aten.gelu.default", (("self", "k"),), "gk"),
        (MUL, (("self", "rq"), ("other", "gk")), "m"),
        (ADD, (("self", "m"), ("other", "in")), "out"),
    )
)


def made(layers: Sequence[Layer], sizes: Sequence[int] = ()) -> schema.ExportedProgram:
    """A program of layers, one after the other; `sizes` are those of the first parameter of each."""
    nodes, parameters, last = list[schema.Node](), list[tuple[str, str]](), "x"
    for number, layer in enumerate(layers):
        parameters += [(f"p_{number}_{name}", f"layers.{number}.{name}") for name in ("w", "w2")]
        names = {"in": last, **{name: f"p_{number}_{name}" for name in ("w", "w2")}}
        stack = stack_of("layers", str(number))
        for target, given, result in layer.calls:
            names[result] = f"{result}_{number}"
            nodes.append(call(target, [(key, names[value]) for key, value in given], names[result], stack))
        last = names["out"]
    whole = program(["x"], nodes, [last], parameters)
    metas = dict(whole.graph_module.graph.tensor_values)
    for number, size in enumerate(sizes):
        metas[f"p_{number}_w"] = msgspec.structs.replace(META, sizes=[schema.SymInt(as_int=size)])
    graph = msgspec.structs.replace(whole.graph_module.graph, tensor_values=metas)
    return msgspec.structs.replace(whole, graph_module=msgspec.structs.replace(whole.graph_module, graph=graph))


def runs(whole: schema.ExportedProgram, folder: Path) -> list[int]:
    """How many equal layers are drawn as one, for each such box."""
    path = folder / "program.json"
    path.write_bytes(codec.encode(whole))
    picture = drawn(path).picture
    paths = named(picture, picture.boxes.path)
    return [
        repeat
        for box, repeat in enumerate(picture.boxes.repeat)
        if repeat and (picture.boxes.kind[box] == REPEAT or paths[box] == "layers")
    ]


def shuffled(layer: Layer, seed: int) -> Layer:
    """The calls of a layer in another order that respects what they use."""
    chance, left, done, known = random.Random(seed), list(layer.calls), [], {"in", "w", "w2"}
    while left:
        ready = [one for one in left if all(value in known for _, value in one[1])]
        done.append(chance.choice(ready))
        left.remove(done[-1])
        known.add(done[-1][2])
    return Layer(tuple(done))


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_calls(seed: int, tmp_path: Path) -> None:
    """Layers whose calls are stored in other orders are equal."""
    layers = [shuffled(ATTENTION, seed * 10 + number) for number in range(5)]
    assert len({layer.calls for layer in layers}) > 1
    assert runs(made(layers), tmp_path) == [5]


def replaced(number: int, target: str, *given: tuple[str, str]) -> Layer:
    """The layer with one call replaced."""
    calls = list(ATTENTION.calls)
    calls[number] = target, given, calls[number][2]
    return Layer(tuple(calls))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replaced(3, "torch.ops.aten.silu.default", ("self", "k")), id="operator"),
        pytest.param(replaced(4, MUL, ("self", "gk"), ("other", "rq")), id="arguments-exchanged"),
        pytest.param(replaced(4, MUL, ("self", "rq"), ("other", "rq")), id="value-used-twice"),
        pytest.param(replaced(5, ADD, ("self", "m"), ("other", "w")), id="weight-for-a-value"),
        pytest.param(replaced(1, ATTENTION.calls[1][0], ("input", "in"), ("weight", "w")), id="same-weight-twice"),
        pytest.param(replaced(5, ADD, ("self", "m"), ("other", "q")), id="connected-elsewhere"),
    ],
)
def test_what_differs_is_told_apart(other: Layer, tmp_path: Path) -> None:
    """A layer that computes something else, or from something else, is no repeat of its neighbours."""
    assert runs(made([ATTENTION, ATTENTION, other, ATTENTION, ATTENTION]), tmp_path) == [2, 2]


def test_parameters_count_by_type(tmp_path: Path) -> None:
    """Layers with parameters of other shapes are not equal, though the results are of the same shape."""
    assert runs(made([ATTENTION] * 4, [8, 8, 5, 5]), tmp_path) == [2, 2]


def test_order_counts_around_a_write(tmp_path: Path) -> None:
    """A value read before it is written to is another than one read after."""
    read = ("torch.ops.aten.relu.default", (("self", "in"),), "r")
    write = (FILL, (("self", "in"),), "f")
    last = (ADD, (("self", "r"), ("other", "f")), "out")
    before, after = Layer((read, write, last)), Layer((write, read, last))
    assert runs(made([before, before, after, after]), tmp_path) == [2, 2]


def test_the_helper_makes_sound_calls() -> None:
    """Every value that a layer uses is defined before it."""
    known = {"x", *(f"p_{number}_{name}" for number in range(2) for name in ("w", "w2"))}
    for node in made([ATTENTION, shuffled(ATTENTION, 1)]).graph_module.graph.nodes:
        assert all(name in known for named_argument in node.inputs for name in arguments(named_argument.arg))
        known |= set(node_outputs(node))
