"""torch's own databases of operators and modules -> programs to be exported: calls with sample inputs.

What op_db and module_db lack stands here as well: the operators of fused optimizers, and buffers filled bit by bit. A
call becomes a module in one of four ways: its tensors are inputs; all but the first are constants; it is exported with
dynamic sizes; or its operators are decomposed, as export does by default or as far as torch knows how.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

VARIANTS = ("plain", "constants", "dynamic", "decomposed", "core", "full")
DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool)
SKIPPED_SAMPLES = 40
"""Samples of one operator that are drawn from."""


@dataclass(frozen=True)
class Source:
    """One operator or module.

    Args:
        name: unique ("op nn.functional.pad circular").
        samples: gives calls: (function, positional arguments, keyword arguments).
    """

    name: str
    samples: Callable[[], Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]]


class Call(torch.nn.Module):
    """A function of the tensors in its arguments: those of `inputs` are inputs, others constants of the program."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any, inputs: list[int]) -> None:
        super().__init__()
        if isinstance(function, torch.nn.Module):
            self.inner = function
        self.function, self.leaves, self.spec, self.inputs = [function], leaves, spec, inputs
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor) and number not in inputs:
                self.register_buffer(f"constant_{number}", leaf, persistent=number % 2 == 0)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Call the function."""
        leaves = [getattr(self, f"constant_{n}", leaf) for n, leaf in enumerate(self.leaves)]
        for number, tensor in zip(self.inputs, tensors, strict=True):
            leaves[number] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function[0](*args, **kwargs)


def sources() -> list[Source]:
    """Everything that programs are made of."""
    operators = (Source(f"op {op.name} {op.variant_test_name}".strip(), partial(_of_operator, op)) for op in op_db)
    modules = (Source(f"module {info.name}", partial(_of_module, info)) for info in module_db)
    more = (Source(f"more {name}", partial(_once, function, args)) for name, (function, args) in MORE.items())
    return [*operators, *modules, *more]


def _of_operator(op: Any) -> Iterator[Any]:
    dtype = next((dtype for dtype in DTYPES if dtype in op.supported_dtypes("cpu")), None)
    if dtype is not None:
        for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
            yield op.op, (sample.input, *sample.args), sample.kwargs


def _of_module(info: Any) -> Iterator[Any]:
    for made in info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True):
        if made.forward_input is not None:
            built, call = made.constructor_input, made.forward_input
            yield info.module_cls(*built.args, **built.kwargs), call.args, call.kwargs


def _once(function: Callable[..., Any], args: Callable[[], tuple[Any, ...]]) -> Iterator[Any]:
    yield function, args(), {}


def module_of(source: Source, variant: str, seed: int) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]] | None:
    """The module of one of its samples and its inputs; None where it has no tensors.

    Args:
        source: what is called.
        variant: one of `VARIANTS`.
        seed: what chooses the sample, and its numbers.
    """
    torch.manual_seed(seed)
    dice = random.Random(f"{seed} {variant} {source.name}")
    samples = list(itertools.islice(source.samples(), SKIPPED_SAMPLES))
    if not samples:
        return None
    function, args, kwargs = dice.choice(samples)
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = [number for number, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    inputs = tensors[:1] if variant == "constants" else tensors
    return Call(function, leaves, spec, inputs), tuple(leaves[number] for number in inputs)


def exported(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], variant: str) -> torch.export.ExportedProgram:
    """The program of a module; whatever torch raises if it can't be exported that way."""
    shapes = None
    if variant == "dynamic":
        auto = torch.export.Dim.AUTO
        shapes = {"tensors": tuple(dict.fromkeys(range(tensor.dim()), auto) for tensor in inputs)}
    program = torch.export.export(module, inputs, dynamic_shapes=shapes, strict=False)
    if variant == "decomposed":
        return program.run_decompositions()
    if variant == "core":
        return program.run_decompositions(torch._decomp.core_aten_decompositions())
    if variant == "full":
        return program.run_decompositions(dict(torch._decomp.decomposition_table))
    return program


# Samples that the databases lack.


def _fused(name: str, states: int, *, steps: bool = True, **numbers: Any) -> tuple[Callable[..., Any], Any]:
    """A fused optimizer: parameters, gradients, states, and numbers of steps, all lists of two tensors."""

    def call(*tensors: torch.Tensor) -> Any:
        lists = [list(tensors[2 * n : 2 * n + 2]) for n in range(2 + states + (1 if steps else 0))]
        if name in ("_fused_adam", "_fused_adamw"):
            lists.insert(-1, [])  # the largest squares, which `amsgrad` alone has
        copies = [[tensor.clone() for tensor in one] for one in lists]
        getattr(torch, name + "_")(*copies, **numbers)
        return copies[0]

    def args() -> tuple[Any, ...]:
        made = [torch.rand(3, 4) for _ in range(2 * (2 + states))]
        return (*made, torch.tensor(1.0), torch.tensor(2.0)) if steps else tuple(made)

    return call, args


def _rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return out


def _dynamic_rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(3, x.shape[0])
    for i in range(3):
        out[i] = x + i
    return out


def _columns(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 3)
    for i in range(3):
        out[:, i] = x[:, i] + i
    return out


def _halves(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0], 6)
    out[..., :3], out[..., 3:] = x, -x
    return out


def _even_odd(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 6)
    out[:, ::2], out[:, 1::2] = x, x.sin()
    return out


ADAM: dict[str, Any]
ADAM = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
SGD: dict[str, Any]
SGD = {"weight_decay": 0.0, "momentum": 0.9, "lr": 0.1, "dampening": 0.0, "nesterov": False, "maximize": False}
MORE: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "_fused_adam_": _fused("_fused_adam", 2, **ADAM),
    "_fused_adamw_": _fused("_fused_adamw", 2, **ADAM),
    "_fused_sgd_": _fused("_fused_sgd", 1, steps=False, is_first_step=False, **SGD),
    "_fused_sgd_ first": _fused("_fused_sgd", 1, steps=False, is_first_step=True, **SGD),
    "_fused_adagrad_": _fused("_fused_adagrad", 1, lr=0.1, lr_decay=0.0, weight_decay=0.0, eps=1e-8, maximize=False),
    "rows of a buffer": (_rows, lambda: (torch.rand(3, 5),)),
    "rows of a dynamic buffer": (_dynamic_rows, lambda: (torch.rand(5),)),
    "columns of a buffer": (_columns, lambda: (torch.rand(5, 3),)),
    "halves of a buffer": (_halves, lambda: (torch.rand(5, 3),)),
    "every other column": (_even_odd, lambda: (torch.rand(5, 3),)),
    "columns stacked": (lambda x: torch.stack([x[:, i] * i for i in range(3)], 1), lambda: (torch.rand(5, 3),)),
    "column_stack": (lambda x, y: torch.column_stack((x, y)), lambda: (torch.rand(5, 3), torch.rand(5))),
}
