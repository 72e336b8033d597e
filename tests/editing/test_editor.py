"""Editors: what is not edited stays as it was, to the digest; inputs, outputs and weights are kept right together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.narrow import dense, present
from tests.packages import errors
from tests.samples import corpus, release_id, sample

import pt2kit
from pt2kit.editing import passes, tensor_meta
from pt2kit.editing.editor import PackageEditor
from pt2kit.errors import ArchiveError, GraphError, PayloadError


def dynamic() -> PackageEditor:
    return pt2kit.edit(sample("2.13.0", "dynamic_batch"))


@pytest.mark.parametrize("path", corpus(), ids=release_id)
def test_edits_that_change_nothing_keep_the_digest(path: Path) -> None:
    """Of every program of every release: untouched, edited there and back, and with every value renamed."""
    with pt2kit.open(path) as package:
        for model in package.layout.models:
            before = pt2kit.digest(package, model)
            with pt2kit.edit(package, model) as untouched:
                pass
            assert pt2kit.digest(untouched.result, model) == before
            renamed = pt2kit.edit(package, model)
            inputs = {one.value for one in renamed.inputs}
            for graph in renamed.graph.walk():
                for value in list(graph.values.values()):
                    name = value.name
                    value.rename(f"q_{name}")
                    if value in inputs:
                        value.rename(name)
            program = renamed.finish().programs[model]
            assert pt2kit.digests.digest_program(program)["graph"] == before.graph


def test_the_program_that_was_opened_is_not_changed() -> None:
    """Edits make new objects: the old program has its nodes, its metadata and its tables as before."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        before = pt2kit.codec.encode(package.programs["model"])
        with pt2kit.edit(package) as editor:
            editor.graph.nodes["relu"].metadata["note"] = "mine"
            editor.graph.nodes["relu"].retarget("aten.gelu")
            editor.add_output("linear")
        assert pt2kit.codec.encode(package.programs["model"]) == before
        assert pt2kit.codec.encode(editor.result.programs["model"]) != before


def test_inputs_are_added_dropped_and_renamed_with_all_that_says_so() -> None:
    """Graph, signature, tree, argument names, ranges and guards agree afterwards: `check` finds nothing."""
    with dynamic() as editor:
        editor.rename_input("x", "input_ids")
        mask = editor.add_input("mask", tensor_meta("bool", ["s77", "s5"]))
        editor.add_input("scale", tensor_meta("f32", []), keyword=True)
        editor.ranges["s5"] = (2, 9)
        editor.add_output(mask)
        editor.reorder_inputs(["mask", "input_ids"])
    program = editor.result.programs["model"]
    root = present(program.graph_module.module_call_graph[0].signature)
    assert root.forward_arg_names == ["mask", "input_ids", "scale"]
    assert program.range_constraints["s5"].max_val == 9
    assert [spec.value.arg.value.name for spec in program.graph_module.signature.input_specs[4:]] == [
        "mask",
        "input_ids",
        "scale",
    ]
    assert errors(editor.result) == []
    with pt2kit.edit(editor.result) as again:
        again.drop_output("mask")
        again.drop_input("mask")
        again.drop_input("scale")
    assert "s5" not in again.result.programs["model"].range_constraints
    assert errors(again.result) == []


def test_outputs_become_a_tuple_and_none() -> None:
    """A program with one result returns a tuple once it has two, and an empty one without any."""
    editor = dynamic()
    editor.add_output("relu", position=0)
    editor.reorder_outputs([1, 0])
    editor.drop_output(0)
    editor.drop_output("relu")
    program = editor.finish().programs["model"]
    assert program.graph_module.graph.outputs == []
    assert '"builtins.tuple"' in present(program.graph_module.module_call_graph[0].signature).out_spec


def test_freezing_an_input_makes_its_symbols_numbers() -> None:
    """The array becomes a constant, its symbol a number everywhere, and the caller passes nothing."""
    with dynamic() as editor:
        editor.freeze_input("x", np.ones((5, 8), "f4"))
    program = editor.result.programs["model"]
    assert program.range_constraints == {}
    assert program.graph_module.graph.tensor_values["relu"].sizes[0].as_int == 5
    assert dense(editor.result.constants())["x"].shape == (5, 8)
    assert errors(editor.result) == []


