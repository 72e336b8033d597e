"""Arguments that kernels trust: who vouches for them, through what, and when nobody does any more."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.checks.mutations import COND, MLP, Mutation, call, graph, new_value, program, tensor

from pt2kit.checks import check, safety_findings
from pt2kit.package.open import open_package

Call = tuple[str, dict[str, Any]]
R = tensor("x")
VIEW: Call = ("aten.view.default x", {"self": tensor("relu"), "size": {"as_ints": [1, 2, 4, 4]}})
POOL: Call = ("aten.max_pool2d_with_indices.default p i", {"self": R, "kernel_size": {"as_ints": [2]}})
BACK = "aten.max_pool2d_with_indices_backward"
COO: Call = ("aten.sparse_coo_tensor.indices s", {"indices": tensor("n"), "values": R})
COUNT: Call = ("aten.ones_like.default n", {"self": R})


def back(indices: str = "i", self: str = "x") -> Call:
    """The derivative of the pooling."""
    numbers = {name: {"as_ints": [2, 2]} for name in ("kernel_size", "stride", "padding", "dilation")}
    given = {"grad_output": tensor("p"), "self": tensor(self), **numbers, "ceil_mode": {"as_bool": False}}
    return f"{BACK}.default b", {**given, "indices": tensor(indices)}


def one(target: str, result: str, of: str, **more: Any) -> Call:
    """A call of one tensor."""
    return f"aten.{target} {result}", {"self": tensor(of), **more}


def nodes_of(calls: list[Call], tree: Any, values: Any) -> list[Any]:
    """The nodes for some calls; what they give is described as `relu` is."""
    made = []
    values["x"] = copy.deepcopy(graph(tree)["tensor_values"]["relu"])
    values["x"]["sizes"] = [{"as_int": size} for size in (1, 2, 4, 4)]
    values["x"]["strides"] = [{"as_int": stride} for stride in (32, 16, 4, 1)]
    for text, arguments in calls:
        target, *results = text.split(" ")
        for result in results:
            values[result] = values["x"]
        node = call(f"torch.ops.{target}", results[0], **arguments)
        node["outputs"] = [tensor(result) for result in results]
        node["name"] = "_".join(results)
        made.append(node)
    return made


def chain(*calls: Call) -> Mutation:
    """A file with more calls at its end."""

    def change(tree: Any) -> None:
        graph(tree)["nodes"] += nodes_of([VIEW, *calls], tree, graph(tree)["tensor_values"])

    return program(MLP, change)


def said(mutation: Mutation) -> list[str]:
    """What X10 says of a file, as `check` and as what `sanitize` asks have it."""
    with open_package(mutation.data) as package:
        found = [problem.message for problem in safety_findings(package) if problem.rule == "X10"]
    assert [problem.message for problem in check(mutation.data) if problem.rule == "X10"] == found
    return found


LONG = {"as_scalar_type": 5}
CHAR = {"as_scalar_type": 2}
SHAPE = {"as_ints": [1]}
SIZES = {"as_ints": [1, 2, 4, 4]}
HUGE = {"as_int": 2**62}
FULL: Call = ("aten.full.default n", {"size": SIZES, "fill_value": {"as_int": 3}})


def repeated(by: str) -> Call:
    """An operator that adds up how often it repeats."""
    return "aten.repeat_interleave.Tensor b", {"repeats": tensor(by)}


SOUND = {
    "as it was made": [POOL, back()],
    "a copy": [POOL, one("clone.default", "j", "i"), back("j")],
    "several copies": [POOL, one("detach.default", "j", "i"), one("clone.default", "k", "j"), back("k")],
    "as whole numbers": [POOL, one("_to_copy.default", "j", "i", dtype=LONG), back("j")],
    "in another shape": [POOL, one("view.default", "j", "i", size=SHAPE), back("j")],
    "for a copy of the same": [POOL, one("alias.default", "r", "x"), back(self="r")],
    "for the same view": [
        one("unsqueeze.default", "r", "x", dim={"as_int": 0}),
        ("aten.max_pool2d_with_indices.default p i", {"self": tensor("r"), "kernel_size": {"as_ints": [2]}}),
        one("unsqueeze.default", "q", "x", dim={"as_int": 0}),
        back(self="q"),
    ],
    "something else was written to": [POOL, one("clone.default", "j", "i"), one("zero_.default", "z", "j"), back()],
    "a sparse tensor": [COUNT, COO, one("_indices.default", "t", "s"), one("clone.default", "u", "t"),
                        one("zero_.default", "z", "u"), one("to_dense.default", "d", "s")],
    "repeats that are computed": [one("round.default", "n", "x"), repeated("n")],
    "repeats that the caller gives": [repeated("x")],
    "repeats of a small number": [FULL, one("clone.default", "m", "n"), repeated("m")],
    "as many repeats as the caller says": [
        one("sum.default", "s", "x"),
        ("aten.full.default n", {"size": SIZES, "fill_value": tensor("s")}),
        repeated("n"),
    ],
    "repeats that the caller's numbers are written to": [
        FULL, one("add_.Tensor", "m", "n", other=tensor("x")), repeated("m"),
    ],
    "written before": [COUNT, one("zero_.default", "z", "n"), COO],
}  # fmt: skip
EXPECTED = "result 1 of aten.max_pool2d_with_indices for the same self, unchanged, got"
HOSTILE = {
    "made otherwise": ([POOL, COUNT, back("n")], f"torch calls {BACK}: expected indices to be {EXPECTED} 'n'"),
    "an input": ([POOL, back("x")], f"{EXPECTED} 'x'"),
    "the other result": ([POOL, back("p")], f"{EXPECTED} 'p'"),
    "changed": ([POOL, one("add.Tensor", "j", "i", other=tensor("i")), back("j")], f"{EXPECTED} 'j'"),
    "written over": ([POOL, one("zero_.default", "z", "i"), back()], f"{EXPECTED} 'i'"),
    "the result of writing": ([POOL, one("zero_.default", "z", "i"), back("z")], f"{EXPECTED} 'z'"),
    "a view written over": (
        [POOL, one("view.default", "j", "i", size=SHAPE), one("zero_.default", "z", "j"), back()],
        f"{EXPECTED} 'i'",
    ),
    "as small numbers": ([POOL, one("_to_copy.default", "j", "i", dtype=CHAR), back("j")], f"{EXPECTED} 'j'"),
    "as other bits": ([POOL, one("view.dtype", "j", "i", dtype=LONG), back("j")], f"{EXPECTED} 'j'"),
    "as numbers of another's type": (
        [POOL, one("to.other", "j", "i", other=tensor("x")), back("j")], f"{EXPECTED} 'j'"
    ),
    "for another": ([POOL, one("relu.default", "r", "x"), back(self="r")], f"{EXPECTED} 'i'"),
    "for another view": (
        [POOL, one("view.default", "r", "x", size=SHAPE), back(self="r")], f"{EXPECTED} 'i'"
    ),
    "for what has another shape now": ([POOL, one("t_.default", "r", "x"), back()], f"{EXPECTED} 'i'"),
    "of another pooling": (
        [("aten.adaptive_max_pool2d.default p i", {"self": R, "output_size": {"as_ints": [1]}}), back()],
        f"{EXPECTED} 'i'",
    ),
    "repeats of a large number": (
        [("aten.full.default n", {"size": SIZES, "fill_value": HUGE}), repeated("n")],
        "expected repeats to be an input of the program or computed from one or stored numbers that are repeats",
    ),
    "repeats in the shape of what the caller gives": (
        [one("full_like.default", "n", "x", fill_value=HUGE), repeated("n")], "expected repeats to be an input",
    ),
    "repeats that a file's number is multiplied to": (
        [FULL, one("mul.Tensor", "m", "n", other=HUGE), repeated("m")], "unchanged, got 'm'",
    ),
    "an unsafe flag": (
        [("aten.segment_reduce.default b", {"data": R, "reduce": {"as_string": "sum"}, "unsafe": {"as_bool": True}})],
        "torch calls aten.segment_reduce: expected unsafe to be False, got bool True",
    ),
    "a part is written to": (
        [COUNT, COO, one("_indices.default", "t", "s"), one("zero_.default", "z", "t")],
        "torch calls aten.zero_: writes to a part of a sparse tensor (aten._indices), which kernels trust",
    ),
    "a view of a part": (
        [COUNT, COO, one("crow_indices.default", "t", "s"), one("view.default", "u", "t", size=SHAPE),
         one("zero_.default", "z", "u")],
        "torch calls aten.zero_: writes to a part of a sparse tensor (aten.crow_indices), which kernels trust",
    ),
    "what became a part": (
        [COUNT, COO, one("zero_.default", "z", "n")],
        "torch calls aten.zero_: writes to a part of a sparse tensor (aten.sparse_coo_tensor), which kernels trust",
    ),
    "as what an operator writes its result to": (
        [COUNT, COO, one("_values.default", "t", "s"),
         ("aten.add.out z", {"self": R, "other": R, "out": tensor("t")})],
        "torch calls aten.add: writes to a part of a sparse tensor (aten._values), which kernels trust",
    ),
}  # fmt: skip


@pytest.mark.parametrize("calls", SOUND.values(), ids=SOUND)
def test_sound(calls: list[Call]) -> None:
    """What a kernel trusts comes from the operator that makes it, through what keeps it as it is."""
    assert said(chain(*calls)) == []


@pytest.mark.parametrize(("calls", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_hostile(calls: list[Call], expected: str) -> None:
    """What a kernel trusts comes from elsewhere, is for something else, or was written over."""
    (found,) = said(chain(*calls))
    assert expected in found


def higher_order(target: str, before: list[Call], inner: list[Call], passed: list[str], results: list[str]) -> Mutation:
    """A file that calls an operator with a subgraph of some calls."""

    def change(tree: Any) -> None:
        values = graph(tree)["tensor_values"]
        nodes = nodes_of([VIEW, *before], tree, values)
        held = dict.fromkeys(passed, values["x"])
        body = {
            "inputs": [tensor(name) for name in passed],
            "nodes": nodes_of(inner, tree, held),
            "outputs": [tensor(name) for name in results],
            "tensor_values": held, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": False,
            "custom_obj_values": {}, "sym_float_values": {},
        }  # fmt: skip
        arguments = {
            "": {"as_graph": {"name": "body", "graph": body}},
        }
        node = call(f"torch.ops.higher_order.{target}", "h", **arguments)
        lead = [{"name": "", "arg": {"as_bool": False}, "kind": 1}] if target == "wrap_with_set_grad_enabled" else []
        node["inputs"] = lead + node["inputs"] + [{"name": "", "arg": tensor(name), "kind": 1} for name in passed]
        node["outputs"] = [tensor(new_value(tree, f"out_{name}", "relu")) for name in results]
        graph(tree)["nodes"] += [*nodes, node]

    return program(MLP, change)


def test_subgraphs() -> None:
    """What is passed to a subgraph is known there, what it gives is known outside, and what it writes is lost."""
    region = "wrap_with_set_grad_enabled"
    assert said(higher_order(region, [POOL], [back()], ["p", "i", "x"], ["b"])) == []
    (found,) = said(higher_order(region, [POOL], [one("zero_.default", "z", "i"), back()], ["p", "i", "x"], ["b"]))
    assert EXPECTED in found
    (found,) = said(higher_order("while_loop", [POOL], [back()], ["p", "i", "x"], ["b"]))
    assert EXPECTED in found
    (found,) = said(higher_order("scan", [COUNT, COO], [one("zero_.default", "z", "n")], ["n"], ["z"]))
    assert "writes to a part of a sparse tensor" in found


def test_called_for_another() -> None:
    """An operator that a higher-order one calls has arguments of which nothing is known."""

    def change(tree: Any) -> None:
        node = call("torch.ops.higher_order.with_effects", new_value(tree, "h", "relu"))
        given = [{"as_operator": f"torch.ops.{BACK}.default"}, tensor("relu")]
        node["inputs"] = [{"name": "", "arg": argument, "kind": 1} for argument in given]
        graph(tree)["nodes"].append(node)

    (found,) = said(program(MLP, change))
    assert (
        found
        == f"torch calls {BACK}: called through higher_order.with_effects, where nothing is known of its arguments"
    )


def test_real_control_flow() -> None:
    """Subgraphs of real files pass."""
    assert said(Mutation(None, COND.read_bytes())) == []
