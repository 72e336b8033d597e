"""What operators do with the elements of their arguments, where their schemas do not say it: one written table.

A schema says which arguments are written and which results share memory. It does not say whether what is written is
also read, whether all of it is written, and which arguments are looked at for their shape and dtype alone. Operators
that are not listed read all elements of all arguments. Names are without overload.

Source: ATen/native and torch/_refs, 2.13.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SOURCES: Final = frozenset(
    (
        "empty", "empty_like", "empty_strided", "empty_permuted", "empty_quantized", "new_empty", "new_empty_strided",
        "_empty_affine_quantized", "_empty_per_channel_affine_quantized",
    )
)  # fmt: skip
"""Operators whose result is memory that nothing was written to."""

RESIZED: Final = frozenset(
    (
        "resize", "resize_", "resize_as", "resize_as_", "_resize_output", "_resize_output_", "sparse_resize",
        "sparse_resize_", "resize_as_sparse", "resize_as_sparse_",
    )
)  # fmt: skip
"""Operators whose result may have more elements than their first argument; nothing is written to those."""

OVERWRITING: Final = frozenset(
    (
        "copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_",
        "log_normal_", "cauchy_", "_no_grad_fill_", "_no_grad_normal_", "_no_grad_uniform_", "_no_grad_zero_",
        "_philox_normal_", "_philox_uniform_", "_fill_mem_eff_dropout_mask_", "_foreach_copy_", "_foreach_zero_",
        "copy_to",
    )
)  # fmt: skip
"""Operators that write all of the argument that their schema says is written, and do not read it."""

UNCHANGED: Final = frozenset(("detach_", "requires_grad_"))
"""Operators whose schema says that they write, and that leave all elements as they are."""

PARTLY: Final = frozenset(
    (
        "index_put_", "_index_put_impl_", "index_copy_", "index_fill_", "scatter_", "masked_fill_", "masked_scatter_",
        "put_", "fill_diagonal_",
    )
)  # fmt: skip
"""Operators that write a part of their first argument, and read nothing of it."""

PARTLY_COPIED: Final = frozenset(
    (
        "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter", "index_put", "_unsafe_index_put",
        "index_copy", "index_fill", "scatter", "masked_fill", "masked_scatter", "put",
    )
)  # fmt: skip
"""Operators whose result is their first argument with a part of it written."""

BROADCAST: Final = frozenset(("masked_fill", "masked_scatter"))
"""Those whose result may be larger than their first argument."""

COPIES: Final = frozenset(
    ("clone", "_to_copy", "lift_fresh_copy", "convert_element_type", "contiguous", "to", "alias_copy", "detach_copy",
     "_to_dense", "type_as")
)  # fmt: skip
"""Operators whose result has the elements of their first argument, each in its place; some give a view at times."""

_LIKE: Final = (
    "empty_like", "full_like", "zeros_like", "ones_like", "rand_like", "randn_like", "randint_like", "new_empty",
    "new_empty_strided", "new_full", "new_zeros", "new_ones", "_new_zeros_with_same_feature_meta",
)  # fmt: skip
_FILLS: Final = (
    "fill", "zero", "uniform", "bernoulli", "exponential", "geometric", "log_normal", "cauchy", "random",
    "normal_functional", "_foreach_zero", "_philox_normal", "_philox_uniform",
)  # fmt: skip
_ASKED: Final = (
    "sym_size", "sym_stride", "sym_numel", "sym_storage_offset", "sym_is_contiguous", "size", "stride", "numel", "dim",
    "is_contiguous", "_shape_as_tensor", "is_same_size", "is_complex", "is_floating_point", "is_signed",
    "_assert_tensor_metadata", "result_type",
)  # fmt: skip
SHAPE_ONLY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (*_LIKE, *_ASKED), frozenset(("self", "a", "tensor", "tensors", "other", "tensor1", "tensor2"))
        ),
        **dict.fromkeys(_FILLS, frozenset(("self",))),
        "copy": frozenset(("self",)),
        "_foreach_copy": frozenset(("self",)),
        **dict.fromkeys(("view_as", "reshape_as", "expand_as", "type_as"), frozenset(("other",))),
    }
)
"""Operator -> the tensors among its arguments of which it uses shape and dtype only.

Overloads that take numbers from another tensor read that one, under another name.
"""

NOT_SHAPE_ONLY: Final = frozenset(
    ("bernoulli.default", "bernoulli.out", "bernoulli.Tensor", "result_type.Scalar_Tensor")
)
"""Overloads that read what the others of that name do not."""

READ_OR_WRITTEN: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "rrelu_with_noise": ("noise", "training"),
        "rrelu_with_noise_": ("noise", "training"),
        "rrelu_with_noise_functional": ("noise", "training"),
    }
)
"""Operator -> an argument that it never reads, and the flag with which it writes all of it."""


def is_source(target: str) -> bool:
    """Whether an operator ("torch.ops.aten.empty.memory_format") brings memory that nothing was written to."""
    parts = target.split(".")
    return len(parts) == 5 and parts[2] in ("aten", "prims") and (parts[3] in SOURCES or parts[3] in RESIZED)
