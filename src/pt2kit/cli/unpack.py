"""`pt2 unpack FILE FOLDER`: each program of an archive as a file of its own."""

from __future__ import annotations

from dataclasses import dataclass

from pt2kit.cli.common import one_output, open_file
from pt2kit.cli.frame import argument, force_option, output_option, rename_option
from pt2kit.cli.output import print_lines


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 unpack`."""

    file: str = argument("FILE")
    folder: str | None = argument("[FOLDER]")
    output: str | None = output_option("FOLDER", "folder")
    force: bool = force_option()
    rename: bool = rename_option()


def run(options: Options) -> int:
    """Write each program of an archive to FOLDER/<name>.pt2, with the weights that it uses and all extra files.

    Examples:
      pt2 unpack both.pt2 programs/
      pt2 unpack s3://models/both.pt2 programs/

    Exit codes: 0 written, 2 it cannot be done (the error says why; nothing was written).
    """
    folder = one_output(options.folder, options.output, "FOLDER")
    from pt2kit.editing.packing import unpack

    with open_file(options.file) as package:
        print_lines(map(str, unpack(package, folder, force=options.force, rename=options.rename).values()))
    return 0
