"""A graph module of the design draft and a program of schema 1 say the same."""

from __future__ import annotations

import base64
import json

import pytest
from tests.versions.programs import (
    GOLDEN,
    both,
    copied,
    golden,
    golden_bytes,
    payloads_beside,
    stored_programs,
    upgraded,
)
from tools.golden_maker import tensor

from pt2kit import codec, graph, schema, signature
from pt2kit.errors import ConversionError, SchemaError, UnsupportedError
from pt2kit.package.layouts.detection import detect
from pt2kit.pickles.values import PickledTensor
from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import HARMLESS, ConversionLog, SideInputs, read_folder
from pt2kit.versions.draft.to_v1 import PROGRAM
from pt2kit.versions.program import downgrade_program, upgrade_program
from pt2kit.versions.steps import STEPS
from pt2kit.zip.reader import open_archive

upgrade, _ = both(STEPS[0])

ALLOWED = {*HARMLESS, "persistent", "class_fqn"}


def up(tree):
    log = ConversionLog("x")
    new = upgrade(tree, log)
    check_tree(new, "1", "x")
    return new, log


def node(target, args=(), outputs=(), **kwargs):
    metadata = {"stack_trace": "", "nn_module_stack": "", "extra": {}}
    return {"target": target, "args": list(args), "kwargs": kwargs, "outputs": list(outputs), "metadata": metadata}


def with_nodes(*nodes):
    tree = golden("draft")
    tree["graph"]["nodes"] = list(nodes)
    return tree


X, Y = {"as_tensor": {"name": "x"}}, {"as_tensor": {"name": "y"}}


def test_the_golden_draft_is_a_program():
    """Raised to the current version it contradicts itself nowhere; its tensors are read from inside and next to it."""
    raw = codec.parse(golden_bytes("draft"), "x")
    raised = upgrade_program(raw, "x", read_external=read_folder(GOLDEN))
    program = codec.convert(copied(raised.tree), schema.ExportedProgram, "x").value
    found = [*graph.problems(program), *signature.problems(program.graph_module)]
    # It has one value of each layout, of one dimension, which torch has of dense tensors alone (G17).
    wrong = [problem for problem in found if problem.kind == "error" and ".layout_" not in problem.loc]
    assert [str(problem) for problem in wrong] == []
    assert sorted(raised.weights) == ["a.buf", "a.weight"]
    assert {bytes(value.storage.read()) for value in raised.weights.values()} == {bytes(tensor().storage.read())}
    assert raised.tree["graph_module"]["metadata"] == {"key": "text", "draft.name": "golden"}


def test_the_golden_draft_comes_back():
    """Letter for letter, but for where its tensors lie."""
    raw = codec.parse(golden_bytes("draft"), "x")
    raised = upgrade_program(raw, "x", read_external=read_folder(GOLDEN))
    back = downgrade_program(raised.tree, "draft", "x", side_inputs=SideInputs(weights=raised.weights)).tree
    internal = raw["parameters"]["a.weight"]["storage"]
    raw["buffers"]["a.buf"]["storage"] = internal
    assert back == raw


@pytest.mark.parametrize("release", ["2.1.2", "2.4.1", "2.8.0"])
def test_samples_as_drafts(release):
    """Programs that the draft can express survive the round trip; others are refused by name."""
    count = 0
    for path, record, data in stored_programs(release):
        with open_archive(path) as archive:
            layout = detect(archive)
            place = next(p for m in layout.models if (p := layout.parts(m)).program == record)
            raised = upgraded(data, record)
            weights, constants = payloads_beside(archive, place, raised)
            tensors = {name: value for name, value in (weights | constants).items() if isinstance(value, PickledTensor)}
            try:
                draft = downgrade_program(
                    raised.tree,
                    "draft",
                    record,
                    allow=ALLOWED,
                    side_inputs=SideInputs(weights=tensors, constants=constants),
                ).encode(record)
            except ConversionError:
                continue
        again = upgraded(draft, record)
        side_inputs = SideInputs(weights=again.weights, constants=again.constants)
        assert (
            downgrade_program(again.tree, "draft", record, allow=ALLOWED, side_inputs=side_inputs).encode(record)
            == draft
        )
        for name, value in again.weights.items():
            assert bytes(value.storage.read()) == bytes(tensors[name].storage.read()), (path.stem, name)
        count += 1
    assert count >= 6


