"""`pt2 view FILE [OTHER]`: see a program in a browser."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pt2kit.cli.common import FILE, check_page, force_option, standard_input
from pt2kit.cli.output import print_lines
from pt2kit.jsontext import load_json
from pt2kit.messages import printable

if TYPE_CHECKING:
    from pt2kit.viewing.answers import Answers

EPILOG = """\b
Examples:
  pt2 view model.pt2                         opens a browser
  pt2 view old.pt2 new.pt2                   what differs, in color
  pt2 view model.pt2 --html model.html       one file, to mail or to attach
  pt2 view model.pt2 --export model.svg      the figure, for a paper or a pull request
  pt2 view https://host/model.pt2 --no-browser --port 8000

\b
Exit codes: 0 fine, 1 an unreadable file (with --html) or a change that --fail-on names,
2 could not run.
"""


@click.command("view", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@click.argument("other", metavar="[OTHER]", required=False, type=FILE)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
              help="Write .html as --html, or .svg, .png or .pdf as --export.")  # fmt: skip
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write one file instead of serving.")
@force_option
@click.option("--tensors", is_flag=True, help="With --html: read all tensors, and include their statistics.")
@click.option("--hide-paths", is_flag=True, help="Leave directories of source files out of the page.")
@click.option("--export", type=click.Path(dir_okay=False, path_type=Path), help="Write the figure: .svg, .png or .pdf.")
@click.option(
    "--width", type=click.IntRange(100, 16000), default=2000, help="With --export: width of a .png in pixels."
)
@click.option("--data", "numbers", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="JSON with numbers to show on nodes, by node name.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(["added", "removed", "modified", "any"]), multiple=True,
              help="With two files: exit with 1 if there is such a change.")  # fmt: skip
@click.option("--run", "runs", is_flag=True, help="With two files: run both, show the errors of nodes.")
@click.option("--watch", is_flag=True, help="Follow changes of the file, such as a new export.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; any free one by default.")
def command(
    file: str, other: str | None, html: Path | None, force: bool, tensors: bool, hide_paths: bool,
    export: Path | None, width: int, numbers: Path | None, fail_on: tuple[str, ...], runs: bool, watch: bool,
    browser: bool, port: int, output: Path | None,
) -> int:  # fmt: skip
    """Show a .pt2 file in a browser, folded by modules; with OTHER, what differs from FILE to OTHER.

    The page is served to this machine alone, until Ctrl-C.
    """
    if output is not None:
        is_page = output.suffix.lower() in (".html", ".htm")
        if (html if is_page else export) is not None:
            raise click.UsageError(f"expected one of --output and --{'html' if is_page else 'export'}, got both")
        html, export = (output, export) if is_page else (html, output)
    names = [name for name in (file, other) if name is not None]
    if file == other == "-":
        raise click.UsageError("expected standard input once, got it twice")
    if tensors and html is None:
        raise click.UsageError("expected --tensors with --html, got it alone: a served page reads tensors when asked")
    if html is not None:
        check_page(html, force)
    if watch and (html or export or runs or any(not Path(name).is_file() for name in names)):
        raise click.UsageError("expected --watch with local files and without --html, --export and --run")
    if (fail_on or runs) and other is None:
        raise click.UsageError(f"expected {'--fail-on' if fail_on else '--run'} with two files, got one")
    from pt2kit.viewing.answers import Answers
    from pt2kit.viewing.draw import checked_data

    sources = [standard_input() if name == "-" else name for name in names]
    data = checked_data(load_json(numbers.read_text("utf-8"), str(numbers), 4), str(numbers)) if numbers else None
    answers = Answers(
        sources[-1], sources[0] if other is not None else None, live=html is None and export is None,
        data=data, watch=watch, hide_paths=hide_paths,
    )  # fmt: skip
    try:
        if isinstance(answers.failure, OSError):
            raise answers.failure
        if runs and answers.old is not None and answers.package is not None:
            from pt2kit.comparing.runs import compare_runs

            answers.data = {**answers.data, **checked_data(compare_runs(answers.old, answers.package), "--run")}
        code = _write(answers, html, tensors) if html is not None else 0
        if export is not None:
            from pt2kit.viewing.figure import write_figure

            write_figure(answers, export, width)
            print_lines([f"{printable(str(export))}  {export.stat().st_size:,} bytes"])
        if fail_on:
            found = [row.kind for number in range(len(answers.programs)) for row in answers.changes(number)]
            code = max(code, int(bool(found) if "any" in fail_on else bool({*fail_on} & {*found})))
        return code if html or export or fail_on else _serve(answers, browser, port)
    finally:
        answers.close()


def _write(answers: Answers, path: Path, tensors: bool) -> int:
    from pt2kit.tensors.export import new_file
    from pt2kit.viewing.page import alone

    page = alone(answers, tensors=tensors)
    with new_file(path) as file:
        file.write(page.encode())
    error = answers.index().error
    print_lines([f"{printable(str(path))}  {len(page):,} bytes"])
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
