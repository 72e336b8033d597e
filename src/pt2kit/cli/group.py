"""Groups of subcommands that are imported when they are called, and the form of their help."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import click

from pt2kit.cli.output import NARROWEST


class Help(click.HelpFormatter):
    """Format help so that its examples fit the terminal as well."""

    def getvalue(self) -> str:
        """Return the help text."""
        from pt2kit.text.format import fit

        columns = min(self.width + 2, max(NARROWEST, shutil.get_terminal_size().columns))
        return "".join(f"{part}\n" for line in super().getvalue().splitlines() for part in fit(line, columns))


class HelpContext(click.Context):
    """The context of a subcommand."""

    formatter_class = Help


class LazyGroup(click.Group):
    """A command with subcommands whose modules are imported when they are called; its help imports none."""

    helps: Mapping[str, str]
    """Subcommand -> its line in the help."""

    def load(self, name: str) -> click.Command:
        """Return a subcommand of `helps`."""
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the subcommands in the order of the help."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command object of a subcommand."""
        if cmd_name not in self.helps:
            return None
        command = self.load(cmd_name)
        command.context_class = HelpContext
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands with a line each."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))
