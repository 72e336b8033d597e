"""Extracting, composing and packing: what was cut and joined again means what it meant; weights go along once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.packages import errors
from tests.samples import corpus, release_id, sample

import pt2kit
from pt2kit.editing import only, with_extra_files
from pt2kit.errors import ArchiveError, GraphError

PATHS = corpus("2.1.2", "2.4.1", "2.7.1", "2.13.0")


@pytest.mark.parametrize("path", PATHS, ids=release_id)
def test_what_was_cut_in_two_and_joined_has_its_digest(path: Path) -> None:
    """Cut at every value that alone connects two halves: both are sound, and joined they are the whole again."""
    with pt2kit.open(path) as package:
        model = package.layout.models[0]
        wanted = pt2kit.digest(pt2kit.extract(package, model=model))
        editor = pt2kit.edit(package, model)
        nodes = list(editor.graph.nodes)[:-1]
        # Constants of the call stay with the first half where they are asked for.
        has_constants = any(one.kind == "constant_input" for one in editor.inputs)
        inputs = [one.name for one in editor.user_inputs] if has_constants else None
        for node in nodes[:: max(len(nodes) // 5, 1)]:
            if len(node.outputs) != 1 or node.output.is_output or node.output.kind != "tensor":
                continue
            name = node.output.name
            try:
                second = pt2kit.extract(package, inputs=[name], model=model)
            except GraphError as error:
                assert "expected all that is needed among the inputs, got none of" in str(error)
                continue  # something else crosses the cut
            first = pt2kit.extract(package, inputs=inputs, outputs=[name], model=model)
            assert errors(first) == errors(second) == []
            joined = pt2kit.compose(first, second, {name: name})
            assert errors(joined) == []
            # Sizes that the whole asks another input for are asked of the cut value.
            asked = [node.inputs[0].name for node in second.graph().nodes if node.op == "aten.sym_size.int"]
            assert name in asked or pt2kit.digest(joined).program == wanted.program


def test_what_acts_without_a_result_stays_where_it_stands() -> None:
    """Assertions on what is cut out, and what it prints, are part of it; those of what is elsewhere are not."""
    path = sample("2.13.0", "item_symint")
    with pt2kit.open(path) as package:
        assert pt2kit.digest(pt2kit.extract(package)).program == pt2kit.digest(package).program
    with pt2kit.open(sample("2.13.0", "dtypes")) as package:
        part = pt2kit.edit(pt2kit.extract(package, inputs=["mul"], outputs=["add_1"]))
        assert [node.name for node in part.graph.nodes] == ["add", "add_1"]


def test_sizes_of_what_is_cut_off_are_those_of_an_input() -> None:
    """A part asks its own inputs for a size that the program asked another input for, if they have it.

    It begins at its inputs all the same: what is written before them is not repeated.
    """
    editor = pt2kit.edit(sample("2.13.0", "dynamic_batch"))
    batch = editor.graph.prepend("aten.sym_size.int", editor.value("x"), 0).output
    counter = editor.add_buffer("counter", np.zeros(2, np.float32))
    editor.graph.nodes["linear"].insert_before("aten.add_.Tensor", counter, 1)
    view = editor.graph.append("aten.view", editor.value("linear_1"), [batch, 2, 2])
    editor.add_output(view.output)
    whole = editor.finish()
    part = pt2kit.extract(whole, inputs=["relu"], outputs=[view.output.name, batch.name], prove=True).graph()
    assert [node.op for node in part.nodes] == ["aten.sym_size.int", "aten.linear.default", "aten.view.default"]
    assert part.nodes[0].inputs[0].name == "relu"
    with pytest.raises(GraphError, match="expected all that is needed among the inputs, got none of 'x'"):
        pt2kit.extract(whole, inputs=["p_b_weight"])


def test_a_write_whose_result_is_given_is_not_repeated() -> None:
    """It needs more than the part is given, and was made before: later writes to its result are not needed either."""
    with pt2kit.edit(sample("2.13.0", "mlp")) as editor:
        graph, x = editor.graph, editor.user_inputs[0].value
        buffer = editor.add_buffer("total", np.zeros((3, 8), "f4"))
        total = graph.append("aten.add_.Tensor", buffer, graph.append("aten.mul.Tensor", x, 2))
        flat = graph.append("aten.add_.Tensor", graph.append("aten.view", total, [24]), 1)
        graph.append("aten.relu", x, name="given")
        graph.append("aten.add_.Tensor", total, graph.append("aten.view", flat, [3, 8]))
        editor.add_output(graph.append("aten.neg", graph.value("given"), name="wanted").output)
    part = pt2kit.extract(editor.result, inputs=["given", total.output.name], outputs=["wanted"], prove=True)
    assert [node.op for node in part.graph().nodes] == ["aten.neg.default"]


def test_modules_are_cut_out_with_their_weights_alone() -> None:
    """The layer takes what came into it, gives what left it, and has its own weights."""
    layer = pt2kit.extract(sample("2.13.0", "preserve_module_sig"), "mid.inner")
    program = layer.programs["model"]
    assert list(layer.weights()) == ["mid.inner.l.weight", "mid.inner.l.bias"]
    assert program.graph_module.module_call_graph[0].fqn == ""
    assert errors(layer) == []


@pytest.mark.parametrize("path", corpus("2.13.0"), ids=lambda path: path.stem)
def test_extracting_everything_is_sound(path: Path) -> None:
    """All that outputs need is a sound program, whatever is in it: mutations, tokens, subgraphs, constants."""
    with pt2kit.open(path) as package:
        for model in package.layout.models:
            assert errors(pt2kit.extract(package, model=model)) == []


def test_names_that_both_have_get_a_prefix() -> None:
    """A program and itself: weights of equal names are one where their numbers are, and told apart by prefixes."""
    path = sample("2.13.0", "mlp")
    half = pt2kit.extract(path, outputs=["relu"])
    rest = pt2kit.extract(path, inputs=["relu"])
    both = pt2kit.compose(half, rest, {"relu": "relu"}, prefixes=("enc", "dec"))
    assert list(both.weights()) == ["enc.0.weight", "enc.0.bias", "dec.2.weight", "dec.2.bias"]
    assert errors(both) == []


def renamed(name: str, new: str) -> pt2kit.Package:
    """A program whose first weight has another name."""
    with pt2kit.edit(sample("2.13.0", name)) as editor:
        editor.rename_weight(next(iter(editor.weights)), new)
    return editor.result


def test_prefixes_make_room_for_names_that_have_them_already() -> None:
    """A weight `enc.2.bias` next to `2.bias` becomes `enc.enc.2.bias`, whatever the order; so does one called `enc`."""
    for name, wanted in (("enc.2.bias", "enc.enc.2.bias"), ("enc", "enc.enc"), ("enc.2.bias.x", "enc.enc.2.bias.x")):
        both = pt2kit.compose(
            renamed("mlp", name), pt2kit.extract(sample("2.13.0", "mlp"), inputs=["relu"]), {}, prefixes=("enc", "dec")
        )
        assert list(both.weights()) == [
            wanted,
            "enc.0.bias",
            "enc.2.weight",
            "enc.2.bias",
            "dec.2.weight",
            "dec.2.bias",
        ]
        assert errors(both) == []


def test_a_weight_and_a_module_of_one_name_are_refused() -> None:
    """A tensor of one program cannot hold tensors of the other: prefixes keep them apart."""
    part = pt2kit.extract(sample("2.13.0", "mlp"), inputs=["relu"])
    with pytest.raises(GraphError, match=r"of other names than modules, got '2' in one program and '2\.bias' in the"):
        pt2kit.compose(renamed("no_inputs", "2"), part, {})
    with pytest.raises(GraphError, match=r"of other names than modules, got '2' in one program and '2\.bias' in the"):
        pt2kit.compose(part, renamed("no_inputs", "2"), {})
    assert errors(pt2kit.compose(part, renamed("no_inputs", "2"), {}, prefixes=("", "b"))) == []


@pytest.mark.parametrize(
    ("connect", "text"),
    [
        ({"nothing": "x"}, r"compose: first program: expected the name of an output \(linear_1\), got 'nothing'"),
        ({"linear_1": "nothing"}, r"compose: second program: expected the name of an input \(input\), got 'nothing'"),
        ({"linear_1": "input"}, r"linear_1 -> input: expected sizes \(3, 8\), got \(3, 4\)"),
    ],
)
def test_what_does_not_fit_is_refused(connect: dict[str, str], text: str) -> None:
    """Names and sizes are compared before anything is joined."""
    path = sample("2.13.0", "mlp")
    with pytest.raises(GraphError, match=text):
        pt2kit.compose(path, path, connect)


def test_packed_programs_keep_their_digests_and_share_weights(tmp_path: Path) -> None:
    """Equal weights are stored once; unpacked, each program is as it was; extra files go along."""
    sources = {"a": sample("2.13.0", "mlp"), "b": sample("2.13.0", "mlp"), "c": sample("2.4.1", "mlp")}
    package = pt2kit.pack(sources, extra_files={"note.txt": "x"})
    assert errors(package) == []
    pt2kit.write(package, tmp_path / "all.pt2")
    with pt2kit.open(tmp_path / "all.pt2") as written:
        assert bytes(written.extra_files["note.txt"]) == b"x"
        for name, path in sources.items():
            assert pt2kit.digest(written, name).program == pt2kit.digest(path).program
        records = [name for name in written.records if name.rpartition("/")[2].startswith("weight_")]
        assert len(records) == len(set(records)) <= 8
        files = pt2kit.unpack(written, tmp_path / "apart")
        assert pt2kit.digest(files["b"], "b").program == pt2kit.digest(sources["b"]).program
        assert errors(only(written, "c")) == []
        changed = with_extra_files(written, {"more.txt": b"y"}, drop=["note.txt"])
        assert list(changed.extra_files) == ["more.txt"]
        with pytest.raises(ArchiveError, match=r"expected an extra file to leave out, got 'no\.txt'"):
            with_extra_files(written, drop=["no.txt"])


def test_two_programs_of_one_name_are_refused() -> None:
    """Without names of their own, two files of one name cannot be told apart."""
    with pytest.raises(ArchiveError, match="expected a name of its own for each program, got 'mlp' again"):
        pt2kit.pack([sample("2.13.0", "mlp"), sample("2.9.1", "mlp")])


@pytest.mark.parametrize("name", ["unused_input", "batchnorm_train", "convnet__strict", "shared_weights__strict"])
def test_dead_weights_stay_behind(name: str) -> None:
    """An extracted program lacks unused weights; cut in two and joined, the program is the same as extracted."""
    path = sample("2.13.0", name)
    with pt2kit.open(path) as package:
        whole = pt2kit.extract(package)
        with pt2kit.edit(package) as editor:
            used = {one.target for one in editor.inputs if one.value is not None and (one.value.is_used)}
            for weight in [*editor.weights]:
                if weight not in used:
                    editor.drop_weight(weight)
        assert pt2kit.digest(editor.result).weights == pt2kit.digest(whole).weights
        assert pt2kit.digest(editor.result).graph == pt2kit.digest(whole).graph
        for node in list(pt2kit.edit(package).graph.nodes)[:-1]:
            if len(node.outputs) == 1 and not node.output.is_output and node.output.kind == "tensor":
                try:
                    second = pt2kit.extract(package, inputs=[node.output.name])
                except GraphError:
                    continue  # something else crosses the cut
                first = pt2kit.extract(package, outputs=[node.output.name])
                joined = pt2kit.compose(first, second, {node.output.name: node.output.name})
                assert pt2kit.digest(joined).program == pt2kit.digest(whole).program


@pytest.mark.parametrize("constants", [["i"], ["st", "i"], []])
def test_constants_of_the_call_are_asked_for_by_name(constants: list[str]) -> None:
    """A part takes the constants of the whole's call that its inputs name, where they stand, and no others."""
    path = sample("2.13.0", "scalar_inputs")
    part = pt2kit.extract(path, inputs=[*constants, "x"], outputs=["mul"])
    assert errors(part) == []
    module = part.programs["model"].graph_module
    specs = module.signature.input_specs
    assert [spec.type for spec in specs] == ["constant_input"] * len(constants) + ["user_input"]
    whole = {
        spec.value.name: spec for spec in pt2kit.open(path).programs["model"].graph_module.signature.input_specs[1:]
    }
    assert specs[: len(constants)] == [whole[name] for name in constants]
    assert module.module_call_graph[0].signature.forward_arg_names == [*constants, "x"]
    with pytest.raises(GraphError, match=r"expected the name of a value, got 'j'"):
        pt2kit.extract(path, inputs=["x", "j"], outputs=["mul"])