def test_weights_are_tied_untied_renamed_and_converted() -> None:
    """Configs and records follow: tied weights share a record, untied ones do not, buffers move to the constants."""
    with pt2kit.edit(sample("2.13.0", "mlp")) as editor:
        editor.add_parameter("copy", editor.weights["0.weight"].numpy() + 1)
        editor.tie("copy", "0.weight")
        editor.rename_weight("copy", "tied.copy")
        editor.convert_weight("2.bias", "buffer", persistent=False)
    weights = dense(editor.result.weights())
    assert weights["tied.copy"].storage is weights["0.weight"].storage
    assert "2.bias" in editor.result.constants()
    assert errors(editor.result) == []
    with pt2kit.edit(editor.result) as again:
        again.untie("tied.copy")
        again.set_weight("0.weight", np.zeros((16, 8), "f4"))
    assert again.result.weights()["tied.copy"].numpy().any()
    assert not again.result.weights()["0.weight"].numpy().any()
    assert errors(again.result) == []


def test_no_weight_is_below_another() -> None:
    """A name is a tensor's or a module's: the edit that would need both is refused, with the other's name."""
    with pt2kit.edit(sample("2.13.0", "mlp")) as editor:
        for edit in (lambda: editor.add_buffer("2", np.ones(3)), lambda: editor.rename_weight("0.bias", "2")):
            with pytest.raises(GraphError, match=r"expected a name that is not below .*, got '2' besides '2\."):
                edit()
        with pytest.raises(GraphError, match=r"got '2\.bias\.x\.y' besides '2\.bias' \[S8\]"):
            editor.rename_weight("0.bias", "2.bias.x.y")
        editor.rename_weight("2.bias", "2.bias.x")
        editor.rename_weight("2.bias.x", "2.bias")
    assert errors(editor.result) == []
    with pt2kit.edit(sample("2.13.0", "mlp")) as frozen:
        frozen.rename_weight("2.bias", "input.bias")
        frozen.freeze_input("input", np.ones((3, 8), "f4"))
    assert "input_1" in frozen.result.constants()


def test_weights_come_from_safetensors(tmp_path: Path) -> None:
    """Safetensors files that `pt2kit` writes are read back without the library, also bfloat16."""
    from pt2kit.tensors.safetensors_file import to_safetensors

    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        to_safetensors(package.weights(), tmp_path / "w.safetensors")
        with pt2kit.edit(package) as editor:
            assert len(editor.load_weights(tmp_path / "w.safetensors")) == 4
        assert pt2kit.digest(editor.result).weights == pt2kit.digest(package).weights


REFUSED = {
    "no such value": (lambda e: e.value("relo"), r"expected the name of a value, got 'relo'; did you mean relu\?"),
    "a name taken": (
        lambda e: e.rename_input("x", "relu"),
        r"rename\('x', 'relu'\): expected a name that is not taken",
    ),
    "no identifier": (
        lambda e: e.rename_input("x", "1x"),
        r"rename\('x', '1x'\): expected an identifier that is no "
        r"keyword of Python, nor 'self', got '1x' \[G8\]",
    ),
    "a keyword": (
        lambda e: e.add_input("class", e.value("x")),
        r"add_input\('class'\): expected an identifier .*'class'",
    ),
    "a name of generated source": (
        lambda e: e.rename_input("x", "torch"),
        r"a name that torch does not use in .*'torch'",
    ),
    "a keyword in a weight's name": (
        lambda e: e.add_buffer("a.lambda", np.ones(1)),
        r"none a keyword of Python, got 'a.l",
    ),
    "no parameter": (
        lambda e: e.graph.nodes["relu"].set_argument("", 1),
        r"set_argument\(node 'relu', ''\): expected an",
    ),
    "a larger one into a smaller": (
        lambda e: e.graph.append("aten.add_.Tensor", e.value("p_a_bias"), e.value("linear")),
        r"expected a result of sizes \[16\], got \[s77, 16\]",
    ),
    "a condition of floats": (
        lambda e: e.graph.append("aten.where.self", *[e.value("x")] * 3),
        r"condition: expected b8 or u8, got f32",
    ),
    "an input in use": (lambda e: e.drop_input("x"), r"drop_input\('x'\): expected an input that nothing uses"),
    "another type": (
        lambda e: e.set_weight("a.bias", np.zeros(16, "i8")),
        r"expected numbers like those there, f32\[16\]",
    ),
    "a weight in use": (
        lambda e: e.drop_weight("a.bias"),
        r"drop_weight\('a.bias'\): expected a weight that nothing uses",
    ),
    "no such weight": (lambda e: e.drop_weight("a.bia"), r"expected the name of one of the weights \(a.weight, "),
    "no such weight to convert": (
        lambda e: e.convert_weight("a.bia", "buffer"),
        r"expected the name of one of the weights \(a.weight, ",
    ),
    "no such output": (lambda e: e.drop_output(3), r"drop_output\(3\): expected the number of one of 1 output, got 3"),
    "sizes that do not fit": (lambda e: e.freeze_input("x", np.ones((5, 9), "f4")), r"expected sizes \['s77', 8\]"),
    "out of its range": (lambda e: e.specialize("s77", 1), r"expected s77 from 2 to 64, got 1"),
    "half the weights": (lambda e: e.load_weights({"a.bias": np.zeros(16, "f4")}), r"and nothing for \['a.weight'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_edits_name_themselves(case: str) -> None:
    """The error says which edit, what was expected and what came; the program is as it was."""
    edit, text = REFUSED[case]
    editor = dynamic()
    with pytest.raises(GraphError, match=text):
        edit(editor)
    assert editor.check() is editor.program


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        ("aten.sub.Tensor", r"append\('aten.sub.Tensor'\): expected meta= .* \(self: expected numbers, got bool\)"),
        ("aten.neg", r"append\('aten.neg'\): expected meta= .* \(operands: expected .*, got b8\)"),
        ("aten.add_.Tensor", r"append\('aten.add_.Tensor'\): expected meta= .*expected a result of dtype b8, got f32"),
    ],
)
def test_what_torch_refuses_of_bools_is_not_inferred(operator: str, text: str) -> None:
    """There is no difference and no negative of bools, and floats are not added into them."""
    editor = dynamic()
    bools = editor.graph.append("aten.isnan", editor.value("x")).output
    with pytest.raises(GraphError, match=text):
        editor.graph.append(operator, bools, *([] if operator == "aten.neg" else [editor.value("x")]))


