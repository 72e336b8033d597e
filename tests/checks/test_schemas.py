"""The table of operators that ships, and the signatures in it."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

from pt2kit.checks import schemas
from pt2kit.checks.parameter_kinds import parameter_arms, result_arms
from pt2kit.checks.schemas import Parameter, find, parse, table
from pt2kit.graph import BUILTIN_NAMESPACES
from pt2kit.schema import Argument


def test_table() -> None:
    """The table is small, of the release that it says, and has the operators of torch and no others."""
    data = (files("pt2kit.checks") / "data" / f"operators-{schemas.RELEASE}.json.z").read_bytes()
    assert len(data) < 200_000
    found = table()
    assert found.release == schemas.RELEASE
    assert len(found.operators) > 4000
    assert {name.partition(".")[0] for name in found.operators} <= BUILTIN_NAMESPACES
    assert {"cond", "while_loop", "scan", "auto_functionalized_v2"} <= found.higher_order


def test_every_signature_reads() -> None:
    """Each signature of the table is one: named parameters, of types that are known or left alone."""
    for name, text in table().operators.items():
        signature = parse(text)
        assert all(name == parameter.name for name, parameter in signature.parameters.items()), name
        assert all(parameter.type and ":" not in parameter.name for parameter in signature.parameters.values()), name


def test_signature() -> None:
    """A signature has what a call needs to know."""
    found = find("torch.ops.aten.add.Tensor", "2.13")
    assert found is not None
    assert list(found.parameters.values()) == [
        Parameter("self", "Tensor", False, True, False),
        Parameter("other", "Tensor", False, True, False),
        Parameter("alpha", "number", True, False, False),
    ]
    assert (found.returns, found.is_view, found.is_open) == (("Tensor",), False, False)
    view, written = find("torch.ops.aten.view.default", ""), find("torch.ops.aten.relu_.default", "")
    assert view is not None
    assert view.is_view
    assert written is not None
    assert written.parameters["self"].is_written
    opened = find("torch.ops.prim.Print.default", "")
    assert opened is not None
    assert opened.is_open
    assert find("torch.ops.aten.nope.default", "2.13") is None


@pytest.mark.parametrize(
    ("kind", "fits", "misfits"),
    [
        ("Tensor", {"as_tensor", "as_int", "as_none", "as_tensors"}, {"as_string", "as_device", "as_graph"}),
        ("Optional[List[int]]", {"as_ints", "as_sym_ints", "as_int", "as_none"}, {"as_string", "as_operator"}),
        ("Optional[ScalarType]", {"as_scalar_type", "as_none"}, {"as_tensor", "as_string"}),
        ("str", {"as_string"}, {"as_tensor", "as_int", "as_ints"}),
        ("Device", {"as_device", "as_string"}, {"as_tensor", "as_int"}),
        ("List[str]", {"as_strings", "as_ints"}, {"as_graph"}),
    ],
)
def test_arms_of_parameters(kind: str, fits: set[str], misfits: set[str]) -> None:
    """An argument of the right kind fits, one that could not be meant does not."""
    arms = parameter_arms(kind)
    assert arms is not None
    assert fits <= arms <= set(Argument.__struct_fields__)
    assert not misfits & arms


def test_types_that_say_nothing() -> None:
    """Classes, generators and dictionaries leave every kind of argument."""
    for kind in ("Generator", "Any", "t", "__torch__.torch.classes.quantized.LinearPackedParamsBase", "Dict[str,t]"):
        assert parameter_arms(kind) is None
        assert result_arms(kind) is None
    assert result_arms("List[Tensor]") == {"as_tensors", "as_optional_tensors", "as_none"}


def test_nothing_is_read_before_it_is_needed() -> None:
    """Importing the module reads no data."""
    code = "import pt2kit.checks.schemas as s, sys; sys.exit(s.table.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
