r"""Redaction of node metadata: keys, paths of the machine on which the program was exported, process addresses.

Of an absolute path, `hide_paths` leaves what two machines have in common:

    .../site-packages/torch/nn/modules/linear.py    site-packages/torch/nn/modules/linear.py   (dist-packages too)
    .../lib/python3.11/asyncio/base_events.py       python/asyncio/base_events.py
    /home/NAME  /Users/NAME  /root                  ~                                          (C:\Users\NAME too)
    /srv/job/x.py                                   .../x.py                                   (other absolute paths)

Two exports of one model differ in the addresses that torch writes. They are removed to compare exports, or numbered to
write reproducible files:

    from_node          "graph_id": 140234…              the graph that a node was in
    from_node          "<function f at 0x7f4e557af920>" the target of a node that called a Python function
    nn_module_stack    140656628115408@1,linear,…       the key of a module without a name of its own
    stack_trace        File "<eval_with_key>.957 from…  how many graphs the process had compiled

Module keys of fewer than `_KEY_DIGITS` digits are names, such as those of `Sequential`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

STACK_TRACE_KEYS = frozenset({"stack_trace"})
PROVENANCE_KEYS = frozenset({"stack_trace", "from_node", "torch_fn", "source_fn_stack", "source_fn"})
METADATA_KEYS = PROVENANCE_KEYS | {"nn_module_stack", "custom"}
"""Every key of node metadata that a torch release wrote."""

_FRAME_FILE = re.compile(r'(?<=File ")[^"\n]*(?=", line )')
# A piece of text that may be a path: a colon ends it (lists of paths, "file.py:12"), except after a drive letter.
_TOKEN = re.compile(r"(?:\b[A-Za-z]:(?=[\\/]))?[^\s\"'`,;:=<>|()\[\]{}]+")
_FILE_PART = re.compile(r"(?:\b[A-Za-z]:(?=[\\/]))?[^:]+")
_WORD_PART = re.compile(r"(?:\b[A-Za-z]:(?=[\\/]))?[^\s:]+")
_GENERATED = re.compile(r"<[^\s/\\]*(?:\s|$)")
_SCHEME = re.compile(r"(?:^|[\s\"'`,;:=<>|()\[\]{}])([A-Za-z][A-Za-z0-9+.-]*):$")
_LONGEST_SCHEME = 32
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
# The slash at the end may be the one at the beginning of the next.
_PACKAGES = re.compile(r"/(?:site|dist)-packages(?=/)")
_STDLIB = re.compile(r"/lib/python\d+(?:\.\d+)?(?=/)")
_HOME = re.compile(r"(?://|[A-Za-z]:)?(?:/home/[^/]+|/[Uu]sers/[^/]+|/root)")

_KEY_DIGITS: Final = 9
_NUMBERS: Final[Mapping[str, tuple[re.Pattern[str], int]]] = MappingProxyType(
    {
        "from_node": (re.compile(r'("graph_id": ?)([0-9]+)'), 1),  # in a JSON string, a backslash precedes the quote
        # A strict export that is exported again prefixes the keys.
        "nn_module_stack": (
            re.compile(rf"((?:^|;)(?:L__self__)*)([0-9]{{{_KEY_DIGITS},}})(?=[@,:])"),
            10 ** (_KEY_DIGITS - 1),
        ),
        "stack_trace": (re.compile(r"(<eval_with_key>\.)([0-9]+)"), 0),
    }
)
"""Key of metadata -> what in its text is a number of the process, and what the first such number becomes."""
_PRINTED: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


def strip_metadata(metadata: Mapping[str, str], keys: Collection[str] = STACK_TRACE_KEYS) -> dict[str, str]:
    """Return a copy of a node's metadata without some keys; the order of the others is kept."""
    return {key: value for key, value in metadata.items() if key not in keys}


def hide_paths(text: str) -> str:
    """Return a text whose absolute paths are cut to the part that is the same on every machine.

    Paths below site-packages or the standard library are kept, of other paths the last part: ".../model.py", and "~"
    for a home folder. Relative paths and URLs are kept. JSON stays JSON: its strings are rewritten one by one. Doing it
    twice changes nothing more.

    Args:
        text: one value of a node's metadata, or any other text.

    Cost: linear in the text.
    """
    return _hide(text, 0)


