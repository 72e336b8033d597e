"""Costs of programs: loops, branches, values of symbols, tables by module, and errors; torch is compared in bridge."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests import samples
from tests.cli.run import pt2

import pt2kit
from pt2kit import schema
from pt2kit.costs.count import cost_of_program, frontier
from pt2kit.errors import ArchiveError, InputError
from pt2kit.operators.facts import Tensor, Unknown
from pt2kit.operators.symbolic import call_rule
from pt2kit.operators.table import find
from pt2kit.schema import ScalarType
from pt2kit.symbols.polynomials import bounds, same, symbol, unknown

RELEASE = "2.13.0"


def counted(name):
    """The cost of a sample file."""
    return pt2kit.cost(samples.sample(RELEASE, name))


def test_formulas_are_values_at_sizes():
    """A formula in the symbols of the program, its value of the export by default, and of other sizes."""
    cost = counted("dynamic_batch")
    [(symbol, value)] = cost.symbols.items()
    assert not isinstance(cost.total.flops, int)
    assert cost.at().total.flops == cost.at({symbol: value}).total.flops == cost.at(**{symbol: value}).total.flops
    assert cost.at({symbol: 10 * value}).total.flops == 10 * cost.at().total.flops
    assert cost.at({symbol: 5}).peak == max(node.live for node in cost.at({symbol: 5}).nodes)


@pytest.mark.parametrize(
    ("release", "name"),
    [("2.1.2", "batchnorm_train"), ("2.3.1", "shared_weights"), ("2.4.1", "multi_output"), ("2.5.1", "mlp")],
)
def test_programs_of_releases_without_a_number(release, name):
    """Files of torch up to 2.4 do not state their release: they cost what the newest operators cost."""
    assert pt2kit.cost(samples.sample(release, name)).at().total.written > 0


def test_turns_of_a_loop_are_a_symbol():
    """A loop's body counts as often as its symbol says, which has no value in the file."""
    cost = counted("while_loop_hop")
    assert list(cost.symbols) == ["while_loop_turns"]
    assert cost.at(while_loop_turns=6).total.written == 2 * cost.at(while_loop_turns=3).total.written
    with pytest.raises(InputError, match="expected a value for while_loop_turns"):
        cost.at()


def test_unknown_symbol_is_refused():
    """A name that no formula has is an error that lists those that they have."""
    with pytest.raises(InputError, match=r"expected one of s\d+, got s99"):
        counted("dynamic_batch").at(s99=3)
    with pytest.raises(InputError, match=r"expected s77 of at least 0, got -1"):
        counted("dynamic_batch").at(s77=-1)
    with pytest.raises(ArchiveError, match="expected a program, one of 'model'"):
        pt2kit.cost(samples.sample(RELEASE, "dynamic_batch"), model="other")


def test_views_move_no_bytes_and_need_no_memory():
    """A program of views costs nothing but what it computes."""
    cost = counted("convnet")
    views = [node for node in cost.nodes if node.operator in ("aten.view.default", "aten.permute.default")]
    assert all(node.read == node.written == 0 for node in views)
    total = cost.total
    assert total.flops == sum(node.flops for node in cost.nodes)
    assert total.parameters == sum(cost.parameters.values())


def test_modules_hold_what_is_below_them():
    """The root has everything; a depth cuts; parameters are those of the modules."""
    cost = counted("dynamic_batch")
    modules = cost.by_module()
    assert modules[""] == cost.total
    assert set(modules) == {"", "a", "b"}
    assert modules["a"].parameters + modules["b"].parameters == cost.total.parameters
    assert set(cost.by_module(0)) == {""}
    assert sum(one.nodes for one in cost.by_operator().values()) == len(cost.nodes)


def test_operator_of_another_library_counts_once_it_is_registered():
    """Operators without a row are listed; a row with a count is used."""
    from pt2kit import operators

    path = samples.sample(RELEASE, "custom_op")
    before = pt2kit.cost(path)
    [name] = before.uncounted
    operators.register(name, flops=lambda result: 7 * result.numel)
    try:
        after = pt2kit.cost(path)
    finally:
        operators.unregister(name)
    assert not after.uncounted
    assert after.at().total.flops > before.at().total.flops


def test_an_operator_with_effects_counts_as_itself():
    """Printing has no FLOPs, and the call that keeps it in order is none that is not counted."""
    cost = counted("print_effect__decomp")
    assert any(node.operator == "higher_order.with_effects" for node in cost.nodes)
    assert not cost.uncounted


def test_roofline_is_the_longer_of_both():
    """Arithmetic bounds a slow device, memory traffic one with a slow memory."""
    cost = counted("dynamic_batch")
    total = cost.at().total
    assert cost.seconds(1.0, 1e30) == total.flops
    assert cost.seconds(1e30, 1.0) == total.read + total.written


