"""A compiled program, its tensors and its calling convention -> a `torch.nn.Module` that runs it."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pt2kit.bridge.run.conditions import Condition, check_conditions
from pt2kit.bridge.run.failures import explain
from pt2kit.bridge.run.inputs import InputTree, Unflatten
from pt2kit.bridge.run.source import Compiled
from pt2kit.bridge.torch_names import modules_as_containers


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

    # A name that no tensor of a file can have.
    __pt2kit_running__: Running

    def train(self, mode: bool = True) -> LoadedModule:
        """Not there: what training changes was decided when the program was exported."""
        raise NotImplementedError("train() is not supported: the program was exported in one mode, and runs in that")

    def eval(self) -> LoadedModule:
        """Not there: what evaluation changes was decided when the program was exported."""
        raise NotImplementedError("eval() is not supported: the program was exported in one mode, and runs in that")


@dataclass(frozen=True, slots=True)
class Running:
    """What a module runs: a function, the attributes that it takes, and how it is called."""

    read: Callable[[Any], Sequence[Any]]
    compiled: Compiled
    convention: Convention


def make_module(paths: Sequence[str], compiled: Compiled, convention: Convention) -> LoadedModule:
    """A module that runs a program, and has no tensors yet.

    Args:
        paths: the attributes that the function takes, before the values in the inputs.
        compiled: the function.
        convention: how it is called.
    """
    # A class of its own, because each has its own names of arguments; a function of the module's own instead would be
    # no forward for the strict export of torch 2.9.
    kind = type("LoadedModule", (LoadedModule,), {"forward": _forward(convention.tree), "__module__": __name__})
    module: LoadedModule = kind()
    module.__pt2kit_running__ = Running(_reader(paths), compiled, convention)
    return module


def _reader(paths: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """What reads attributes of a module by their paths, each time anew: they may be replaced."""
    if not paths:
        return lambda module: ()
    split = tuple(tuple(path.split(".")) for path in paths)
    together = operator.attrgetter(*paths)
    if len(paths) == 1:
        return lambda module: [functools.reduce(getattr, split[0], module)]

    def read(module: Any) -> Sequence[Any]:
        if torch.compiler.is_compiling():  # which does not see through an attrgetter
            return [functools.reduce(getattr, path, module) for path in split]
        values: tuple[Any, ...] = together(module)
        return values

    return read


def _forward(tree: InputTree) -> Any:
    def forward(self: LoadedModule, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        # Through the module: numbers that it holds are constants for torch.compile, those of closures are not.
        return _call(self, self.__pt2kit_running__, args, kwargs)

    forward.__signature__ = _signature(tree)  # type: ignore[attr-defined]
    return forward


def _call(module: LoadedModule, running: Running, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    convention, run = running.convention, running.compiled.function
    if convention.modules:
        with modules_as_containers(convention.modules):
            leaves = convention.tree.leaves(args, kwargs)
    else:
        leaves = convention.tree.leaves(args, kwargs)
    check_conditions(convention.conditions, leaves)
    if torch.compiler.is_compiling():
        return convention.unflatten(run(*running.read(module), *leaves))
    try:
        results = run(*running.read(module), *leaves)
    except Exception as error:
        explain(error, run.__code__, running.compiled.stopped)
        raise
    return convention.unflatten(results)


def _signature(tree: InputTree) -> inspect.Signature:
    """What `inspect.signature` says of the module, from which another export takes names of arguments."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *tree.names)]
    return inspect.Signature(parameters)