def test_nothing_of_a_connected_input_is_left() -> None:
    """The value tables of a joined program describe its values alone: the input that was connected is none any more."""
    path = sample("2.13.0", "buffer_mutation")
    joined = pt2kit.compose(path, path, {0: "x"}, prefixes=("a", "b"))
    graph = joined.programs["model"].graph_module.graph
    assert set(graph.tensor_values) == set(pt2kit.edit(joined).graph.values)
    assert "b_x" not in graph.tensor_values


@pytest.mark.parametrize(
    ("first", "second"), [("cond__decomp", "buffer_mutation"), ("buffer_mutation", "cond__decomp")]
)
def test_a_program_in_training_ir_and_another_become_one_in_training_ir(first: str, second: str) -> None:
    """Calls that write to their arguments are allowed there alone."""
    joined = pt2kit.compose(sample("2.13.0", first), sample("2.13.0", second), {0: "x"}, prove=True)
    assert joined.programs["model"].verifiers == ["TRAINING"]
    assert errors(joined) == []


def test_a_weight_of_both_programs_is_taken_once() -> None:
    """A program that returns what it took, joined to itself: both halves use the weights through the same inputs."""
    with pt2kit.edit(pt2kit.extract(sample("2.13.0", "mlp"), outputs=["relu"])) as editor:
        back = editor.graph.append("aten.matmul", editor.graph.outputs[0], editor.input("0.weight").value)
        editor.add_output(back.output)
        editor.drop_output(0)
    joined = pt2kit.compose(editor.result, editor.result, {0: "input"})
    assert errors(joined) == []
    assert [one.name for one in pt2kit.edit(joined).inputs] == ["p_0_weight", "p_0_bias", "input"]
    assert len(joined.graph().nodes) == 6


