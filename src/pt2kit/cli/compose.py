"""`pt2 compose FIRST SECOND OUT`: one program that runs both."""

from __future__ import annotations

import click

from pt2kit.cli.common import FILE, one_output, open_file, output_option, pairs, prove_option, write_result
from pt2kit.cli.output import print_lines

EPILOG = """\b
Examples:
  pt2 compose encoder.pt2 decoder.pt2 both.pt2 --connect hidden=x
  pt2 compose a.pt2 b.pt2 ab.pt2 --connect 0=x --prefix enc --prefix dec

\b
Exit codes: 0 written, 1 --prove found a difference, 2 it cannot be done (the error says why; nothing was written).
"""


@click.command("compose", epilog=EPILOG)
@click.argument("first", metavar="FIRST", type=FILE)
@click.argument("second", metavar="SECOND", type=FILE)
@click.argument("target", metavar="[OUT]", required=False, type=FILE)
@click.option(
    "--connect", metavar="OUTPUT=INPUT", multiple=True, required=True,
    help="An output of FIRST, by name or number from 0, and the input of SECOND that it becomes.",
)  # fmt: skip
@click.option("--prefix", metavar="NAME", multiple=True, help="In front of names of FIRST; given again, of SECOND.")
@click.option("--name", metavar="NAME", default="model", show_default=True, help="Of the new program.")
@output_option
@prove_option
def command(
    first: str,
    second: str,
    target: str | None,
    connect: tuple[str, ...],
    prefix: tuple[str, ...],
    name: str,
    output: str | None,
    prove: bool,
) -> int:
    """Write one program that runs two: what the first gives, the second takes.

    Sample inputs of the two are left out.
    """
    if len(prefix) not in (0, 2):
        raise click.UsageError(f"--prefix: expected none or two, got {len(prefix)}")
    target = one_output(target, output)
    from pt2kit.editing.composing import compose

    wanted = {int(old) if old.isdecimal() else old: new for old, new in pairs(connect, "--connect")}
    with open_file(first) as a, open_file(second) as b:
        composed = compose(
            a, b, wanted, prefixes=(prefix[0], prefix[1]) if prefix else ("", ""), name=name, prove=prove
        )
        write_result(composed, target)
        if target != "-":
            nodes = len(composed.programs[name].graph_module.graph.nodes)
            print_lines([f"{target}: {nodes:,} nodes, {len(composed.weights(name)):,} weights; no sample inputs"])
    return 0
