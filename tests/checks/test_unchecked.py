"""Calls of unchecked kernels: what a file shows to be wrong is an error, what only a run tells a warning."""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from tests.checks.mutations import BUFFERS, MLP, Mutation, call, graph, new_value, program, tensor

from pt2kit import schema
from pt2kit.checks import check, safety_findings
from pt2kit.checks.stored_inputs import stored_inputs, unchanged_inputs
from pt2kit.errors import Problem
from pt2kit.package.open import open_package

BACK = "aten.max_pool2d_with_indices_backward"


def described(tree: Any, name: str, sizes: tuple[int, ...], dtype: int = 7) -> str:
    """Describe a value of a program as a contiguous tensor."""
    meta = copy.deepcopy(graph(tree)["tensor_values"]["relu"])
    strides: list[dict[str, int]] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, {"as_int": step})
        step *= size
    meta |= {"sizes": [{"as_int": size} for size in sizes], "strides": strides, "dtype": dtype}
    graph(tree)["tensor_values"][name] = meta
    return name


def calling(target: str, results: dict[str, Any], values: dict[str, Any], **arguments: Any) -> Mutation:
    """A file with one more call, of values that it describes."""

    def change(tree: Any) -> None:
        for name, described_as in {**values, **results}.items():
            sizes, dtype = described_as if isinstance(described_as[0], tuple) else (described_as, 7)
            described(tree, name, sizes, dtype)
        for name in values:
            meta = graph(tree)["tensor_values"][name]
            size = {"as_ints": [one["as_int"] for one in meta["sizes"]]}
            node = call("torch.ops.aten.zeros.default", name, size=size, dtype={"as_scalar_type": meta["dtype"]})
            node["inputs"][1]["kind"] = 2  # by name
            graph(tree)["nodes"].append(node)
        node = call(f"torch.ops.{target}", next(iter(results)), **arguments)
        node["outputs"] = [tensor(name) for name in results]
        graph(tree)["nodes"].append(node)

    return program(MLP, change)


def wrong_padding() -> Mutation:
    """A file that pads by three numbers."""
    return calling(
        "aten.replication_pad2d.default",
        {"r": (1, 2, 4, 4)},
        {"x": (1, 2, 4, 4)},
        self=tensor("x"),
        padding={"as_ints": [1, 2, 3]},
    )


def pooled(grad: tuple[int, ...] = (1, 2, 2, 2)) -> Mutation:
    """A file that calls the backward kernel of a pooling."""
    numbers = {name: {"as_ints": [2, 2]} for name in ("kernel_size", "stride", "padding", "dilation")}
    return calling(
        f"{BACK}.default",
        {"r": (1, 2, 4, 4)},
        {"x": (1, 2, 4, 4), "g": grad, "i": (grad, 5)},
        grad_output=tensor("g"),
        self=tensor("x"),
        **numbers,
        ceil_mode={"as_bool": False},
        indices=tensor("i"),
    )


def said(mutation: Mutation) -> list[Problem]:
    """Return the X10 problems of a file, the same from `check` and `sanitize`."""
    with open_package(mutation.data) as package:
        found = [problem for problem in safety_findings(package) if problem.rule == "X10"]
    assert [problem for problem in check(mutation.data) if problem.rule == "X10"] == found
    return found


def test_sizes_that_do_not_fit() -> None:
    """Declared sizes and literals that contradict the requirement are an error."""
    (found,) = said(wrong_padding())
    assert found.severity == "error"
    assert found.message == "torch calls 'aten.replication_pad2d': padding: expected 4 numbers below 1,099,511,627,776"
    (found,) = said(pooled((1, 3, 2, 2)))
    assert found.severity == "error"
    assert found.message == f"torch calls '{BACK}': grad_output: expected the batches and channels of self"


def test_numbers_that_only_a_run_tells() -> None:
    """A call whose indices are computed is a warning."""
    (found,) = said(pooled())
    assert found.severity == "warning"
    assert found.message == f"torch does not validate '{BACK}': indices only known in a run"