def test_a_truth_value_cannot_go_out() -> None:
    """Stock torch does not load such an output."""
    editor = pt2kit.edit(sample("2.13.0", "item_bool"))
    with pytest.raises(GraphError, match=r"add_output\('ge'\): expected a tensor or a number, got a truth value"):
        editor.add_output("ge")


def test_a_program_alone_has_no_weights() -> None:
    """Edits of weights need a package; all others work on a program and give one."""
    program = pt2kit.open(sample("2.13.0", "mlp")).programs["model"]
    editor = pt2kit.edit(program)
    with pytest.raises(GraphError, match="expected a package, got a program alone"):
        editor.add_parameter("w", np.ones(3))
    editor.add_output("relu")
    assert isinstance(editor.finish(), pt2kit.schema.ExportedProgram)


def test_several_programs_need_a_name() -> None:
    """A package of several programs says which there are; the others go over as they are."""
    with pt2kit.open(sample("2.13.0", "multi_model_package")) as package:
        first, *others = package.layout.models
        if "model" not in package.layout.models:
            with pytest.raises(ArchiveError, match="expected a program, one of"):
                pt2kit.edit(package)
        with pt2kit.edit(package, first) as editor:
            editor.add_output(next(iter(editor.graph.nodes)).outputs[0])
        for other in others:
            assert pt2kit.digest(editor.result, other) == pt2kit.digest(package, other)


def test_a_weight_of_one_number_gets_room_for_others() -> None:
    """A weight that repeats one number in memory is stored in full when set; the graph has its strides."""
    with pt2kit.edit(sample("2.13.0", "strided_weights")) as editor:
        assert [stride.as_int for stride in editor.value("b_e").meta.strides] == [0, 1]
        editor.set_weight("e", np.arange(15, dtype="f4").reshape(3, 5))
    assert [stride.as_int for stride in editor.value("b_e").meta.strides] == [5, 1]
    assert [problem for problem in pt2kit.check(editor.result) if problem.kind == "error"] == []


def test_a_refused_conversion_has_not_begun() -> None:
    """A sparse buffer can be no parameter here; the program still takes it as a buffer."""
    editor = pt2kit.edit(sample("2.8.0", "sparse_buffer"))
    name = next(name for name, payload in editor.weights.items() if not isinstance(payload, pt2kit.TensorView))
    with pytest.raises(GraphError, match=r"convert_weight\('.*', 'parameter'\): expected a dense tensor, got"):
        editor.convert_weight(name, "parameter")
    assert editor.check() is editor.program


def test_a_constant_has_one_input() -> None:
    """A weight that two inputs take is taken by one as a constant, which torch registers once."""
    editor = pt2kit.edit(sample("2.7.1", "shared_weights"))
    both = [one.target for one in editor.inputs if one.target in ("out.weight", "emb.weight")]
    assert len(both) == 2
    assert len(set(both)) == 1
    editor.convert_weight(str(both[0]), "constant")
    assert [one.kind for one in editor.inputs if one.target == both[0]] == ["tensor_constant"]
    assert [problem for problem in pt2kit.check(editor.finish()) if problem.kind == "error"] == []


