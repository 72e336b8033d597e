"""Schemas of operators, by the release of a program."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pt2kit.operators import schemas
from pt2kit.operators.schemas import find
from pt2kit.schema.operators import Parameter, known_releases, nearest, operators_of, parse_operator, parse_type


def test_every_signature_reads() -> None:
    """Each schema of each release is one: named parameters, of types that are known or left alone."""
    texts = {text for release in known_releases() for text in operators_of(release).values()}
    assert len(texts) > 4000
    for text in texts:
        signature = parse_operator(text)
        assert all(name == parameter.name for name, parameter in signature.parameters.items()), text
        assert all(parameter.type for parameter in signature.parameters.values()), text


def test_schema() -> None:
    """A schema has what a call needs to know."""
    found = find("torch.ops.aten.add.Tensor", "2.13")
    assert found is not None
    assert list(found.parameters.values()) == [
        Parameter("self", parse_type("Tensor"), None, is_keyword_only=False),
        Parameter("other", parse_type("Tensor"), None, is_keyword_only=False),
        Parameter("alpha", parse_type("Scalar"), "1", is_keyword_only=True),
    ]
    assert (found.results, found.is_view, found.is_open) == ((parse_type("Tensor"),), False, False)
    view, written = find("torch.ops.aten.view.default", ""), find("torch.ops.aten.relu_.default", "")
    assert view is not None
    assert view.is_view
    assert written is not None
    assert written.parameters["self"].type.is_written
    opened = find("torch.ops.prim.Print.default", "")
    assert opened is not None
    assert opened.is_open
    assert find("torch.ops.aten.nope.default", "2.13") is None


def test_lengths_of_lists() -> None:
    """A list with a length keeps it: a single value may stand for it."""
    found = find("torch.ops.aten.max_pool2d.default", "2.13")
    assert found is not None
    assert found.parameters["kernel_size"].type == parse_type("int[2]")
    assert str(found.parameters["kernel_size"].type) == "int[2]"


@pytest.mark.parametrize(
    ("release", "stands_for_it"), [("2.6", "2.6"), ("", known_releases()[-1]), ("2.99", known_releases()[-1])]
)
def test_releases_that_the_table_does_not_have(release: str, stands_for_it: str) -> None:
    """A release that is not known is held against the next newer one, or the newest."""
    assert nearest(release) == stands_for_it
    assert schemas.is_known(release) == (release == stands_for_it)


def test_releases_with_an_operator() -> None:
    """An operator is known in the releases that register it, a higher-order one likewise."""
    assert schemas.releases_with("torch.ops.aten.add.Tensor") == known_releases()
    assert "2.1" not in schemas.releases_with("torch.ops.higher_order.scan")
    assert schemas.releases_with("torch.ops.higher_order.scan")[-1] == known_releases()[-1]
    assert schemas.releases_with("torch.ops.aten.nope.default") == ()


def test_nothing_is_read_before_it_is_needed() -> None:
    """Importing the module reads no data."""
    imports = "import pt2kit.schema.operators as s, pt2kit.operators.schemas, sys"
    code = f"{imports}; sys.exit(s._table.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten.relu", "; there is aten.relu.default, aten.relu.out"),
        ("relu", "; there is aten.relu.default, aten.relu.out"),
        ("relu.out", "; there is aten.relu.out"),
        ("aten.rellu.default", "; did you mean aten.relu or aten.rrelu or aten.relu_?"),
        ("lu", ""),
    ],
)
def test_similar(name: str, expected: str) -> None:
    """A name without an overload, a namespace or a letter leads to the overloads that exist."""
    assert schemas.similar(name, operators_of("2.13")) == expected