def test_called_for_another() -> None:
    """A kernel that a higher-order operator calls has arguments that nothing validates."""

    def change(tree: Any, through: str) -> None:
        node = call(f"torch.ops.higher_order.{through}", new_value(tree, "h", "relu"))
        given = [{"as_operator": f"torch.ops.{BACK}.default"}, tensor("relu")]
        node["inputs"] = [{"name": "", "arg": argument, "kind": 1} for argument in given]
        graph(tree)["nodes"].append(node)

    (found,) = said(program(MLP, lambda tree: change(tree, "auto_functionalized")))
    assert found.severity == "error"
    assert "called through higher_order.auto_functionalized, where its arguments cannot be validated" in found.message
    (found,) = said(program(MLP, lambda tree: change(tree, "with_effects")))
    assert found.severity == "warning"


@pytest.mark.parametrize("name", ["", "a"])
@pytest.mark.parametrize(("steps", "is_refused"), [([1, 2], False), ([1, 2**24], True)])
def test_called_for_another_with_constants(steps: list[int], is_refused: bool, name: str) -> None:
    """A kernel that a higher-order operator calls needs no validation for some constants, whatever they are named."""

    def change(tree: Any) -> None:
        node = call("torch.ops.higher_order.out_dtype", new_value(tree, "h", "relu"))
        numbers = [{"as_ints": steps}, {"as_ints": [0, 0]}, {"as_ints": [1, 1]}, {"as_bool": False}]
        given = [{"as_operator": "torch.ops.aten.convolution.default"}, {"as_scalar_type": 4}, tensor("relu")]
        given += [tensor("relu"), {"as_none": True}, *numbers, {"as_ints": [0, 0]}, {"as_int": 1}]
        node["inputs"] = [{"name": name, "arg": argument, "kind": 1} for argument in given]
        graph(tree)["nodes"].append(node)

    assert [finding.severity for finding in said(program(MLP, change))] == ["error"] * is_refused


def lying(mutation: Mutation, name: str, sizes: tuple[int, ...], dtype: int = 7) -> Mutation:
    """The file with other declared sizes of a value, which its nodes do not give it."""
    return Mutation(mutation.base, edited(mutation, lambda tree: described(tree, name, sizes, dtype)))


def edited(mutation: Mutation, change: Any) -> bytes:
    """The bytes of a file whose program is changed again."""
    assert mutation.base is not None
    folder = Path(tempfile.mkdtemp())
    try:
        file = folder / mutation.base.name
        file.write_bytes(mutation.data)
        return program(file, change).data
    finally:
        shutil.rmtree(folder)


def test_declared_sizes_that_lie() -> None:
    """Sizes are computed from the inputs: the kernel is judged by what it gets, whatever the file declares."""
    wrong = pooled((1, 3, 2, 2))
    (found,) = said(lying(wrong, "g", (1, 2, 2, 2)))
    assert found.severity == "error"
    assert found.message == f"torch calls '{BACK}': grad_output: expected the batches and channels of self"
    (found,) = said(lying(pooled(), "g", (1, 3, 2, 2)))
    assert found.severity == "warning"


def test_sizes_through_views_and_writes() -> None:
    """Sizes go through views; what a call in place may change is judged as declared."""

    def change(tree: Any, target: str, **arguments: Any) -> None:
        nodes = graph(tree)["nodes"]
        described(tree, "g2", (1, 2, 2, 2))
        before = call(f"torch.ops.aten.{target}", "g2", self=tensor("g"), **arguments)
        nodes.insert(len(nodes) - 1, before)
        (argument,) = (named for named in nodes[-1]["inputs"] if named["name"] == "grad_output")
        argument["arg"] = tensor("g2")

    for sizes, severity in ([1, 2, 2, 2], "warning"), ([2, 1, 2, 2], "error"):
        changed = edited(pooled(), lambda tree, sizes=sizes: change(tree, "view.default", size={"as_ints": sizes}))
        (found,) = said(Mutation(MLP, changed))
        assert found.severity == severity
    permuted = edited(pooled(), lambda tree: change(tree, "permute.default", dims={"as_ints": [1, 0, 2, 3]}))
    (found,) = said(Mutation(MLP, permuted))
    assert found.severity == "error"


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("resize_.default", {"self": tensor("g"), "size": {"as_ints": [1, 2, 2, 2]}}),
        ("abs.out", {"self": tensor("relu"), "out": tensor("g")}),
    ],
)
def test_changed_in_place(target: str, arguments: dict[str, Any]) -> None:
    """A tensor that a call in place, or one with it as `out=`, gave other sizes is not judged by those it had."""

    def change(tree: Any) -> None:
        nodes = graph(tree)["nodes"]
        described(tree, "g2", (1, 2, 2, 2))
        made = next(node for node in nodes if node["name"] == "g")
        made["inputs"][0]["arg"] = {"as_ints": [1, 3, 2, 2]}
        nodes.insert(len(nodes) - 1, call(f"torch.ops.aten.{target}", "g2", **arguments))

    found = [one for one in said(Mutation(MLP, edited(pooled(), change))) if BACK in one.message]
    assert [one.severity for one in found] == ["warning"]


