"""`pt2 compose FIRST SECOND OUT`: one program that runs both."""

from __future__ import annotations

from dataclasses import dataclass

import click

from pt2kit.cli.common import is_count, one_output, open_file, write_result
from pt2kit.cli.frame import argument, option, output_option, prove_option


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 compose`."""

    first: str = argument("FIRST")
    second: str = argument("SECOND")
    target: str | None = argument("[OUT]")
    connect: tuple[tuple[str, str], ...] = option(
        "An output of FIRST, by name or number from 0, and the input of SECOND that it becomes.",
        "OUTPUT=INPUT",
        required=True,
    )
    prefix: tuple[str, ...] = option("In front of names of FIRST; given again, of SECOND.", "NAME")
    name: str = option("Of the new program.", "NAME", default="model", show_default=True)
    output: str | None = output_option()
    prove: bool = prove_option()


def run(options: Options) -> int:
    """Write one program that runs two: outputs of the first become inputs of the second.

    Sample inputs of the two are left out.

    Examples:
      pt2 compose encoder.pt2 decoder.pt2 both.pt2 --connect hidden=x
      pt2 compose a.pt2 b.pt2 ab.pt2 --connect 0=x --prefix enc --prefix dec

    Exit codes: 0 written, 1 --prove found a difference, 2 it cannot be done (the error says why; nothing was written).
    """
    if len(options.prefix) not in (0, 2):
        raise click.UsageError(f"--prefix: expected none or two, got {len(options.prefix)}")
    target = one_output(options.target, options.output)
    from pt2kit.editing.composing import compose

    connect: dict[int | str, list[str]] = {}
    for old, new in options.connect:
        connect.setdefault(int(old) if is_count(old) else old, []).append(new)
    prefixes = (options.prefix[0], options.prefix[1]) if options.prefix else ("", "")
    with open_file(options.first) as a, open_file(options.second) as b:
        composed = compose(a, b, connect, prefixes=prefixes, name=options.name, prove=options.prove)
        nodes = len(composed.programs[options.name].graph_module.graph.nodes)
        weights = len(composed.weights(options.name))
        write_result(composed, target, done=f"{nodes:,} nodes, {weights:,} weights; no sample inputs")
    return 0
