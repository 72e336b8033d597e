"""Refuses texts to print that could do more than be read: control characters, formats that look inside."""

from __future__ import annotations

import re
import string
from typing import Final

from msgspec import UNSET

from pt2kit import schema
from pt2kit.bridge.read.refusals import refused
from pt2kit.errors import OperatorError
from pt2kit.graph import Scope, leaves, node_label

RULE: Final = "X12"
MAX_TEXT: Final = 10_000
"""Characters of one text."""

_PRINT: Final = "torch.ops.aten._print.default"
_FORMAT: Final = "torch.ops.higher_order.print"
_FIELD: Final = re.compile(r"[A-Za-z_]\w*|\d*", re.ASCII)
_SPEC: Final = re.compile(r"[^{}\d]?[<>=^]?[ +\-]?#?\d{0,3}[,_]?(?:\.\d{1,3})?[A-Za-z%]?", re.ASCII)


def check_printing(scope: Scope) -> None:
    """Refuse a graph that prints what may not be printed.

    Raises:
        OperatorError: the first node that does.
    """
    for number, node in enumerate(scope.graph.nodes):
        if node.target == _PRINT or node.target.startswith("torch.ops.higher_order."):
            _check(node, f"{scope.where}.nodes[{number}]: node {node_label(node, number)} ({node.target})")


def _check(node: schema.Node, where: str) -> None:
    arguments = [leaf for named in node.inputs for _, leaf in leaves(named.arg)]
    called = {node.target, *(leaf.as_operator for leaf in arguments if leaf.as_operator is not UNSET)}
    if not called & {_PRINT, _FORMAT}:
        return
    for leaf in arguments:
        text = leaf.as_string
        if text is UNSET:
            continue
        if not text.isprintable() or len(text) > MAX_TEXT:
            message = f"{where}: expected one line of printable text to print, got {text[:80]!a}"
            raise refused(OperatorError, message, RULE)
        if _FORMAT in called:
            _check_format(text, where)


def _check_format(text: str, where: str) -> None:
    try:
        fields = [(name, spec) for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise refused(OperatorError, f"{where}: expected a format, got {text[:80]!a}: {error}", RULE) from error
    for name, spec in fields:
        if not _FIELD.fullmatch(name) or not _SPEC.fullmatch(spec or ""):
            message = f"{where}: expected a format of plain names, got {name[:40]!a} in {text[:80]!a}"
            raise refused(OperatorError, message, RULE)
