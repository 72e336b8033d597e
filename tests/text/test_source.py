"""The text form of programs: printed and parsed they are the same to the letter; errors name the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs
from tests import everything
from tests.samples import corpus, release_id, sample

import pt2kit
from pt2kit import codec, schema
from pt2kit.editing import passes
from pt2kit.errors import SchemaError
from pt2kit.graph import graphs as walk_graphs


@pytest.mark.parametrize("path", corpus(), ids=release_id)
def test_what_was_printed_parses_to_the_same_program(path: Path) -> None:
    """Every program of every release, with the order of all tables and every float as it was spelled."""
    with pt2kit.open(path) as package:
        for program in package.programs.values():
            found = pt2kit.text.parse(pt2kit.text.print_program(program))
            assert codec.encode(found) == codec.encode(program)


def test_every_kind_of_argument_parses_to_the_same() -> None:
    """Also those that torch wrote into no sample file, such as dicts of arguments."""
    program = everything.program()
    assert codec.encode(pt2kit.text.parse(pt2kit.text.print_program(program))) == codec.encode(program)


def test_many_values() -> None:
    """Names are not looked up in a list, which takes minutes for 20,000 values."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        program = package.programs["model"]
    graph = program.graph_module.graph
    node, meta = graph.nodes[0], next(iter(graph.tensor_values.values()))
    names = [f"value_{number}" for number in range(20_000)]
    outputs = [schema.Argument(as_tensor=schema.TensorArgument(name)) for name in names]
    nodes = [structs.replace(node, outputs=[output], name=name) for name, output in zip(names, outputs, strict=True)]
    graph = structs.replace(graph, nodes=nodes, tensor_values=dict.fromkeys(names, meta))
    module = structs.replace(program.graph_module, graph=graph)
    assert pt2kit.text.print_program(structs.replace(program, graph_module=module)).count("value_19999") == 1


def test_comments_and_blanks_do_not_count() -> None:
    """Lines may be broken anywhere between tokens, and end in a comment."""
    editor = pt2kit.edit(pt2kit.open(sample("2.13.0", "mlp")).programs["model"])
    passes.strip_metadata(editor)
    text = pt2kit.text.print_program(editor.finish())
    loose = text.replace(" = ", "\n    =   // what follows\n ").replace("graph {", "// the graph\ngraph\n{")
    assert codec.encode(pt2kit.text.parse(loose)) == codec.encode(pt2kit.text.parse(text))


REFUSED = {
    "": "line 1, column 1: expected 'pt2', got 'the end'",
    "pt2 2": "line 1, column 5: expected the version 1 of the text form, got '2'",
    "pt2 1\nnonsense": "line 2, column 1: expected a word of the head",
    "pt2 1\ngraph {\n  input %x : q32[2]\n}": "line 3, column 14: expected an element type",
    "pt2 1\ngraph {\n  output [%x, 1]\n}": "line 3, column 16: expected a list of values, numbers or texts of one kind",
    "pt2 1\ngraph {\n  %y = torch.ops.aten.relu.default(self=%x": "expected",
    "pt2 1\ngraph {\n  input %x : f32[#7]\n}": "line 3, column 14: expected an expression that is declared above",
    "pt2 1\ngraph {\n  input %x = nonsense\n}": "line 3, column 14: expected one of user_input",
    "pt2 1\ngraph {}\nmore": "line 3, column 1: expected the end of the text, got 'more'",
    "pt2 1\ngraph { ` }": "line 2, column 9: expected a token",
    "pt2 1\ngraph {\n  %y = f(" + "[" * 100_000: "line 3, column 11: expected an argument other than a list",
    "pt2 1\ngraph {\n  %y = f(" + "9" * 5_000: "line 3, column 10: expected an int of fewer digits",
    "pt2 1\ngraph {\n  input %x : f32[" + "9" * 5_000 + "]": "line 3, column 14: expected an int of fewer digits",
    'pt2 1\ngraph {\n  output "a\\ud800"\n}': "line 3, column 10: expected a text as JSON writes it, without lone",
    "pt2 1\ngraph {\n  input %x : f32[2] on[3]\n}": 'line 3, column 14: expected a device such as "cuda", 0',
    "pt2 1\ngraph {\n  input %n : int 4.5\n}": "line 3, column 18: expected an int, got '4.5'",
    "pt2 1\ngraph {\n  input %n : bool 1\n}": "line 3, column 19: expected true or false, got '1'",
    "pt2 1\ngraph {\n  output sym_float(true)\n}": "line 3, column 20: expected a float, got 'true'",
    'pt2 1\nrange "s0" 2 "x"': "line 2, column 14: expected two ints or none",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:40]))
def test_errors_name_the_line(text: str) -> None:
    """Text outside the grammar is refused with its line, what was expected and what came."""
    with pytest.raises(SchemaError, match="text: ") as caught:
        pt2kit.text.parse(text)
    assert REFUSED[text] in str(caught.value)


def test_nodes_whose_first_result_is_a_constant() -> None:
    """`none = target(…)` after an input with a role, and a target in quotes, begin a node."""
    text = 'pt2 1\ngraph {\n  input %x = parameter "w"\n  none = torch.vmap(%x)\n  none, %y = "a b"(%x)\n  "c"()\n}\n'
    program = pt2kit.text.parse(text)
    assert [node.target for node in program.graph_module.graph.nodes] == ["torch.vmap", "a b", "c"]
    assert [len(node.outputs) for node in program.graph_module.graph.nodes] == [1, 2, 0]
    assert pt2kit.text.parse(pt2kit.text.print_program(program)) == program


def test_places_of_findings_are_lines_of_the_text() -> None:
    """Nodes, inputs, outputs and descriptions of values, in subgraphs, too; nothing for what is no part of a graph."""
    text = pt2kit.text.print_program(pt2kit.open(sample("2.13.0", "cond")).programs["model"])
    parsed = pt2kit.text.read(text, "cond.txt")
    lines = text.splitlines()
    seen, signature = 0, parsed.program.graph_module.signature
    for scope in walk_graphs(parsed.program):
        for number, node in enumerate(scope.graph.nodes):
            place = parsed.place(f"models/model.json: {scope.where}.nodes[{number}].inputs[0]: expected …")
            assert place is not None
            line, column = (int(part) for part in re.findall(r"\d+", place))
            assert lines[line - 1][column - 1 :].partition("(")[0].endswith(node.target)
            seen += scope.depth
        for name in scope.graph.tensor_values:
            place = parsed.place(f"{scope.where}.tensor_values.{name}.dtype")
            assert place is not None
            assert f"%{name} " in lines[int(re.findall(r"\d+", place)[0]) - 1]
    assert seen > 0
    for side, specs in (("input", signature.input_specs), ("output", signature.output_specs)):
        for number in range(len(specs)):
            place = parsed.place(f"models/model.json: $.graph_module.signature.{side}_specs[{number}].arg: expected …")
            assert place is not None
            graph_part = f"$.graph_module.graph.{side}s[{number}]"
            assert place == parsed.place(graph_part), (place, graph_part)
    assert parsed.place("$.guards_code[0]") is None


@pytest.mark.parametrize("cut", range(0, 4000, 37))
def test_text_that_was_cut_is_refused(cut: int) -> None:
    """Whatever is missing at the end, the error is one of ours."""
    text = pt2kit.text.print_program(pt2kit.open(sample("2.13.0", "cond")).programs["model"])
    with pytest.raises(SchemaError, match="expected"):
        pt2kit.text.parse(text[: min(cut, len(text) - 3)])
