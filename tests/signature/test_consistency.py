"""A signature that does not fit its graph is refused, with the place and both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.signature.build import everything, module, module_of, tree_of
from tests.strategies import structs

from pt2kit import schema
from pt2kit.errors import GraphError
from pt2kit.signature import from_schema, problems
from pt2kit.signature.consistency import targets_below

Tree = dict[str, Any]
Edit = Callable[[Tree, list[Tree], list[Tree]], object]
THERE = "expected what the graph has there,"
NO_NAME = "expected names with dots between them, without double quotes, backslashes and control characters, got"
TENSOR = {"as_tensor": {"name": "x"}}


def put(index: int, spec: Tree) -> Edit:
    """An edit that replaces one input spec."""
    return lambda _, inputs, __: inputs.__setitem__(index, spec)


def put_output(index: int, spec: Tree) -> Edit:
    """An edit that replaces one output spec."""
    return lambda _, __, outputs: outputs.__setitem__(index, spec)


def swap(specs: list[Tree], first: int, second: int) -> None:
    """Exchange two entries."""
    specs[first], specs[second] = specs[second], specs[first]


def retarget(target: str) -> Edit:
    """An edit that gives the parameter, and its mutation and gradient, another name in the module."""

    def edit(_: Tree, inputs: list[Tree], outputs: list[Tree]) -> None:
        for spec in (inputs[1]["parameter"], outputs[2]["parameter_mutation"], outputs[9]["gradient_to_parameter"]):
            spec["parameter_name"] = target

    return edit


def rename_constant(name: str) -> Edit:
    """An edit that renames the placeholder of the first constant input."""
    return lambda _, inputs, __: inputs[7]["constant_input"].__setitem__("name", name)


def alias(_: Tree, inputs: list[Tree], __: list[Tree]) -> None:
    """Bind the temporary buffer to the persistent one."""
    inputs[3]["buffer"]["buffer_name"] = "bn.mean"


def other_size(tree: Tree, inputs: list[Tree], outputs: list[Tree]) -> None:
    """Bind two inputs of different size to one buffer."""
    alias(tree, inputs, outputs)
    tree["graph"]["tensor_values"]["b_t"]["sizes"] = [{"as_int": 5}]


def other_kind(_: Tree, inputs: list[Tree], __: list[Tree]) -> None:
    """Bind the tensor constant to the name of the parameter."""
    inputs[4]["tensor_constant"]["tensor_constant_name"] = "w"


def mutate_twice(tree: Tree, _: list[Tree], outputs: list[Tree]) -> None:
    """Write one value to both buffers."""
    outputs[2] = {"buffer_mutation": {"arg": {"name": "m_1"}, "buffer_name": "t"}}
    tree["graph"]["outputs"][2] = tree["graph"]["outputs"][1]


MISFITS: dict[str, tuple[str, str, str, Edit]] = {
    "inputs short": (
        "S1",
        "input_specs",
        "expected 12 input_specs, one for each input of the graph, got 11",
        lambda _, inputs, __: inputs.pop(),
    ),
    "inputs long": (
        "S1",
        "input_specs",
        "expected 12 input_specs, one for each input of the graph, got 13",
        lambda _, inputs, __: inputs.append(inputs[-1]),
    ),
    "outputs short": (
        "S2",
        "output_specs",
        "expected 11 output_specs, one for each output of the graph, got 10",
        lambda _, __, outputs: outputs.pop(),
    ),
    "outputs empty": ("S2", "output_specs", "expected 11 output_specs, ", lambda _, __, outputs: outputs.clear()),
    "outputs long": (
        "S2",
        "output_specs",
        "expected 11 output_specs, one for each output of the graph, got 12",
        lambda _, __, outputs: outputs.append(outputs[-1]),
    ),
    "tokens": (
        "S13",
        "output_specs",
        "expected 1 output tokens, as many as input tokens, got 0",
        lambda tree, _, outputs: (outputs.pop(0), tree["graph"]["outputs"].pop(0)),
    ),
    "input name": (
        "S3",
        "input_specs[1]",
        f"{THERE} the tensor 'p_w', got the tensor 'nope'",
        put(1, {"parameter": {"arg": {"name": "nope"}, "parameter_name": "w"}}),
    ),
    "inputs swapped": (
        "S3",
        "input_specs[2]",
        f"{THERE} the tensor 'b_m', got the tensor 'b_t'",
        lambda _, inputs, __: swap(inputs, 2, 3),
    ),
    "input kind": (
        "S3",
        "input_specs[9]",
        f"{THERE} the symbolic int 'n', got the symbolic float 'n'",
        put(9, {"user_input": {"arg": {"as_sym_float": {"as_name": "n"}}}}),
    ),
    "class of an object": (
        "S3",
        "input_specs[11]",
        f"{THERE} the custom object 'obj' of the class '__torch__.Queue', got the custom object 'obj' of the class 'C'",
        put(11, {"user_input": {"arg": {"as_custom_obj": {"name": "obj", "class_fqn": "C"}}}}),
    ),
    "token that is no tensor": (
        "S3",
        "input_specs[0]",
        f"{THERE} the symbolic int 'token', got the token 'token'",
        lambda tree, _, __: tree["graph"]["inputs"].__setitem__(0, {"as_sym_int": {"as_name": "token"}}),
    ),
    "constant input": (
        "S3",
        "input_specs[7]",
        f"{THERE} the constant True, got the constant 'yes'",
        put(7, {"constant_input": {"name": "flag", "value": {"as_string": "yes"}}}),
    ),
    "graph input that is a list": (
        "S3",
        "input_specs[6]",
        f"{THERE} as_tensors, got the tensor 'x'",
        lambda tree, _, __: tree["graph"]["inputs"].__setitem__(6, {"as_tensors": []}),
    ),
    "output name": (
        "S4",
        "output_specs[1]",
        f"{THERE} the tensor 'm_1', got the tensor 'y'",
        put_output(1, {"buffer_mutation": {"arg": {"name": "y"}, "buffer_name": "bn.mean"}}),
    ),
    "output constant": (
        "S4",
        "output_specs[5]",
        f"{THERE} the constant 3, got the constant 4",
        put_output(5, {"user_output": {"arg": {"as_int": 4}}}),
    ),
    "outputs swapped": (
        "S4",
        "output_specs[4]",
        f"{THERE} the tensor 'y', got the constant 3",
        lambda _, __, outputs: swap(outputs, 4, 5),
    ),
    "input order": (
        "S5",
        "input_specs[5]",
        "expected tokens, then parameters, buffers, constants and custom objects, then user inputs, "
        "got CUSTOM_OBJ 'obj_q' after USER_INPUT 'c_0'",
        lambda tree, inputs, _: inputs.__setitem__(4, {"user_input": {"arg": tree["graph"]["inputs"][4]}}),
    ),
    "output order": (
        "S6",
        "output_specs[2]",
        "got PARAMETER_MUTATION 'w_1' after USER_OUTPUT 'm_1'",
        lambda tree, _, outputs: outputs.__setitem__(1, {"user_output": {"arg": tree["graph"]["outputs"][1]}}),
    ),
    "mutation of an unknown buffer": (
        "S7",
        "output_specs[1]",
        "expected the name of a buffer, got 'nope'; the signature has 2 of them",
        put_output(1, {"buffer_mutation": {"arg": {"name": "m_1"}, "buffer_name": "nope"}}),
    ),
    "two mutations by one value": (
        "S7",
        "output_specs[2]",
        "expected a value of its own for 't', got 'm_1', as for 'bn.mean'",
        mutate_twice,
    ),
    "mutation of a parameter as a buffer": (
        "S7",
        "output_specs[1]",
        "expected the name of a buffer, got 'w'",
        put_output(1, {"buffer_mutation": {"arg": {"name": "m_1"}, "buffer_name": "w"}}),
    ),
    "mutation of an unknown parameter": (
        "S7",
        "output_specs[2]",
        "expected the name of a parameter, got 'bn.mean'; the signature has 1 of them",
        put_output(2, {"parameter_mutation": {"arg": {"name": "w_1"}, "parameter_name": "bn.mean"}}),
    ),
    "mutation of an input that is no tensor": (
        "S7",
        "output_specs[3]",
        "expected the name of a user input that is a tensor, got 'n'; the signature has 1 of them",
        put_output(3, {"user_input_mutation": {"arg": {"name": "x_1"}, "user_input_name": "n"}}),
    ),
    "gradient to an unknown parameter": (
        "S7",
        "output_specs[9]",
        "expected the name of a parameter, got 'v'",
        put_output(9, {"gradient_to_parameter": {"arg": {"name": "g_w"}, "parameter_name": "v"}}),
    ),
    "gradient to an unknown input": (
        "S7",
        "output_specs[10]",
        "expected the name of a user input that is a tensor, got 'p_w'",
        put_output(10, {"gradient_to_user_input": {"arg": {"name": "g_x"}, "user_input_name": "p_w"}}),
    ),
    "two sizes for one target": (
        "S8",
        "input_specs[3]",
        "expected the same tensor or object as input_specs[2], which has the same target 'bn.mean', got one that",
        other_size,
    ),
    "two kinds for one target": (
        "S8",
        "input_specs[4]",
        "expected 'w' to be a PARAMETER, as input_specs[1] says, got CONSTANT_TENSOR",
        other_kind,
    ),
    "a target below another": (
        "S8",
        "input_specs[1]",
        "expected 'bn' to hold no others, as it is a PARAMETER, got 'bn.mean' below it",
        retarget("bn"),
    ),
    "two losses": (
        "S9",
        "output_specs[8]",
        "expected one loss, 'y', got a second one, 'loss'",
        put_output(4, {"loss_output": {"arg": {"name": "y"}}}),
    ),
    "quote in a target": ("S10", "input_specs[1]", f"{NO_NAME} 'w\"), open(\"f'", retarget('w"), open("f')),
    "backslash in a target": ("S10", "input_specs[1]", NO_NAME, retarget("w\\")),
    "line break in a target": ("S10", "input_specs[1]", NO_NAME, retarget("w\nx")),
    "empty target": ("S10", "input_specs[1]", f"{NO_NAME} ''", retarget("")),
    "empty part of a target": ("S10", "input_specs[1]", f"{NO_NAME} 'a..w'", retarget("a..w")),
    "input that is a list": (
        "S12",
        "input_specs[6]",
        "expected one value or one constant, got as_tensors",
        put(6, {"user_input": {"arg": {"as_tensors": []}}}),
    ),
    "output that is a dict": (
        "S12",
        "output_specs[4]",
        "expected one value or one constant, got as_string_to_argument",
        put_output(4, {"user_output": {"arg": {"as_string_to_argument": {"k": TENSOR}}}}),
    ),
    "placeholder that is code": (
        "S14",
        "input_specs[7]",
        "expected an identifier as the name of a placeholder, got \"k=open('f')\"",
        rename_constant("k=open('f')"),
    ),
    "placeholder of another input": (
        "S14",
        "input_specs[7]",
        "expected a name of its own, got 'x', which input_specs[6] has",
        rename_constant("x"),
    ),
    "placeholder of another constant": (
        "S14",
        "input_specs[8]",
        "expected a name of its own, got 'none', which input_specs[7] has",
        rename_constant("none"),
    ),
}


def edited(edit: Edit) -> schema.GraphModule:
    """The graph module with every kind of spec, after an edit of its JSON."""
    tree = tree_of(module(everything()))
    edit(tree, tree["signature"]["input_specs"], tree["signature"]["output_specs"])
    return module_of(tree)


@pytest.mark.parametrize("case", MISFITS)
def test_misfits_are_refused(case: str) -> None:
    """The fault is among the problems with its rule, place and text, and the first problem is raised."""
    rule, place, text, edit = MISFITS[case]
    source = edited(edit)
    where = "models/model.json: $.graph_module"
    found = list(problems(source, where))
    own = [problem for problem in found if problem.rule == rule]
    assert [problem.loc for problem in own][:1] == [f"{where}.signature.{place}"]
    assert text in own[0].message
    assert {problem.kind for problem in found} == {"error"}
    with pytest.raises(GraphError) as caught:
        from_schema(source, where)
    assert str(caught.value) == str(found[0])
    assert caught.value.rule == found[0].rule


HARMLESS: dict[str, Edit] = {
    "nothing": lambda tree, inputs, outputs: None,
    "two inputs for one buffer": alias,
    "blanks and dashes in a target": retarget("blocks.0.a-b c.weight"),
    # Torch 2.1 and 2.3 called the scales of quantized modules by the source of the module.
    "single quotes and brackets in a target": retarget("getattr(L['self'].blocks, '0')_scale_0"),
    "a target that is a method": retarget("forward"),
    "a placeholder that is a keyword": rename_constant("for"),
    "a constant without a placeholder": rename_constant(""),
    "not a number": lambda tree, inputs, _: (
        inputs.__setitem__(7, {"constant_input": {"name": "flag", "value": {"as_float": "NaN"}}}),
        tree["graph"]["inputs"].__setitem__(7, {"as_float": "NaN"}),
    ),
    # Torch 2.4 and 2.5 wrote booleans as integers among the constant inputs.
    "a boolean as an integer": put(7, {"constant_input": {"name": "flag", "value": {"as_int": 1}}}),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_signatures(case: str) -> None:
    """Signatures that torch writes, or could, have no problem."""
    source = edited(HARMLESS[case])
    assert list(problems(source)) == []
    from_schema(source)


def test_all_misfits_are_collected() -> None:
    """All problems are listed; their places start at the graph module by default."""
    source = edited(lambda _, inputs, outputs: (inputs.pop(1), put_output(1, {"user_output": {"arg": TENSOR}})))
    rules = [problem.rule for problem in problems(source)]
    assert rules[0] == "S1"
    assert rules.count("S3") == 10
    assert rules.count("S7") == 2
    assert next(iter(problems(source))).loc == "$.graph_module.signature.input_specs"


def test_long_names_are_cut_in_messages() -> None:
    """A name of any length makes a message of one line."""
    found = list(problems(edited(retarget("a" * 10_000 + '"'))))
    assert [problem.rule for problem in found] == ["S10"]
    assert all(len(str(problem)) < 400 for problem in found)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(structs(schema.GraphModule))
def test_any_graph_module_is_read_or_refused(source: schema.GraphModule) -> None:
    """Whatever the schema allows is read, or refused with the first of its problems."""
    errors = [problem for problem in problems(source) if problem.kind == "error"]
    try:
        from_schema(source)
    except GraphError as error:
        assert str(error) == str(errors[0])
    else:
        assert errors == []


@given(st.lists(st.text("ab.", max_size=6), max_size=8))
def test_targets_below(targets: list[str]) -> None:
    """A name that others lie below is found with the first of them, whatever stands around."""
    below = targets_below(targets, targets)
    for name in targets:
        others = sorted((one for one in targets if one.startswith(f"{name}.")), key=lambda one: one.split("."))
        assert below.get(name) == (others[0] if others else None)


def test_a_target_with_a_million_parts() -> None:
    """Nested names take no table of all the paths above, which would be a terabyte."""
    long = "a." * 1_000_000 + "a"
    assert targets_below([long, "a.a", "a.b"], [long, "a.b"]) == {"a.a": long}
