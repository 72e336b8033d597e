"""The number that a change demands, and the releases held to it."""

from __future__ import annotations

import pytest
from tests.idl.helpers import table

from pt2kit import schema
from pt2kit.errors import VersionError
from pt2kit.idl.compat import EXCEPTIONS, Change, Level, Verdict, history, next_version, verdict


@pytest.mark.parametrize(
    ("old", "demanded", "new"),
    [
        ("8.20", Level.MINOR, "8.21"),
        ("8.20", Level.MAJOR, "9.1"),
        ("8.20", Level.NONE, "8.20"),
        ("2", Level.MINOR, "2.1"),
        ("5.3-traces", Level.MAJOR, "6.1"),
    ],
)
def test_the_next_number(old, demanded, new):
    """Minors count on, majors start at 1."""
    assert next_version(old, demanded) == new


MINOR, MAJOR = Change("C7", "U.as_e", "an arm is added"), Change("C6", "S.y", "the field is removed")


@pytest.mark.parametrize(
    ("old", "new", "found", "agrees"),
    [
        ("8.20", "8.21", (MINOR,), True),
        ("8.20", "8.25", (MINOR,), True),
        ("8.20", "9.1", (MINOR, MAJOR), True),
        ("8.20", "8.20", (), True),
        ("8.20", "8.20", (MINOR,), False),
        ("8.20", "8.21", (MINOR, MAJOR), False),
        ("8.20", "8.21", (), False),
        ("8.20", "9.1", (MINOR,), False),
        ("8.20", "", (MAJOR,), True),
        ("draft", "1", (MAJOR,), True),
    ],
)
def test_a_number_is_raised_as_demanded(old, new, found, agrees):
    """No less and no more; without two numbers there is nothing to disagree with."""
    assert Verdict(old, new, found).agrees is agrees


def test_the_least_number_follows_from_the_largest_demand():
    """One major change among minor ones decides."""
    assert Verdict("8.20", "", (MINOR, MAJOR)).least == "9.1"
    assert Verdict("8.20", "", (MINOR,)).least == "8.21"
    assert Verdict("", "8.20", (MINOR,)).least == ""


def test_the_older_comes_first():
    """Both numbers are in the message."""
    with pytest.raises(VersionError, match=r"expected the older version first, got 8\.20 and then 8\.2"):
        _ = verdict(table("8.20"), table("8.2")).chosen


def test_the_releases_agree_or_the_reason_is_known():
    """Over the whole history, and no reason stands for a step that agrees."""
    steps = history()
    assert len(steps) == len(schema.LOG)
    differing = {(step.old, step.new): step.exception for step in steps if not step.agrees}
    assert differing == EXCEPTIONS
    assert all(len(reason) > 40 for reason in differing.values())


def test_what_the_exceptions_are_about():
    """The changes that the releases made without saying so."""
    major = {
        (step.old, step.new): [str(one) for one in step.changes if one.level is Level.MAJOR]
        for step in history()
        if not step.agrees
    }
    assert major == {
        ("5.1", "5.3"): ["OptionalTensorArgument.as_tensor: str -> TensorArgument [C12]"],
        ("8.8", "8.14"): ["Program: the struct is removed [C2]", "Model: the struct is removed [C2]"],
        ("5.3-traces", "5.3"): [
            "CoLineInfo: the struct is removed [C2]",
            "CoFileInfo: the struct is removed [C2]",
            "Graph.co_fileinfo_ordered_list: the field is removed [C6]",
        ],
    }
