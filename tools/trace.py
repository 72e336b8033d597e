"""Count the files of `src` that a command executes, and how often it changes between subpackages.

    python -m tools.trace model.pt2 program          # pt2kit.open(f).programs["model"]: at most 20 files
    python -m tools.trace model.pt2 load --calls     # at most 60; also list the functions of each file

A file counts if a function of it runs. Running the bodies of modules and classes is importing them, which the command
does once before it is traced. A layer change is a call from one subpackage into another.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pt2kit

SRC: Final = str(Path(pt2kit.__file__).parent) + "/"


def _program(path: str) -> None:
    with pt2kit.open(path) as package:
        package.programs[package.layout.models[0]]


def _weights(path: str) -> None:
    with pt2kit.open(path) as package:
        package.weights(package.layout.models[0])


def _save(path: str) -> None:
    program = pt2kit.load(path)
    pt2kit.save(program, io.BytesIO())


COMMANDS: Final[dict[str, Callable[[str], Any]]] = {
    "program": _program,
    "weights": _weights,
    "check": pt2kit.check,
    "digest": pt2kit.digest,
    "load": lambda path: pt2kit.load(path),
    "load-module": lambda path: pt2kit.load_module(path),
    "save": _save,
}


@dataclass(slots=True)
class Trace:
    """The trace of a command.

    Args:
        functions: file below `src/pt2kit` -> names of its functions that ran.
        changes: calls from one subpackage into another.
    """

    functions: dict[str, set[str]] = field(default_factory=dict)
    changes: int = 0

    @property
    def files(self) -> list[str]:
        """The files of which a function ran."""
        return sorted(self.functions)


def trace(command: Callable[[], Any]) -> Trace:
    """Run a command, whose imports are done, and record which functions of `src` it calls."""
    found = Trace()

    def record(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SRC) or code.co_name == "<module>":
            return
        name = code.co_filename.removeprefix(SRC)
        found.functions.setdefault(name, set()).add(code.co_name)
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        if caller.startswith(SRC):
            found.changes += _layer(caller.removeprefix(SRC)) != _layer(name)

    sys.setprofile(record)
    try:
        command()
    finally:
        sys.setprofile(None)
    return found


def _layer(name: str) -> str:
    return name.partition("/")[0]


def main() -> None:
    """Trace the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--calls", action="store_true", help="list the functions of each file")
    options = parser.parse_args()
    command = COMMANDS[options.command]
    command(options.file)
    found = trace(lambda: command(options.file))
    for name in found.files:
        print(f"{name}: {', '.join(sorted(found.functions[name]))}" if options.calls else name)
    print(f"{len(found.files)} files, {found.changes} layer changes")


if __name__ == "__main__":
    main()