def test_a_token_goes_with_the_last_node_that_took_it() -> None:
    """A program whose effect was erased takes and gives no token."""
    with pt2kit.edit(sample("2.13.0", "print_effect__decomp")) as editor:
        node = next(node for node in editor.nodes if "with_effects" in node.target)
        editor.graph.replace_uses(node.outputs[0], "token")
        node.erase()
    signature = editor.result.programs[editor.model].graph_module.signature
    assert [spec.type for spec in signature.input_specs] == ["user_input"]
    assert [spec.type for spec in signature.output_specs] == ["user_output"]


def test_arguments_without_a_name_go_by_their_place() -> None:
    """The arguments of a higher-order operator are named by number, and keep being without a name."""
    editor = pt2kit.edit(sample("2.13.0", "print_effect__decomp"))
    node = next(node for node in editor.nodes if "with_effects" in node.target)
    assert node.argument("0") is editor.value("token")
    node.set_argument("2", "hello")
    assert node.written().inputs[2].name == ""
    assert node.written().inputs[2].arg.as_string == "hello"


def test_symbols_of_new_inputs_have_ranges() -> None:
    """A size that came with an input can be narrowed and made a number."""
    editor = pt2kit.edit(sample("2.13.0", "mlp"))
    value = editor.add_input("more", tensor_meta("f32", ["s999"]))
    assert editor.ranges["s999"] == (1, None)
    editor.specialize("s999", 4)
    assert value.shape == (4,)
    assert editor.check().range_constraints == {}


def test_names_are_those_that_torch_gives() -> None:
    """A result that would be called like a function of Python gets a number, as `torch.fx` gives it on loading."""
    editor = dynamic()
    assert editor.graph.append("aten.max.dim", editor.value("x"), 0).name == "max_1"


@pytest.mark.parametrize("name", ["out.weight", "emb.weight"])
def test_names_that_are_untied_have_an_input_each(name: str) -> None:
    """Two inputs took one weight of two names; each takes its own now."""
    with pt2kit.edit(sample("2.7.1", "shared_weights")) as editor:
        editor.untie(name)
    targets = {one.name: one.target for one in editor.inputs}
    assert targets["p_l__s___emb_weight"] == "emb.weight"
    assert targets["p_l__s___out_weight"] == "out.weight"
    assert [problem for problem in pt2kit.check(editor.result) if problem.kind == "error"] == []


def test_a_token_is_no_output() -> None:
    """A token, which only orders effects, is refused as an output, whether added or replacing one."""
    editor = pt2kit.edit(sample("2.13.0", "print_effect__decomp"))
    with pytest.raises(GraphError, match=r"add_output\('token'\): expected a tensor or a number, got a token"):
        editor.add_output("token")
    editor.graph.replace_uses(editor.user_outputs[0].name, "token")
    with pytest.raises(GraphError, match=r"output 0: expected a tensor or a number, got the token 'token'.* \[S13\]"):
        editor.finish()


@pytest.mark.parametrize("name", ["mod", "floordiv"])
def test_a_division_by_zero_is_not_inferred(name: str) -> None:
    """The edit that asks for it is refused, not the program it would be in."""
    editor = dynamic()
    size = editor.graph.append("aten.sym_size.int", editor.value("x"), 0).output
    with pytest.raises(
        GraphError, match=rf"append\('_operator.{name}'\): expected meta= .* \(a size is divided by 0\)"
    ):
        editor.graph.append(f"_operator.{name}", size, 0)


def test_a_token_is_no_operand() -> None:
    """The edit that computes with a token is named."""
    editor = pt2kit.edit(sample("2.13.0", "print_effect__decomp"))
    editor.graph.append("aten.clone", editor.value("token"))
    with pytest.raises(
        GraphError, match=r"append\('aten.clone'\): node 'clone': expected a tensor with numbers, got a t"
    ):
        editor.finish()


def test_only_a_token_orders_effects() -> None:
    """A tensor that replaces a token is refused, as a node's input and as the program's output."""
    editor = pt2kit.edit(sample("2.13.0", "print_effect__decomp"))
    effect = next(node for node in editor.nodes if "with_effects" in node.target)
    weight = editor.add_constant("w", np.ones(0, "f4"))
    editor.graph.replace_uses("token", weight)
    with pytest.raises(
        GraphError, match=r"replace_uses\('token', 'c_w'\): node .*: expected a token first, got 'c_w' \[S13\]"
    ):
        editor.finish()
    editor.graph.replace_uses(weight, "token")
    editor.graph.replace_uses(effect.outputs[0], weight)
    with pytest.raises(GraphError, match=r"<Output c_w: token>: expected a token, got 'c_w', which is none \[S13\]"):
        editor.finish()


