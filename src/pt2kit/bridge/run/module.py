"""`torch.nn.Module` that runs a compiled program with its tensors and its calling convention.

Tensors and objects are attached to it as in the module of an exported program.

Source: `_assign_attr` in torch/export/unflatten.py, `_create_stateful_graph_module` in torch/export/_unlift.py, 2.13.
"""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pickle
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from pt2kit.bridge.read.pickled_values import Payloads
from pt2kit.bridge.read.reading import MappedFile
from pt2kit.bridge.run.conditions import Condition, check_conditions
from pt2kit.bridge.run.emitters import Compiled
from pt2kit.bridge.run.inputs import InputTree, OutputTree
from pt2kit.bridge.run.steps import Step, explain
from pt2kit.bridge.run.validation import original
from pt2kit.bridge.torch_names import OpOverload, modules_as_containers, schema_of
from pt2kit.signature.export_signature import ExportGraphSignature
from pt2kit.signature.specs import InputKind


@dataclass(frozen=True, slots=True)
class Convention:
    """Calling convention of a program.

    Args:
        tree: the structure of the inputs.
        conditions: on the values in them.
        unflatten: puts outputs into their containers.
        modules: classes of modules among the inputs, which contain their tensors.
    """

    tree: InputTree
    conditions: Sequence[Condition]
    unflatten: OutputTree
    modules: frozenset[type[torch.nn.Module]] = frozenset()


class LoadedModule(torch.nn.Module):  # type: ignore[misc]
    """Program of a `.pt2` file as a callable module; made by `pt2kit.load_module`.

    Parameters, buffers and constants are attributes under their names in the file, and each call reads
    the current attributes: they can be loaded, moved, cast and replaced.
    """

    # A name that no tensor of a file can have.
    __pt2kit_running__: Running

    def train(self, mode: bool = True) -> LoadedModule:
        """Refuse another mode: its effect was fixed when the program was exported.

        A program none of whose calls depends on the mode can be set to evaluate. A copy of the module accepts any mode,
        as copies of torch's modules do, and runs as before.

        Raises:
            NotImplementedError: the program would run as before all the same.
        """
        running = self.__pt2kit_running__
        if not running.is_copy:
            what = "train" if mode else "eval"
            reason = "the program was exported in one mode, and runs in that"
            step = None if mode else _find_training(running.compiled.steps)
            if step is not None:
                reason = f"node {step.origin.label} was exported to train, and runs in that mode"
            if mode or step is not None:
                raise NotImplementedError(f"{what}() is not supported: {reason}")
            return self
        return super().train(mode)  # type: ignore[no-any-return]

    def __copy__(self) -> LoadedModule:
        return self._copied(lambda held: copy.copy(held) if isinstance(held, dict) else held)

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedModule:
        return self._copied(lambda held: copy.deepcopy(held, memo), memo)

    def _copied(self, copy_of: Callable[[Any], Any], memo: dict[int, Any] | None = None) -> LoadedModule:
        """Return a module that runs the same program with copies of the attributes."""
        made: LoadedModule = type(self).__new__(type(self))
        if memo is not None:
            memo[id(self)] = made
        running = replace(self.__pt2kit_running__, is_copy=True)
        held = {name: value for name, value in vars(self).items() if name != _RUNNING}
        made.__dict__.update({name: copy_of(value) for name, value in held.items()}, **{_RUNNING: running})
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise pickle.PicklingError(
            "a module of pt2kit.load_module is not pickled: pass the path of its file on and call pt2kit.load_module "
            "there, with load_state_dict for weights that have changed since"
        )


_RUNNING: Final = "__pt2kit_running__"
_FLAGS: Final = ("training", "train", "use_input_stats")
"""Parameters that are true in a module that trains."""
_SHARES: Final = ("p", "dropout", "dropout_p")
"""Names of parameters that hold a dropout probability; 0 has no effect."""


@dataclass(frozen=True, slots=True)
class Running:
    """Compiled function of a module and what it needs to run.

    Args:
        read: returns the attributes that the function uses.
        compiled: the function.
        convention: its calling convention.
        files: those that weights are mapped from.
        is_copy: the module is a copy of one that was loaded.
    """

    read: Callable[[Any], Sequence[Any]]
    compiled: Compiled
    convention: Convention
    files: Sequence[MappedFile] = ()
    is_copy: bool = False


def make_module(
    paths: Sequence[str], compiled: Compiled, convention: Convention, files: Sequence[MappedFile]
) -> LoadedModule:
    """Return a module that runs a program, and has no tensors yet.

    Args:
        paths: the attributes that the function uses, before the values in the inputs.
        compiled: the function.
        convention: its calling convention.
        files: those that weights are mapped from; each call compares them with their recorded state.
    """
    # A class of its own, because each has its own names of arguments; a function of the module's own instead would be
    # no forward for the strict export of torch 2.9.
    kind = type("LoadedModule", (LoadedModule,), {"forward": _forward(convention.tree), "__module__": __name__})
    module: LoadedModule = kind()
    module.__pt2kit_running__ = Running(_reader(paths), compiled, convention, files)
    return module


