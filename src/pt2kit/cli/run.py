"""`pt2 run FILE`: run a program with NumPy, without PyTorch."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from pt2kit.cli.common import (
    Refusal,
    choose_model,
    file_argument,
    json_option,
    one_model_option,
    open_file,
    parse_bytes,
    suggestion,
)
from pt2kit.cli.output import print_error, print_json, print_lines
from pt2kit.messages import printable

if TYPE_CHECKING:
    from pt2kit.runtime.session import Session

EPILOG = """\b
Examples:
  pt2 run model.pt2 --input x=x.npy --output results
  pt2 run model.pt2 --input inputs.npz --output results
  pt2 run model.pt2 --random --seed 0     inputs within the declared ranges
  pt2 run model.pt2                       list the inputs

\b
Exit codes: 0 done, 1 the program fails for these inputs, 2 could not run.
"""


@click.command("run", epilog=EPILOG)
@file_argument
@click.option(
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    help="A .npy file or number; or .npz or .safetensors.",
)
@click.option("--output", "-o", "folder", metavar="DIR", help="Write outputs to this directory, or .safetensors file.")
@click.option("--random", "is_random", is_flag=True, help="Use random inputs within the declared ranges.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of random inputs and operators.")
@click.option("--backend", type=click.Choice(["numpy", "jax"]), default="numpy", show_default=True, help="The engine.")
@click.option(
    "--timeout", type=float, default=600.0, show_default=True, metavar="SECONDS", help="Stop after this time."
)
@click.option("--max-memory", metavar="SIZE", help="Use at most this much memory, such as 4G.  [default: 3/4 of all]")
@one_model_option
@json_option
def command(
    file: str,
    inputs: tuple[str, ...],
    folder: str | None,
    is_random: bool,
    seed: int,
    backend: str,
    timeout: float,
    max_memory: str | None,
    model: str | None,
    as_json: bool,
) -> int:
    """Run a program of a .pt2 file with NumPy or jax. Nothing in the file is executed; PyTorch is not needed."""
    from pt2kit.errors import InputError, LimitError, OperatorError
    from pt2kit.runtime.session import RunLimits, Session, describe_output, output_leaves, output_row, write_outputs

    memory = memory_limit(max_memory)
    with limited(timeout, memory):
        with open_file(file) as package:
            limits = RunLimits(max_bytes=memory, max_seconds=timeout)
            chosen = choose_model(package, model)
            session = Session(package, model=chosen, backend=backend, limits=limits, seed=seed)
        if not inputs and not is_random and session.inputs:
            _list_inputs(session, as_json)
            return 0
        values = filled(session, inputs, seed, is_random=is_random)
        try:
            outputs = output_leaves(session.run_leaves(values))
        except (InputError, OperatorError, LimitError) as error:
            print_error(printable(str(error), 4000))
            return 1
        files = write_outputs(outputs, folder) if folder is not None else []
    if as_json:
        named = zip_longest(outputs, files)
        print_json({"outputs": [output_row(value) | ({"file": path} if path else {}) for value, path in named]})
    else:
        print_lines(
            f"output {number}: {describe_output(value)}" + (f"  {printable(files[number])}" if files else "")
            for number, value in enumerate(outputs)
        )
    return 0


def memory_limit(text: str | None) -> int:
    """Return the bytes that a command may use, as the user writes them; three quarters of all by default.

    Raises:
        UsageError: no such number.
    """
    return _most_memory() if text is None else parse_bytes(text, "--max-memory")


def _most_memory() -> int:
    """Return three quarters of the memory of this machine; 4 GiB if that is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, ValueError, OSError):
        return 4 << 30


@contextmanager
def limited(seconds: float, memory: int) -> Iterator[None]:
    """End this process if the block takes longer; refuse memory above the limit where the system can."""

    def stop() -> None:
        print_error(f"expected the program to end within {seconds:g} seconds, got the timeout; pass a larger --timeout")
        sys.stderr.flush()
        os._exit(2)  # the main thread may be inside a kernel

    timer = threading.Timer(seconds + 1, stop)
    timer.daemon = True
    timer.start()
    before: Any = None
    try:
        import resource
    except ImportError:  # Windows
        resource = None  # type: ignore[assignment]
    else:
        before = resource.getrlimit(resource.RLIMIT_DATA)
        most = memory if before[1] == resource.RLIM_INFINITY else min(memory, before[1])
        resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        timer.cancel()
        if before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, before)


def filled(session: Session, given: Iterable[str], seed: int, *, is_random: bool) -> list[Any]:
    """Return the inputs of the command line, and random ones for those that are missing.

    Raises:
        Refusal: a name that is no input, or an input that is missing.
        InputError: a file that is no array.
    """
    from pt2kit.runtime.inputs import random_inputs
    from pt2kit.runtime.session import read_arrays, typed

    values: list[Any] = random_inputs(session.convention, seed) if is_random else [None for _ in session.inputs]
    names = [spec.name for spec in session.inputs]
    numbered = {f"input_{place}": place for place in range(len(names))}
    found: set[int] = set()
    for text in given:
        name, sign, value = text.partition("=")
        for key, one in {name: _read(value)}.items() if sign else read_arrays(text).items():
            if key not in names and key in numbered:
                key = names[numbered[key]]
            if key not in names:
                known = ", ".join(names) or "none"
                raise Refusal(f"--input: expected one of {known}, got {printable(key)}" + suggestion(key, names))
            place = names.index(key)
            values[place] = typed(one, session.inputs[place].dtype)
            found.add(place)
    if is_random:
        return values
    for place, spec in enumerate(session.inputs):
        if place not in found:
            if spec.dtype is not None or spec.number is not None:
                raise Refusal(f"--input: expected a value for {spec.name}; pass --input NAME=FILE.npy or --random")
            values[place] = spec.constant
    return values


def _read(text: str) -> Any:
    """Return a number, a truth value or None as written, else the array in a .npy file."""
    from pt2kit.runtime.session import read_array

    if text in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text]
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        return float(text)
    return read_array(text)


def _list_inputs(session: Session, as_json: bool) -> None:
    rows = [{"name": spec.name, "type": spec.describe()} for spec in session.inputs]
    if as_json:
        print_json({"inputs": rows})
    else:
        print_lines(f"input {row['name']}: {row['type']}" for row in rows)
