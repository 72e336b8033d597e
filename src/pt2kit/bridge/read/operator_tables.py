"""Which operators, higher-order operators and plain functions a file may name, and which it may not, with the reason.

Everything the dispatcher knows may be called, except what is listed here: operators that reach outside the program,
and operators that trust their arguments with memory. Higher-order operators and functions are the other way round:
only what is listed here may be called.
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


_FILES = "it reads or writes files"
_UNCHECKED = "it trusts its arguments with memory that they may not have"
_UNWRITTEN = "it gives memory that nothing was written to"
_PROCESS = "it changes the state of the process"

REFUSED_OPERATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "aten::from_file": _FILES,
        "image::read_file": _FILES,
        "image::write_file": _FILES,
        "torchaudio::sox_io_load_audio_file": _FILES,
        "torchaudio::sox_io_save_audio_file": _FILES,
        "torchaudio::sox_io_get_info": _FILES,
        "torchaudio::sox_effects_apply_effects_file": _FILES,
        "torchcodec_ns::create_from_file": _FILES,
        "torchcodec_ns::encode_audio_to_file": _FILES,
        "torchcodec_ns::encode_video_to_file": _FILES,
        "video_reader::read_video_from_file": _FILES,
        "video_reader::probe_video_from_file": _FILES,
        "aten::_sparse_coo_tensor_unsafe": _UNCHECKED,
        "aten::_sparse_coo_tensor_with_dims_and_tensors": _UNCHECKED,
        "aten::_sparse_compressed_tensor_unsafe": _UNCHECKED,
        "aten::_sparse_csr_tensor_unsafe": _UNCHECKED,
        "aten::_sparse_csc_tensor_unsafe": _UNCHECKED,
        "aten::_sparse_bsr_tensor_unsafe": _UNCHECKED,
        "aten::_sparse_bsc_tensor_unsafe": _UNCHECKED,
        "aten::_nested_view_from_buffer": _UNCHECKED,
        "aten::_nested_view_from_buffer_copy": _UNCHECKED,
        "aten::_reshape_alias": _UNCHECKED,
        "aten::_reshape_alias_copy": _UNCHECKED,
        "aten::set_": _UNCHECKED,
        "aten::set": _UNCHECKED,
        "aten::set_data": _UNCHECKED,
        "aten::resize_": _UNWRITTEN,
        "aten::resize": _UNWRITTEN,
        "aten::resize_as_": _UNWRITTEN,
        "aten::resize_as": _UNWRITTEN,
        "aten::_resize_output_": _UNWRITTEN,
        "aten::_resize_output": _UNWRITTEN,
        "prims::resize": _UNWRITTEN,
        "aten::_cufft_set_plan_cache_max_size": _PROCESS,
        "aten::_cufft_clear_plan_cache": _PROCESS,
        "mkldnn::data_ptr": "it gives addresses",
    }
)
"""Operator, without overload -> why a file may not call it."""

REFUSED_NAMESPACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "inductor": _UNCHECKED,
        "debugprims": _FILES,
        "static_runtime": _UNCHECKED,
        "symm_mem": _UNCHECKED,
        "fsdp": _UNCHECKED,
        "c10d": "it talks to other processes",
    }
)
"""Namespace -> why a file may not call any operator in it."""

HIGHER_ORDER: Final = words(
    """
    associative_scan auto_functionalized auto_functionalized_v2 call_torchbind cond flex_attention
    flex_attention_backward hints_wrapper invoke_subgraph local_map_hop map map_impl out_dtype print run_const_graph
    scan strict_mode tag_activation_checkpoint while_loop while_loop_stack_output with_effects wrap
    wrap_activation_checkpoint wrap_with_autocast wrap_with_set_grad_enabled
    """
)
"""Higher-order operators that a file may call: they run subgraphs and operators that are checked themselves."""

REFUSED_HIGHER_ORDER: Final[Mapping[str, str]] = MappingProxyType(
    {
        "triton_kernel_wrapper_functional": "the source of its kernel is not in the file",
        "triton_kernel_wrapper_mutation": "the source of its kernel is not in the file",
        "aoti_call_delegate": "it runs a compiled library",
        "executorch_call_delegate": "it runs a compiled program",
    }
)
"""Higher-order operators that are refused for a reason of their own."""

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
