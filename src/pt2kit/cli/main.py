"""A command line -> one subcommand; only its module is imported."""

from __future__ import annotations

import contextlib
import importlib
import io
import shutil
import sys
import warnings
from types import MappingProxyType

import click

from pt2kit.cli.output import NARROWEST, drop_output, folded, print_error, said
from pt2kit.errors import Pt2Error

COMMANDS = MappingProxyType(
    {
        "show": "What is in files: a summary, the graph, one node, one module, the records, where the bytes are.",
        "view": "See a program in a browser, folded by modules; two programs, with what differs coloured.",
        "check": "What is wrong with files, and what torch would run on loading them.",
        "weights": "List tensors, or extract them to .safetensors, .npz or .npy.",
        "digest": "Name a program by what it means: sha256 of graph, signature, weights, metadata.",
        "diff": "What differs between two files: nodes, signature, weights, by what they do and not by their names.",
        "convert": "Write files as another release of torch writes them, up or down.",
        "sanitize": "Write files that mean the same, without pickles and code; strip traces, scrub paths.",
        "edit": "Change a program: inputs, outputs, operators, weights, devices; run passes over it.",
        "extract": "Cut a module, or what lies between values, out of a program.",
        "compose": "Join two programs: outputs of one become inputs of the other.",
        "extra": "List the files beside the programs, print or write them.",
        "pack": "Put several programs into one archive, equal weights stored once.",
        "unpack": "Write each program of an archive to a file of its own.",
        "fleet": "Do one of these with thousands of files, on all cores or a Dask cluster; report what was found.",
        "sign": "Sign what a file means, so that it verifies however it is packed; or its bytes.",
        "verify": "Whether a file is what was signed; what is not, by name.",
        "schema": "Definitions of the format for other languages; what may change between versions.",
        "completion": "Completion of commands, options and file names for bash, zsh and fish.",
    }
)
INTERRUPTED = 130
"""What shells give for a process that Ctrl-C ended: 128, and the number of the signal."""


class Help(click.HelpFormatter):
    """Help whose examples fit the terminal as well."""

    def getvalue(self) -> str:
        """The help as it is printed."""
        from pt2kit.text.columns import fit

        columns = min(self.width + 2, max(NARROWEST, shutil.get_terminal_size().columns))
        return "".join(f"{part}\n" for line in super().getvalue().splitlines() for part in fit(line, columns))


class HelpContext(click.Context):
    """What a subcommand is called in."""

    formatter_class = Help


class Commands(click.Group):
    """Imports a subcommand's module when it is called; `pt2 --help` imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in their order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command object of a subcommand."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"pt2kit.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            return None
        for one in (command, *(command.commands.values() if isinstance(command, click.Group) else ())):
            one.context_class = HelpContext
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands with a line each, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="pt2kit", prog_name="pt2")
@click.option(
    "--weights-root",
    metavar="FOLDER",
    help="Let the names of weights in a FILE lead anywhere below this folder, not only below the FILE's own.",
)
def cli(weights_root: str | None) -> None:
    """Look into PyTorch .pt2 files, without PyTorch. FILE is a path, a URL, or - for standard input."""


def main() -> None:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a pipe that is not UTF-8 gets escapes, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *where: print_error(str(message), "note:")
    try:
        code = _flushed(cli.main(standalone_mode=False) or 0)
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
    except (Pt2Error, OSError) as error:
        code = _fail(said(error))
    except MemoryError:
        code = _fail("expected more memory than there is: the file, or what was asked of it, is too large")
    drop_output()
    sys.exit(code)


def _flushed(code: int) -> int:
    """An exit code, once everything is printed; that nobody reads the end of it changes nothing."""
    with contextlib.suppress(BrokenPipeError):
        if sys.stdout is not None:
            sys.stdout.flush()
    return code


def _fail(message: str, code: int = 2) -> int:
    """Say what went wrong, in one line, to whoever still listens."""
    print_error(message)
    return code