def _reader(paths: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Return a function that reads attributes of a module by their paths, each time anew: they may be replaced."""
    split = tuple(tuple(path.split(".")) for path in paths)
    together = operator.attrgetter(*paths) if len(paths) > 1 else None

    def read(module: Any) -> Sequence[Any]:
        if together is None or torch.compiler.is_compiling():  # which does not see through an attrgetter
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
    # A traced call has no point at which to look at a file.
    if not torch.compiler.is_compiling():
        for file in running.files:
            file.check()
    if convention.modules:
        with modules_as_containers(convention.modules):
            leaves = convention.tree.leaves(args, kwargs)
    else:
        leaves = convention.tree.leaves(args, kwargs)
    check_conditions(convention.conditions, leaves)
    if torch.compiler.is_dynamo_compiling():
        return convention.unflatten(run(*running.read(module), *leaves))
    had_grad = torch.is_grad_enabled()
    try:
        results = run(*running.read(module), *leaves)
    except BaseException as error:
        explain(error, run.__code__, running.compiled.stopped, had_grad=had_grad)
        raise
    return convention.unflatten(results)


def _signature(tree: InputTree) -> inspect.Signature:
    """Return the result of `inspect.signature` for the module, from which another export takes names of arguments."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", *tree.names)]
    return inspect.Signature(parameters)


def _find_training(steps: Iterable[Step]) -> Step | None:
    """Return the first call of a program, subgraphs included, that would be another in a module that evaluates."""
    for step in steps:
        if _depends_on_mode(_arguments(step)):
            return step
        for argument in (*step.args, *step.kwargs.values()):
            inner = _find_training(getattr(argument, "steps", ()))
            if inner is not None:
                return inner
    return None


def _arguments(step: Step) -> Mapping[str, Any]:
    """Return the arguments of a call of an operator by parameter; nothing for other calls."""
    target = original(step.target)
    if not isinstance(target, OpOverload):
        return {}
    given = {parameter.name: parameter.default_value for parameter in schema_of(target).arguments}
    return {**given, **dict(zip(given, step.args, strict=False)), **step.kwargs}


def _depends_on_mode(given: Mapping[str, Any]) -> bool:
    flags = [given[name] for name in _FLAGS if name in given]
    shares = [given[name] for name in _SHARES if name in given]
    if not flags:
        return "dropout_p" in given and given["dropout_p"] != 0  # attention
    if not any(flag is not False for flag in flags):
        return False
    if "running_mean" in given:
        return given["running_mean"] is not None  # Without statistics a norm uses those of its input in both modes.
    return all(share != 0 for share in shares)


def place_tensors(root: torch.nn.Module, signature: ExportGraphSignature, payloads: Payloads) -> None:
    """Set the parameters, buffers and constants of a program as attributes of a module, under their names.

    Args:
        root: the module.
        signature: states the kind of each.
        payloads: the tensors and other constants; shared with the module.

    Constants are plain attributes, which neither move nor appear in the state dict. A constant that asks for gradients
    is detached, with a warning.
    """
    detached: dict[int, torch.Tensor] = {}
    modules = {"": root}
    state_dict, constants = payloads.state_dict, payloads.constants
    for spec in signature.input_specs:
        name = spec.target
        if name is None:
            continue
        owner, field = _owner(modules, name)
        if spec.kind is InputKind.PARAMETER:
            owner.register_parameter(field, state_dict[name])
        elif spec.kind is InputKind.BUFFER:
            is_stored = bool(spec.persistent) and name in state_dict
            value = state_dict[name] if is_stored else constants[name]
            owner.register_buffer(field, value, persistent=bool(spec.persistent))
        else:
            setattr(owner, field, _constant(name, constants[name], detached))
    lifted = {spec.target for spec in signature.input_specs}
    for name, value in constants.items():
        if name not in lifted:
            owner, field = _owner(modules, name)
            if not hasattr(owner, field):
                setattr(owner, field, _constant(name, value, detached))


def _owner(modules: dict[str, torch.nn.Module], path: str) -> tuple[torch.nn.Module, str]:
    """Return the module of an attribute, created if necessary, and the attribute's own name."""
    parent, _, field = path.rpartition(".")
    if parent not in modules:
        owner, name = _owner(modules, parent)
        modules[parent] = torch.nn.Module()
        owner.add_module(name, modules[parent])
    return modules[parent], field


def _constant(name: str, value: Any, detached: dict[int, torch.Tensor]) -> Any:
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return value
    warnings.warn(f"the constant {name!r} requires gradient and is no parameter: it is detached", stacklevel=2)
    if id(value) not in detached:
        detached[id(value)] = value.detach()
    return detached[id(value)]
