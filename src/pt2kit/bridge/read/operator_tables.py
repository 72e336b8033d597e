"""Which higher-order operators and plain functions a file may name: only what is listed here.

Operators are the other way round: everything the dispatcher knows may be called, except what `checks.refused` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import torch
from torch._functorch import predispatch
from torch.amp import autocast_mode
from torch.fx.experimental.symbolic_shapes import cast_symbool_to_symint_guardless

from pt2kit.bridge.targets import PLAIN_FUNCTIONS


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

_PREDISPATCH: Final = words(
    "_add_batch_dim _remove_batch_dim _vmap_increment_nesting _vmap_decrement_nesting lazy_load_decompositions "
    "_make_dual _unpack_dual _jvp_increment_nesting _jvp_decrement_nesting _unwrap_for_grad _enter_dual_level "
    "_exit_dual_level"
)

SYMBOLIC: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        **PLAIN_FUNCTIONS,
        **{
            f"torch._sym_{name}": vars(torch)[f"_sym_{name}"]
            for name in words("acos asin atan cos cosh log2 sin sinh sqrt tan tanh")
        },
        "torch.sym_sqrt": torch.sym_sqrt,
    }
)
"""Target -> function over numbers; its one result is a number or a truth value."""

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        **{f"torch._functorch.predispatch.{name}": vars(predispatch)[name] for name in sorted(_PREDISPATCH)},
        "torch._C._set_grad_enabled": torch._C._set_grad_enabled,
        "torch.amp.autocast_mode._enter_autocast": autocast_mode._enter_autocast,
        "torch.amp.autocast_mode._exit_autocast": autocast_mode._exit_autocast,
        "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless": cast_symbool_to_symint_guardless,
    }
)
"""Target -> other functions of torch that export puts into graphs it has not finished (vmap, jvp, autocast regions).

Source: `Verifier` in torch/_export/verifier.py, 2.13. The one that applies a custom autograd function is left out: it
takes the class to apply from its arguments.
"""
