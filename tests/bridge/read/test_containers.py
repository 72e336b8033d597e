"""Tree specs and sample inputs: named tuples that changed, classes that are not there, keys that attack."""

from __future__ import annotations

import collections
import enum
import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge.read.edited import edited, graph, sample
from tests.bridge.write.trees import content
from tests.packages import bytes_of
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit.bridge.load import load
from pt2kit.bridge.placeholder_types import PICKLED_NAME, STAND_IN_NAME, Placeholder
from pt2kit.bridge.save import save
from pt2kit.bridge.torch_names import child_specs
from pt2kit.errors import GraphError, SchemaError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # torch's own unflatten

BeforeIn = collections.namedtuple("BeforeIn", ["x", "y", "z"])
BeforeOut = collections.namedtuple("BeforeOut", ["a", "b"])
STORED_IN, STORED_OUT = BeforeIn._fields, BeforeOut._fields


class Color(enum.Enum):
    """Keys of a dict."""

    RED = "red"
    BLUE = "blue"


@contextmanager
def registered(**classes: Any) -> Iterator[None]:
    """Named tuples under the names "tuples.<name>", for as long as the block runs."""
    for name, kind in classes.items():
        pytree._register_namedtuple(kind, serialized_type_name=f"tuples.{name}")
    try:
        yield
    finally:
        for kind in classes.values():
            pytree.SUPPORTED_NODES.pop(kind, None)  # there since 2.15, which warns where a class comes again
            del pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE[pytree.SUPPORTED_SERIALIZED_TYPES.pop(kind).serialized_type_name]


def make(fields: tuple[str, ...], **options: Any) -> Any:
    """A named tuple class."""
    return collections.namedtuple("Tuple", fields, **options)


