"""Functions over numbers: those that give what the graph declares, and those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import samples
from tests.checks.mutations import OPERATORS, graph, nodes, program
from tests.packages import bytes_of

from pt2kit import schema
from pt2kit.checks import check
from pt2kit.checks.growth import growing_numbers
from pt2kit.package.open import open_package
from pt2kit.runtime.session import run


def said(target: str, change: Any) -> list[str]:
    """Return the messages about numbers of a file with one changed call."""

    def apply(tree: Any) -> None:
        node = next(node for node in graph(tree)["nodes"] if node["target"] == target)
        change(node, graph(tree))

    return [problem.message for problem in check(program(OPERATORS, apply).data) if problem.rule == "T13"]


def _operand(node: Any, value: Any) -> None:
    if value is not None:
        node["inputs"][1]["arg"] = value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        ({"as_int": 999}, "declared (_operator.add)"),
        ({"as_float": 1.5}, "expected a float as the result of _operator.add"),
    ],
)
def test_operands(value: Any, expected: str) -> None:
    """Another operand gives another result than is declared."""
    found = said("_operator.add", lambda node, _: _operand(node, value))
    assert (expected in found[0]) if expected else not found


def _node(target: str, result: str, *operands: str | float) -> schema.Node:
    given = [
        schema.Argument(as_sym_int=schema.SymIntArgument(as_name=one))
        if isinstance(one, str)
        else schema.Argument(as_int=one)
        if isinstance(one, int)
        else schema.Argument(as_float=one)
        for one in operands
    ]
    result_argument = schema.Argument(as_sym_int=schema.SymIntArgument(as_name=result))
    return schema.Node(target, [schema.NamedArgument("", one) for one in given], [result_argument], {})


@pytest.mark.parametrize(
    ("between", "is_refused"),
    [
        (("torch.sym_ite", "c", "b", "n", "n"), False),
        (("torch.sym_ite", "c", "b", "p", "n"), True),
        (("torch.sym_ite", "c", "b", 1.5, 2.5), False),
        (("torch._sym_cos", "c", "p"), False),
        (("_operator.eq", "c", "p", "n"), False),
        (("_operator.add", "c", "p", "n"), True),
        (("_operator.ge", "c", 1, 2, 3), False),
    ],
)
def test_growth_through_functions(between: tuple[Any, ...], is_refused: bool) -> None:
    """A choice is as large as what it chooses from; a cosine is a float and a comparison one bit, whatever it gets,
    also of too many arguments."""
    calls = [_node("_operator.pow", "p", "n", "n"), _node(*between), _node("_operator.pow", "q", "c", "n")]
    found = list(growing_numbers(schema.Graph([], [], calls, {}, {}, {})))
    assert [number for number, _ in found] == ([2] if is_refused else [])


def test_bools_that_torch_learned() -> None:
    """`torch._check` makes a bool known that is read out of a tensor; such a program is sound, and runs."""
    torch = pytest.importorskip("torch")

    class Checked(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, x: Any) -> Any:
            torch._check((x > 0).all().item())
            torch._check(torch.ops.aten._is_all_true(x < 9).item())
            return x + 1

    file = bytes_of(torch.export.save, torch.export.export(Checked(), (torch.ones(3),)))
    numbers = open_package(file).programs["model"].graph_module.graph.sym_bool_values
    assert any(number.as_bool is True for number in numbers.values())
    assert not check(file).errors
    assert run(file, np.ones(3, np.float32)).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("removed", ["", "torch.ops.aten._assert_scalar.default"])
def test_numbers_that_torch_learned(removed: str, tmp_path: Path) -> None:
    """`torch._check` makes a number known, which is sound if the program asserts its limits."""
    torch = pytest.importorskip("torch")

    class Checked(torch.nn.Module):  # type: ignore[name-defined]
        def forward(self, x: Any, n: Any) -> Any:
            number = n.item()
            torch._check(number == 3)
            return x[number] + 1

    path = tmp_path / "known.pt2"
    torch.export.save(torch.export.export(Checked(), (torch.ones(5), torch.tensor(3))), path)
    numbers = open_package(path).programs["model"].graph_module.graph.sym_int_values
    assert any(number.as_int == 3 for number in numbers.values())

    def remove(calls: Any) -> None:
        calls[:] = [node for node in calls if node["target"] != removed]

    found = [problem.message for problem in check(nodes(path, remove).data) if problem.rule == "T13"]
    message = "expected an expression for a number that only running determines, got 3"
    assert found == ([message] if removed else [])


@pytest.mark.parametrize(("asserted", "found"), [("eq", 0), ("ge", 1)])
def test_sizes_that_torch_learned(asserted: str, found: int) -> None:
    """`draft_export` declares the number of a size that the program asserts to be it, and gives it a wider range."""

    def change(tree: Any) -> None:
        number = {"as_int": 4}
        call = graph(tree)["nodes"][1]
        call.update(target=f"_operator.{asserted}")
        call["inputs"][1]["arg"] = number
        graph(tree)["tensor_values"]["add"]["sizes"][0] = number

    problems = check(program(samples.sample("2.13.0", "item_symint"), change).data)
    assert [problem.message for problem in problems if problem.rule == "T8"] == [
        "expected sizes [u0, 3], got [4, 3] declared (aten.add.Tensor)"
    ] * found
