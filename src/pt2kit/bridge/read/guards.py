"""Validation of `guards_code`: each text is proven to be only a condition on the inputs before torch runs it.

torch writes more guards itself when a program becomes a module: from the structure of the example inputs, whose keys
it pastes into source, and from inputs that are constants, whose texts it pastes as well. `guardable` decides
whether that is safe; a program without example inputs gets no such guards.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Final

from pt2kit import signature as twin
from pt2kit.bridge.read.names import is_pasted_safely
from pt2kit.bridge.read.refusals import refused
from pt2kit.bridge.torch_names import pytree
from pt2kit.checks.growth import MAX_OPEN_POWERS
from pt2kit.errors import LimitError, Pt2Error
from pt2kit.symbols.guards import parse_guard

_LOG: Final = logging.getLogger(__name__)
RULE: Final = "X4"


def check_guards(guards: Sequence[str], where: str = "$.guards_code") -> list[str]:
    """Return the guards of a program, each checked by the grammar of `pt2kit.symbols.parse_guard`.

    Raises:
        ExpressionError: an entry is no such condition.
        LimitError: it is larger than an expression may be.
    """
    open_powers = 0
    for index, text in enumerate(guards):
        try:
            guard = parse_guard(text, where=f"{where}[{index}]")
            open_powers += guard.open_powers
            if open_powers > MAX_OPEN_POWERS:
                raise LimitError(
                    f"{where}: expected at most {MAX_OPEN_POWERS} powers whose exponent is a size, got more"
                )
        except Pt2Error as error:
            message = str(error).removesuffix(f" [{error.rule}]")
            raise refused(type(error), message, RULE) from error
    return list(guards)


def guardable(example_inputs: Any, inputs: Sequence[twin.InputSpec]) -> Any:
    """Return example inputs if torch can write guards from them without changing the meaning of its source, else None.

    Args:
        example_inputs: arguments and keyword arguments, live; or None.
        inputs: of the signature; constants among them are pasted.

    Source: `_convert_guards_code_to_fn` and `_get_input_guards_for_graph` in torch/export/_unlift.py, 2.13.
    """
    if example_inputs is None:
        return None
    constants = [spec.arg.value for spec in inputs if isinstance(spec.arg, twin.ConstantArgument)]
    steps = (step for path, _ in pytree.tree_leaves_with_path(example_inputs) for step in path)
    if all(not value or is_pasted_safely(value) for value in constants if isinstance(value, str)) and all(
        map(_is_plain_step, steps)
    ):
        return example_inputs
    _LOG.warning("example inputs are left out: torch could not write guards from their keys or constants")
    return None


def _is_plain_step(step: Any) -> bool:
    """Return whether a path step to an input is written as an index, an attribute, or a key of plain literals."""
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
