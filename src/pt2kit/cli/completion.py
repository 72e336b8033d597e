"""`pt2 completion SHELL`, and what shells complete beyond file names: rules, and names from the file on the line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from pt2kit.cli.output import help_texts, print_lines
from pt2kit.errors import Pt2Error

if TYPE_CHECKING:
    from pt2kit.package.open import Package

SHELLS: Final = ("bash", "zsh", "fish")
MAX_OFFERED: Final = 2000
"""Names that a shell gets at most."""
Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def run(shell: str) -> int:
    """Print shell code that completes commands, options, files, and names inside files; add it to a start-up file.

    Examples:
      pt2 completion bash >> ~/.bashrc                             bash 4.4 and later
      pt2 completion zsh >> ~/.zshrc                               after compinit
      pt2 completion fish > ~/.config/fish/completions/pt2.fish

    Exit codes: 0 fine, 2 wrong usage.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"expected one of {', '.join(SHELLS)}, got {shell}")
    complete = kind(click.get_current_context().find_root().command, {}, "pt2", "_PT2_COMPLETE")
    # Not `source()`, which runs bash to ask for its version.
    print_lines((complete.source_template % complete.source_vars()).splitlines(), fitted=False)
    return 0


command = click.Command(
    "completion", callback=run, params=[click.Argument(["shell"], type=click.Choice(SHELLS))], **help_texts(run)
)


def complete_rules(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer ids of rules; of a list with commas, for its last entry."""
    from pt2kit.rules import RULES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{rule}" for rule in RULES if rule.startswith(last.upper())]


def _from_file(names: Callable[[Package, str], Iterable[str]]) -> Completer:
    """Return a completer that offers names from the file on the command line; of one that cannot be read, none."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from pt2kit.package.open import open_package

        given: Any = next((ctx.params[key] for key in ("file", "files", "source") if ctx.params.get(key)), ctx.args)
        file = given if isinstance(given, str) else next(iter(given), "")  # an option without its value ends parsing
        if not os.path.isfile(file):
            return []
        offered: dict[str, None] = {}
        with suppress(Pt2Error, OSError), open_package(file) as package:
            models = package.layout.models
            wanted = ctx.params.get("model")
            for model in [wanted] if wanted in models else models:
                offered |= dict.fromkeys(name for name in names(package, model) if name.startswith(incomplete))
        return [name for name in offered if name and name.isprintable()][:MAX_OFFERED]

    return complete


def nodes_of(package: Package, model: str) -> Iterable[str]:
    """Return the names of the nodes and values of a program, and the paths of its nodes."""
    from pt2kit.text.program import entries

    return (name for entry in entries(package.programs[model]) for name in (*entry.values, entry.path))


def modules_of(package: Package, model: str) -> Iterable[str]:
    """Yield the modules that the nodes of a program were traced in, each with those around it."""
    from pt2kit.graph.traversal import walk
    from pt2kit.node_metadata.modules import module_of

    for fqn in dict.fromkeys(module_of(step.node.metadata) for step in walk(package.programs[model])):
        parts = fqn.split(".")
        yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


complete_models = _from_file(lambda package, model: [model])
complete_nodes = _from_file(nodes_of)
complete_modules = _from_file(modules_of)
complete_weights = _from_file(lambda package, model: (*package.weights(model), *package.constants(model)))
