"""`pt2 extra FILE [NAME]...`: list, print or write the extra files of an archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from pt2kit.cli.common import Refusal, open_file
from pt2kit.cli.frame import Result, ResultOptions, argument, force_option, option, print_result, rename_option
from pt2kit.cli.output import print_bytes, print_lines
from pt2kit.messages import printable, suggestion
from pt2kit.package.open import Package
from pt2kit.zip.chosen_names import paths_below


@dataclass(frozen=True, slots=True)
class Options(ResultOptions):
    """Options of `pt2 extra`."""

    file: str = argument("FILE")
    names: tuple[str, ...] = argument("[NAME]...", type=None)
    folder: str | None = option(
        "Write files to a folder, printing none.", "--output", "-o", "--to", type=click.Path(file_okay=False)
    )
    force: bool = force_option()
    rename: bool = rename_option()


def run(options: Options) -> int:
    """List the extra files of an archive, or print some: those that `extra_files=` of torch.export.save put in.

    Examples:
      pt2 extra model.pt2                    lists them
      pt2 extra model.pt2 labels.txt         prints one, byte for byte
      pt2 extra model.pt2 --to folder/       writes all, or those that are named; replaces no file
      pt2 pack model.pt2 -o new.pt2 --extra labels.txt=labels.txt    puts one in

    Exit codes: 0 fine, 2 there is no such file, or it could not be read or written.
    """
    if options.as_json and (options.names or options.folder):
        raise click.UsageError("expected --json alone, got it with NAME or --to")
    with open_file(options.file) as package:
        files = package.extra_files
        for name in options.names:
            if name not in files:
                listed = ", ".join(map(printable, list(files)[:10])) or "none"
                raise Refusal(
                    f"{package.name}: expected an extra file, one of {listed}, got {printable(name)}"
                    + suggestion(name, files)
                )
        if options.folder is not None:
            wanted = options.names or files
            _write(package, paths_below(Path(options.folder), wanted, force=options.force, rename=options.rename))
        elif options.names:
            for name in options.names:
                print_bytes(files[name])
        else:
            return print_result(_listed(package), options.as_json)
    return 0


def _listed(package: Package) -> Result:
    from pt2kit.text.format import bytes_text, table

    records = package.layout.extra_files()
    sizes = {name: package.records[records[name]].size for name in package.extra_files}
    lines = table([(printable(name), bytes_text(size)) for name, size in sizes.items()], 60, right=(1,))
    rows = [{"name": name, "bytes": size, "record": records[name]} for name, size in sizes.items()]
    return Result(lines if sizes else [f"{package.name}: no extra files"], lambda: rows)


def _write(package: Package, paths: Mapping[str, Path]) -> None:
    from pt2kit.tensors.export import new_file

    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(package.extra_files[name])
        print_lines([printable(str(path))])
