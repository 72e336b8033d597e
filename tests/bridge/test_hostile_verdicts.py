"""Programs that contradict themselves in places that are seldom written: one verdict, one message, no traceback.

`REFUSED` has a change of a small program for each, with the rule and message of the refusal that `check`, `load` and
`load_module` share. `COMMANDS` has changes of programs that are sound, or that a command has to report.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.bridge.read.edited import graph
from tests.cli.run import pt2
from tests.hostile.costly import LEAF, call, in_spec, meta, pack, program, relu, small

import pt2kit
from pt2kit.checks.refusals import refuses
from pt2kit.errors import InputError, Pt2Error

Change = Callable[[Any], object]


def specs(tree: Any, side: str) -> Any:
    """The specs of the inputs or outputs of a program."""
    return tree["graph_module"]["signature"][f"{side}_specs"]


def changed(change: Change) -> bytes:
    """The file of a program of one call, relu of x, which was changed."""
    tree = deepcopy(small())
    change(tree)
    return pack(tree)


def _kept(argument: Any) -> Change:
    """Keep the call signature of a module with one input."""
    out = f'[1,{{"type":"builtins.tuple","context":"null","children_spec":[{LEAF}]}}]'
    signature = {"inputs": [argument], "outputs": [{"as_none": True}], "in_spec": in_spec(LEAF), "out_spec": out}
    entry = {"fqn": "part", "signature": {**signature, "forward_arg_names": None}}
    return lambda tree: tree["graph_module"]["module_call_graph"].append(entry)


def _output(argument: Any) -> Change:
    """Return an argument instead of the result."""

    def change(tree: Any) -> None:
        graph(tree)["outputs"] = [argument]
        specs(tree, "output")[0] = {"user_output": {"arg": argument}}

    return change


def _unused_pickle(tree: Any) -> None:
    entry = {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta(2)}
    tree["config"] = {"w": entry, "v": {**entry, "use_pickle": True}}


def _operand(number: Any, operator: str = "aten.add.Tensor") -> Change:
    """Add a number instead of calling relu."""
    return lambda tree: graph(tree).update(nodes=[call(operator, "a", self="x", other=number)])


def _condition(tree: Any) -> None:
    """Call a higher-order operator whose results are declared as one list."""
    branch = {"as_graph": {"name": "t", "graph": {**deepcopy(graph(tree))}}}
    node = call("higher_order.cond", {"as_tensors": [{"name": "a"}]}, pred={"as_bool": True}, yes=branch, no=branch)
    node["inputs"].append({"name": "", "arg": {"as_tensors": [{"name": "x"}]}, "kind": 1})
    graph(tree)["nodes"] = [{**node, "inputs": [{**one, "name": ""} for one in node["inputs"]]}]


REFUSED: dict[str, tuple[Change, str, str]] = {
    "list in a kept signature": (
        _kept({"as_float_lists": [[1.0]]}),
        "K6",
        "module_call_graph[1].signature.inputs[0]: expected one value or one constant, got as_float_lists",
    ),
    "number in a kept symbolic int": (
        _kept({"as_sym_int": {"as_int": 3}}),
        "K6",
        "expected one value or one constant, got as_sym_int with a constant",
    ),
    "tensor as a custom object": (
        _output({"as_custom_obj": {"name": "a", "class_fqn": "os.system"}}),
        "G7",
        "graph.outputs[0]: expected the name of a custom_obj value, got 'a', which is a tensor value",
    ),
    "list as the result of a condition": (
        _condition,
        "T6",
        "nodes[0].outputs[0]: expected one value as the only result of 'torch.ops.higher_order.cond', got as_tensors",
    ),
    "int of 65 bits as a tensor": (
        _operand({"as_int": 1 << 64}),
        "T5",
        "nodes[0].inputs[1].arg: expected Tensor as the argument other of aten.add.Tensor, got the integer",
    ),
    "int of many bits as a number": (
        _operand({"as_int": -(10**400)}, "aten.add.Scalar"),
        "T5",
        "got an integer of 1329 bits, which 64 bits cannot hold",
    ),
    "name of a node that steers terminals": (
        lambda tree: graph(tree)["nodes"][0].update(name="\x1b[2J"),
        "G15",
        "nodes[0].name: expected an identifier, got '\\x1b[2J'",
    ),
    "unused weight that is no pickle": (
        _unused_pickle,
        "P22",
        "data/weights/weight_0: expected what torch.save or pickle writes as 'v', got other bytes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_three_entry_points_refuse(name: str) -> None:
    """`check` reports the problem that `load` and `load_module` raise, with its place."""
    change, rule, message = REFUSED[name]
    data = changed(change)
    found = next(problem for problem in pt2kit.check(data) if refuses(problem))
    assert (found.rule, message in str(found)) == (rule, True)
    assert str(found).isprintable()
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(Pt2Error) as raised:
            load(io.BytesIO(data))
        assert (raised.value.rule, message in str(raised.value)) == (rule, True)


@pytest.mark.parametrize("text", ["\x7f", "\x9b31m", "\u202e", "\u2066", "\ufeff", "\U000e0041"])
def test_json_does_not_steer_terminals(text: str, tmp_path: Path) -> None:
    """Characters that do not print are escaped in JSON, and read back."""
    (tmp_path / "a.pt2").write_bytes(changed(lambda tree: None))
    with zipfile.ZipFile(tmp_path / "a.pt2", "a") as archive:
        archive.writestr(f"m/extra/{text}", "")
    done = pt2("show", "--json", "a.pt2", cwd=tmp_path)
    assert done.code == 0
    assert text not in done.out
    assert list(json.loads(done.out)["extra_files"]) == [text]


def test_places_of_compiled_code_are_printable() -> None:
    """The name of a compiled model is escaped where check reports it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in {"archive_format": "pt2", "archive_version": "0", "byteorder": "little"}.items():
            archive.writestr(f"m/{name}", content)
        archive.writestr("m/.data/version", "6")
        archive.writestr("m/data/aotinductor/\u202e\x1b[2J/x.so", "")
    [found] = [problem for problem in pt2kit.check(out.getvalue()) if problem.rule == "X8"]
    assert str(found).isprintable()


