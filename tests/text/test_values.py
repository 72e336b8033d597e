"""Values as short text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.graph.build import meta
from tests.packages import tree_of  # noqa: F401

from pt2kit import schema
from pt2kit.text.values import ValueTexts, bounds_text, custom_object_text, device_text, dtype_text

MODULE = schema.GraphModule(schema.Graph([], [], [], {}, {}, {}), schema.GraphSignature([], []), [])
PROGRAM = schema.ExportedProgram(MODULE, {}, {}, schema.SchemaVersion(8, 20))
TEXTS = ValueTexts(PROGRAM)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, None, "any"),
        (2, None, "at least 2"),
        (None, 1024, "at most 1,024"),
        (2, 1024, "2 … 1,024"),
        (7, 7, "7"),
        (-(2**63), 2**63, "-9,223,372,036,854,775,808 … 9,223,372,036,854,775,808"),
    ],
)
def test_bounds(low: int | None, high: int | None, text: str) -> None:
    """An end that is missing is said so."""
    assert bounds_text(low, high) == text


def _symbolic(text: str) -> schema.SymExpr:
    return schema.SymExpr(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Symbol('s77', positive=True, integer=True)", "s77"),
        ("Mul(Integer(2), Symbol('s0', positive=True, integer=True))", "2*s0"),
        ("s0*2", "2*s0"),
        ("__import__('os')", "<__import__('os')>"),
        ("s0 +* \x1b", "<s0 +* \\x1b>"),
        ("", "<>"),
    ],
)
def test_expressions(text: str, shown: str) -> None:
    """Both dialects are shown as people write them; what is no expression stands in angle brackets, escaped."""
    assert TEXTS.expression(text) == shown
    assert TEXTS.size(schema.SymInt(as_expr=_symbolic(text))) == shown
    assert TEXTS.symbolic(schema.SymInt(as_expr=_symbolic(text))) == f"SymInt({shown})"


def test_tensors() -> None:
    """Type and sizes; a device or layout that is not the usual one is added."""
    plain = meta(2, 3)
    assert TEXTS.meta(plain) == "f32[2, 3]"
    assert TEXTS.meta(replace(plain, device=schema.Device("cuda", 1))) == "f32[2, 3] on cuda:1"
    assert TEXTS.meta(replace(plain, layout=schema.Layout.SparseCoo)) == "f32[2, 3] SparseCoo"
    assert TEXTS.meta(replace(plain, dtype=schema.ScalarType.UNKNOWN)) == "unknown[2, 3]"
    assert TEXTS.meta(meta()) == "f32[]"


def test_names() -> None:
    """A value of a graph is described by the table that has it; one that no table has, not at all."""
    graph = replace(
        MODULE.graph,
        tensor_values={"t": meta(1)},
        sym_int_values={"i": schema.SymInt(as_int=3)},
        sym_bool_values={"b": schema.SymBool(as_bool=True)},
        sym_float_values={"f": schema.SymFloat(as_float=0.5)},
        custom_obj_values={"o": schema.CustomObjArgument("o", "__torch__.\x1bC")},
    )
    found = [TEXTS.named(graph, name) for name in "tibfo?"]
    assert found == ["f32[1]", "SymInt(3)", "SymBool(True)", "SymFloat(0.5)", "object __torch__.\\x1bC", ""]


def test_odd_names_are_escaped() -> None:
    """Devices and classes are names from the file."""
    assert device_text(schema.Device("a\x1bb", 2)) == '"a\\x1bb":2'
    assert custom_object_text(schema.CustomObjArgument("x", "a\nb")) == "object a\\nb"


@pytest.mark.parametrize("dtype", schema.ScalarType)
def test_every_type_has_a_short_name(dtype: schema.ScalarType) -> None:
    """No element type of the schema is nameless."""
    assert dtype_text(dtype).isidentifier()
