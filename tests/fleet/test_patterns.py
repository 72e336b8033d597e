"""Patterns match what they say, name by name, and know what can hold a match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pt2kit.fleet.listing import has_wildcard, make_pattern, split_pattern

CASES = (
    ("*.pt2", "a.pt2", True),
    ("*.pt2", "a/b.pt2", False),
    ("**/*.pt2", "b.pt2", True),
    ("**/*.pt2", "a/x/b.pt2", True),
    ("**/*.pt2", "a/b.pt", False),
    ("**", "a/b/c", True),
    ("a/**", "a/b/c", True),
    ("a/**/c/*.pt2", "a/c/m.pt2", True),
    ("a/**/c/*.pt2", "a/b/c/c/m.pt2", True),
    ("a/**/c/*.pt2", "a/b/m.pt2", False),
    ("m?[0-9].pt2", "mx7.pt2", True),
    ("m?[0-9].pt2", "mx.pt2", False),
    ("*/*.pt2", "team/m.pt2", True),
)


@pytest.mark.parametrize(("pattern", "path", "matches"), CASES)
def test_matches(pattern: str, path: str, matches: bool) -> None:
    """A path matches or not, and what leads to a match is never left out on the way."""
    compiled = make_pattern(pattern)
    assert compiled.is_match(compiled.follow(path.split("/"))) is matches
    if matches:
        names = path.split("/")
        assert all(compiled.goes_on(compiled.follow(names[:count])) for count in range(len(names)))


NAMES = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5)
PARTS = st.lists(st.sampled_from(["**", "*", "a", "a*", "?"]), min_size=1, max_size=5)


@given(NAMES, PARTS)
def test_same_as_trying_all_ways(names: list[str], parts: list[str]) -> None:
    """The matcher agrees with the definition: `**` stands for any number of names, other parts for one."""
    import fnmatch

    def fits(names: list[str], parts: list[str]) -> bool:
        if not parts:
            return not names
        if parts[0] == "**":
            return any(fits(names[count:], parts[1:]) for count in range(len(names) + 1))
        return bool(names) and fnmatch.fnmatchcase(names[0], parts[0]) and fits(names[1:], parts[1:])

    compiled = make_pattern("/".join(parts))
    assert compiled.is_match(compiled.follow(names)) is fits(names, parts)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("models/**/*.pt2", ("models", "**/*.pt2")),
        ("*.pt2", ("", "*.pt2")),
        ("/*.pt2", ("/", "*.pt2")),
        ("/a/b*/c", ("/a", "b*/c")),
        ("s3://bucket/**", ("s3://bucket", "**")),
        ("s3://bucket/x/*.pt2", ("s3://bucket/x", "*.pt2")),
    ],
)
def test_fixed_beginning(target: str, expected: tuple[str, str]) -> None:
    """A pattern is divided where its first wildcard is."""
    assert split_pattern(target) == expected


def test_question_marks_of_the_web() -> None:
    """In an address of the web, what comes after `?` is a query, and brackets are not wildcards."""
    assert not has_wildcard("https://host/a.pt2?x=*")
    assert not has_wildcard("https://[::1]/a.pt2")
    assert has_wildcard("https://host/m/*.pt2")
    assert has_wildcard("s3://b/a?.pt2")
