"""`pt2 completion SHELL`: the lines that teach a shell to complete commands, options and file names."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from pt2kit.cli.output import print_lines

SHELLS: Final = ("bash", "zsh", "fish")
EPILOG = """\b
Examples:
  pt2 completion bash >> ~/.bashrc                             bash 4.4 and later
  pt2 completion zsh >> ~/.zshrc                               after compinit
  pt2 completion fish > ~/.config/fish/completions/pt2.fish

\b
Exit codes: 0 fine, 2 wrong usage.
"""


@click.command("completion", epilog=EPILOG, short_help="Completion for bash, zsh, fish.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print what makes a shell complete commands, options, choices and file names of pt2; for its start-up file."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"expected one of {', '.join(SHELLS)}, got {shell}")
    complete = kind(ctx.find_root().command, {}, "pt2", "_PT2_COMPLETE")
    # Not `source()`, which runs bash to ask for its version.
    print_lines((complete.source_template % complete.source_vars()).splitlines(), fitted=False)
    return 0
