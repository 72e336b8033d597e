"""Two modules that should be the same, and calls of them -> every difference, in words.

Outputs, what is written into inputs and buffers, and gradients are compared bit by bit; where one refuses a call, the
other has to.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

Make = Callable[[], torch.nn.Module]


def differences(
    ours: Make, theirs: Make, call: Any, *, grad: bool = True, count: dict[str, int] | None = None
) -> list[str]:
    """Return how the results of two new modules differ for copies of the same arguments.

    In `count`, calls that both refuse are added to "refused".
    """
    got, want = (_outcome(make(), call, grad) for make in (ours, theirs))
    if isinstance(want, NameError):  # guards that torch up to 2.9 generates may name what is not there
        return []
    if isinstance(got, Exception) or isinstance(want, Exception):
        same = isinstance(got, Exception) and isinstance(want, Exception)
        if same and count is not None:
            count["refused"] += 1
        return [] if same else [f"{_shown(got)}, not {_shown(want)}"]
    found = []
    for part in want:
        found += [f"{part}: {text}" for text in _trees(got[part], want[part])]
    return found


def structure(ours: torch.nn.Module, theirs: torch.nn.Module) -> list[str]:
    """Return how the trees of tensors of two modules differ."""
    found = []
    for name in ("named_parameters", "named_buffers"):
        got, want = (dict(getattr(module, name)()) for module in (ours, theirs))
        found += [f"{name}: {text}" for text in _trees(got, want)]
    keys, wanted = list(ours.state_dict()), list(theirs.state_dict())
    return found + ([] if keys == wanted else [f"state_dict: {keys}, not {wanted}"])


def _shown(outcome: Any) -> str:
    return f"{type(outcome).__name__}: {outcome}"[:600] if isinstance(outcome, Exception) else "outputs"


def _outcome(module: torch.nn.Module, call: Any, grad: bool) -> Any:
    args, kwargs = copy.deepcopy(call)
    torch.manual_seed(7)
    try:
        with torch.set_grad_enabled(grad):
            result = module(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  torch has no error family
        return error
    found = {"outputs": result, "inputs": (args, kwargs)}
    losses = [
        leaf.float().sum() if not leaf.is_complex() else leaf.abs().sum()
        for leaf in pytree.tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.layout is torch.strided
    ]
    if grad and losses:
        try:
            sum(losses).backward()
        except (RuntimeError, NotImplementedError) as error:
            found["backward"] = type(error).__name__
        found["gradients"] = {name: param.grad for name, param in module.named_parameters()}
        found["gradients of inputs"] = [
            leaf.grad for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.is_leaf
        ]
    found["buffers"] = dict(module.named_buffers())
    found["parameters"] = dict(module.named_parameters())
    return found


def _trees(got: Any, want: Any) -> Iterator[str]:
    ours, spec = pytree.tree_flatten(got)
    theirs, wanted = pytree.tree_flatten(want)
    if str(spec) != str(wanted):
        yield f"structure {spec}, not {wanted}"[:400]
        return
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if text := _leaf(one, other):
            yield f"[{index}]: {text}"


def _leaf(got: Any, want: Any) -> str:
    if isinstance(want, torch.nn.Module) or isinstance(got, torch.nn.Module):
        return "; ".join(structure(got, want))
    if not isinstance(want, torch.Tensor):
        same = type(got) is type(want) and (got == want or got != got or not isinstance(want, (int, float, str, bool)))
        return "" if same else f"{got!r}, not {want!r}"
    if not isinstance(got, torch.Tensor):
        return f"a {type(got).__name__}, not a tensor"
    for name in ("dtype", "device", "layout", "requires_grad", "shape"):
        if getattr(got, name) != getattr(want, name):
            return f"{name} {getattr(got, name)}, not {getattr(want, name)}"
    if want.layout is not torch.strided or want.is_meta or want.is_quantized:
        return ""
    if got.stride() != want.stride():
        return f"strides {got.stride()}, not {want.stride()}"
    plain = [tensor.detach().resolve_conj().resolve_neg().flatten() for tensor in (got, want)]
    bits = [tensor.clone(memory_format=torch.contiguous_format) for tensor in plain]
    same = not bits[0].numel() or torch.equal(*[bit.view(torch.uint8) for bit in bits])
    return "" if same else f"other numbers: {got}, not {want}"[:300]