def test_command_prints_tables_and_json():
    """`pt2 show --cost` with values of symbols, a roofline time, and JSON."""
    path = str(samples.sample(RELEASE, "dynamic_batch"))
    [symbol] = counted("dynamic_batch").symbols
    shown = pt2("show", path, "--cost").out
    assert f"*{symbol}" in shown
    assert "aten.linear.default" in shown
    at = ("--cost", "--at", f"{symbol}=64")
    assert "peak memory" in pt2("show", path, *at).out
    tree = json.loads(pt2("show", path, *at, "--peak-flops", "1T", "--bandwidth", "100G", "--json").out)
    assert tree["seconds"] > 0
    rates = ("--peak-flops", "1e12", "--bandwidth", "1e11")
    assert json.loads(pt2("show", path, *at, *rates, "--json").out)["seconds"] == tree["seconds"]
    assert tree["total"]["flops"] == counted("dynamic_batch").at({symbol: 64}).total.flops
    assert pt2("show", path, "--cost", "--bandwidth", "1G").code == 2
    assert pt2("show", path, "--cost", "--at", "s99=1").code == 2


@pytest.mark.parametrize("text", ["1/0", "s0**(10**9)", "zoo", "-s77"])
def test_hostile_sizes_end_in_an_error_or_a_number(text):
    """Expressions that are no sizes are unknown; those that have no value are an error of ours."""
    size = schema.SymInt(as_expr=schema.SymExpr(text))
    with pt2kit.open(samples.sample(RELEASE, "dynamic_batch")) as package:
        program = package.programs["model"]
    module = program.graph_module
    metas = {
        name: msgspec.structs.replace(meta, sizes=[size, *meta.sizes[1:]])
        for name, meta in module.graph.tensor_values.items()
    }
    graph = msgspec.structs.replace(module.graph, tensor_values=metas)
    module = msgspec.structs.replace(module, graph=graph)
    cost = cost_of_program(msgspec.structs.replace(program, graph_module=module))
    assert json.dumps(cost.to_tree())
    try:
        cost.at()
    except pt2kit.Pt2Error as error:
        assert str(error)


def test_the_greatest_of_many_sizes() -> None:
    """A size that never exceeds another one is left out; of thousands that all differ only the range is known."""
    s0, s1 = symbol("s0", 2, 10, hint=4), symbol("s1", 2, 10, hint=3)
    assert same(frontier([s0 * 3, s0 * 2, s0 + 1, 6]), s0 * 3)
    peak = frontier([s0 * number + s1 * (1000 - number) for number in range(1000)])
    assert bounds(peak) == (2000, 10_000)


def test_a_peak_without_a_formula_is_computed_from_the_nodes() -> None:
    """The counts at given sizes do not need the formula of the peak."""
    cost = counted("dynamic_batch")
    assert replace(cost, peak=unknown()).at(s77=5) == cost.at(s77=5)


@pytest.mark.parametrize(
    ("self", "mat2", "groups", "expected"),
    [
        ((6, 4), (3, 4, 5), 3, 2 * 6 * 4 * 5),  # rows of groups
        ((3, 6, 4), (4, 15), 3, 2 * 6 * 4 * 15),  # columns of groups
        ((6, 12), (12, 5), 3, 2 * 6 * 12 * 5),  # inner dimension of groups
        ((3, 6, 4), (3, 4, 5), None, 3 * 2 * 6 * 4 * 5),  # batches
    ],
)
def test_products_of_groups(self: tuple[int, ...], mat2: tuple[int, ...], groups: int | None, expected: int) -> None:
    """A product of groups counts as its groups do, whichever dimension has them."""
    given = {"self": _float(*self), "mat2": _float(*mat2), "offs": None if groups is None else _float(groups)}
    row = find("torch.ops.aten._grouped_mm.default")
    assert row is not None
    assert row.flops is not None
    assert call_rule(row.flops, given) == expected


def test_products_of_three_operands() -> None:
    """Bilinear layers decompose into two multiplications and a sum for each combination of indices."""
    given: dict[str, Any] = {
        name: _float(*sizes) for name, sizes in {"i1": (2, 3), "i2": (5, 3, 4), "i3": (2, 4)}.items()
    }
    given |= {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)}
    row = find("torch.ops.aten._trilinear.default")
    assert row is not None
    assert row.flops is not None
    assert call_rule(row.flops, given) == 4 * 2 * 5 * 3 * 4


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("chain_matmul", [(10, 100), (100, 5), (5, 50)], 2 * (10 * 100 * 5 + 10 * 5 * 50)),  # from the left
        ("linalg_multi_dot", [(50, 5), (5, 100), (100, 10)], 2 * (5 * 100 * 10 + 50 * 5 * 10)),  # from the right
        ("linalg_multi_dot", [(5,), (5, 100), (100, 10), (10,)], 2 * (100 * 10 + 5 * 100 + 5)),  # vectors at both ends
        ("chain_matmul", [(3, 4)], 0),
    ],
)
def test_products_of_several_matrices(name: str, sizes: list[tuple[int, ...]], expected: int) -> None:
    """Matrices are multiplied in the cheapest order, as by torch; too many are not counted."""
    row = find(f"torch.ops.aten.{name}.default")
    assert row is not None
    assert row.flops is not None
    parameter = "matrices" if name == "chain_matmul" else "tensors"
    assert call_rule(row.flops, {parameter: [_float(*one) for one in sizes]}) == expected
    with pytest.raises(Unknown, match="expected at most 100 matrices"):
        call_rule(row.flops, {parameter: [_float(2, 2)] * 101})


def _float(*sizes: int) -> Tensor:
    return Tensor(sizes, ScalarType.FLOAT, None, None)
