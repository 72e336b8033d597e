"""Private and moving names of torch that programs with symbols and fake tensors need, and files that are written.

They are separate from those in `torch_names.py` because they import sympy, which takes longer than most programs to
run: `load_module` does not need them. Nothing here imports torch's serializer, which imports its compiler.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from types import FunctionType, MappingProxyType
from typing import Any, Final

import torch
from torch._guards import SLoc
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental import _config, symbolic_shapes
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ValueRangesSLoc
from torch.utils._sympy import functions as sympy_functions
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges
from torch.utils._traceback import CapturedTraceback

__all__ = ["SLoc", "ShapeEnv", "ValueRanges", "int_oo", "sympy_functions"]


# The compiler of torch, which is not imported


class _Module:
    """Module of torch that answers some names without being imported; for any other it is imported."""

    def __init__(self, path: str, **known: Any) -> None:
        self.__dict__.update(known)
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._path), name)


_CONFIG: Final = _Module(
    "torch._dynamo.config", fake_tensor_cache_enabled=True, fake_tensor_cache_crosscheck_enabled=False
)
_ANSWERING: Final = MappingProxyType(
    {
        "torch._dynamo.config": _CONFIG,
        "torch.fx.experimental.validator": _Module(
            "torch.fx.experimental.validator", translation_validation_enabled=lambda: False
        ),
    }
)
_TORCH: Final = _Module("torch", _dynamo=_Module("torch._dynamo", config=_CONFIG))


def _is_configured() -> bool:
    """Return whether the user may have configured the answer of `_CONFIG`."""
    return "torch._dynamo.config" in sys.modules or any("FAKE_TENSOR_DISPATCH_CACHE" in name for name in os.environ)


def _without_compiler(function: Any) -> Any:
    """Return a copy of a function of torch which does not import torch's compiler.

    Constructors import it to ask for one setting. In the copy these imports yield objects with the default of that
    setting. Nothing of torch is changed.
    """
    if not isinstance(function, FunctionType):
        return function

    def import_module(name: str, *arguments: Any) -> Any:
        names = arguments[2] if len(arguments) > 2 else None
        if name in _ANSWERING:
            return _ANSWERING[name] if names else _TORCH
        found = __import__(name, *arguments)
        return _TORCH if found is torch else found

    names = {**function.__globals__, "__builtins__": {**vars(builtins), "__import__": import_module}}
    copied = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


# Symbols and ranges


def new_shape_env() -> ShapeEnv:
    """Return a new ShapeEnv as torch's reader makes one."""
    if _config.translation_validation:
        return ShapeEnv(assume_static_by_default=True)
    env = ShapeEnv.__new__(ShapeEnv)
    vars(env)["_init"] = partial(_without_compiler(ShapeEnv._init), env)
    _without_compiler(ShapeEnv.__init__)(env, assume_static_by_default=True)
    del vars(env)["_init"]
    return env


def new_fake_mode(env: ShapeEnv) -> FakeTensorMode:
    """Return a new FakeTensorMode as torch's reader makes one."""
    mode = FakeTensorMode.__new__(FakeTensorMode)
    initialize = FakeTensorMode.__init__ if _is_configured() else _without_compiler(FakeTensorMode.__init__)
    initialize(mode, allow_fallback_kernels=False, allow_non_fake_inputs=True, shape_env=env)
    return mode


@contextmanager
def without_stacks(env: ShapeEnv, origin: SLoc) -> Iterator[None]:
    """Make a ShapeEnv record `origin` as the place of guards inside a block, and not log them.

    It would search the stack for a frame of the user, and import torch's compiler to recognize torch's frames.
    """
    own = {"_get_sloc": lambda *arguments, **options: origin, "_log_guard": lambda *arguments, **options: None}
    vars(env).update(own)
    try:
        yield
    finally:
        for name in own:
            del vars(env)[name]


def hints(env: ShapeEnv) -> dict[Any, Any]:
    """Return the example value of each expression, as a ShapeEnv keeps it; callers add to it."""
    value_by_expression: dict[Any, Any] = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val
    return value_by_expression


def set_range(env: ShapeEnv, symbol: Any, given: ValueRanges, origin: SLoc) -> None:
    """Set the range of a symbol in a ShapeEnv, and the origin of the range."""
    env._update_var_to_range(symbol, given, ValueRangesSLoc(origin, origin))


def note_symbol(env: ShapeEnv, symbol: Any) -> None:
    """Record in a ShapeEnv that a symbol was made at this place."""
    env.var_to_stack[symbol] = CapturedTraceback.extract(skip=1)


def count_from(env: ShapeEnv, kind: str, number: int) -> None:
    """Make the next unbacked symbols of a ShapeEnv begin at least at a number.

    Args:
        kind: "symint" or "symfloat".
    """
    name = f"unbacked_{kind}_counter"
    counter = getattr(env, name)
    if isinstance(counter, int):
        setattr(env, name, max(counter, number))
    else:  # an iterator, which reveals its next number only by consuming it
        setattr(env, name, count(max(next(counter), number)))


def constrain_for_size(env: ShapeEnv, expr: Any) -> None:
    """Constrain an expression of a ShapeEnv to be a size."""
    env._constrain_range_for_size(expr)


def unbacked_bindings(value: Any, env: ShapeEnv, pending: set[Any]) -> Any:
    """Return the unbacked symbols that a value defines, with where they are in it; they are removed from `pending`.

    Storage offsets define none: torch's reader leaves them out.
    """
    bindings = symbolic_shapes._free_unbacked_symbols_with_path(
        value, (), shape_env=env, pending=set(pending), simplify=True
    )
    bindings = {
        symbol: path for symbol, path in bindings.items() if symbolic_shapes.CallMethodKey("storage_offset") not in path
    }
    pending.difference_update(bindings)
    return bindings


# Fake tensors


def make_fake(mode: FakeTensorMode, elem: torch.Tensor, device: torch.device) -> FakeTensor:
    """Return a fake tensor over a meta tensor."""
    with torch._C._DisableTorchDispatch():
        return FakeTensor(mode, elem, device)


def fake_over(
    elem: torch.Tensor, storage: torch.Tensor, device: torch.device, requires_grad: bool, attributes: dict[str, Any]
) -> torch.Tensor:
    """Return a fake tensor of the sizes of a meta tensor, over another storage, without the dispatcher.

    Args:
        elem: the meta tensor; its storage becomes that of `storage`.
        storage: a flat meta tensor.
        device, requires_grad: as the fake tensor reports them.
        attributes: its Python attributes.
    """
    with torch._C._DisableTorchDispatch():
        torch._functionalize_unsafe_set(elem, storage)
        made: torch.Tensor = torch.Tensor._make_subclass(
            FakeTensor, elem, requires_grad, dispatch_device=True, device_for_backend_keys=device
        )
    made.__dict__.update(attributes)
    # Copying asks for the address. Source: `FakeTensor.__new__` in torch/_subclasses/fake_tensor.py, 2.9 to 2.15.
    may_ask = made.fake_mode._allow_unsafe_data_ptr_access
    (torch._C._set_warn_deprecated_on_mutable_data_ptr if may_ask else torch._C._set_throw_on_mutable_data_ptr)(made)
    return made
