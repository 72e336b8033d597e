"""Texts of operator schemas: every form that torch prints is read whole."""

from __future__ import annotations

import re

import pytest

from pt2kit.schema.operators import Operator, known_releases, operator_name, operators_of, parse_operator, parse_type


def test_a_schema_says_all_of_its_parameters():
    """Names, types, defaults, what goes by name only and what is written."""
    found = parse_operator(
        'aten::f.out(Tensor? self, int[2] size=[0, 1], *, str sep=", (", Tensor(a!)[] out) -> (Tensor(a!), Tensor?[] r)'
    )
    assert found.name == "aten.f.out"
    assert [
        (p.name, str(p.type), p.type.length, p.default, p.is_keyword_only, p.type.is_written)
        for p in found.parameters.values()
    ] == [
        ("self", "Tensor?", 0, None, False, False),
        ("size", "int[2]", 2, "[0, 1]", False, False),
        ("sep", "str", 0, '", ("', True, False),
        ("out", "Tensor[]", 0, None, True, True),
    ]
    assert [(str(result), result.alias) for result in found.results] == [("Tensor", "a!"), ("Tensor?[]", "")]
    assert not found.is_open


@pytest.mark.parametrize(
    ("printed", "in_schemas"),
    [
        ("Optional[List[int]]", "int[1]?"),
        ("List[Optional[Tensor]]", "Tensor?[1]"),
        ("List[List[Tensor]]", "Tensor[1][1]"),
        ("Optional[number]", "Scalar?"),
        ("Tensor", "Tensor"),
    ],
)
def test_types_as_torch_prints_them_alone(printed: str, in_schemas: str):
    """A type by itself means what it means in a schema; a list of unknown length has one that is not 0."""
    alone, written = parse_type(printed), parse_type(in_schemas)
    assert (alone.base, alone.suffix, alone.is_optional) == (written.base, written.suffix, written.is_optional)
    assert alone.length == written.length


@pytest.mark.parametrize(
    ("text", "parameters", "results"),
    [
        ("aten::f() -> ()", [], []),
        ("aten::f(t[](a!) self, t(b -> *) el) -> t[](a!)", ["t[]", "t"], ["t[]"]),
        ("aten::f(Dict(str, t)(a!) self) -> ((str, t))", ["Dict(str, t)"], ["(str, t)"]),
        ("aten::f((str, tVal)[] inputs) -> Dict(str, tVal)", ["(str, tVal)[]"], ["Dict(str, tVal)"]),
        ("aten::f(Future(t)(a) self) -> t(*)?", ["Future(t)"], ["t?"]),
        (
            "q::f(__torch__.torch.classes.q.P w, Tensor[][] x) -> Tensor Y",
            ["__torch__.torch.classes.q.P", "Tensor[][]"],
            ["Tensor"],
        ),
        ("aten::f(SymInt[1]? dim=None) -> (Tensor out, SymInt n)", ["SymInt[1]?"], ["Tensor", "SymInt"]),
    ],
)
def test_forms_of_types(text: str, parameters: list[str], results: list[str]):
    """Tuples, dictionaries, classes and lists of lists are types as they stand."""
    found = parse_operator(text)
    assert [str(parameter.type) for parameter in found.parameters.values()] == parameters
    assert [str(result) for result in found.results] == results


def test_schema_without_a_namespace():
    """Extensions may leave it away."""
    found = parse_operator("double(Tensor x, int[] by) -> (Tensor, Tensor[])")
    assert (found.name, list(found.parameters), len(found.results)) == ("double.default", ["x", "by"], 2)


def test_open_operators():
    """Any number of values, in or out."""
    assert parse_operator("aten::format(str self, ...) -> str").is_open
    assert parse_operator("prim::unpack(Any a) -> ...").is_open


def test_text_that_is_no_schema():
    """The message says what was expected."""
    with pytest.raises(ValueError, match=r"expected name\(parameters\) -> results, got 'aten::f'"):
        parse_operator("aten::f")
    with pytest.raises(ValueError, match="expected a type and a name, got 'Tensor'"):
        parse_operator("aten::f(Tensor) -> ()")


def test_every_schema_of_the_table_is_read_whole():
    """Nothing is lost but what shares memory with what: the parameters can be written again as they stood."""
    for name, text in {item for release in known_releases() for item in operators_of(release).items()}:
        found = parse_operator(text)
        assert found.name == name == operator_name(text)
        stated = text[text.index("(") + 1 : text.rindex(") -> ")]
        assert found.is_open == ("..." in text)
        stated = stated.removesuffix("...").removesuffix(", ")
        assert _written(found) == re.sub(r"(?<!Future)(?<!RRef)(?<!Await)\([a-z|!*> -]+\)", "", stated)


def _written(operator: Operator) -> str:
    items: list[str] = []
    for parameter in operator.parameters.values():
        length = f"[{parameter.type.length}]" if parameter.type.length else "[]"
        default = "" if parameter.default is None else f"={parameter.default}"
        star = "*, " if parameter.is_keyword_only and "*" not in " ".join(items) else ""
        items.append(f"{star}{str(parameter.type).replace('[]', length, 1)} {parameter.name}{default}")
    return ", ".join(items)
