"""Known targets of calls: operators of torch's dispatcher, and functions that export itself writes.

Everything else that torch would find, it finds by walking from attribute to attribute, wherever the name leads.

Source: `Verifier` in torch/_export/verifier.py, 2.13, for the functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_DISPATCHER: Final = re.compile(r"torch\.ops\.\w+(\.\w+){0,2}")
HIGHER_ORDER: Final = "torch.ops.higher_order."
_DEFINED: Final = "torch._higher_order_ops."
_UNARY: Final = (
    *("_operator.abs", "_operator.neg", "_operator.not_", "_operator.pos", "math.ceil", "math.floor", "math.trunc"),
    *("torch.sym_float", "torch.sym_int", "torch.sym_not", "torch.sym_sqrt", "torch.sym_sum"),
    *("torch._sym_acos", "torch._sym_asin", "torch._sym_atan", "torch._sym_cos", "torch._sym_cosh", "torch._sym_log2"),
    *("torch._sym_sin", "torch._sym_sinh", "torch._sym_sqrt", "torch._sym_tan", "torch._sym_tanh"),
)
_BINARY: Final = (
    *("add", "and_", "eq", "floordiv", "ge", "getitem", "gt", "le", "lshift", "lt", "mod", "mul", "ne", "or_", "pow"),
    *("rshift", "sub", "truediv"),
)
_COUNTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        **dict.fromkeys(_UNARY, (1, 1)),
        **{f"_operator.{name}": (2, 2) for name in _BINARY},
        "torch.sym_max": (2, 2),
        "torch.sym_min": (2, 2),
        "torch.sym_ite": (3, 3),
        "builtins.round": (1, 2),
    }
)
"""Functions over numbers -> how many arguments they take, at least and at most."""

_BY_MODULE: Final = {
    "torch._functorch.predispatch": (
        "_add_batch_dim", "_enter_dual_level", "_exit_dual_level", "_jvp_decrement_nesting", "_jvp_increment_nesting",
        "_make_dual", "_remove_batch_dim", "_unpack_dual", "_unwrap_for_grad", "_vmap_decrement_nesting",
        "_vmap_increment_nesting", "lazy_load_decompositions",
    ),
    "torch._C": ("_set_grad_enabled",),
    "torch.amp.autocast_mode": ("_enter_autocast", "_exit_autocast"),
    "torch.fx.experimental.symbolic_shapes": ("cast_symbool_to_symint_guardless",),
}  # fmt: skip
_FUNCTIONS: Final = frozenset(_COUNTS) | {f"{module}.{name}" for module, names in _BY_MODULE.items() for name in names}


def plain_target(target: str) -> str:
    """Return a target in the one spelling that every rule about operators uses.

    Higher-order operators are also reached through the modules that define them
    ("torch._higher_order_ops.triton_kernel_wrap.print"): what counts is their name.
    """
    if target.startswith(_DEFINED):
        return f"{HIGHER_ORDER}{target.rpartition('.')[2]}"
    return target


def higher_order_name(target: str) -> str | None:
    """Return the name of a higher-order operator ("cond"), in any spelling; None for other targets."""
    plain = plain_target(target)
    return plain.removeprefix(HIGHER_ORDER) if plain.startswith(HIGHER_ORDER) else None


def is_usual(target: str) -> bool:
    """Return whether a target is an operator of the dispatcher, a function that export writes, or an extension
    ("#ns:op")."""
    return bool(_DISPATCHER.fullmatch(target)) or target in _FUNCTIONS or target.startswith("#")


def argument_counts(target: str) -> tuple[int, int] | None:
    """Return the least and the greatest number of arguments of a function over numbers; None for any other target."""
    return _COUNTS.get(target)
