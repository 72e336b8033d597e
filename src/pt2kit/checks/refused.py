"""Operators that reach outside a program, or that trust their arguments with memory: name -> why (rule X10).

torch calls them like any other operator. `pt2kit.load` refuses a program that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pt2kit.checks.targets import plain_target

_FILES: Final = "it reads or writes files"
_UNCHECKED: Final = "it trusts its arguments with memory that they may not have"
_PROCESS: Final = "it changes the state of the process"
_KERNEL: Final = "the source of its kernel is not in the file"

_BY_REASON: Final = {
    _FILES: (
        "aten.from_file", "image.read_file", "image.write_file", "torchaudio.sox_io_load_audio_file",
        "torchaudio.sox_io_save_audio_file", "torchaudio.sox_io_get_info",
        "torchaudio.sox_effects_apply_effects_file", "torchcodec_ns.create_from_file",
        "torchcodec_ns.encode_audio_to_file", "torchcodec_ns.encode_video_to_file",
        "video_reader.read_video_from_file", "video_reader.probe_video_from_file",
    ),
    _UNCHECKED: (
        "aten._sparse_coo_tensor_unsafe", "aten._sparse_coo_tensor_with_dims_and_tensors",
        "aten._sparse_compressed_tensor_unsafe", "aten._sparse_csr_tensor_unsafe", "aten._sparse_csc_tensor_unsafe",
        "aten._sparse_bsr_tensor_unsafe", "aten._sparse_bsc_tensor_unsafe", "aten._nested_view_from_buffer",
        "aten._nested_view_from_buffer_copy", "aten._reshape_alias", "aten._reshape_alias_copy", "aten.set_",
        "aten.set", "aten.set_data",
    ),
    _PROCESS: ("aten._cufft_set_plan_cache_max_size", "aten._cufft_clear_plan_cache"),
    "it gives addresses": ("mkldnn.data_ptr",),
    _KERNEL: ("higher_order.triton_kernel_wrapper_functional", "higher_order.triton_kernel_wrapper_mutation"),
    "it runs a compiled library": ("higher_order.aoti_call_delegate",),
    "it runs a compiled program": ("higher_order.executorch_call_delegate",),
}  # fmt: skip
REFUSED_OPERATORS: Final[Mapping[str, str]] = MappingProxyType(
    {name: reason for reason, found in _BY_REASON.items() for name in found}
)
"""Operator, without overload -> why a file should not call it."""

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
"""Namespace -> why a file should not call any operator in it."""


def refusal(target: str) -> str | None:
    """Why a file should not call an operator ("torch.ops.aten.from_file.default"); None where nothing is against it."""
    parts = plain_target(target).split(".")
    if parts[:2] != ["torch", "ops"] or len(parts) < 4:
        return None
    return REFUSED_OPERATORS.get(f"{parts[2]}.{parts[3]}") or REFUSED_NAMESPACES.get(parts[2])
