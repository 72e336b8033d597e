"""What a node calls -> whether torch finds it through the dispatcher or among the functions that export itself writes.

Everything else that torch would find, it finds by walking from attribute to attribute, wherever the name leads.

Source: `Verifier` in torch/_export/verifier.py, 2.13, for the functions.
"""

from __future__ import annotations

import re
from typing import Final

_DISPATCHER: Final = re.compile(r"torch\.ops\.\w+(\.\w+){0,2}")
_BY_MODULE: Final = {
    "_operator": (
        "abs", "add", "and_", "eq", "floordiv", "ge", "getitem", "gt", "le", "lshift", "lt", "mod", "mul", "ne",
        "neg", "not_", "or_", "pos", "pow", "rshift", "sub", "truediv",
    ),
    "math": ("ceil", "floor", "trunc"),
    "builtins": ("round",),
    "torch": (
        "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
        "_sym_acos", "_sym_asin", "_sym_atan", "_sym_cos", "_sym_cosh", "_sym_log2", "_sym_sin", "_sym_sinh",
        "_sym_sqrt", "_sym_tan", "_sym_tanh",
    ),
    "torch._functorch.predispatch": (
        "_add_batch_dim", "_enter_dual_level", "_exit_dual_level", "_jvp_decrement_nesting", "_jvp_increment_nesting",
        "_make_dual", "_remove_batch_dim", "_unpack_dual", "_unwrap_for_grad", "_vmap_decrement_nesting",
        "_vmap_increment_nesting", "lazy_load_decompositions",
    ),
    "torch._C": ("_set_grad_enabled",),
    "torch.amp.autocast_mode": ("_enter_autocast", "_exit_autocast"),
    "torch.fx.experimental.symbolic_shapes": ("cast_symbool_to_symint_guardless",),
}  # fmt: skip
_FUNCTIONS: Final = frozenset(f"{module}.{name}" for module, names in _BY_MODULE.items() for name in names)


def is_usual(target: str) -> bool:
    """Whether a target is an operator of the dispatcher, a function that export writes, or an extension ("#ns:op")."""
    return bool(_DISPATCHER.fullmatch(target)) or target in _FUNCTIONS or target.startswith("#")
