"""A command line -> one subcommand; only its module is imported."""

from __future__ import annotations

import importlib
import io
import os
import sys
from types import MappingProxyType

import click

from pt2kit.cli.output import OutputClosed
from pt2kit.errors import Pt2Error

COMMANDS = MappingProxyType(
    {
        "show": "What is in a file: a summary, the graph, one node, one module, the records.",
        "view": "See a program in a browser, folded by modules; two programs, with what differs coloured.",
        "check": "What is wrong with a file, and what torch would run on loading it.",
        "weights": "List tensors, or extract them to .safetensors, .npz or .npy.",
        "digest": "Name a program by what it means: sha256 of graph, signature, weights, metadata.",
        "diff": "What differs between two files: nodes, signature, weights, by what they do and not by their names.",
        "convert": "Write a file as another release of torch writes it, up or down.",
        "sanitize": "Write a file that means the same, without pickles and code; strip traces, scrub paths.",
        "edit": "Change a program: inputs, outputs, operators, weights, devices; run passes over it.",
        "extract": "Cut a module, or what lies between values, out of a program.",
        "compose": "Join two programs: outputs of one become inputs of the other.",
        "pack": "Put several programs into one archive, equal weights stored once.",
        "unpack": "Write each program of an archive to a file of its own.",
        "schema": "Definitions of the format for other languages; what may change between versions.",
    }
)
MAX_MESSAGE = 4000


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
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands with a line each, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="pt2kit", prog_name="pt2")
def cli() -> None:
    """Look into PyTorch .pt2 files, without PyTorch. FILE is a path, a URL, or - for standard input."""


def main() -> None:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal or a pipe that is not UTF-8 gets escapes, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(standalone_mode=False) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Abort:
        code = _fail("interrupted")
    except click.UsageError as error:
        error.show()
        code = 2
    except click.ClickException as error:
        code = _fail(error.format_message())
    except (BrokenPipeError, OutputClosed) as error:
        # The reader of our output went away (`pt2 show … | head`): what was found before that counts.
        _drop_output()
        code = error.code if isinstance(error, OutputClosed) else 0
    except (Pt2Error, OSError) as error:
        code = _fail(str(error))
        _drop_output()
    except MemoryError:
        code = _fail("expected more memory than there is: the file, or what was asked of it, is too large")
    sys.exit(code)


def _fail(message: str) -> int:
    from pt2kit.messages import printable

    click.echo(f"{click.style('error:', fg='red', bold=True)} {printable(message, MAX_MESSAGE)}", err=True)
    return 2


def _drop_output() -> None:
    """Send what is still buffered for standard output nowhere: where it was to go, it cannot."""
    try:
        sys.stdout.flush()
    except (OSError, AttributeError):
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
