"""A `.pt2` file -> what differs between `pt2kit.load_module` and torch's own `torch.export.load(f).module()`."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.run.same import differences, structure
from torch.utils import _pytree as pytree

import pt2kit


class Verdict(NamedTuple):
    """The outcome of a file.

    Args:
        word: "same", "differs", or why torch says nothing: "not loaded", "no module", "no inputs".
        details: the differences, or torch's error.
        calls: how many calls were compared.
        refused: how many of them were refused, by both.
    """

    word: str
    details: str = ""
    calls: int = 0
    refused: int = 0


@contextmanager
def quiet() -> Iterator[None]:
    """No log, no warnings, one thread: with several, torch adds gradients up in any order, and differs from itself."""
    logging.disable(logging.CRITICAL)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_num_threads(threads)
        logging.disable(logging.NOTSET)


def compare_with_torch(path: Path, *, few: bool = False) -> Verdict:
    """Load a file with both and call both: with its sample inputs, and with such as a call may refuse.

    Args:
        path: the file; torch unpickles its sample inputs.
        few: compare only some of the calls that may be refused.
    """
    try:
        program = torch.export.load(path)
    except Exception as error:  # noqa: BLE001  torch has no error family
        return Verdict("not loaded", _shown(error))
    try:
        theirs = program.module()
    except Exception as error:  # noqa: BLE001
        return Verdict("no module", _shown(error))
    if program.example_inputs is None:
        return Verdict("no inputs")
    ours, counts = pt2kit.load_module(path), {"refused": 0}
    found = structure(ours, theirs)
    first, *others = variants(program.example_inputs)
    others = others[: 4 if few else None]
    # Each its own modules: a call may change them, and gradients gather.
    found += differences(
        lambda: pt2kit.load_module(path), lambda: torch.export.load(path).module(), first, count=counts
    )
    for call in others:
        found += differences(lambda: copied(ours), lambda: copied(theirs), call, grad=False, count=counts)
    return Verdict("differs" if found else "same", "\n".join(found), 1 + len(others), counts["refused"])


def _another(leaf: float | str) -> float | str:
    """Another value of the same type."""
    kind: type[int] | type[float] | type[str] = type(leaf)
    return leaf * 2 if leaf else kind(1)


def variants(call: Any) -> list[Any]:
    """The call, and calls with other sizes, missing and further arguments: each refused by both or none."""
    args, kwargs = call
    found = [call, ((*args, torch.ones(2)), kwargs), (args[:-1], kwargs), (args, {**kwargs, "no_such_name": 1})]
    leaves, spec = pytree.tree_flatten(call)
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.dim():
            for dimension in range(leaf.dim()):
                for changed in (
                    leaf.narrow(dimension, 0, leaf.shape[dimension] // 2),
                    torch.cat([leaf, leaf], dimension),
                ):
                    other = [*leaves[:index], changed.detach().clone(), *leaves[index + 1 :]]
                    found.append(pytree.tree_unflatten(other, spec))
        if isinstance(leaf, int | float | str):
            other = [*leaves[:index], _another(leaf), *leaves[index + 1 :]]
            found.append(pytree.tree_unflatten(other, spec))
    return found


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A copy, or the module where it has tensors that torch cannot copy (compressed sparse ones)."""
    try:
        return copy.deepcopy(module)
    except NotImplementedError:
        return module


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
