"""Programs of the zoo: how they are exported, what they are called with, and what to expect of their outputs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One program.

    Args:
        name: unique; "__strict" and "__decomp" mark variants of the same model.
        build: exports it, a new program each time; takes up to a few seconds.
        calls: arguments to call it with; () where it cannot be called on this machine.
        random: its outputs differ from call to call.
        slow: takes more than three seconds to build.
        torch_saves: why torch 2.13 cannot save it; empty where it can.
        torch_reads: why torch 2.13 cannot load and call a file that says what the program is; empty where it can.
    """

    name: str
    build: Callable[[], ExportedProgram]
    calls: Callable[[], Sequence[Call]] = tuple
    random: bool = False
    slow: bool = False
    torch_saves: str = ""
    torch_reads: str = ""

    def __repr__(self) -> str:
        return self.name


@functools.cache
def exported(program: Program) -> ExportedProgram:
    """The program, exported once per process. Treat it as read-only: save it, or copy it before running it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return program.build()


@dataclass(frozen=True, slots=True)
class Recipe:
    """A module and how to export it; `programs` makes the variants.

    Args:
        name: of the programs.
        module: makes the module.
        args, kwargs: example inputs; callables make them anew for each use.
        dynamic_shapes: as torch.export.export takes it.
        variants: "plain" (export), "strict" (strict export), "decomp" (plain, then run_decompositions).
        more: further calls, for example with other sizes.
        preserve: modules whose call signature is kept.
        train: whether the module is in training mode.
        callable: whether the exported program itself can be called.
        flags: passed on to `Program`.
    """

    name: str
    module: Callable[[], torch.nn.Module]
    args: Callable[[], tuple[Any, ...]]
    kwargs: Callable[[], dict[str, Any]] = dict
    dynamic_shapes: Any = None
    variants: tuple[str, ...] = ("plain",)
    more: Callable[[], Sequence[Call]] = tuple
    preserve: tuple[str, ...] = ()
    train: bool = False
    callable: bool = True
    flags: Mapping[str, Any] = field(default_factory=dict)

    def programs(self) -> list[Program]:
        """One program for each variant."""
        names = {"plain": self.name, "strict": f"{self.name}__strict", "decomp": f"{self.name}__decomp"}
        return [
            Program(names[kind], functools.partial(self.export, kind), self.calls, **self.flags)
            for kind in self.variants
        ]

    def export(self, kind: str) -> ExportedProgram:
        """Export one variant."""
        torch.manual_seed(1)
        module = self.module().train(self.train)
        program = torch.export.export(
            module,
            self.args(),
            self.kwargs(),
            dynamic_shapes=self.dynamic_shapes() if callable(self.dynamic_shapes) else self.dynamic_shapes,
            strict=kind == "strict",
            preserve_module_call_signature=self.preserve,
        )
        return program.run_decompositions() if kind == "decomp" else program

    def calls(self) -> list[Call]:
        """The example call and the further ones."""
        if not self.callable:
            return []
        torch.manual_seed(2)
        return [(self.args(), self.kwargs()), *self.more()]
