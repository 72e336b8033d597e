"""Names that end up in generated source: what passes, what is refused, and keywords inside paths."""

from __future__ import annotations

import copy
import pickle

import pytest

from pt2kit.bridge.read.names import KeywordPath, attribute_path, check_path, check_variable
from pt2kit.errors import GraphError, OperatorError

VARIABLES = ["x", "_1", "p_0_weight", "input", "größe", "torch", "x" * 10_000]
NO_VARIABLES = [
    "",
    "1x",
    "a b",
    "a.b",
    "for",
    "None",
    "self",
    "x=open('m')",
    "x\n",
    "x)",
    "a\u00adb",
    "ﬁ",
    "x" * 10_001,
]
PATHS = ["weight", "0.weight", "class.weight", "a-b.c", "mid 1.w", "ü.x", "a.graph", "a.code.w", "print", "torch"]
NO_PATHS = ["", "a..b", ".a", 'a"b', "a\\b", "a\nb", "a\u2028b", "__class__", "a.__dict__", "forward", "a.forward"]
NO_PATHS += ["_guards_fn", "recompile", "x" * 10_001, "graph.w", "type.weight", "a.type", "training", "code", "self"]
NO_PATHS += ["_in_spec.w", "a.ﬁ", "a.forward.w", "state_dict", "meta"]


@pytest.mark.parametrize("name", VARIABLES)
def test_variables(name: str) -> None:
    """Identifiers pass."""
    check_variable(name, "here")


@pytest.mark.parametrize("name", NO_VARIABLES)
def test_no_variables(name: str) -> None:
    """Everything else is refused, by the error that the caller chose, on one line."""
    with pytest.raises(GraphError, match=r"^here: expected an identifier that is no keyword of Python, got "):
        check_variable(name, "here")
    with pytest.raises(OperatorError) as error:
        check_variable(name, "here", OperatorError)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("path", PATHS)
def test_paths(path: str) -> None:
    """Dotted paths pass, whatever text their parts are."""
    check_path(path, "here")


@pytest.mark.parametrize("path", NO_PATHS)
def test_no_paths(path: str) -> None:
    """Parts that would break out of quotes, or hide what modules have, are refused."""
    with pytest.raises(GraphError, match=r"^here: expected (names|a name) ") as error:
        check_path(path, "here")
    assert str(error.value).isprintable()


def test_keywords() -> None:
    """A path with keywords is equal to its text, and its keywords are no identifiers."""
    path = attribute_path("a.class.weight")
    assert path == "a.class.weight"
    assert hash(path) == hash("a.class.weight")
    assert [part.isidentifier() for part in path.split(".")] == [True, False, True]
    assert [part.isidentifier() for part in path.rsplit(".", 1)] == [False, True]
    for other in (copy.deepcopy(path), pickle.loads(pickle.dumps(path))):
        assert type(other) is KeywordPath
    assert type(attribute_path("a.b")) is str
