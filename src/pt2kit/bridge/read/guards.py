"""`guards_code` -> the same texts, proven to be conditions on the inputs and nothing else before torch runs them.

torch writes more guards itself when a program becomes a module: from the structure of the example inputs, whose keys
it pastes into source, and from inputs that are constants, whose texts it pastes as well. `can_be_guarded` says
whether that is safe; a program without example inputs gets no such guards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pt2kit import signature as twin
from pt2kit.bridge.read.names import is_pasted_safely
from pt2kit.bridge.read.refusals import refused
from pt2kit.bridge.torch_names import pytree
from pt2kit.errors import Pt2Error
from pt2kit.symbols.guards import parse_guard

RULE: Final = "X4"


def check_guards(guards: Sequence[str], where: str = "$.guards_code") -> list[str]:
    """The guards of a program, each read by `pt2kit.symbols.parse_guard`'s grammar.

    Raises:
        ExpressionError: an entry is no such condition.
        LimitError: it is larger than an expression may be.
    """
    for index, text in enumerate(guards):
        try:
            parse_guard(text, where=f"{where}[{index}]")
        except Pt2Error as error:
            message = str(error).removesuffix(f" [{error.rule}]")
            raise refused(type(error), message, RULE) from error
    return list(guards)


def can_be_guarded(example_inputs: Any, inputs: Iterable[twin.InputSpec]) -> bool:
    """Whether torch can write guards from these inputs without changing what its source means.

    Args:
        example_inputs: arguments and keyword arguments, live.
        inputs: of the signature; constants among them are pasted.

    Source: `_convert_guards_code_to_fn` and `_get_input_guards_for_graph` in torch/export/_unlift.py, 2.13.
    """
    for spec in inputs:
        value = spec.arg.value if isinstance(spec.arg, twin.ConstantArgument) else None
        if isinstance(value, str) and value and not is_pasted_safely(value):
            return False
    return all(_is_plain_step(step) for path, _ in pytree.tree_leaves_with_path(example_inputs) for step in path)


def _is_plain_step(step: Any) -> bool:
    """Whether a step on the path to an input is written as an index, an attribute, or a key of plain literals."""
    if isinstance(step, pytree.SequenceKey):
        return type(step.idx) is int
    if isinstance(step, pytree.GetAttrKey):
        return isinstance(step.name, str) and step.name.isidentifier()
    return isinstance(step, pytree.MappingKey) and _is_plain_key(step.key)


def _is_plain_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(_is_plain_key(part) for part in key)
    if type(key) is str:
        return not key or is_pasted_safely(key)
    return key is None or type(key) in (int, bool) or (type(key) is float and math.isfinite(key))
