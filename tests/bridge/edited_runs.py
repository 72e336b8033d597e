"""A package that random edits made -> what torch makes of it, against what the file says.

Loaded by `pt2kit.load` and by `torch.export.load`, and run on inputs made from what is stated of them: both have to
run, and give what the file states. `python -m tests.bridge.edited_runs 0 20000` tries the scripts of these numbers.
"""

from __future__ import annotations

import functools
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch
from tests.bridge.read import corpus_types  # noqa: F401 registers what the sample files use
from tests.editing.scripts import run_script
from tests.packages import bytes_of
from tests.samples import corpus
from torch.utils import _pytree as pytree

import pt2kit
from pt2kit import schema, symbols
from pt2kit.bridge.operators import DTYPES
from pt2kit.errors import Pt2Error
from pt2kit.package.open import Package
from pt2kit.tensors.view import TensorView

FROM_NUMBERS = (
    "not implemented for",
    "Runtime assertion failed",
    "inline constraint",
    "Invalid value range",
    "Guard failed",
    "out of range",
    "Expected input",
    "out of bounds",
    "offsets[0]",
    "Expected reduction dim",
    "detach views in-place",
    "the 'SparseCPU' backend",
)
"""Texts of kernels and assertions about numbers, or about types that they have no code for."""

LARGEST = 60_000
SCANS = ("torch.ops.higher_order.while_loop", "torch.ops.higher_order.associative_scan")
"""Loops, which may never end once their condition or body was changed, or must be given a body of another kind."""


def script_problems(package: Package, dice: Random, log: list[str] | None = None) -> Iterator[str]:
    """Edit a program at random -> everything that is not as it should be then."""
    model = package.layout.models[0]
    editor = pt2kit.edit(package, model)
    for refused in run_script(editor, dice, dice.randint(1, 12), log):
        if "expected" not in refused and "no operator" not in refused:
            yield f"a refusal that says nothing: {refused}"
    try:
        result = editor.finish()
    except Pt2Error as error:
        if "expected" not in str(error):
            yield f"a refusal that says nothing: {error}"
        return
    yield from (f"check: {problem}" for problem in pt2kit.check(result) if problem.kind == "error")
    if result is not package:  # which is older than the torch that is here, maybe
        yield from load_problems(result, model)


def load_problems(result: Package, model: str) -> Iterator[str]:
    """Yield problems of writing, loading and running a package."""
    file = bytes_of(pt2kit.write, result)
    ours = _tried(lambda: pt2kit.load(file, model=model))
    is_alone = model != "model" or (_has_integer_parameters(result, model) and not loads_integer_parameters())
    theirs = ours if is_alone else _tried(lambda: torch.export.load(io.BytesIO(file)))
    for name, program in (("pt2kit.load", ours), ("torch.export.load", theirs)):
        if isinstance(program, Exception):
            yield f"{name}: {type(program).__name__}: {program}"[:1500]
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return
    program = result.programs[model]
    call = _inputs(program, theirs)
    if call is None or any(node.target.startswith(SCANS) for node in program.graph_module.graph.nodes):
        return
    outcomes = [_run(one, call) for one in (ours, theirs)]
    if isinstance(outcomes[1], Exception):
        if not any(text in str(outcomes[1]) for text in FROM_NUMBERS):
            yield f"run: {type(outcomes[1]).__name__}: {outcomes[1]}"[:1500]
        return
    if isinstance(outcomes[0], Exception):
        yield f"run: ours alone: {type(outcomes[0]).__name__}: {outcomes[0]}"[:1500]
        return
    yield from _stated(program, outcomes[1])


def usable_files(*releases: str) -> Iterator[Path]:
    """The sample files whose programs, as they are, the installed torch loads and runs on inputs that are made up."""
    for path in corpus(*releases):
        if path.stat().st_size < LARGEST:
            with pt2kit.open(path) as package:
                model = package.layout.models[0]
                raised = pt2kit.edit(package, model).parts.package()
                if not any(load_problems(raised, model)):
                    yield path


def _has_integer_parameters(package: Package, model: str) -> bool:
    weights = [one for one in package.weights(model).values() if isinstance(one, TensorView) and one.is_param]
    return any(not (DTYPES[one.dtype].is_floating_point or DTYPES[one.dtype].is_complex) for one in weights)


class _Integers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, dtype=torch.int8), requires_grad=False)

    def forward(self, x: Any) -> Any:
        return x + self.weight


