"""`pt2 unpack FILE FOLDER`: each program of an archive as a file of its own."""

from __future__ import annotations

import click

from pt2kit.cli.common import FILE, file_argument, open_file
from pt2kit.cli.output import print_lines

EPILOG = """\b
Examples:
  pt2 unpack both.pt2 programs/
  pt2 unpack s3://models/both.pt2 programs/

\b
Exit codes: 0 written, 2 it cannot be done (the error says why; nothing was written).
"""


@click.command("unpack", epilog=EPILOG, short_help="Each program to a file of its own.")
@file_argument
@click.argument("folder", metavar="FOLDER", type=FILE)
def command(file: str, folder: str) -> int:
    """Write each program of an archive to FOLDER/<name>.pt2, with the weights that it uses and all extra files."""
    from pt2kit.editing.packing import unpack

    with open_file(file) as package:
        paths = unpack(package, folder)
    print_lines(str(path) for path in paths.values())
    return 0