def test_a_draft_without_more_is_called_with_its_inputs():
    """And returns one value, or a tuple; names become identifiers, the CPU has no index."""
    new, log = up(with_nodes())
    module = new["graph_module"]
    assert module["signature"]["inputs_to_parameters"] == {"a_weight": "a.weight"}
    assert module["signature"]["inputs_to_buffers"] == {"a_buf": "a.buf"}
    assert module["signature"]["user_inputs"] == ["x"]
    assert module["signature"]["user_outputs"] == ["y", "z"]
    assert json.loads(module["call_spec"]["out_spec"])[1]["type"] == "builtins.tuple"
    assert module["graph"]["tensor_values"]["x"]["meta"]["device"] == {"type": "cpu", "index": None}
    assert module["graph"]["tensor_values"]["dynamic"]["meta"]["device"] == {"type": "cuda", "index": 1}
    assert (new["opset_version"], new["range_constraints"]) == ({"aten": 10}, {})
    assert list(log.weights) == ["a.weight", "a.buf"]
    assert log.weights["a.weight"].kind == "parameter"


def test_tensors_without_a_value_get_one():
    """A parameter that the table of values leaves out is described by its own meta."""
    tree = with_nodes()
    tree["graph"]["tensor_values"] = [v for v in tree["graph"]["tensor_values"] if v["name"] != "a.weight"]
    assert up(tree)[0]["graph_module"]["graph"]["tensor_values"]["a_weight"]["meta"]["sizes"] == [{"as_int": 3}]


NAMED = [
    ("torch.ops.aten.add.Tensor", [X, Y], ["self", "other"]),
    ("aten.add.Tensor", [X, Y], ["self", "other"]),
    ("torch.ops.aten.conv2d.default", [X, Y, {"as_none": True}], ["input", "weight", "bias"]),
    ("torch.ops.higher_order.cond", [X, Y], ["", ""]),
    ("_operator.add", [{"as_symint": {"name": "n"}}, {"as_int": 1}], ["a", "b"]),
]


@pytest.mark.parametrize(("target", "args", "names"), NAMED)
def test_positional_arguments_get_names(target, args, names):
    """Those of the operator's schema; torch.ops. is put in front where it is missing."""
    made = up(with_nodes(node(target, args)))[0]["graph_module"]["graph"]["nodes"][0]
    assert [named["name"] for named in made["inputs"]] == names
    assert made["target"].startswith(("torch.ops.", "_operator."))


@pytest.mark.parametrize("target", ["torch.ops.mine.op.default", "torch.ops.aten.relu.default"])
def test_positional_arguments_of_unknown_operators_are_refused(target):
    """Also more of them than the schema has."""
    place = r"^x: \$\.graph\.nodes\[0\]\.args: expected keyword arguments for torch\.ops\."
    with pytest.raises(UnsupportedError, match=place):
        up(with_nodes(node(target, [X, Y])))


RESULTS = [
    ("torch.ops.aten.split.Tensor", [X, Y], [{"as_tensors": [X["as_tensor"], Y["as_tensor"]]}]),
    ("torch.ops.aten.max.dim", [X, Y], [X, Y]),
    ("torch.ops.higher_order.cond", [X], [{"as_tensors": [X["as_tensor"]]}]),
    ("torch.ops.aten.sym_size.int", [{"as_symint": {"name": "n"}}], [{"as_sym_int": {"as_name": "n"}}]),
]


@pytest.mark.parametrize(("target", "outputs", "grouped"), RESULTS)
def test_results_are_grouped(target, outputs, grouped):
    """As the operator's schema says, or as a tuple of a higher-order operator."""
    made = up(with_nodes(node(target, [], outputs)))[0]["graph_module"]["graph"]["nodes"][0]
    assert made["outputs"] == grouped