_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MAX_JSON_IN_JSON = 8


def _hide(text: str, depth: int) -> str:
    if "/" not in text and "\\" not in text:
        return text
    if not (is_json := _is_json(text, depth)):
        text = _FRAME_FILE.sub(lambda file: _part_of(file[0]).sub(lambda path: _hidden(path[0]), file[0]), text)
        text = _TOKEN.sub(_hide_token, text)
        is_json = _is_json(text, depth)  # a path was all that kept it from being JSON, which a second time would find
    return _JSON_STRING.sub(lambda match: _hide_in_string(match.group(), depth), text) if is_json else text


def _is_json(text: str, depth: int) -> bool:
    """Return whether a text is read as JSON: a list, an object or a string, inside of at most seven others."""
    if depth == _MAX_JSON_IN_JSON or text.lstrip()[:1] not in ("[", "{", '"'):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _hide_in_string(literal: str, depth: int) -> str:
    value = json.loads(literal, strict=False)
    hidden = _hide(value, depth + 1)
    return literal if hidden == value else json.dumps(hidden)


def _part_of(file: str) -> re.Pattern[str]:
    """Return what a path is in the file of a frame: a word, if "<eval_with_key>.12 from /a/b.py:150 in wrapped" names
    generated code and its maker. Its first word has no slash, so it is still there once paths are hidden."""
    return _WORD_PART if _GENERATED.match(file) else _FILE_PART


def _hide_token(match: re.Match[str]) -> str:
    path = match.group()
    if path.startswith("//") and _is_after_scheme(match.string, match.start()):
        return path  # the rest of a URL
    parts = [part for part in re.split(r"[\\/]", path) if part]
    return _hidden(path) if len(parts) > 1 or _DRIVE.match(path) else path


def _is_after_scheme(text: str, end: int) -> bool:
    """Return whether "https:" comes before a position, by itself: not "file:", nor the end of a path, which may be
    hidden."""
    scheme = _SCHEME.search(text[max(0, end - _LONGEST_SCHEME) : end])
    return scheme is not None and scheme[1].lower() != "file"


def _hidden(path: str) -> str:
    """Return the neutral form of an absolute path, or of one inside an installation; another path as it is."""
    plain = path.replace("\\", "/")
    if (installed := _installed(plain)) is not None:
        return installed
    if not plain.startswith("/") and not _DRIVE.match(path):
        return path
    if _HOME.fullmatch(plain.rstrip("/")):
        return "~"
    last = plain.rstrip("/").rpartition("/")[2]
    return f".../{last}" if last else path


def _installed(plain: str) -> str | None:
    """Return the part of a path below site-packages or the standard library, None for a path outside both."""
    root, end = "", 0
    for name, pattern in (("site-packages", _PACKAGES), ("python", _STDLIB)):
        for match in pattern.finditer(plain):
            if match.end() > end:
                root, end = name, match.end()
    return root + plain[end:] if root else None


def without_addresses(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return a node's metadata with 0 for each number of the process; two exports of one model agree in it.

    Args:
        metadata: texts by key, of one node.
    """
    return _changed(metadata, lambda key, number: "0")


class AddressNumbers:
    """Numbers for the addresses in the metadata of one program, in the order of their first occurrence.

    Numbering the result again in the same order changes nothing.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {key: {} for key in _NUMBERS}

    def numbered(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """Return a node's metadata with numbers for addresses.

        Args:
            metadata: texts by key; those of a program's nodes are passed in their order.
        """
        return _changed(metadata, self._number)

    def _number(self, key: str, number: str) -> str:
        known = self._known[key]
        return known.setdefault(number, str(_NUMBERS[key][1] + len(known)))


def _changed(metadata: Mapping[str, str], replace: Callable[[str, str], str]) -> dict[str, str]:
    """Return metadata with numbers of its own instead of those of the process, and without printed addresses."""
    new = dict(metadata)
    for key, (pattern, _) in _NUMBERS.items():
        if text := metadata.get(key):
            new[key] = pattern.sub(lambda match, key=key: match[1] + replace(key, match[2]), text)  # type: ignore[misc]
    if "from_node" in new:
        new["from_node"] = _PRINTED.sub("", new["from_node"])
    return new
