"""Operators by what becomes of the elements of their arguments: kept, kept in another shape, made a part.

All are without overload: "clone". `provenance.py` follows values through them.
"""

from __future__ import annotations

from typing import Final

SAME: Final = frozenset(
    (
        "alias", "alias_copy", "clone", "contiguous", "detach", "detach_copy", "lift_fresh",
        "lift_fresh_copy", "positive", "resolve_conj", "resolve_neg", "to", "_to_copy", "detach_",
    )
)  # fmt: skip
"""Operators, without overload, that give the elements of their first argument in the same shape."""
RESHAPED: Final = frozenset(
    (
        "_unsafe_view", "flatten", "movedim", "permute", "permute_copy", "reshape", "squeeze", "squeeze_copy", "t",
        "t_copy", "transpose", "transpose_copy", "unflatten", "unsqueeze", "unsqueeze_copy", "view", "view_as",
        "view_copy",
    )
)  # fmt: skip
"""Operators, without overload, that give the elements of their first argument in another shape."""
FILLED: Final = frozenset(
    (
        "full", "full_like", "new_full", "ones", "ones_like", "new_ones", "zeros", "zeros_like", "new_zeros",
    )
)  # fmt: skip
"""Operators, without overload, that fill a tensor with one number, `fill_value` where they are told which."""
PARTS: Final = frozenset(
    (
        "_indices", "_values", "ccol_indices", "col_indices", "crow_indices", "indices", "row_indices", "values",
    )
)  # fmt: skip
"""Operators, without overload, that give a part of a sparse tensor, which stays its part."""
SPARSE: Final = frozenset(
    (
        "_sparse_coo_tensor_unsafe", "_sparse_coo_tensor_with_dims_and_tensors", "_sparse_compressed_tensor_unsafe",
        "_sparse_csr_tensor_unsafe", "_sparse_csc_tensor_unsafe", "_sparse_bsr_tensor_unsafe",
        "_sparse_bsc_tensor_unsafe", "sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor",
        "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
    )
)  # fmt: skip
"""Operators, without overload, that make a sparse tensor of tensors, which become its parts."""
BECOME_PARTS: Final = (
    "indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices", "compressed_indices",
    "plain_indices",
)  # fmt: skip
"""Arguments of those operators that become parts."""
ITSELF: Final = frozenset(
    ("detach_", "type_as", "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "to_dense")
)
"""Operators, without overload, that may give their argument itself, though their schema does not say so."""
PASSING: Final = frozenset(
    (
        "cond", "invoke_subgraph", "strict_mode", "tag_activation_checkpoint", "wrap", "wrap_activation_checkpoint",
        "wrap_with_autocast", "wrap_with_set_grad_enabled", "hints_wrapper",
    )
)  # fmt: skip
"""Higher-order operators that pass their last values to each subgraph once, as they are."""
