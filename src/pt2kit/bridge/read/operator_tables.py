"""Which higher-order operators and plain functions a file may name: only what is listed here.

Operators are the other way round: everything the dispatcher knows may be called, except what `checks.refused` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pt2kit.bridge.callables import PLAIN_FUNCTIONS
from pt2kit.bridge.torch_names import FUNCTIONS, NUMBER_FUNCTIONS

__all__ = ["FUNCTIONS", "HIGHER_ORDER", "SYMBOLIC", "words"]


def words(text: str) -> frozenset[str]:
    """The words of a text, which is how long lists of names are written in these modules."""
    return frozenset(text.split())


HIGHER_ORDER: Final = words(
    """
    associative_scan auto_functionalized auto_functionalized_v2 call_torchbind cond flex_attention
    flex_attention_backward foreach_map hints_wrapper invoke_quant invoke_quant_packed
    invoke_subgraph local_map_hop map map_impl out_dtype print run_const_graph
    scan strict_mode tag_activation_checkpoint while_loop while_loop_stack_output with_effects wrap
    wrap_activation_checkpoint wrap_with_autocast wrap_with_set_grad_enabled
    """
)
"""Higher-order operators that a file may call: they run subgraphs and operators that are checked themselves."""

SYMBOLIC: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType({**PLAIN_FUNCTIONS, **NUMBER_FUNCTIONS})
"""Target -> function over numbers; its one result is a number or a truth value."""