def test_weights_of_branches_are_constants():
    """They go into the branch's graph, and from there to the top."""
    tree = golden("draft")
    branch = tree["graph"]["nodes"][2]["args"][1]["as_gm"]
    branch["parameters"] = {"w": tree["parameters"]["a.weight"]}
    branch["graph"]["nodes"] = [node("torch.ops.aten.add.Tensor", [X, {"as_tensor": {"name": "w"}}], [Y])]
    branch["graph"]["tensor_values"].append({"name": "y", "meta": tree["parameters"]["a.weight"]["meta"]})
    tree["buffers"] = {}
    raised = upgrade_program(tree, "x")
    kinds = [next(iter(spec)) for spec in raised.tree["graph_module"]["signature"]["input_specs"]]
    assert kinds == ["parameter", "tensor_constant", "user_input"]
    assert list(raised.constants) == ["w"]


WRONG = ["[]", '{"names": []}', '{"names": {"a": 1}}', '{"constants": {}}', '{"hints": 3}']


@pytest.mark.parametrize("text", WRONG)
def test_what_pt2kit_did_not_write_is_refused(text):
    """The metadata is input like any other."""
    tree = with_nodes()
    tree["metadata"][PROGRAM] = text
    with pytest.raises(SchemaError, match=r'^x: \$\.metadata\["pt2kit\.program"\]: '):
        up(tree)


def test_what_it_says_is_checked_like_the_rest():
    """A text of the right shape with nonsense in it does not pass the table of schema 1."""
    tree = golden("draft")
    tree["buffers"] = {}
    tree["metadata"][PROGRAM] = json.dumps({"module_call_graph": [3]})
    with pytest.raises(SchemaError, match=r"^x: schema 1: \$\.graph_module\.module_call_graph\[0\]: "):
        upgrade_program(tree, "x")


def test_what_the_draft_cannot_say():
    """Everything is listed at once."""
    tree = golden("1")
    raised = upgrade_program(tree_of_json(tree), "x")
    tied = PickledTensor(tensor().storage, "float32", (3,), (1,), 0)
    side_inputs = SideInputs(constants=raised.constants, weights={"a.weight": tied, "a.buf": tied})
    with pytest.raises(ConversionError) as caught:
        downgrade_program(raised.tree, "draft", "x", side_inputs=side_inputs, allow=())
    text = str(caught.value)
    for part in (
        "the arm as_strings of Argument (since 1)",
        "the arm as_optional_tensors of Argument",
        "the arm as_sym_bool of Argument",
        "the symbolic truth value 'b'",
        "the ScalarType 0",
        "the Layout 0",
        "the MemoryFormat 0",
        "that 'a.buf' shares the storage of another tensor (since 1); allow 'tied' to drop it",
        "a result that is as_sym_bool",
    ):
        assert part in text, part
    with pytest.raises(ConversionError, match=r"the weight 'a\.weight', whose bytes are not given"):
        downgrade_program(raised.tree, "draft", "x", side_inputs=SideInputs(constants=raised.constants))


def tree_of_json(tree):
    """A canonical tree of schema 1 as its JSON is parsed."""
    from pt2kit.versions import encoding

    return codec.parse(encoding.encode(tree, "1", "x"), "x", bare_literals=True)


def test_constants_stay_constants():
    """A draft keeps them among the buffers, and remembers which they are."""
    tree = golden("1")
    module = tree["graph_module"]
    module["graph"]["nodes"] = []
    module["graph"]["sym_bool_values"] = {}
    del module["graph"]["sym_int_values"]["i"]  # a number that no node gives is a constant in a draft
    values = module["graph"]["tensor_values"]
    without = ("dtype", "layout", "size_3")  # size_3 has no hint, the others of its expression have one
    module["graph"]["tensor_values"] = {k: v for k, v in values.items() if not k.startswith(without)}
    raised = upgrade_program(tree_of_json(tree), "x")
    weights = {name: tensor() for name in ("a.weight", "a.buf")}
    draft = downgrade_program(
        raised.tree, "draft", "x", side_inputs=SideInputs(constants=raised.constants, weights=weights)
    ).tree
    assert sorted(draft["buffers"]) == ["a.buf", "cst"]
    assert json.loads(draft["metadata"][PROGRAM])["constants"] == ["cst"]
    again = upgrade_program(draft, "x")
    assert list(again.constants) == ["cst"]
    assert again.tree == raised.tree
    assert base64.b64decode(draft["buffers"]["cst"]["storage"]["data"]["buffer"])[:2] == b"\x3f\x80"
