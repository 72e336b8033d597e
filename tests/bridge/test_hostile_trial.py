"""Hostile files that a trial found: each is refused by `check`, `load` and `load_module` alike, or read."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge.read.edited import graph
from tests.packages import edited, rewritten

import pt2kit
from pt2kit.errors import Pt2Error
from pt2kit.symbols import polynomials

BENIGN = samples.DATA / "hostile" / "benign.pt2"
COND = samples.sample("2.13.0", "cond")
DYNAMIC = samples.sample("2.13.0", "dynamic_batch")
SYMBOL = "Symbol('s77', positive=True, integer=True)"


def _size(text: str) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        for name in ("x", "linear", "relu", "linear_1", "mul"):
            graph(tree)["tensor_values"][name]["sizes"][0]["as_expr"]["expr_str"] = text

    return change


def _number(tree: Any) -> None:
    graph(tree)["nodes"][1]["inputs"][0]["arg"] = {"as_int": 3}


def _one_for_a_list(tree: Any) -> None:
    node = graph(tree)["nodes"][1]
    node["target"] = "torch.ops.aten.chunk.default"
    node["inputs"].append({"name": "chunks", "arg": {"as_int": 1}, "kind": 1})


def _dimensions(tree: Any) -> None:
    graph(tree)["tensor_values"]["relu"].update(sizes=[{"as_int": 1}] * 5000, strides=[{"as_int": 1}] * 5000)


def _forward(tree: Any) -> None:
    graph(tree)["nodes"][0]["inputs"][1]["arg"]["as_graph"]["name"] = "forward"


def _subgraphs(prefix: str) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        for named in graph(tree)["nodes"][0]["inputs"]:
            if branch := named["arg"].get("as_graph"):
                branch["name"] = prefix + branch["name"]

    return change


def _range(low: int, high: int) -> Callable[[Any], None]:
    return lambda tree: tree["range_constraints"]["s77"].update(min_val=low, max_val=high)


def _guard(text: str) -> Callable[[Any], None]:
    return lambda tree: tree.update(guards_code=[text])


def _target(name: str) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        tree["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = name

    return change


def _calls(target: str, node: int = 0) -> Callable[[Any], None]:
    return lambda tree: graph(tree)["nodes"][node].update(target=target)


def _effect(target: str) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        node = graph(tree)["nodes"][0]
        node["target"] = "torch.ops.higher_order.with_effects"
        arguments = [{"as_none": True}, {"as_operator": target}, {"as_operator": "torch.ops.aten.empty_like.default"}]
        node["inputs"][:3] = [{"name": "", "arg": argument, "kind": 1} for argument in arguments]

    return change


def _constant_result(tree: Any) -> None:
    for flag, outputs in ((False, [{"as_int": 1}]), (True, [])):
        inputs = [{"name": "", "arg": {"as_bool": flag}, "kind": 1}]
        call = {"target": "torch._C._set_grad_enabled", "inputs": inputs, "outputs": outputs, "metadata": {}}
        graph(tree)["nodes"].append(call)


def _by_place(tree: Any) -> None:
    node = graph(tree)["nodes"][1]
    node["target"] = "torch.ops.aten.sum.default"
    node["inputs"].append({"name": "dtype", "arg": {"as_scalar_type": 7}, "kind": 1})


def _sampled(tree: Any) -> None:
    """The kernel has no such mode: what it returns was never written to."""
    node = graph(tree)["nodes"][1]
    source = node["inputs"][0]["arg"]
    node["target"] = "torch.ops.aten.grid_sampler_2d.default"
    numbers = {"interpolation_mode": {"as_int": 0}, "padding_mode": {"as_int": 7}, "align_corners": {"as_bool": False}}
    arguments = {"input": source, "grid": source, **numbers}
    node["inputs"] = [{"name": name, "arg": value, "kind": 1} for name, value in arguments.items()]


def _named(name: str) -> Callable[[Any], None]:
    return lambda tree: graph(tree)["nodes"][1].update(name=name)


def _module(tree: Any) -> None:
    tree["graph_module"]["module_call_graph"][1]["fqn"] = 'a"];import os'


def _static(*sizes: int) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        numbers = [{"as_int": size} for size in sizes]
        graph(tree)["tensor_values"]["relu"].update(sizes=numbers, strides=[numbers[-1], {"as_int": 1}])

    return change


def _output(constant: Any) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        spec = tree["graph_module"]["signature"]["output_specs"][-1]
        graph(tree)["outputs"][-1] = spec["user_output"]["arg"] = constant

    return change


def _input(constant: Any) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        spec = tree["graph_module"]["signature"]["input_specs"][-1]
        graph(tree)["inputs"][-1] = spec["user_input"]["arg"] = constant

    return change


NOTHING = f"Add({SYMBOL}, Mul(Integer(-1), {SYMBOL}))"
PRODUCT = ", ".join(f"Add({SYMBOL}, Integer({n}))" for n in range(59))
REMAINDERS = ", ".join(f"Mod({SYMBOL}, Integer({n + 2}))" for n in range(40))
MAXIMA = ", ".join(
    f"Max({', '.join(f'Mod({SYMBOL}, Integer({n + 2}))' for n in range(first, first + 16))})"
    for first in range(0, 512, 16)
)
FILES: list[tuple[Any, Callable[[Any], None], str]] = [
    (BENIGN, _number, "T5"),
    (BENIGN, _one_for_a_list, "T6"),
    (BENIGN, _dimensions, "G17"),
    (BENIGN, _size(f"Pow(Add({SYMBOL}, Integer(1)), Integer(400))"), "E1"),
    (BENIGN, _size(f"Mod(Mul({PRODUCT}), {SYMBOL})"), "E1"),
    (COND, _forward, "G15"),
    (COND, _subgraphs("0"), "G15"),
    (COND, _subgraphs("a b"), "G15"),
    (COND, _subgraphs("a" * 100_000), "G15"),
    (DYNAMIC, _range(0, 0), "E4"),
    (DYNAMIC, _range(-3, -1), "E8"),
    (BENIGN, _size("Symbol('s77', negative=True, integer=True)"), "E8"),
    (BENIGN, _size(f"RShift({SYMBOL}, Integer(-1))"), "E1"),
    (BENIGN, _size(f"LShift(Integer(3), Mul(Integer(-1), {SYMBOL}))"), "E1"),
    (DYNAMIC, _guard("L['x'].ndim == 2"), "E6"),
    (DYNAMIC, _guard("L['x']['y'] == 5"), "E6"),
    (DYNAMIC, _target("a.w\x85"), "S10"),
    (DYNAMIC, _target("a.\ufb01"), "S10"),
    (DYNAMIC, _target("a" + ".b" * 3000), "S10"),
    (DYNAMIC, _calls("torch.sym_float", node=1), "T5"),
    (DYNAMIC, _calls("_operator.getitem"), "X7"),
    (DYNAMIC, _calls("torch.ops.aten.relu", node=1), "X7"),
    (DYNAMIC, _by_place, "T10"),
    (DYNAMIC, _sampled, "X10"),
    (DYNAMIC, _module, "K1"),
    (BENIGN, _named("</script>"), "G15"),
    (BENIGN, _size(f"Max({REMAINDERS})"), "E1"),
    (BENIGN, _size(f"Add({MAXIMA})"), "E1"),
    (BENIGN, _size(f"PythonMod({SYMBOL}, {NOTHING})"), "E1"),
    (BENIGN, _size(f"ModularIndexing({SYMBOL}, Integer(2), {NOTHING})"), "E1"),
    (BENIGN, _size(f"FloorDiv({SYMBOL}, Min({SYMBOL}, Integer(0)))"), "E1"),
    (BENIGN, _static(1 << 20, 1 << 22), "G17"),
    (BENIGN, _output({"as_float": "NaN"}), "S12"),
    (BENIGN, _output({"as_complex": {"real": 1.0, "imag": "NaN"}}), "S12"),
    (BENIGN, _input({"as_complex": {"real": 1.0, "imag": 0.0}}), "S12"),
    (COND, _calls("torch.ops.higher_order.with_effects"), "T7"),
    (COND, _calls("torch.ops.higher_order.auto_functionalized"), "T7"),
    (COND, _constant_result, "T6"),
    (COND, _effect("torch.ops.higher_order.with_effects"), "T7"),
    (COND, _effect("torch.ops.higher_order.strict_mode"), "T7"),
    (COND, _effect("torch.ops.higher_order.invoke_subgraph"), "T7"),
    (COND, _effect("torch._C._set_grad_enabled"), "T7"),
]


@pytest.mark.parametrize(("path", "change", "rule"), FILES)
def test_one_verdict(path: Any, change: Callable[[Any], None], rule: str) -> None:
    """All three refuse the file under one rule, the expressions that torch multiplies out within seconds."""
    data = edited(path, change)
    assert rule in {problem.rule for problem in pt2kit.check(data) if problem.severity == "error"}
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(Pt2Error, match=rf"\[{rule}\]"):
            load(data)


@pytest.mark.parametrize("edit", [(b"qdata", b"scale"), (b"zero_point", b"block_size")])
def test_pickled_tensors_that_contradict_themselves(edit: tuple[bytes, bytes]) -> None:
    """Attributes of a quantized weight are missing: one verdict, under the rule for pickled tensors."""
    path = samples.DATA / "torchao" / "int4.pt2"
    record = "data/weights/weight_0"
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(record))
        weight = archive.read(name)
    data = rewritten(path, {record: _repacked(weight, *edit)})
    problems = [problem for problem in pt2kit.check(data, payloads=True) if problem.severity == "error"]
    assert [problem.rule for problem in problems] == ["P22"]
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(Pt2Error, match=r"\[P22\]"):
            load(data)


def _repacked(archive: bytes, old: bytes, new: bytes) -> bytes:
    """Return an archive of torch.save in which a text of the pickle is another of the same length."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(made, "w") as taken:
        for entry in given.infolist():
            content = given.read(entry)
            taken.writestr(entry, content.replace(old, new) if entry.filename.endswith("data.pkl") else content)
    return made.getvalue()


