"""`pt2 run FILE`: run a program with NumPy, without PyTorch."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from pt2kit.cli.common import SECONDS, Refusal, choose_model, open_file
from pt2kit.cli.frame import Result, ResultOptions, argument, memory_option, model_option, option, print_result
from pt2kit.cli.output import print_error
from pt2kit.messages import printable, suggestion

if TYPE_CHECKING:
    from pt2kit.runtime.inputs import InputSpec
    from pt2kit.runtime.session import Session


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 run`."""

    file: str = argument("FILE")
    inputs: tuple[str, ...] = option("A .npy file or number; or .npz or .safetensors.", "--input", "NAME=VALUE")
    folder: str | None = option("Write outputs to this directory, or .safetensors file.", "--output", "-o", "DIR")
    is_random: bool = option("Use random inputs within the declared ranges.", "--random")
    seed: int = option("Seed of random inputs and operators.", type=click.IntRange(0), default=0, show_default=True)
    backend: str = option("The engine.", type=click.Choice(["numpy", "jax"]), default="numpy", show_default=True)
    timeout: float = option("Stop after this time.", "SECONDS", type=SECONDS, default=600.0, show_default=True)
    max_memory: int | None = memory_option("Use at most this much memory, such as 4G.")
    model: str | None = model_option()


def run(options: Options) -> int:
    """Run a program of a .pt2 file with NumPy or jax. Nothing in the file is executed; PyTorch is not needed.

    Examples:
      pt2 run model.pt2 --input x=x.npy --output results
      pt2 run model.pt2 --input inputs.npz --output results
      pt2 run model.pt2 --random --seed 0     inputs within the declared ranges
      pt2 run model.pt2                       list the inputs

    Exit codes: 0 done, 1 the program fails for these inputs, 2 could not run.
    """
    from pt2kit.errors import InputError, LimitError, OperatorError
    from pt2kit.runtime.session import RunLimits, Session, describe_output, output_leaves, output_row, write_outputs

    inputs, seed, memory = options.inputs, options.seed, options.max_memory or most_memory()
    with limited(options.timeout, memory):
        with open_file(options.file) as package:
            limits = RunLimits(max_bytes=memory, max_seconds=options.timeout)
            chosen = choose_model(package, options.model)
            session = Session(package, model=chosen, backend=options.backend, limits=limits, seed=seed)
        if not inputs and not options.is_random and session.inputs:
            return print_result(_listed(session), options.as_json)
        values = filled(session, inputs, seed, is_random=options.is_random)
        try:
            outputs = output_leaves(session.run_leaves(values))
        except (InputError, OperatorError, LimitError) as error:
            print_error(printable(str(error), 4000))
            return 1
        files = write_outputs(outputs, options.folder) if options.folder is not None else []
    named = list(zip_longest(outputs, files))
    lines = (
        f"output {number}: {describe_output(value)}" + (f"  {printable(path)}" if path else "")
        for number, (value, path) in enumerate(named)
    )
    rows = ({**output_row(value), **({"file": path} if path else {})} for value, path in named)
    return print_result(Result(lines, lambda: {"outputs": list(rows)}), options.as_json)


def most_memory() -> int:
    """Return the bytes that a command may use by default: three quarters of this machine's, or 4 GiB if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, ValueError, OSError):
        return 4 << 30


@contextmanager
def limited(seconds: float, memory: int) -> Iterator[None]:
    """End this process if the block takes longer; refuse memory above the limit where the system can.

    Raises:
        Refusal: the block needs more memory.
    """

    def stop() -> None:
        print_error(f"expected the program to end within {seconds:g} seconds, got the timeout; pass a larger --timeout")
        sys.stderr.flush()
        os._exit(2)  # the main thread may be inside a kernel

    timer = threading.Timer(min(seconds + 1, threading.TIMEOUT_MAX), stop)
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
    except (MemoryError, ImportError) as error:  # A library that does not fit is an ImportError.
        if isinstance(error, ModuleNotFoundError):
            raise
        got = printable(str(error)) or "no more memory"
        raise Refusal(
            f"--max-memory: expected Python, NumPy and the program to fit into {memory:,} bytes, got: {got}"
        ) from error
    finally:
        timer.cancel()
        if before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, before)


def filled(session: Session, given: Iterable[str], seed: int, *, is_random: bool) -> list[Any]:
    """Return the inputs of the command line, and random ones for those that are missing.

    Raises:
        Refusal: a name that is no input, a value that is none, or an input that is missing.
        InputError: a file that is no array.
    """
    from pt2kit.runtime.inputs import random_inputs
    from pt2kit.runtime.session import read_arrays, typed

    specs = {spec.name: spec for spec in session.inputs}
    known = {f"input_{place}": name for place, name in enumerate(specs)} | {name: name for name in specs}
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        for key, one in {name: value}.items() if sign else read_arrays(text).items():
            if key not in known:
                names = ", ".join(specs) or "none"
                raise Refusal(f"--input: expected one of {names}, got {printable(key)}" + suggestion(key, specs))
            spec = specs[known[key]]
            found[spec.name] = typed(_read(value, spec) if sign else one, spec.dtype)
    if is_random:
        return [found.get(name, one) for name, one in zip(specs, random_inputs(session.convention, seed), strict=True)]
    for name, spec in specs.items():
        if name not in found and (spec.dtype is not None or spec.numbers):
            raise Refusal(f"--input: expected a value for {name}; pass --input NAME=FILE.npy or --random")
    return [found.get(name, spec.constant) for name, spec in specs.items()]


def _read(text: str, spec: InputSpec) -> Any:
    """Return a number, a truth value or None as written, the text of a text input, else the array in a .npy file."""
    from pt2kit.runtime.session import read_array

    if isinstance(spec.constant, str):
        return text
    if text in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text]
    if re.fullmatch(r"[-+]?\d{1,40}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"nan|[-+]?(inf|(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)", text, re.ASCII):
        return float(text)
    if not os.path.exists(text):
        raise Refusal(
            f"--input {printable(spec.name)}: expected a number, true, false, none or a .npy file, got "
            f"{printable(text)}, and no such file"
        )
    return read_array(text)


def _listed(session: Session) -> Result:
    """Return the inputs of a program."""
    rows = [{"name": spec.name, "type": spec.describe()} for spec in session.inputs]
    return Result((f"input {row['name']}: {row['type']}" for row in rows), lambda: {"inputs": rows})