def exported(module: torch.nn.Module, *args: Any) -> bytes:
    """Return torch's file of a module."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(module, args)
        except AssertionError:  # the first export of a process fails in torch 2.13
            program = torch.export.export(module, args)
        torch.export.save(program, buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def file() -> bytes:
    """A program of two named tuples, one in and one out."""
    before_in, before_out = BeforeIn, BeforeOut

    class Model(torch.nn.Module):
        def forward(self, p: Any, q: torch.Tensor) -> Any:
            return before_out(p.x * 2 + q, [p.y - 1]), p.x

    with registered(P=before_in, R=before_out):
        return exported(Model(), before_in(torch.ones(2), torch.ones(3), torch.ones(4)), torch.ones(2))


VALUES = {"x": torch.full((2,), 5.0), "y": torch.full((3,), 6.0), "z": torch.full((4,), 8.0)}
WANT = {"a": torch.full((2,), 11.0), "b": [torch.full((3,), 5.0)], "c": 7, "d": None}
ADAPTED = {
    "the same": (make(STORED_IN), make(STORED_OUT)),
    "reordered": (make(("z", "y", "x")), make(("b", "a"))),
    "gained": (make(("n", "x", "y", "w", "z"), defaults=[None]), make(("a", "c", "b", "d"), defaults=[7, None, None])),
    "lost": (make(("y", "x")), make(("b",))),
}


@pytest.mark.parametrize(("now_in", "now_out"), ADAPTED.values(), ids=ADAPTED)
def test_changed_fields(file: bytes, now_in: Any, now_out: Any) -> None:
    """A program is called with the class of today and gives the class of today, matched by field names."""
    with registered(P=now_in, R=now_out):
        program = load(file)
        program.validate()
        given = now_in(**{field: VALUES.get(field) for field in now_in._fields})
        for runs in (program.module(), program.run_decompositions({}).module(), torch.export.unflatten(program)):
            result, x = runs(given, torch.ones(2))
            assert type(result) is now_out
            assert torch.equal(x, VALUES["x"])
            for field in now_out._fields:
                torch.testing.assert_close(getattr(result, field), WANT[field])
        (example, _), _ = program.example_inputs
        assert type(example) is now_in
        assert torch.equal(example.x, torch.ones(2))
        assert program.graph_module.meta["treespec_namedtuple_fields"]["tuples.P"] == list(now_in._fields)
        program.example_inputs = None  # of a class that pickle cannot find
        torch.export.save(program, io.BytesIO())


REFUSED = {
    "lost an input": (make(("y", "z")), make(STORED_OUT), "got one without that of the input 'p_x'"),
    "gained an output": (
        make(STORED_IN),
        make(("q", "a", "b")),
        "got 'q' without one; the file does not have it",
    ),
    "gained a list": (
        make(STORED_IN),
        make(("a", "b", "q"), defaults=[[]]),
        "default of the field 'q' to be a number",
    ),
}


@pytest.mark.parametrize(("now_in", "now_out", "text"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_adapted(file: bytes, now_in: Any, now_out: Any, text: str) -> None:
    """Fields that the program needs and nobody has are told by name."""
    with registered(P=now_in, R=now_out), pytest.raises(GraphError, match=text):
        load(file)


def test_result_tuples_of_torch() -> None:
    """Programs take and return `torch.return_types`, whether or not the release has a serialized name for them."""
    kind = torch.return_types.topk

    class Model(torch.nn.Module):
        def forward(self, top: Any) -> Any:
            return tuple(torch.topk(top[0], 1))

    def named(tree: Any) -> None:
        call = tree["graph_module"]["module_call_graph"][0]["signature"]
        call["in_spec"] = call["in_spec"].replace("builtins.tuple", f"torch.return_types.{kind.__name__}")
        call["in_spec"] = call["in_spec"].replace(f"torch.return_types.{kind.__name__}", "builtins.tuple", 2)
        call["out_spec"] = call["out_spec"].replace("builtins.tuple", f"torch.return_types.{kind.__name__}")

    given = torch.topk(torch.tensor([1.0, 3.0, 2.0]), 2)
    plain = exported(Model(), tuple(given))
    sample_inputs = io.BytesIO()
    torch.save(((given,), {}), sample_inputs)
    file = edited(io.BytesIO(plain), named, records={"data/sample_inputs/model.pt": sample_inputs.getvalue()})
    program = load(file)
    for run in (program.module(), torch.export.unflatten(program), pt2kit.load_module(file)):
        result = run(given)
        assert type(result) is kind
        assert (result.values.item(), result.indices.item()) == (3.0, 0)
    ((example,), _) = program.example_inputs
    assert type(example) is kind
    assert torch.equal(example.indices, given.indices)
    with pt2kit.open(file) as package:
        described, _ = package.sample_inputs() or ((), {})
    assert [view.numpy().tolist() for view in described[0]] == [one.tolist() for one in given]
    assert pt2kit.check(file).errors == []
    newest = io.BytesIO()
    pt2kit.convert(file, newest, target="torch==2.15")
    for name, is_kept in (("2.2", True), ("2.9", False), ("2.13", False), ("2.15", True)):
        out = io.BytesIO()
        notes = pt2kit.convert(newest, out, target=f"torch=={name}").notes
        assert any("became a tuple" in note.message for note in notes) is not is_kept
        result = pt2kit.load_module(out)(given if is_kept else tuple(given))
        assert type(result) is (kind if is_kept else tuple)


def test_result_tuples_of_another_length() -> None:
    """A file may name one that has more fields than results: a placeholder stands for it."""

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x + 1,)

    def named(tree: Any) -> None:
        call = tree["graph_module"]["module_call_graph"][0]["signature"]
        call["out_spec"] = call["out_spec"].replace("builtins.tuple", "torch.return_types.topk")

    file = edited(io.BytesIO(exported(Model(), torch.ones(2))), named)
    for run in (load(file).module(), pt2kit.load_module(file)):
        assert isinstance(run(torch.ones(2)), Placeholder)


def _input_spec(program: Any, index: int) -> pytree.TreeSpec:
    """The spec of one positional input."""
    return child_specs(child_specs(program.call_spec.in_spec)[0])[index]


def test_stand_ins(file: bytes) -> None:
    """Classes that are not registered get placeholders with the stored fields and the stored name."""
    program = load(file)
    given = _input_spec(program, 0).context
    assert given._fields == STORED_IN
    assert getattr(given, STAND_IN_NAME) == "tuples.P"
    result, _ = program.module()(given(**VALUES), torch.ones(2))
    assert result._fields == STORED_OUT
    torch.testing.assert_close(result.a, WANT["a"])
    assert type(program.example_inputs[0][0]) is given


@pytest.mark.parametrize("protocol", [2, 4])
def test_stand_ins_are_saved(file: bytes, protocol: int) -> None:
    """Placeholders are saved with the stored names and fields; with the classes registered, the program is the same."""
    first, second = io.BytesIO(), io.BytesIO()
    save(load(file), first, pickle_protocol=protocol)
    save(load(first.getvalue()), second, pickle_protocol=protocol)
    assert first.getvalue() == second.getvalue()
    tree, ours = (json.loads(content(data, "models/model.json")) for data in (file, first.getvalue()))
    assert ours["graph_module"]["module_call_graph"] == tree["graph_module"]["module_call_graph"]
    assert ours["graph_module"]["treespec_namedtuple_fields"] == tree["graph_module"]["treespec_namedtuple_fields"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)  # torch's message about a pickle has a mistake in it
        with registered(P=BeforeIn, R=BeforeOut):
            check_programs(load(first.getvalue()), torch.export.load(first))
        logging.disable(logging.NOTSET)


def check_programs(*programs: Any) -> None:
    """Programs of the two classes take and give them."""
    for program in programs:
        (given, q), _ = program.example_inputs
        assert type(given) is BeforeIn
        result, _ = program.module()(given, q)
        assert type(result) is BeforeOut


def test_stand_ins_without_a_pickled_name(file: bytes) -> None:
    """Sample inputs that were made with a placeholder class are pickled under the registered name."""
    program = load(file)
    kind = _input_spec(program, 0).context
    delattr(kind, PICKLED_NAME)
    (given, _), _ = load(bytes_of(save, program)).example_inputs
    assert getattr(type(given), PICKLED_NAME) == "tuples.P"
    setattr(kind, PICKLED_NAME, "os\nsystem")
    with pytest.raises(UnsupportedError, match=r"sample inputs: expected named tuples whose class can be named"):
        save(program, io.BytesIO())


class Keys(torch.nn.Module):
    """Dicts with keys of many kinds, and a defaultdict."""

    def forward(self, d: Any, e: Any) -> Any:
        return {Color.BLUE: d[Color.RED] + d[Color.BLUE], (1, "x"): e["k"][0]}


def test_keys_and_factories() -> None:
    """Enum members and tuples as keys, and plain factories, are live again."""
    given = {Color.RED: torch.ones(2), Color.BLUE: torch.ones(2)}
    other = collections.defaultdict(list, k=[torch.zeros(2)])
    program = load(exported(Keys(), given, other))
    result = program.module()(given, other)
    assert list(result) == [Color.BLUE, (1, "x")]
    assert _input_spec(program, 1).context == [list, ["k"]]
    assert program.example_inputs is None  # torch cannot write guards from such keys


class Quotes(torch.nn.Module):
    """A dict whose keys have quotes, and a text as an input."""

    def forward(self, d: Any, mode: str) -> Any:
        return d["it's"] + d['a "b"']


ATTACK = "') or open('{0}', 'w') or ('"
ATTACKS = [ATTACK, '", open("{0}", "w"))#', "\\', open('{0}', 'w')) #", "' + str(open('{0}', 'w')) + '"]


def _with_key(text: str) -> Any:
    """A change: the key of the first argument, which is a dict, in the tree spec."""

    def change(tree: Any) -> None:
        call = tree["graph_module"]["module_call_graph"][0]["signature"]
        spec = json.loads(call["in_spec"])
        spec[1]["children_spec"][0]["children_spec"][0]["context"] = json.dumps([text])
        call["in_spec"] = json.dumps(spec)

    return change


class One(torch.nn.Module):
    """A dict with one key, and a text."""

    def forward(self, d: Any, mode: str) -> Any:
        return d["key"] + 1


def test_quotes() -> None:
    """Keys and texts with quotes work, although torch cannot write guards from them."""
    given = {"it's": torch.ones(2), 'a "b"': torch.ones(2)}
    program = load(exported(Quotes(), given, "it's"))
    assert program.example_inputs is None
    assert torch.equal(program.module()(given, "it's"), torch.full((2,), 2.0))


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_gets_into_guards(attack: str, tmp_path: Path) -> None:
    """A key or a constant made to break out of the source of the guards runs nothing."""
    text = attack.format(tmp_path / "marker")
    path = tmp_path / "m.pt2"
    path.write_bytes(exported(One(), {"key": torch.ones(2)}, "plain"))

    def constant(tree: Any) -> None:
        graph(tree)["inputs"][1] = {"as_string": text}
        tree["graph_module"]["signature"]["input_specs"][1]["constant_input"]["value"] = {"as_string": text}

    for change, key, mode in ((_with_key(text), text, "plain"), (constant, "key", text)):
        program = load(edited(path, change))
        program.module()({key: torch.ones(2)}, mode)
        torch.export.unflatten(program)({key: torch.ones(2)}, mode)
    assert not (tmp_path / "marker").exists()


def test_nothing_gets_into_modules(tmp_path: Path) -> None:
    """Names of modules made to break out of attribute paths are left out of metadata, and refused elsewhere."""
    attack = f'a"), open({str(tmp_path / "marker")!r}, "w"), getattr(self, "b'
    mlp = sample("mlp")

    def stacks(tree: Any) -> None:
        for node in graph(tree)["nodes"]:
            node["metadata"]["nn_module_stack"] = f"k,,Root;{attack},{attack},{attack}"

    program = load(edited(mlp, stacks))
    assert {str(node.meta.get("nn_module_stack")) for node in program.graph.nodes} == {"None", "{}"}
    with pytest.raises(ValueError, match="not enough values"):  # torch needs the stacks for this
        torch.export.unflatten(program)
    with pytest.raises(GraphError, match=r"module_call_graph\[1\]\.fqn: expected .* without quotes"):
        load(edited(mlp, lambda tree: tree["graph_module"]["module_call_graph"][1].update(fqn=attack)))
    assert not (tmp_path / "marker").exists()


KWARGS = '{"type": "builtins.dict", "context": "[\\"x=open(1)\\"]", "children_spec": [%s]}'


def test_keyword_names() -> None:
    """The names of keyword arguments become parameters: they must be identifiers."""

    def change(tree: Any) -> None:
        call = tree["graph_module"]["module_call_graph"][0]["signature"]
        call.update(in_spec=ARGS % (TUPLE % "", KWARGS % LEAF), forward_arg_names=None)

    with pytest.raises(GraphError, match="expected an identifier as the name of a keyword argument"):
        load(edited(sample("mlp"), change))


def _spec(text: str) -> Any:
    def change(tree: Any) -> None:
        tree["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = text

    return change


LEAF = '{"type": null, "context": null, "children_spec": []}'
ARGS = '[1, {"type": "builtins.tuple", "context": "null", "children_spec": [%s, %s]}]'
TUPLE = '{"type": "builtins.tuple", "context": "null", "children_spec": [%s]}'
NO_KWARGS = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
FACTORY = (
    '{"type": "collections.defaultdict", "context": {"default_factory_module": "this", "default_factory_name": "s", '
    '"dict_context": ["k"]}, "children_spec": [%s]}'
)
ENUM = (
    '{"type": "builtins.dict", "context": "[{\\"__enum__\\": true, \\"fqn\\": \\"antigravity:Color\\", '
    '\\"name\\": \\"RED\\"}]", "children_spec": [%s]}'
)
UNKNOWN = {
    "factory": (FACTORY, "the factory this.s of a defaultdict"),
    "enum": (ENUM, "the enum class antigravity:Color"),
    "module": (
        '{"type": "os.system", "context": "[[\\"weight\\"], null]", "children_spec": [%s]}',
        r"the container type os\.system\. .*trust=\('os\.system',\)",
    ),
}


@pytest.mark.parametrize(("spec", "text"), UNKNOWN.values(), ids=UNKNOWN)
def test_nothing_is_imported(spec: str, text: str) -> None:
    """A name in a tree spec imports no module; an unknown one is refused."""
    import sys

    data = edited(sample("mlp"), _spec(ARGS % (TUPLE % (spec % LEAF), NO_KWARGS)))
    with pytest.raises(SchemaError, match=text):
        load(data)
    assert not {"this", "antigravity"} & sys.modules.keys()


def test_unknown_containers() -> None:
    """Any other container of an unknown type is a placeholder."""
    spec = '{"type": "os.system", "context": "null", "children_spec": [%s]}'
    program = load(edited(sample("mlp"), _spec(ARGS % (TUPLE % (spec % LEAF), NO_KWARGS))))
    [child] = child_specs(child_specs(program.call_spec.in_spec)[0])
    assert child.type is Placeholder


def test_wrong_number_of_leaves() -> None:
    """A tree spec must have as many leaves as the signature has inputs."""
    data = edited(sample("mlp"), _spec(ARGS % (TUPLE % f"{LEAF}, {LEAF}", NO_KWARGS)))
    with pytest.raises(GraphError, match=r"in_spec: expected 1 leaf, one for each of the inputs, got 2|names"):
        load(data)
