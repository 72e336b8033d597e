"""`pt2 view FILE [OTHER]`: see a program in a browser."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pt2kit.cli.common import check_page, standard_input
from pt2kit.cli.frame import argument, force_option, option, path_option
from pt2kit.cli.output import print_lines
from pt2kit.jsontext import load_json
from pt2kit.messages import count_text, printable

if TYPE_CHECKING:
    from pt2kit.viewing.answers import Answers


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 view`."""

    file: str = argument("FILE")
    other: str | None = argument("[OTHER]")
    output: str | None = path_option("Write .html as --html, or .svg, .png or .pdf as --export.", "--output", "-o")
    html: str | None = path_option("Write one file instead of serving.")
    force: bool = force_option(is_page=True)
    tensors: bool = option("With --html: read all tensors, and include their statistics.")
    hide_paths: bool = option("Leave directories of source files out of the page.")
    export: str | None = path_option("Write the figure: .svg, .png or .pdf.")
    width: int = option("With --export: width of a .png in pixels.", type=click.IntRange(100, 16000), default=2000)
    numbers: str | None = path_option("JSON with numbers to show on nodes, by node name.", "--data", exists=True)
    fail_on: tuple[str, ...] = option(
        "With two files: exit with 1 if there is such a change.",
        type=click.Choice(["added", "removed", "modified", "any"]),
    )
    runs: bool = option("With two files: run both, show the errors of nodes.", "--run")
    watch: bool = option("Follow changes of the file, such as a new export.")
    browser: bool = option("Open the page in a browser.", "--browser/--no-browser", default=True)
    port: int = option("Port to listen on; any free one by default.", type=click.IntRange(0, 65535), default=0)

    @property
    def written(self) -> tuple[Path | None, Path | None]:
        """Return the page and the figure to write; `--output` is one of them, by its suffix.

        Raises:
            UsageError: it is passed twice.
        """
        html, export = self.html, self.export
        if self.output is not None:
            is_page = Path(self.output).suffix.lower() in (".html", ".htm")
            if (html if is_page else export) is not None:
                raise click.UsageError(f"expected one of --output and --{'html' if is_page else 'export'}, got both")
            html, export = (self.output, export) if is_page else (html, self.output)
        return None if html is None else Path(html), None if export is None else Path(export)


def run(options: Options) -> int:
    """Show a .pt2 file in a browser, folded by modules; with OTHER, what differs from FILE to OTHER.

    The page is served to this machine alone, until Ctrl-C.

    Examples:
      pt2 view model.pt2                         opens a browser
      pt2 view old.pt2 new.pt2                   what differs, in color
      pt2 view model.pt2 --html model.html       one file, to mail or to attach
      pt2 view model.pt2 --export model.svg      the figure, for a paper or a pull request
      pt2 view https://host/model.pt2 --no-browser --port 8000

    Exit codes: 0 fine, 1 an unreadable file (with --html) or a change that --fail-on names,
    2 could not run.
    """
    file, other, fail_on, numbers = options.file, options.other, options.fail_on, options.numbers
    html, export = options.written
    names = [name for name in (file, other) if name is not None]
    if file == other == "-":
        raise click.UsageError("expected standard input once, got it twice")
    if options.tensors and html is None:
        raise click.UsageError("expected --tensors with --html, got it alone: a served page reads tensors when asked")
    check_page(html, options.force)
    if options.watch and (html or export or options.runs or any(not Path(name).is_file() for name in names)):
        raise click.UsageError("expected --watch with local files and without --html, --export and --run")
    if (fail_on or options.runs) and other is None:
        raise click.UsageError(f"expected {'--fail-on' if fail_on else '--run'} with two files, got one")
    from pt2kit.viewing.answers import Answers
    from pt2kit.viewing.draw import checked_data

    sources = [standard_input() if name == "-" else name for name in names]
    data = checked_data(load_json(Path(numbers).read_text("utf-8"), numbers, 4), numbers) if numbers else None
    answers = Answers(
        sources[-1],
        sources[0] if other is not None else None,
        live=html is None and export is None,
        data=data,
        watch=options.watch,
        hide_paths=options.hide_paths,
    )
    try:
        if isinstance(answers.failure, OSError):
            raise answers.failure
        if options.runs and answers.old is not None and answers.package is not None:
            from pt2kit.comparing.runs import compare_runs

            answers.data = {**answers.data, **checked_data(compare_runs(answers.old, answers.package), "--run")}
        code = _write(answers, html, options.tensors) if html is not None else 0
        if export is not None:
            from pt2kit.viewing.page import write_figure

            write_figure(answers, export, options.width)
            print_lines([f"{printable(str(export))}  {export.stat().st_size:,} bytes"])
        if fail_on:
            found = [row.kind for number in range(len(answers.programs)) for row in answers.changes(number)]
            code = max(code, int(bool(found) if "any" in fail_on else bool({*fail_on} & {*found})))
        return code if html or export or fail_on else _serve(answers, options.browser, options.port)
    finally:
        answers.close()


def _write(answers: Answers, path: Path, tensors: bool) -> int:
    from pt2kit.tensors.export import new_file
    from pt2kit.viewing.page import alone

    page = alone(answers, tensors=tensors).encode()
    with new_file(path) as file:
        file.write(page)
    error = answers.index().error
    print_lines([f"{printable(str(path))}  {count_text(len(page), 'byte')}"])
    if error:
        click.echo(f"the file could not be read, which the page says: {error}", err=True)
    return int(bool(error))


def _serve(answers: Answers, browser: bool, port: int) -> int:
    from pt2kit.viewing.server import Server

    with Server(answers, port) as server:
        # The picture is drawn while the browser starts.
        threading.Thread(target=answers.prepare, daemon=True).start()
        print_lines([server.url])
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
