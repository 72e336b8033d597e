"""Symbols of two programs: which correspond, and which expressions are then the same."""

from __future__ import annotations

from msgspec.structs import replace
from tests.graph.build import meta

from pt2kit import schema
from pt2kit.canonical.expressions import Normalizer
from pt2kit.diffs.fingerprints import Symbols, is_of_another_kind


def size(text: str) -> schema.SymInt:
    """A size that is an expression."""
    return schema.SymInt(as_expr=schema.SymExpr(text))


def tensor(*sizes: str) -> schema.TensorMeta:
    """A tensor with these sizes."""
    return replace(meta(1), sizes=[size(text) for text in sizes])


def srepr(name: str) -> str:
    return f"Symbol('{name}', positive=True, integer=True)"


def learned(*pairs: tuple[schema.TensorMeta, schema.TensorMeta]) -> Symbols:
    found = Symbols()
    found.learn(pairs)
    return found


def test_symbols_correspond_where_sizes_are_nothing_else() -> None:
    """In both dialects; other expressions and numbers say nothing."""
    found = learned((tensor(srepr("s0"), "2*s1"), tensor(srepr("s77"), "2*s2")), (tensor("s3"), tensor("s1")))
    assert found.renamed == {"s0": "s77", "s3": "s1"}
    assert (found.new_name("s0"), found.new_name("s9")) == ("s77", "s9")
    found.learn([(size("u0"), size("u5")), (size("s0"), size("s8")), (schema.SymFloat(as_float=1.0), size("s8"))])
    assert found.renamed == {"s0": "s77", "s3": "s1", "u0": "u5"}


def test_most_values_decide() -> None:
    """One size that was changed does not rename a symbol, in either direction; no two symbols become one."""
    pairs = [(tensor("s0"), tensor("s0"))] * 2 + [(tensor("s0"), tensor("s1"))]
    assert learned(*pairs).renamed == {}
    assert learned(*((new, old) for old, new in pairs)).renamed == {}
    assert learned((tensor("s0", "s1"), tensor("s2", "s2"))).renamed == {"s0": "s2"}


def normal(text: str) -> str:
    """An expression as diffs compare them."""
    return str(Normalizer().normal(text))


def test_expressions_are_compared_under_the_new_names() -> None:
    """Sums and products have no order of their own; differences have one. What is no expression is a text."""
    found = learned((tensor("a0", "b0"), tensor("d0", "c0")))
    same = {
        "a0 + b0": "c0 + d0",
        "2*a0*b0": "2*c0*d0",
        "Max(1, a0)": "Max(1, d0)",
        "a0 - b0": "d0 - c0",
        "a0 +": "d0 +",
    }
    for old, new in same.items():
        assert found.old_form(normal(old)) == normal(new), old
    assert found.old_form(normal("a0 - b0")) != normal("c0 - d0")
    assert found.old_form(normal(srepr("a0"))) == normal(srepr("d0"))
    assert found.old_form(normal(srepr("a0"))) != normal("Symbol('d0', integer=True)")
    assert Symbols().old_form(normal("a0")) == normal("a0")


def test_guards_name_inputs_in_quotes() -> None:
    """A symbol in a guard is renamed, an input of the same name is not."""
    found = learned((tensor("s0"), tensor("s1")))
    assert found.guard("L['s0'].size()[0] == s0") == "L['s0'].size()[0] == s1"
    assert Symbols().guard("s0 > 1") == "s0 > 1"


def test_kinds_of_symbols_show_in_their_names() -> None:
    """Sizes are s0, s1, …; numbers that depend on data are u0, u1, …."""
    assert is_of_another_kind("s0", "u0")
    assert not is_of_another_kind("s0", "s77")
