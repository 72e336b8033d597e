"""A command line -> one subcommand; only its module is imported."""

from __future__ import annotations

import importlib
import os
import sys
from types import MappingProxyType

import click

from pt2kit.errors import Pt2Error

COMMANDS = MappingProxyType(
    {
        "show": "What is in a file: a summary, the graph, one node, one module, the records.",
        "weights": "List tensors, or extract them to .safetensors, .npz or .npy.",
    }
)


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
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        code = _fail("interrupted")
    except click.ClickException as error:
        error.show()
        code = 2
    except BrokenPipeError:
        # The reader of our output went away (`pt2 show … | head`): not our trouble, and nothing more to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except (Pt2Error, OSError) as error:
        code = _fail(str(error))
    sys.exit(code)


def _fail(message: str) -> int:
    click.echo(f"{click.style('error:', fg='red', bold=True)} {message}", err=True)
    return 2