def test_ranges_of_joined_symbols_are_narrowed() -> None:
    """One symbol in both programs has the sizes that both take; a number outside the range of one is an error."""
    halves = []
    for low, high in ((2, 8), (4, 30)):
        with pt2kit.edit(pt2kit.extract(sample("2.13.0", "dynamic_batch"), outputs=["relu"])) as editor:
            editor.ranges["s77"] = (low, high)
            editor.graph.append("aten.matmul", editor.graph.outputs[0], editor.input("a.weight").value)
            editor.add_output(editor.graph.nodes.last.output)
            editor.drop_output(0)
        halves.append(editor.result)
    joined = pt2kit.compose(halves[0], halves[1], {0: "x"})
    assert joined.programs["model"].range_constraints["s77"] == pt2kit.schema.RangeConstraint(4, 8)
    with pt2kit.edit(halves[1]) as editor:
        editor.specialize("s77", 20)
    with pytest.raises(GraphError, match=r"expected sizes \(20, 8\), got \('s77', 8\); specialize a symbol"):
        pt2kit.compose(halves[0], editor.result, {0: "x"})
    with pytest.raises(GraphError, match=r"from 2 to 8, got 20 to 20 \[E4\]"):
        pt2kit.compose(editor.result, halves[0], {0: "x"})


def test_one_file_is_no_list_of_files() -> None:
    """The name of one file instead of a list is refused, not read letter by letter."""
    with pytest.raises(TypeError, match="sources: expected a mapping or a list of files and packages, got one file"):
        pt2kit.pack("model.pt2")