def _tokens(tree: Any) -> None:
    specs(tree, "input")[0] = {"token": {"arg": {"name": ""}}}


def _nan_constant(tree: Any) -> None:
    specs(tree, "input")[0] = {"constant_input": {"name": "x", "value": {"as_float": "NaN"}}}


def _infinite(tree: Any) -> None:
    values = {"x": meta("s0"), "a": meta("s0"), "y": meta("oo")}
    tree.update(program([relu("x", "a")], ["a"], values, ["x", "y"]))
    tree["range_constraints"] = {"s0": {"min_val": 0, "max_val": 9}}


COMMANDS: dict[str, tuple[Change, str, int, str]] = {
    "token without a name": (_tokens, "view a.pt2 --html a.html", 0, "a.html"),
    "constant that is nan": (_nan_constant, "show --text a.pt2", 0, "nan"),
    "cost of an infinite size": (_infinite, "show --cost --at s0=3 a.pt2", 2, "cost: expected finite sizes, got"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, tmp_path: Path) -> None:
    """A command ends with its exit code and a message of ours."""
    change, command, code, message = COMMANDS[name]
    (tmp_path / "a.pt2").write_bytes(changed(change))
    done = pt2(*command.split(), cwd=tmp_path)
    assert done.code == code, done.err
    assert message in done.out + done.err


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("L['x'].item() == 1", "expected one element at L['x'].item(), got 2 elements"),
        ("math.log(L['x'].size()[0] - 5) > 1", "= 2, for which it cannot be computed: expression: the function"),
    ],
)
def test_guards_of_the_runtime(guard: str, message: str) -> None:
    """A guard that cannot be computed from the inputs is an error about the inputs."""
    data = changed(lambda tree: tree.update(guards_code=[guard]))
    with pytest.raises(InputError) as raised:
        pt2kit.run(data, np.zeros(2, np.float32))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("size", "fits"),
    [
        ("BitwiseFn_bitwise_and(s0, 7)", 5),
        ("BitwiseFn_bitwise_xor(s0, 2)", 7),
        ("LShift(1, s0)", 32),
        ("2**s0", 32),
        ("ceiling(s0/2)", 3),
        ("s0 // 2", 2),
        ("FloorToInt(OpaqueUnaryFn_sqrt(s0))", 2),
        ("Where(s0 > 3, s0, 2)", 5),
        ("Max(s0, 7)", 7),
        ("2*s0 + 1", 11),
        ("10 // (s0 - 6)", None),
    ],
)
def test_calls_check_sizes_that_are_functions_of_others(size: str, fits: int | None) -> None:
    """The modules of `load` and `load_module` accept the same sizes of a second input."""
    vector = meta("s0")
    tree = program([relu("x", "a")], ["a"], {"x": vector, "a": vector, "y": meta(size)}, ["x", "y"])
    data = pack({**tree, "range_constraints": {"s0": {"min_val": 0, "max_val": 100}}})
    x = torch.ones(5)
    for module in (pt2kit.load(io.BytesIO(data)).module(), pt2kit.load_module(io.BytesIO(data))):
        if fits is not None:
            assert module(x, torch.ones(fits))[0].shape == (5,)
        for other in {2, 3, 5, 7, 11, 32} - {fits}:
            with pytest.raises((InputError, RuntimeError), match=r"xpected|uard"):
                module(x, torch.ones(other))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("edit a.pt2 b.pt2 --specialize s0={number}", "--specialize: expected SYMBOL=N"),
        ("edit a.pt2 b.pt2 --drop-output {number}", "error: drop_output("),
        ("compose a.pt2 a.pt2 b.pt2 --connect {number}=x", "expected"),
        ("run a.pt2 --input x={number}", "expected"),
    ],
)
@pytest.mark.parametrize("number", ["9" * 5000, "٣"])
def test_numbers_of_options(command: str, message: str, number: str, tmp_path: Path) -> None:
    """Numbers of thousands of digits, or of other scripts, are no numbers."""
    (tmp_path / "a.pt2").write_bytes(changed(lambda tree: None))
    done = pt2(*command.format(number=number).split(), cwd=tmp_path)
    assert done.code in (1, 2)
    assert message in done.err
    assert "Traceback" not in done.err
