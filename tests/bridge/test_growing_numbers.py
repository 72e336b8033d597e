"""Numbers that grow beyond all sizes, in guards and in nodes: refused by check, load and load_module alike."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import torch
from tests.bridge.read.edited import edited
from tests.packages import bytes_of
from torch.export import Dim

import pt2kit
from pt2kit.bridge.run.expressions import bounded_power, bounded_shift
from pt2kit.errors import InputError, LimitError


class Powers(torch.nn.Module):
    """Powers in a guard, and in nodes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        if 2**n > 10_000_000:
            return x
        return x + (n ** (n**2)) % 7


@pytest.fixture(scope="module")
def powers() -> bytes:
    """The program as torch saves it."""
    program = torch.export.export(Powers(), (torch.ones(3),), dynamic_shapes={"x": {0: Dim.AUTO}})
    return bytes_of(torch.export.save, program)


def with_guards(data: bytes, *guards: str) -> bytes:
    """The file with other guards, and without powers among its nodes."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        nodes = graph["nodes"]
        nodes[:] = [node for node in nodes if "pow" not in node["target"] and "mod" not in node["target"]]
        values = graph["sym_int_values"]
        graph["sym_int_values"] = {name: value for name, value in values.items() if name[:3] not in ("pow", "mod")}
        for node in nodes:
            for named in node["inputs"]:
                if "as_sym_int" in named["arg"]:
                    named["arg"] = {"as_int": 1}
        tree["guards_code"] = list(guards)

    return edited(io.BytesIO(data), change)


def with_exponent(data: bytes, exponent: int) -> bytes:
    """The file with n ** (n ** exponent), which says of itself that it is n."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        powers = [node for node in graph["nodes"] if node["target"] == "_operator.pow"]
        powers[-2]["inputs"][1]["arg"] = {"as_int": exponent}
        for value in graph["sym_int_values"].values():
            if "as_expr" in value:
                value["as_expr"]["expr_str"] = re.findall(r"Symbol\([^)]*\)", value["as_expr"]["expr_str"])[0]
                value["as_expr"]["hint"] = {"as_int": 3}

    return edited(io.BytesIO(data), change)


@pytest.mark.parametrize("load", [pt2kit.load, pt2kit.load_module], ids=["load", "load_module"])
def test_guards(load: Any, powers: bytes) -> None:
    """The guard of the issue, which hung the first call, is refused; trust= has it; that of export stays."""
    hostile = with_guards(powers, "L['x'].size()[0] ** L['x'].size()[0] ** 99 == 4")
    with pytest.raises(LimitError, match=r"guards_code\[0\]: expected a power whose base .*X4"):
        load(hostile)
    load(hostile, trust=["X4"]) if load is pt2kit.load else None
    many = with_guards(powers, *["2 ** L['x'].size()[0] < 9"] * 65)
    with pytest.raises(LimitError, match=r"at most 64 powers"):
        load(many)
    assert [problem.rule for problem in pt2kit.check(hostile) if problem.kind == "error"] == []
    assert "X4" in [problem.rule for problem in pt2kit.check(hostile)]


@pytest.mark.parametrize("load", [pt2kit.load, pt2kit.load_module], ids=["load", "load_module"])
def test_nodes(load: Any, powers: bytes) -> None:
    """The same in nodes, whatever the file says of the values: T9, in check as well; n ** 81 is what it was."""
    with pytest.raises(LimitError, match=r"_operator\.pow.*: expected a power whose base .* \[T9\]|T9"):
        load(with_exponent(powers, 99))
    assert "T9" in [problem.rule for problem in pt2kit.check(with_exponent(powers, 99))]


def test_a_call_that_grows(powers: bytes) -> None:
    """A guard that passes the reader is bounded again when it is computed; a call that it cannot be computed for ends
    in an error of ours."""
    module = pt2kit.load_module(with_guards(powers, "2 ** L['x'].size()[0] < 10000"))
    assert module(torch.ones(3)).shape == (3,)
    with pytest.raises(InputError, match="expected 2"):
        module(torch.ones(20))
    with pytest.raises(InputError, match="expected numbers of at most 1048576 bits"):
        module(torch.ones(1).expand(10**10))
    divided = pt2kit.load_module(with_guards(powers, "1 // (L['x'].size()[0] - 4) < 10"))
    assert divided(torch.ones(3)).shape == (3,)
    with pytest.raises(InputError, match=r"cannot be computed: (integer )?(division|modulo)"):
        divided(torch.ones(4))


def test_bounded_numbers() -> None:
    """Powers and shifts of whole numbers are Python's up to a million bits; floats are not touched."""
    assert bounded_power(3, 5) == 243
    assert bounded_power(2.0, -1) == 0.5
    assert bounded_power(1, 10**30) == 1
    assert bounded_shift(3, 4) == 48
    for compute in (
        lambda: bounded_power(3, 10**9),
        lambda: bounded_shift(1, 10**9),
        lambda: bounded_power(2, -(10**9)),
    ):
        with pytest.raises(LimitError, match="at most 1048576 bits"):
            compute()
