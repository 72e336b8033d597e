"""`check`, `load` and `load_module` give one verdict of a file: refused or not, under which rule, and where."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge.read.edited import edited, sample
from tests.packages import bytes_of

import pt2kit
from pt2kit.checks.refusals import refuses
from pt2kit.errors import Problem, Pt2Error, UnsupportedError

BAD = sorted((Path(__file__).parents[2] / "conformance" / "bad").glob("*.pt2"))
HOSTILE = [case["path"] for case in samples.hostile()]
TO_REGISTER = frozenset(("K7", "T2", "X9", "X13"))
"""Notes and warnings about what has to be registered before loading; without it, loading says what is missing."""


def place(text: str, file: Path) -> str:
    """The place at the beginning of a message, below the root folder, without the name of the file."""
    text = text.removeprefix("archive: ").removeprefix(f"{file}: ")
    first, slash, rest = text.partition("/")
    if (
        slash
        and ":" not in first
        and rest.startswith(("data/", "models/", "extra/", ".data/", "archive_", "byteorder"))
    ):
        text = rest
    return text.partition("expected")[0]


def refused(problem: Problem) -> bool:
    """Return whether a caller who trusts nothing may not load the file."""
    return refuses(problem) and problem.severity == "error"


@pytest.mark.parametrize("file", [*BAD, *HOSTILE], ids=lambda file: file.stem)
def test_three_entry_points_agree(file: Path) -> None:
    """The first problem of `check` that refuses is the error of `load` and `load_module`; without one, both load."""
    problems = pt2kit.check(file, payloads=True)
    if any(problem.rule in TO_REGISTER for problem in problems):
        return
    expected = next(filter(refused, _of_the_program(file, problems)), None)
    entries: tuple[Callable[[Any], Any], ...] = (pt2kit.load, pt2kit.load_module)
    for load in entries:
        if expected is None:
            load(file)
            continue
        with pytest.raises(Pt2Error) as raised:
            load(file)
        rules = {problem.rule for problem in problems if refused(problem)}
        assert raised.value.rule in rules, str(raised.value)
        if expected.kind != "safety":
            assert raised.value.rule == expected.rule, str(raised.value)
            assert place(str(raised.value), file) == place(str(expected), file)


def _of_the_program(file: Path, problems: list[Problem]) -> list[Problem]:
    """The problems of the program that is loaded, of a package that has several."""
    try:
        with pt2kit.open(file) as package:
            several = len(package.layout.models) > 1
    except Pt2Error:
        return problems
    return list(pt2kit.check(file, payloads=True, model="model")) if several else problems


@pytest.mark.parametrize("name", ["K1_root", "K2_keys", "K3_context", "K4_leaves", "K5_names_count", "K8_no_keywords"])
def test_refused_whatever_is_trusted(name: str) -> None:
    """A call signature that does not fit is refused, also if the caller names its rule: no entry of `trust=` is it."""
    file, rule = next(file for file in BAD if file.stem == name), name.partition("_")[0]
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(Pt2Error) as raised:
            load(file, trust=(rule,))
        assert raised.value.rule == rule


def first(target: str, argument: str, **changes: Any) -> Callable[[Any], None]:
    """Change the argument of a name, of the first node that calls a target."""

    def change(tree: Any) -> None:
        node = next(one for one in tree["graph_module"]["graph"]["nodes"] if one["target"] == target)
        next(one for one in node["inputs"] if one["name"] == argument).update(changes)

    return change


def _described(name: str, **changes: Any) -> Callable[[Any], None]:
    """Change the description of a tensor."""
    return lambda tree: tree["graph_module"]["graph"]["tensor_values"][name].update(changes)


def _by_name(*names: str, last: int = 0, value: int = 1) -> Callable[[Any], None]:
    """Give a call of `cond` more arguments by name, before the `last` ones."""

    def change(tree: Any) -> None:
        node = next(one for one in tree["graph_module"]["graph"]["nodes"] if one["target"].endswith(".cond"))
        at = len(node["inputs"]) - last
        node["inputs"][at:at] = [{"name": name, "arg": {"as_int": value}, "kind": 2} for name in names]

    return change


def _constant_named(name: str) -> Callable[[Any], None]:
    """Give a constant among the inputs another name."""

    def change(tree: Any) -> None:
        specs = tree["graph_module"]["signature"]["input_specs"]
        next(spec for spec in specs if "constant_input" in spec)["constant_input"]["name"] = name

    return change


def _inner(name: str, position: int, output: int, returned: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Let a subgraph of a higher-order operator return something else, which is computed from the subgraph."""

    def change(tree: Any) -> None:
        node = next(one for one in tree["graph_module"]["graph"]["nodes"] if one["target"].endswith(f".{name}"))
        inner = node["inputs"][position]["arg"]["as_graph"]["graph"]
        inner["outputs"][output] = returned(inner)

    return change


def _places(tree: Any) -> None:
    """Name the arguments of a higher-order operator that are passed by place."""
    node = next(one for one in tree["graph_module"]["graph"]["nodes"] if one["target"].endswith(".cond"))
    for number, named in enumerate(node["inputs"]):
        assert named["kind"] == 1
        named["name"] = f"argument_{number}"


def _persistent(tree: Any) -> None:
    tree["graph_module"]["signature"]["input_specs"][0]["buffer"]["persistent"] = True


