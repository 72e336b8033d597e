"""Which record names are accepted."""

from __future__ import annotations

import pytest

from pt2kit.errors import ArchiveError
from pt2kit.zip.chosen_names import collision_key, decode_name, encode_name, name_problem, show_name

GOOD = ["a", "m/.data/version", "m/extra/a b", "m/é", "m/..x", "m/x..", "m/...", "1:2", "m/weight:0", "m/\n", "ab:c"]
BAD = {
    "": "is empty",
    "/a": "is absolute",
    "//a": "is absolute",
    "a//b": "component ''",
    "a/": "component ''",
    "a/./b": "component '.'",
    "./a": "component '.'",
    "a/..": "component '..'",
    "../a": "component '..'",
    "a\\b": "backslash",
    "a\0b": "NUL",
    "C:/a": "drive letter 'C:'",
    "c:a": "drive letter 'c:'",
    "m/extra/C:x": "drive letter 'C:'",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_names(name: str) -> None:
    """A relative path is accepted as it is, in both directions."""
    assert name_problem(name) is None
    assert decode_name(encode_name(name, "here"), "here") == name


@pytest.mark.parametrize("name", BAD)
def test_bad_names(name: str) -> None:
    """A name that could mean another file is refused, with what is wrong with it, both when read and when written."""
    with pytest.raises(ArchiveError, match=r"^here: expected a relative record name, got .*\[A6\]$") as caught:
        encode_name(name, "here")
    assert BAD[name] in str(caught.value)
    if name != "a/":
        with pytest.raises(ArchiveError) as caught:
            decode_name(name.encode(), "here")
        assert BAD[name] in str(caught.value)
        assert caught.value.rule == "A6"


def test_a_folder_keeps_its_slash() -> None:
    """Packing tools write folders as names with a closing slash; a lone slash is no folder."""
    assert decode_name(b"m/sub/", "here") == "m/sub/"
    with pytest.raises(ArchiveError, match="is absolute"):
        decode_name(b"/", "here")


def test_names_are_utf8() -> None:
    """Bytes that are not UTF-8, and text that UTF-8 cannot hold, are refused."""
    with pytest.raises(ArchiveError, match=r"in UTF-8, got b'a\\xff' \[A6\]"):
        decode_name(b"a\xff", "here")
    with pytest.raises(ArchiveError, match="a surrogate, which UTF-8 has no bytes for"):
        encode_name("a\ud800", "here")


@pytest.mark.parametrize(
    ("one", "other"),
    [("a/B", "A/b"), ("straße", "STRASSE"), ("m/e\u0301", "m/\u00e9"), ("Ω", "ω"), ("sub/", "SUB")],
)
def test_collisions(one: str, other: str) -> None:
    """Names that some file system takes for one have one key."""
    assert collision_key(one) == collision_key(other)
    assert collision_key(one) != collision_key(other + "x")


def test_shown_names_are_printable() -> None:
    """A message cannot be made to move the cursor or break a line."""
    assert show_name("m/é") == "m/é"
    assert show_name("m/\x1b[2J\n") == "'m/\\x1b[2J\\n'"
    assert show_name("x" * 70_000) == f"'{'x' * 200}…' (70000 characters)"