@functools.cache
def loads_integer_parameters() -> bool:
    """Return whether the installed torch loads integer parameters; 2.9 expects them to require gradients."""
    data = bytes_of(torch.export.save, torch.export.export(_Integers(), (torch.ones(2),)))
    return not isinstance(_tried(lambda: torch.export.load(io.BytesIO(data))), Exception)


def _tried(load: Any) -> Any:
    try:
        return load()
    except Exception as error:  # noqa: BLE001 whatever a loader raises
        return error


def _run(program: Any, call: Any) -> Any:
    torch.manual_seed(7)
    args, kwargs = pytree.tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, call)
    try:
        with torch.no_grad():  # parameters may be written to
            return pytree.tree_leaves(program.module(check_guards=False)(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 whatever a kernel raises
        return error


def _inputs(program: schema.ExportedProgram, loaded: Any) -> Any:
    """Arguments of a call, from what is stated of the inputs; None where one is neither a tensor nor a number."""
    numbers = {name: _inside(limits) for name, limits in program.range_constraints.items()}
    graph = program.graph_module.graph
    leaves: list[Any] = []
    for spec in program.graph_module.signature.input_specs:
        if spec.type == "constant_input":
            leaves.append(_constant(spec.value.value))
        elif spec.type == "user_input":
            argument = spec.value.arg
            if argument.type == "as_tensor":
                leaves.append(_tensor(graph.tensor_values[argument.value.name], numbers))
            elif argument.type == "as_sym_int" and argument.value.type == "as_name":
                leaves.append(_number(graph.sym_int_values[argument.value.value], numbers))
            else:
                return None
    return pytree.tree_unflatten(leaves, loaded.call_spec.in_spec) if None not in leaves else None


def _constant(value: Any) -> Any:
    return None if value.type == "as_none" else value.value


def _inside(limits: schema.RangeConstraint) -> int:
    low, high = limits.min_val, limits.max_val
    wanted = max(4, low if isinstance(low, int) else 4)
    return min(wanted, high) if isinstance(high, int) else wanted


def _number(size: schema.SymInt, numbers: dict[str, int]) -> int:
    if isinstance(size.as_int, int):
        return size.as_int
    return int(symbols.evaluate(symbols.parse(size.value.expr_str), numbers))


def _tensor(meta: schema.TensorMeta, numbers: dict[str, int]) -> Any:
    sizes = [_number(size, numbers) for size in meta.sizes]
    dtype = DTYPES[meta.dtype]
    if dtype.is_floating_point or dtype.is_complex:
        return torch.rand(sizes).to(dtype)
    return torch.ones(sizes, dtype=dtype)


def _stated(program: schema.ExportedProgram, results: list[Any]) -> Iterator[str]:
    """Yield mismatches of torch's results with the declared outputs."""
    graph = program.graph_module.graph
    outputs = [
        argument
        for spec, argument in zip(program.graph_module.signature.output_specs, graph.outputs, strict=True)
        if spec.type in ("user_output", "loss_output")
    ]
    if len(outputs) != len(results) and not any(result is None for result in results):
        yield f"run: {len(results)} results for {len(outputs)} outputs"
        return
    bound: dict[str, int] = {}
    for argument, result in zip(outputs, results, strict=False):
        if argument.type == "as_tensor" and isinstance(result, torch.Tensor):
            meta = graph.tensor_values[argument.value.name]
            got = (result.dtype, result.dim())
            if got != (DTYPES[meta.dtype], len(meta.sizes)):
                yield f"run: {argument.value.name} is {got}, stated as {meta.dtype}, {len(meta.sizes)} dimensions"
                continue
            for size, number in zip(meta.sizes, result.shape, strict=True):
                if size.type == "as_int" and size.as_int != number:
                    yield f"run: {argument.value.name} has sizes {tuple(result.shape)}, stated {meta.sizes}"
                elif size.type == "as_expr" and bound.setdefault(size.value.expr_str, number) != number:
                    yield f"run: {size.value.expr_str} is {number} and {bound[size.value.expr_str]}"


def main(first: int, last: int) -> None:
    """Try the scripts of some numbers on all sample files that can be used, and print what is wrong."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    files = list(usable_files())
    wrong = 0
    for number in range(first, last):
        dice, log = Random(number), list[str]()
        path = dice.choice(files)
        with pt2kit.open(path) as package:
            problems = list(script_problems(package, dice, log))
        wrong += bool(problems)
        for problem in problems:
            print(f"script {number} of {path.parent.name}/{path.stem}: {problem}", *log, sep="\n  ", flush=True)
    print(f"{last - first} scripts of {len(files)} files, {wrong} of them with problems")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
