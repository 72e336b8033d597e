"""Process addresses in node metadata: remove them to compare exports, number them to write reproducible files.

Two exports of one model differ in the addresses that torch writes:

    from_node          "graph_id": 140234…              the graph that a node was in
    from_node          "<function f at 0x7f4e557af920>" the target of a node that called a Python function
    nn_module_stack    140656628115408@1,linear,…       the key of a module without a name of its own
    stack_trace        File "<eval_with_key>.957 from…  how many graphs the process had compiled

Module keys of fewer than `_KEY_DIGITS` digits are names, such as those of `Sequential`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

_KEY_DIGITS: Final = 9
_NUMBERS: Final[Mapping[str, tuple[re.Pattern[str], int]]] = MappingProxyType(
    {
        "from_node": (re.compile(r'("graph_id": ?)([0-9]+)'), 1),  # in a JSON string, a backslash precedes the quote
        "nn_module_stack": (re.compile(rf"((?:^|;))([0-9]{{{_KEY_DIGITS},}})(?=[@,:])"), 10 ** (_KEY_DIGITS - 1)),
        "stack_trace": (re.compile(r"(<eval_with_key>\.)([0-9]+)"), 0),
    }
)
"""Key of metadata -> what in its text is a number of the process, and what the first such number becomes."""
_PRINTED: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


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
