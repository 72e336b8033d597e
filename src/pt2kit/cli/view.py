"""`pt2 view FILE [OTHER]`: see a program in a browser."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pt2kit.cli.common import FILE, standard_input
from pt2kit.cli.output import print_lines
from pt2kit.messages import printable

if TYPE_CHECKING:
    from pt2kit.viewing.answers import Answers

EPILOG = """\b
Examples:
  pt2 view model.pt2                         opens a browser
  pt2 view old.pt2 new.pt2                   what differs, coloured
  pt2 view model.pt2 --html model.html       one file, to mail or to attach
  pt2 view https://host/model.pt2 --no-browser --port 8000

\b
Exit codes: 0 fine, 1 the file could not be read, and the page says so (--html), 2 could not run.
"""


@click.command("view", epilog=EPILOG, short_help="See a program in a browser.")
@click.argument("file", metavar="FILE", type=FILE)
@click.argument("other", metavar="[OTHER]", required=False, type=FILE)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write one file instead of serving.")
@click.option("--tensors", is_flag=True, help="With --html: read all tensors, and put their statistics in.")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; any free one by default.")
def command(file: str, other: str | None, html: Path | None, tensors: bool, browser: bool, port: int) -> int:
    """Show a .pt2 file in a browser, folded by modules; with OTHER, what differs from FILE to OTHER.

    The page is served to this machine alone, until Ctrl-C.
    """
    if file == other == "-":
        raise click.UsageError("expected standard input once, got it twice")
    if tensors and html is None:
        raise click.UsageError("expected --tensors with --html, got it alone: a served page reads tensors when asked")
    from pt2kit.viewing.answers import Answers

    sources = [standard_input() if name == "-" else name for name in (file, other) if name is not None]
    answers = Answers(sources[-1], sources[0] if other is not None else None, live=html is None)
    try:
        return _serve(answers, browser, port) if html is None else _write(answers, html, tensors)
    finally:
        answers.close()


def _write(answers: Answers, path: Path, tensors: bool) -> int:
    from pt2kit.tensors.output import new_file
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