@pytest.mark.parametrize(
    ("target", "arguments", "is_refused"),
    [
        ("arange.default", {"end": {"as_int": 1 << 40}}, True),
        ("arange.start_step", {"start": {"as_int": 0}, "end": {"as_int": 4}, "step": {"as_float": 1e-12}}, True),
        ("eye.default", {"n": {"as_int": 1 << 17}}, True),
        ("full.default", {"size": {"as_ints": [1 << 40]}, "fill_value": {"as_float": "NaN"}}, True),
        ("new_zeros.default", {"self": tensor("relu"), "size": {"as_ints": [1 << 40]}}, True),
        ("repeat.default", {"self": tensor("relu"), "repeats": {"as_ints": [1 << 40, 1, 1]}}, True),
        ("tile.default", {"self": tensor("relu"), "dims": {"as_ints": [1 << 40, 1, 1]}}, True),
        ("constant_pad_nd.default", {"self": tensor("relu"), "pad": {"as_ints": [0, 1 << 40]}}, True),
        ("adaptive_avg_pool1d.default", {"self": tensor("relu"), "output_size": {"as_ints": [1 << 40]}}, True),
        ("repeat_interleave.self_int", {"self": tensor("relu"), "repeats": {"as_int": 1 << 40}}, True),
        ("expand.default", {"self": tensor("relu"), "size": {"as_ints": [1 << 40, 2, 4]}}, False),
        ("tile.default", {"self": tensor("relu"), "dims": {"as_ints": [4, 1, 1]}}, False),
        ("arange.default", {"end": {"as_int": 1 << 20}}, False),
    ],
)
def test_created_out_of_numbers(target: str, arguments: dict[str, Any], is_refused: bool) -> None:
    """A call whose numbers decide how much it creates is judged by that, whatever is declared."""
    found = check(calling(f"aten.{target}", {"big": (4,)}, {}, **arguments).data)
    assert any(problem.rule == "T9" for problem in found) is is_refused


@pytest.mark.parametrize("lengths", [[3, 3], [0, 3], [4, 3], [-1, 3], [3], [3, 3, 3]])
def test_lengths_of_sequences(lengths: list[int]) -> None:
    """Lengths that are written into a CTC loss are refused where torch refuses them."""
    arguments = {"input_lengths": {"as_ints": lengths}, "target_lengths": {"as_ints": [1, 1]}}
    values = {"probs": (3, 2, 4), "targets": ((2, 2), 5)}
    given = {"log_probs": tensor("probs"), "targets": tensor("targets"), **arguments}
    found = said(calling("aten.ctc_loss.IntList", {"loss": ((), 7)}, values, **given))
    torch = pytest.importorskip("torch")
    try:
        probs, targets = torch.zeros(3, 2, 4), torch.ones(2, 2, dtype=torch.int64)
        torch.ops.aten.ctc_loss.IntList(probs, targets, lengths, [1, 1])
    except RuntimeError:
        assert [one.severity for one in found] == ["error"]
    else:
        assert [one.severity for one in found] == ["warning"]


def test_inputs_with_one_target() -> None:
    """Stored numbers count of no input whose target an output is written to, also if inputs share that target."""
    with open_package(BUFFERS) as package:
        module = package.programs["model"].graph_module
    first = module.signature.input_specs[0]
    assert first.buffer is not UNSET
    other = replace(first, buffer=replace(first.buffer, arg=schema.TensorArgument("b_other")))
    signature = replace(module.signature, input_specs=[first, other], output_specs=module.signature.output_specs[:1])
    module = replace(module, signature=signature)
    assert stored_inputs(module, lambda: (None, None)).keys() == {"b_counter", "b_other"}
    assert not unchanged_inputs(module, lambda: (None, None))
