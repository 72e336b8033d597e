"""`pt2 unpack FILE FOLDER`: each program of an archive as a file of its own."""

from __future__ import annotations

import click

from pt2kit.cli.common import FILE, file_argument, force_option, one_output, open_file, output_option, rename_option
from pt2kit.cli.output import print_lines

EPILOG = """\b
Examples:
  pt2 unpack both.pt2 programs/
  pt2 unpack s3://models/both.pt2 programs/

\b
Exit codes: 0 written, 2 it cannot be done (the error says why; nothing was written).
"""


@click.command("unpack", epilog=EPILOG)
@file_argument
@click.argument("folder", metavar="[FOLDER]", required=False, type=FILE)
@output_option
@force_option
@rename_option
def command(file: str, folder: str | None, output: str | None, force: bool, rename: bool) -> int:
    """Write each program of an archive to FOLDER/<name>.pt2, with the weights that it uses and all extra files."""
    folder = one_output(folder, output, "FOLDER")
    from pt2kit.editing.packing import unpack

    with open_file(file) as package:
        paths = unpack(package, folder, force=force, rename=rename)
    print_lines(str(path) for path in paths.values())
    return 0