def test_products_of_a_few_sums_are_sound() -> None:
    """Products of sizes that export writes are far below the limit."""
    data = edited(BENIGN, _size(f"Mul(Add({SYMBOL}, Integer(1)), Pow(Add({SYMBOL}, Integer(2)), Integer(3)))"))
    assert "once its products" not in str([problem.message for problem in pt2kit.check(data)])


@pytest.mark.parametrize("digits", [20, 5000])
def test_a_release_of_many_digits(digits: int) -> None:
    """Such a number is no release; the file is read as one of an unknown release."""
    data = edited(BENIGN, lambda tree: tree.update(torch_version="2." + "9" * digits))
    assert pt2kit.cost(data) is not None
    assert pt2kit.Session(data) is not None


def test_costs_of_sizes_beyond_all_floats() -> None:
    """A bound that no float can be becomes infinite."""
    assert polynomials.bounds(polynomials.symbol("n", 0, math.inf) * 10**400) == (0, math.inf)
    assert polynomials.bounds(polynomials.symbol("n", 0, 10**400) * polynomials.symbol("m", 2, 3))[1] == math.inf


def test_both_names_of_the_square_root() -> None:
    """`torch.sym_sqrt` is the public name of `torch._sym_sqrt`: both are read and called."""
    for target in ("torch.sym_sqrt", "torch._sym_sqrt"):
        module = pt2kit.load_module(edited(DYNAMIC, _with_root(target)))
        assert module(torch.ones(9, 8)) == 3.0


def _with_root(target: str) -> Callable[[Any], None]:
    """Return a change: the program returns the square root of its symbolic size."""

    def change(tree: Any) -> None:
        whole, signature = graph(tree), tree["graph_module"]["signature"]
        size, root = {"as_sym_int": {"as_name": "size"}}, {"as_sym_float": {"as_name": "root"}}
        x, first = {"as_tensor": {"name": "x"}}, {"as_int": 0}
        inputs = [{"name": "self", "arg": x, "kind": 1}, {"name": "dim", "arg": first, "kind": 1}]
        whole["nodes"] = [
            {"target": "torch.ops.aten.sym_size.int", "inputs": inputs, "outputs": [size], "metadata": {}},
            {"target": target, "inputs": [{"name": "", "arg": size}], "outputs": [root], "metadata": {}},
        ]
        whole["sym_int_values"] = {"size": {"as_expr": {"expr_str": SYMBOL, "hint": {"as_int": 5}}}}
        text = f"Function('OpaqueUnaryFn_sqrt')({SYMBOL})"
        whole["sym_float_values"] = {"root": {"as_expr": {"expr_str": text, "hint": None}}}
        whole["outputs"] = [root]
        signature["output_specs"] = [{"user_output": {"arg": root}}]

    return change