X = {"as_tensor": {"name": "x"}}
LOOP = "while_loop_hop"
CHANGED: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "a tensor of several elements for an int": ("sym_float", first("torch.ops.aten.sym_size.int", "dim", arg=X), "T5"),
    "a tensor for a dtype": ("uint16_dtype", first("torch.ops.aten.to.dtype", "dtype", arg=X), "T5"),
    "a bool for an int": (
        "item_symint",
        first("torch.ops.aten.ones.default", "size", arg={"as_sym_ints": [{"as_name": "ge_2"}]}),
        "G7",
    ),
    "no name of an argument": ("item_bool", first("_operator.ge", "a", name="a b"), "X6"),
    "a layout without fake tensors": ("sym_float", _described("x", layout=6), "G17"),
    "a compressed tensor without columns": ("sym_float", _described("x", layout=2, sizes=[], strides=[]), "G17"),
    "a constant with the name of a value": ("none_input", _constant_named("add"), "S14"),
    "an offset behind all memory": ("sym_float", _described("x", storage_offset={"as_int": 2**63 - 1}), "G17"),
    "no operator set": ("sym_float", lambda tree: tree["opset_version"].update(aten=0), "O1"),
    "no dialect": ("sym_float", lambda tree: tree.update(verifiers=[""]), "V3"),
    "an int of 64 bits": ("sym_float", first("torch.ops.aten.sym_size.int", "dim", arg={"as_int": 1 << 63}), "T5"),
    "a number of 65 bits": ("cond", _by_name("x", value=1 << 64), "T5"),
    "a choice by many elements": ("cond", _described("p", sizes=[{"as_int": 2}], strides=[{"as_int": 1}]), "T7"),
    "a loop that returns a number": (LOOP, _inner("while_loop", 1, 1, lambda inner: {"as_int": 0}), "T7"),
    "a loop that returns another type": (LOOP, _inner("while_loop", 1, 1, lambda inner: inner["inputs"][0]), "T7"),
    "a loop that goes on by elements": (LOOP, _inner("while_loop", 0, 0, lambda inner: inner["inputs"][1]), "T7"),
    "a keyword as a name": ("cond", _by_name("class"), "G15"),
    "self as a name": ("cond", _by_name("self"), "G15"),
    "one name twice": ("cond", _by_name("x", "x"), "T3"),
    "a place after a name": ("cond", _by_name("x", last=1), "T10"),
    "a buffer of another kind": ("nonpersistent_buffer", _persistent, "P19"),
}


@pytest.mark.parametrize(("name", "change", "rule"), CHANGED.values(), ids=CHANGED)
def test_changed_files(name: str, change: Callable[[Any], None], rule: str) -> None:
    data = edited(sample(name), change)
    assert next(filter(refused, pt2kit.check(data, payloads=True))).rule == rule
    for load in (pt2kit.load, pt2kit.load_module):
        with pytest.raises(Pt2Error) as raised:
            load(data)
        assert raised.value.rule == rule


def test_numbers_of_parameters() -> None:
    """How large a number may be depends on the parameter: torch passes 2**63 for a `Scalar`, any int for a float."""
    for name, target, argument, number in (
        ("sym_float", "torch.ops.aten.mul.Tensor", "other", 1 << 63),
        ("batchnorm_train", "torch.ops.aten.batch_norm.default", "eps", 1 << 70),
    ):
        data = edited(sample(name), first(target, argument, arg={"as_int": number}))
        assert not pt2kit.check(data).errors
        args, kwargs = torch.export.load(io.BytesIO(data)).example_inputs
        expected = torch.export.load(io.BytesIO(data)).module()(*args, **kwargs)
        for module in (pt2kit.load(data).module(), pt2kit.load_module(data)):
            torch.testing.assert_close(module(*args, **kwargs), expected)


def test_names_of_arguments_by_place() -> None:
    """A higher-order operator gets an argument by place also if it has a name."""
    data = edited(sample("cond"), _places)
    assert not pt2kit.check(data).errors
    original = torch.export.load(sample("cond"))
    args, kwargs = original.example_inputs
    expected = original.module()(*args, **kwargs)
    for module in (pt2kit.load(data).module(), pt2kit.load_module(data)):
        torch.testing.assert_close(module(*args, **kwargs), expected)
    found = pt2kit.Session(data)(*(one.numpy() for one in args), **kwargs)
    torch.testing.assert_close(torch.as_tensor(found), expected)


def test_joint_graphs() -> None:
    """torch calls no module of a program with gradients among its outputs; `load_module` names what does."""
    path = sample("training_loss_joint")
    program = torch.export.load(path)
    args, kwargs = program.example_inputs
    with pytest.raises(ValueError, match="leaves"):
        program.module()(*args, **kwargs)
    with pytest.raises(UnsupportedError, match=r"^outputs: expected 1, .*, got 3: .* with pt2kit\.Session"):
        pt2kit.load_module(path)(*args, **kwargs)
    assert pt2kit.Session(path)(*(one.numpy() for one in args), **kwargs)


def test_symbol_without_range() -> None:
    """A symbol that has a value in the example needs no range: torch dropped that of some, and fails on expressions."""
    original, data = sample("sym_ops"), edited(sample("sym_ops"), lambda tree: tree["range_constraints"].clear())
    assert {problem.rule for problem in pt2kit.check(data).warnings} == {"E2"}
    assert not pt2kit.check(data).errors
    args, kwargs = pt2kit.load(original).example_inputs
    expected = pt2kit.load(original).module()(*args, **kwargs)
    for module in (pt2kit.load(data).module(), pt2kit.load_module(data)):
        torch.testing.assert_close(module(*args, **kwargs), expected)
    assert pt2kit.check(bytes_of(pt2kit.save, pt2kit.load(data).run_decompositions({}))).ok
