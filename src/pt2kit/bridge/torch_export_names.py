"""The names of torch that may move and that programs with symbols and fake tensors, or files that are written, need.

As `torch_names.py`, whose table lists these too. They are apart because they bring sympy, torch's serializer and its
compiler with them, which takes longer to import than most programs to run: `load_module` does without.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

import torch
from torch._export.serde import serialize as _serde
from torch._export.serde.schema import SCHEMA_VERSION as _SCHEMA_VERSION
from torch._export.serde.serialize import _reconstruct_fake_tensor as reconstruct_fake_tensor
from torch._guards import SLoc
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table, triton_kernel_wrapper_functional
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ValueRangesSLoc
from torch.utils._sympy import functions as sympy_functions
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges
from torch.utils._traceback import CapturedTraceback
from torch.utils._triton import has_triton

from pt2kit.bridge.torch_names import optional

__all__ = [
    "SCHEMA_VERSION", "SLoc", "ShapeEnv", "ValueRanges", "aoti_call_delegate", "has_triton", "int_oo",
    "kernel_side_table", "reconstruct_fake_tensor", "sympy_functions", "triton_kernel_wrapper_functional",
]  # fmt: skip

SCHEMA_VERSION: Final[tuple[int, int]] = tuple(_SCHEMA_VERSION)
"""(major, minor) of the schema that `torch.export.save` writes."""
WRITES_ORIGINS: Final = hasattr(_serde.GraphModuleSerializer, "_serialize_from_node")
"""Whether `torch.export.save` writes the entry `from_node` of a node's metadata."""

GROUPS_WEIGHTS: Final = optional("torch.export.pt2_archive._package", "_save_pickled_tensors") is not None
"""Whether `torch.export.save` writes weights storage by storage, pickled ones first; else in their own order."""


# Symbols and ranges


def hints(env: ShapeEnv) -> dict[Any, Any]:
    """Expression -> the value it had in the example, as a ShapeEnv keeps it; to be added to."""
    value_by_expression: dict[Any, Any] = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val
    return value_by_expression


def set_range(env: ShapeEnv, symbol: Any, given: ValueRanges, origin: SLoc) -> None:
    """Tell a ShapeEnv the range of a symbol, and where that is from."""
    env._update_var_to_range(symbol, given, ValueRangesSLoc(origin, origin))


def note_symbol(env: ShapeEnv, symbol: Any) -> None:
    """Tell a ShapeEnv where a symbol was made: here."""
    env.var_to_stack[symbol] = CapturedTraceback.extract(skip=1)


def count_from(env: ShapeEnv, kind: str, number: int) -> None:
    """Have the next unbacked symbols of a ShapeEnv begin at least at a number.

    Args:
        kind: "symint" or "symfloat".
    """
    name = f"unbacked_{kind}_counter"
    counter = getattr(env, name)
    if isinstance(counter, int):
        setattr(env, name, max(counter, number))
    else:  # an iterator, which says its next number by giving it away
        setattr(env, name, count(max(next(counter), number)))


def constrain_for_size(env: ShapeEnv, expr: Any) -> None:
    """Tell a ShapeEnv that an expression is a size."""
    env._constrain_range_for_size(expr)


def unbacked_bindings(value: Any, env: ShapeEnv, pending: set[Any]) -> Any:
    """The unbacked symbols that a value brings, with where they are in it; they are taken out of `pending`.

    Storage offsets bring none: torch's reader leaves them out.
    """
    bindings = symbolic_shapes._free_unbacked_symbols_with_path(
        value, (), shape_env=env, pending=set(pending), simplify=True
    )
    bindings = {
        symbol: path for symbol, path in bindings.items() if symbolic_shapes.CallMethodKey("storage_offset") not in path
    }
    pending.difference_update(bindings)
    return bindings


aoti_call_delegate: Final = optional("torch._higher_order_ops", "aoti_call_delegate")
"""A call of code that AOTInductor compiled; None in releases without it."""

# Fake tensors


def make_fake(mode: FakeTensorMode, elem: torch.Tensor, device: torch.device) -> FakeTensor:
    """A fake tensor over a meta tensor."""
    with torch._C._DisableTorchDispatch():
        return FakeTensor(mode, elem, device)


def fake_over(
    elem: torch.Tensor, storage: torch.Tensor, device: torch.device, requires_grad: bool, attributes: dict[str, Any]
) -> torch.Tensor:
    """A fake tensor of the sizes of a meta tensor, over another storage, without the dispatcher.

    Args:
        elem: the meta tensor; its storage becomes that of `storage`.
        storage: a flat meta tensor.
        device, requires_grad: what the fake tensor says of itself.
        attributes: its Python attributes.
    """
    with torch._C._DisableTorchDispatch():
        torch._functionalize_unsafe_set(elem, storage)
        made: torch.Tensor = torch.Tensor._make_subclass(
            FakeTensor, elem, requires_grad, dispatch_device=True, device_for_backend_keys=device
        )
    torch._C._set_throw_on_mutable_data_ptr(made)
    made.__dict__.update(attributes)
    return made
