"""`pt2 pack FILE... -o OUT`: several programs in one archive."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from pt2kit.cli.common import open_file, write_result
from pt2kit.cli.frame import argument, external_option, option


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 pack`."""

    files: tuple[str, ...] = argument("[NAME=]FILE...", type=None)
    target: str = option("The archive to write.", "--output", "-o", "OUT", required=True)
    extra: Mapping[str, str] = option("Add an extra file to the archive.", "NAME=PATH")
    external: str | None = external_option()


def run(options: Options) -> int:
    """Put the programs of several files into one archive; weights whose bytes are equal are stored once.

    Examples:
      pt2 pack encoder.pt2 decoder.pt2 -o both.pt2
      pt2 pack enc=a.pt2 dec=b.pt2 -o both.pt2 --extra notes.txt=doc/notes.txt

    Exit codes: 0 written, 2 it cannot be done (the error says why; nothing was written).
    """
    from pt2kit.editing.packing import pack

    added = {name: Path(path).read_bytes() for name, path in options.extra.items()}
    with ExitStack() as stack:
        named = [_split(one) for one in options.files]
        if len({name for name, _ in named}) == len(named) and all(name for name, _ in named):
            packed = pack({name: stack.enter_context(open_file(path)) for name, path in named}, extra_files=added)
        elif any(name for name, _ in named):
            raise click.UsageError("expected a different NAME= for each FILE, or for none")
        else:
            packed = pack([stack.enter_context(open_file(path)) for _, path in named], extra_files=added)
        write_result(packed, options.target, external=options.external, done=", ".join(packed.layout.models))
    return 0


def _split(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    return (name, path) if sign and name.replace("_", "").replace("-", "").isalnum() else ("", text)
