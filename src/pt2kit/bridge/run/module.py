"""A compiled program, its tensors and its calling convention -> a `torch.nn.Module` that runs it."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

import torch

from pt2kit.bridge.run.conditions import Condition, check_conditions
from pt2kit.bridge.run.failures import explain
from pt2kit.bridge.run.inputs import InputTree, Unflatten
from pt2kit.bridge.run.source import Compiled
from pt2kit.bridge.torch_names import enter_modules, leave_modules


@dataclass(frozen=True, slots=True)
class Convention:
    """How a program is called.

    Args:
        tree: the structure of the inputs.
        conditions: what the values in them must be.
        unflatten: puts outputs into their containers.
        modules: classes of modules among the inputs, which stand for their tensors.
    """

    tree: InputTree
    conditions: Sequence[Condition]
    unflatten: Unflatten
    modules: frozenset[type[torch.nn.Module]] = frozenset()


class LoadedModule(torch.nn.Module):  # type: ignore[misc]
    """A program of a `.pt2` file that can be called; made by `pt2kit.load_module`.

    Parameters, buffers and constants are attributes under the names that the file gives them, and each call takes what
    is there: they can be loaded, moved, cast and replaced.
    """

    def train(self, mode: bool = True) -> LoadedModule:
        """Not there: what training changes was decided when the program was exported."""
        raise NotImplementedError("train() is not supported: the program was exported in one mode, and runs in that")

    def eval(self) -> LoadedModule:
        """Not there: what evaluation changes was decided when the program was exported."""
        raise NotImplementedError("eval() is not supported: the program was exported in one mode, and runs in that")


def make_module(tensors: LoadedModule, paths: Sequence[str], compiled: Compiled, convention: Convention) -> None:
    """Let a module that holds tensors run a program.

    Args:
        tensors: the module.
        paths: the attributes that the function takes, before the values in the inputs.
        compiled: the function.
        convention: how it is called.
    """
    forward = _forward(_reader(paths), compiled, convention)
    forward.__signature__ = _signature(convention.tree)
    # An attribute of the module, as torch's own generated `forward` is one of its class: copies bind it to themselves.
    tensors.forward = MethodType(forward, tensors)


def _reader(paths: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(paths) > 1:
        return operator.attrgetter(*paths)
    get = operator.attrgetter(*paths) if paths else None
    return lambda module: () if get is None else (get(module),)


def _forward(read: Callable[[Any], tuple[Any, ...]], compiled: Compiled, convention: Convention) -> Any:
    tree, conditions, modules = convention.tree, tuple(convention.conditions), convention.modules
    unflatten, run = convention.unflatten, compiled.function

    def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        leaves = _with_modules(tree, modules, args, kwargs) if modules else tree.leaves(args, kwargs)
        check_conditions(conditions, leaves)
        if torch.compiler.is_compiling():
            return unflatten(run(*read(self), *leaves))
        try:
            results = run(*read(self), *leaves)
        except Exception as error:
            explain(error, compiled)
            raise
        return unflatten(results)

    return forward


def _with_modules(
    tree: InputTree, modules: frozenset[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    enter_modules(modules)
    try:
        return tree.leaves(args, kwargs)
    finally:
        leave_modules(modules)


def _signature(tree: InputTree) -> inspect.Signature:
    """What `inspect.signature` says of the module, from which another export takes names of arguments."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *tree.names)]
    return inspect.Signature(parameters)