def test_a_check_changes_nothing() -> None:
    """The program that is checked has no idle token; the editor has it until its node is back, or it is left."""
    editor = pt2kit.edit(sample("2.13.0", "print_effect__decomp"))
    node = next(node for node in editor.nodes if "with_effects" in node.target)
    editor.graph.replace_uses(node.outputs[0], "token")
    node.erase()
    before = [*editor.inputs], [*editor.outputs], editor.graph.inputs, editor.graph.outputs, {**editor.graph.values}
    checked = editor.check()
    after = [*editor.inputs], [*editor.outputs], editor.graph.inputs, editor.graph.outputs, {**editor.graph.values}
    assert after == before
    assert "token" in editor.graph.values
    assert "token" not in checked.graph_module.graph.tensor_values
    assert editor.check() == checked == editor.finish().programs[editor.model]


def test_the_graph_knows_what_comes_in_and_goes_out_at_once() -> None:
    """Inputs and outputs of the graph are those of the program after each edit, checked or not."""
    editor = dynamic()
    new = editor.add_input("mask", tensor_meta("f32", [2]), position=0)
    made = editor.graph.append("aten.relu", editor.value("x")).output
    editor.add_output(made)
    assert [one.value for one in editor.inputs] == list(editor.graph.inputs)
    assert new in editor.graph.inputs
    assert editor.graph.outputs[-1] is made
    editor.drop_input("mask")
    assert new not in editor.graph.inputs


def test_a_region_that_is_left_open_is_refused() -> None:
    """The call that closes a region of vmap has no result, so nothing keeps it; without it torch would stay in vmap."""
    editor = pt2kit.edit(sample("2.13.0", "associative_scan_hop"))
    next(node for node in editor.nodes if node.target.endswith("_vmap_decrement_nesting")).erase()
    with pytest.raises(GraphError, match=r"nodes\[\d+\]: expected a call in this graph that closes .* \[X14\]"):
        editor.finish()


def test_all_names_of_a_tied_weight_become_of_a_kind() -> None:
    """The second name of a parameter, which no input takes, goes with it, so that untying finds two buffers."""
    with pt2kit.edit(sample("2.9.1", "shared_weights__strict")) as editor:
        editor.convert_weight("emb.weight", "buffer")
        editor.untie("emb.weight")
    weights = editor.result.weights(editor.model)
    assert [weights[name].is_param for name in ("emb.weight", "out.weight")] == [False, False]
    assert [problem for problem in pt2kit.check(editor.result) if problem.kind == "error"] == []


def test_an_operator_that_takes_no_bools_is_refused() -> None:
    """A flag can be added to numbers, and not be subtracted from them."""
    editor = pt2kit.edit(sample("2.13.0", "item_bool"))
    passes.rename_operators(editor, {"aten.add.Tensor": "aten.sub.Tensor"})
    message = r"retarget\(node 'add', 'aten.sub.Tensor'\): node 'add': .*: other: expected numbers, got bool .*\[T11\]"
    with pytest.raises(GraphError, match=message):
        editor.finish()


def test_an_operator_that_gives_another_type_is_refused() -> None:
    """A result that was stated for the old operator is not kept for one that gives something else."""
    editor = dynamic()
    made = editor.graph.append("aten.isnan", editor.value("x"))
    editor.add_output(made.output)
    made.retarget("aten.gelu")
    message = (
        r"retarget\(node 'isnan', 'aten.gelu'\): node 'isnan': .*: expected dtype f32, got b8 declared .*; "
        r"set its meta \[T11\]"
    )
    with pytest.raises(GraphError, match=message):
        editor.finish()
    made.output.meta = editor.value("x").meta
    assert [problem for problem in pt2kit.check(editor.finish()) if problem.kind == "error"] == []


def test_a_weight_is_what_the_graph_declares() -> None:
    """The meta of a weight is not changed without its numbers: such a file could not be opened."""
    editor = dynamic()
    editor.add_buffer("spare", np.zeros(3, "f4")).meta = editor.value("p_a_weight")
    with pytest.raises(PayloadError, match=r"'spare': sizes: expected \[16, 8\] as in the graph, got \[3\]"):
        editor.finish()
