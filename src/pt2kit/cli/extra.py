"""`pt2 extra FILE [NAME]...`: list, print or write the extra files of an archive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from pt2kit.cli.common import Refusal, file_argument, force_option, json_option, open_file, rename_option, suggestion
from pt2kit.cli.output import print_bytes, print_json, print_lines
from pt2kit.messages import printable
from pt2kit.package.open import Package
from pt2kit.zip.chosen_names import paths_below

EPILOG = """\b
Examples:
  pt2 extra model.pt2                    lists them
  pt2 extra model.pt2 labels.txt         prints one, byte for byte
  pt2 extra model.pt2 --to folder/       writes all, or those that are named; replaces no file
  pt2 pack model.pt2 -o new.pt2 --extra labels.txt=labels.txt    puts one in

\b
Exit codes: 0 fine, 2 there is no such file, or it could not be read or written.
"""


@click.command("extra", epilog=EPILOG)
@file_argument
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--output",
    "-o",
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write files to a folder, printing none.",
)
@force_option
@rename_option
@json_option
def command(file: str, names: tuple[str, ...], folder: Path | None, force: bool, rename: bool, as_json: bool) -> int:
    """List the extra files of an archive, or print some: those that `extra_files=` of torch.export.save put in."""
    if as_json and (names or folder):
        raise click.UsageError("expected --json alone, got it with NAME or --to")
    with open_file(file) as package:
        there = package.extra_files
        for name in names:
            if name not in there:
                listed = ", ".join(map(printable, list(there)[:10])) or "none"
                raise Refusal(
                    f"{package.name}: expected an extra file, one of {listed}, got {printable(name)}"
                    + suggestion(name, there)
                )
        if folder is not None:
            _write(package, paths_below(folder, names or there, force=force, rename=rename))
        elif names:
            for name in names:
                print_bytes(there[name])
        else:
            _list(package, as_json)
    return 0


def _list(package: Package, as_json: bool) -> None:
    from pt2kit.text.columns import table
    from pt2kit.text.format import bytes_text

    records = package.layout.extra_files()
    sizes = {name: package.records[records[name]].size for name in package.extra_files}
    if as_json:
        print_json([{"name": name, "bytes": size, "record": records[name]} for name, size in sizes.items()])
    elif not sizes:
        print_lines([f"{package.name}: no extra files"])
    else:
        print_lines(table([(printable(name), bytes_text(size)) for name, size in sizes.items()], 60, right=(1,)))


def _write(package: Package, paths: Mapping[str, Path]) -> None:
    from pt2kit.tensors.output import new_file

    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(package.extra_files[name])
        print_lines([printable(str(path))])
