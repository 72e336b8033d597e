"""Signatures of operators, by the release of a program, and the arguments that their types take."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pt2kit import codec
from pt2kit.checks import schemas
from pt2kit.checks.parameter_kinds import misfit, parameter_arms, result_arms, takes_numbers_as_tensors
from pt2kit.checks.schemas import Parameter, find
from pt2kit.schema import Argument
from pt2kit.schema.operators import known_releases, operators_of


def test_every_signature_reads() -> None:
    """Each schema of each release is one: named parameters, of types that are known or left alone."""
    texts = {text for release in known_releases() for text in operators_of(release).values()}
    assert len(texts) > 4000
    for text in texts:
        signature = schemas.parse(text)
        assert all(name == parameter.name for name, parameter in signature.parameters.items()), text
        assert all(parameter.type for parameter in signature.parameters.values()), text


def test_signature() -> None:
    """A signature has what a call needs to know."""
    found = find("torch.ops.aten.add.Tensor", "2.13")
    assert found is not None
    assert list(found.parameters.values()) == [
        Parameter("self", "Tensor", False, True, False),
        Parameter("other", "Tensor", False, True, False),
        Parameter("alpha", "Scalar", True, False, False),
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


def test_lengths_of_lists() -> None:
    """A list with a length keeps it: a single value may stand for it."""
    found = find("torch.ops.aten.max_pool2d.default", "2.13")
    assert found is not None
    assert found.parameters["kernel_size"].type == "int[2]"


@pytest.mark.parametrize(
    ("release", "stands_for_it"), [("2.6", "2.6"), ("", known_releases()[-1]), ("2.99", known_releases()[-1])]
)
def test_releases_that_the_table_does_not_have(release: str, stands_for_it: str) -> None:
    """A release that is not known is held against the next newer one, or the newest."""
    assert schemas.nearest(release) == stands_for_it
    assert schemas.is_known(release) == (release == stands_for_it)


def test_releases_with_an_operator() -> None:
    """An operator is known in the releases that register it, a higher-order one likewise."""
    assert schemas.releases_with("torch.ops.aten.add.Tensor") == known_releases()
    assert "2.1" not in schemas.releases_with("torch.ops.higher_order.scan")
    assert schemas.releases_with("torch.ops.higher_order.scan")[-1] == known_releases()[-1]
    assert schemas.releases_with("torch.ops.aten.nope.default") == ()


def argument(**one: Any) -> Argument:
    """An argument from its JSON."""
    return codec.decode(codec.encode(one), Argument, "argument").value


TENSOR = {"as_tensor": {"name": "x"}}
FITS: list[tuple[str, dict[str, Any]]] = [
    ("Tensor", TENSOR),
    ("Tensor?", {"as_none": True}),
    ("Tensor[]", {"as_tensors": [{"name": "x"}]}),
    ("Tensor[]", {"as_ints": []}),
    ("Tensor?[]", {"as_optional_tensors": [{"as_none": True}]}),
    ("int", {"as_int": 1}),
    ("int", {"as_bool": True}),
    ("int", {"as_scalar_type": 7}),
    ("SymInt?", {"as_sym_int": {"as_name": "u0"}}),
    ("int[]", {"as_ints": [1, 2]}),
    ("SymInt[]", {"as_sym_ints": [{"as_int": 1}, {"as_name": "s"}]}),
    ("int[2]", {"as_int": 1}),
    ("int[1]?", {"as_none": True}),
    ("float", {"as_int": 1 << 70}),
    ("Scalar", {"as_int": (1 << 64) - 1}),
    ("bool", {"as_none": True}),
    ("Device?", {"as_string": "cpu"}),
    ("ScalarType", {"as_scalar_type": 1}),
    ("str[]", {"as_strings": ["a"]}),
    ("Generator?", {"as_none": True}),
    ("Optional[List[int]]", {"as_int": 1}),
]
"""What torch takes when it calls an operator: measured with one whose parameter has the type."""

MISFITS: list[tuple[str, dict[str, Any], str]] = [
    ("Tensor", {"as_none": True}, "as_none"),
    ("Tensor", {"as_int": 1}, "as_int"),
    ("Tensor", {"as_tensors": [{"name": "x"}]}, "as_tensors"),
    ("Tensor[]", TENSOR, "as_tensor"),
    ("Tensor[]", {"as_optional_tensors": [{"as_none": True}]}, "as_optional_tensors"),
    ("Tensor?[]", TENSOR, "as_tensor"),
    ("int", {"as_ints": [1]}, "as_ints"),
    ("int", {"as_float": 1.0}, "as_float"),
    ("int", {"as_none": True}, "as_none"),
    ("SymInt", {"as_scalar_type": 1}, "as_scalar_type"),
    ("int[]", {"as_int": 1}, "as_int"),
    ("int[]", {"as_strings": ["a"]}, "as_strings"),
    ("int[]", {"as_floats": [1.5]}, "as_floats"),
    ("SymInt[2]", {"as_int": 1}, "as_int"),
    ("int", {"as_int": 1 << 63}, "9223372036854775808, which 63 bits cannot hold"),
    ("int[]", {"as_ints": [1, -(1 << 63) - 1]}, "-9223372036854775809, which 63 bits cannot hold"),
    ("SymInt", {"as_sym_int": {"as_int": 1 << 63}}, "9223372036854775808, which 63 bits cannot hold"),
    ("Scalar", {"as_int": 1 << 64}, "18446744073709551616, which 64 bits cannot hold"),
    ("float", {"as_string": "1"}, "as_string"),
    ("bool", {"as_bools": [True]}, "as_bools"),
    ("str", {"as_int": 1}, "as_int"),
    ("Device", {"as_none": True}, "as_none"),
    ("ScalarType", {"as_scalar_type": 0}, "as_scalar_type 0, which is none"),
    ("MemoryFormat?", {"as_memory_format": 0}, "as_memory_format 0, which is none"),
    ("Generator?", {"as_int": 1}, "as_int"),
]


@pytest.mark.parametrize(("kind", "given"), FITS)
def test_arguments_that_fit(kind: str, given: dict[str, Any]) -> None:
    """What torch takes is no problem."""
    one = argument(**given)
    assert misfit(one, kind, lambda name: False, numbers_as_tensors=False) is None
    arms = parameter_arms(kind)
    assert arms is not None
    assert one.type in arms


@pytest.mark.parametrize(("kind", "given", "got"), MISFITS)
def test_arguments_that_do_not_fit(kind: str, given: dict[str, Any], got: str) -> None:
    """What torch refuses, or takes for something else, is said."""
    assert misfit(argument(**given), kind, lambda name: False, numbers_as_tensors=False) == got


def test_what_torch_makes_of_one_another() -> None:
    """A tensor of one element is a number, and some operators take a number for a tensor."""
    one = argument(**TENSOR)
    for kind in ("int", "SymInt?", "float", "bool"):
        assert misfit(one, kind, lambda name: True, numbers_as_tensors=False) is None
        assert misfit(one, kind, lambda name: False, numbers_as_tensors=False) == "as_tensor"
    assert misfit(one, "Scalar", lambda name: True, numbers_as_tensors=False) == "as_tensor"
    assert misfit(argument(as_float=1.5), "Tensor", lambda name: False, numbers_as_tensors=True) is None
    assert takes_numbers_as_tensors("aten.add.Tensor")
    assert takes_numbers_as_tensors("prims.mul.default")
    assert not takes_numbers_as_tensors("aten.atan2.default")


def test_types_that_say_nothing() -> None:
    """Classes and dictionaries leave every kind of argument."""
    for kind in ("Any", "t", "__torch__.torch.classes.quantized.LinearPackedParamsBase", "Dict(str, t)"):
        assert parameter_arms(kind) is None
        assert result_arms(kind) is None
        assert misfit(argument(as_int=1), kind, lambda name: False, numbers_as_tensors=False) is None
    assert result_arms("Tensor[]") == frozenset({"as_tensors", "as_optional_tensors", "as_none"})


def test_nothing_is_read_before_it_is_needed() -> None:
    """Importing the module reads no data."""
    code = "import pt2kit.schema.operators as s, pt2kit.checks.schemas, sys; sys.exit(s._table.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
