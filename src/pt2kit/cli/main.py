"""The command line `pt2`: choose a subcommand, import its module alone, and turn errors into exit codes."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys
import warnings
from types import MappingProxyType

import click

from pt2kit.cli.output import LazyGroup, drop_output, end_by_signal, error_text, folded, print_error
from pt2kit.errors import ProofError, Pt2Error, SignatureError
from pt2kit.front_door import OPTIONAL, instructions

COMMANDS = MappingProxyType(
    {
        "show": "Show what is in a file: summary, graph, nodes, modules, sizes.",
        "view": "View a program, or two compared, in the browser.",
        "check": "Find what is wrong with files, and what torch would run on load.",
        "explain": "Explain a rule: meaning, example, reason, how to fix.",
        "weights": "List, extract or replace tensors.",
        "digest": "Print SHA-256 digests of what a program means.",
        "diff": "Compare two programs by behavior, ignoring value names.",
        "convert": "Convert files to another release of torch, newer or older.",
        "sanitize": "Rewrite files without pickles and code; strip traces and paths.",
        "run": "Run a program with NumPy, without PyTorch.",
        "edit": "Edit a program: inputs, outputs, operators, weights; run passes.",
        "extract": "Extract a module, or the nodes between two values.",
        "compose": "Join two programs: outputs of one become inputs of the other.",
        "extra": "List, print or write the extra files of an archive.",
        "pack": "Pack several programs into one archive; share equal weights.",
        "unpack": "Write each program of an archive to a file of its own.",
        "fleet": "Run a command on thousands of files; write a dataset and a report.",
        "sign": "Sign a file by what it means, or by its bytes.",
        "verify": "Verify a signature.",
        "schema": "Print the format's schema for other languages; compare versions.",
        "completion": "Print shell completion for bash, zsh or fish.",
    }
)
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells report it: 128 plus the number of the signal."""
_COLLECTIONS = (50_000, 20, 20)
"""Thresholds of the garbage collector: with Python's own, it takes a third of the time of a large program."""
EPILOG = """\b
`pt2 FILE` is `pt2 show FILE`; `pt2 help COMMAND` is `pt2 COMMAND --help`.
"""


class Commands(LazyGroup):
    """The subcommands of `pt2`; `help COMMAND` and `FILE` are two more."""

    helps = COMMANDS

    def load(self, name: str) -> click.Command:
        """Import the module of a subcommand, and return its command."""
        from pt2kit.cli.frame import load_command

        return load_command(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that arguments begin with: `help`, a file that is to be shown, or a command.

        Raises:
            UsageError: there is no such command and no such file; the message suggests close names.
        """
        first, *rest = args
        if first == "help":
            if not rest:
                click.echo(ctx.get_help())
                ctx.exit()
            return self.resolve_command(ctx, [*rest, "--help"])
        if first in COMMANDS or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if first == "-" or "://" in first or first.endswith(".pt2") or os.path.exists(first):
            return "show", self.get_command(ctx, "show"), args
        from pt2kit.messages import suggestion

        near = [*COMMANDS, *(name for name in os.listdir() if name.endswith(".pt2"))]
        raise click.UsageError(f"expected a command or a file, got {first!r}{suggestion(first, near, 0.6)}", ctx)


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(None, "-V", "--version", package_name="pt2kit", prog_name="pt2")
@click.option(
    "--weights-root",
    metavar="FOLDER",
    help="Accept external weights anywhere below FOLDER, not only below the folder of FILE.",
)
def cli(weights_root: str | None) -> None:
    """Inspect, check, convert and edit PyTorch .pt2 files, without PyTorch. FILE is a path, a URL, or - for stdin."""


def main() -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(*_COLLECTIONS)
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):  # Windows has no SIGHUP.
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` ignores SIGHUP.
            signal.signal(number, end_by_signal)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a pipe that is not UTF-8 gets escapes, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *where: print_error(str(message), "note:")
    stdout = sys.stdout
    try:
        code = cli.main(prog_name="pt2", standalone_mode=False) or 0
        with contextlib.suppress(BrokenPipeError):  # a closed pipe does not affect the exit code
            if sys.stdout is not None:
                sys.stdout.flush()
    except SystemExit as error:
        code = error.code if sys.stdout is stdout else 0  # click replaces the stream when nobody reads it any more
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = _fail("interrupted", INTERRUPTED)
    except click.UsageError as error:
        if sys.stderr is not None:
            shown = io.StringIO()
            error.show(shown)
            click.echo("\n".join(map(folded, shown.getvalue().splitlines())), err=True)
        code = 2
    except click.ClickException as error:
        code = _fail(error.format_message())
    except (ProofError, SignatureError) as error:
        code = _fail(error_text(error), 1)
    except (Pt2Error, OSError) as error:
        code = _fail(error_text(error))
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        code = _fail(instructions("pt2", OPTIONAL[error.name]))
    except MemoryError:
        code = _fail("expected more memory than there is: the file, or what was asked of it, is too large")
    drop_output()
    sys.exit(code)


def _fail(message: str, code: int = 2) -> int:
    """Print an error in one line; return the exit code."""
    print_error(message)
    return code
