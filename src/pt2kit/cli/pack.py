"""`pt2 pack FILE... -o OUT`: several programs in one archive."""

from __future__ import annotations

from contextlib import ExitStack

import click

from pt2kit.cli.common import external_option, open_file, pairs, write_result
from pt2kit.cli.output import print_lines

EPILOG = """\b
Examples:
  pt2 pack encoder.pt2 decoder.pt2 -o both.pt2
  pt2 pack enc=a.pt2 dec=b.pt2 -o both.pt2 --extra notes.txt=doc/notes.txt

\b
Exit codes: 0 written, 2 it cannot be done (the error says why; nothing was written).
"""


@click.command("pack", epilog=EPILOG)
@click.argument("files", metavar="[NAME=]FILE...", nargs=-1, required=True)
@click.option("--output", "-o", "target", metavar="OUT", required=True, help="The archive to write.")
@click.option("--extra", metavar="NAME=PATH", multiple=True, help="Add an extra file to the archive.")
@external_option
def command(files: tuple[str, ...], target: str, extra: tuple[str, ...], external: str | None) -> int:
    """Put the programs of several files into one archive; weights whose bytes are equal are stored once."""
    from pt2kit.editing.packing import pack

    added = {}
    for name, path in pairs(extra, "--extra"):
        with open(path, "rb") as file:
            added[name] = file.read()
    with ExitStack() as stack:
        named = [_split(one) for one in files]
        if len({name for name, _ in named}) == len(named) and all(name for name, _ in named):
            packed = pack({name: stack.enter_context(open_file(path)) for name, path in named}, extra_files=added)
        elif any(name for name, _ in named):
            raise click.UsageError("expected a different NAME= for each FILE, or for none")
        else:
            packed = pack([stack.enter_context(open_file(path)) for _, path in named], extra_files=added)
        write_result(packed, target, external=external)
        if target != "-":
            print_lines([f"{target}: {', '.join(packed.layout.models)}"])
    return 0


def _split(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    return (name, path) if sign and name.replace("_", "").replace("-", "").isalnum() else ("", text)
