"""`pt2 extract FILE OUT`: a module, or what lies between values, as a program of its own."""

from __future__ import annotations

import click

from pt2kit.cli.common import FILE, choose_model, one_model_option, one_output, open_file, prove_option, write_result
from pt2kit.cli.completion import complete_modules, complete_nodes
from pt2kit.cli.output import print_lines
from pt2kit.package.open import Package

EPILOG = """\b
Examples:
  pt2 extract model.pt2 layer.pt2 --module layers.3.mlp
  pt2 extract model.pt2 head.pt2 --input relu_4 --output linear_5

\b
Exit codes: 0 written, 1 --prove found a difference, 2 it cannot be done (the error says why; nothing was written).
"""


@click.command("extract", epilog=EPILOG)
@click.argument("source", metavar="FILE", type=FILE)
@click.argument("target", metavar="[OUT]", required=False, type=FILE)
@click.option("--module", metavar="PATH", shell_complete=complete_modules, help="The path of a module.")
@click.option(
    "--input",
    "inputs",
    metavar="VALUE",
    multiple=True,
    shell_complete=complete_nodes,
    help="A value that the caller is to pass.",
)
@click.option(
    "--output",
    "outputs",
    metavar="VALUE",
    multiple=True,
    shell_complete=complete_nodes,
    help="A value that the caller is to get.",
)
@click.option("-o", "output", metavar="OUT", type=FILE, help="The file to write; the same as OUT.")
@prove_option
@one_model_option
def command(
    source: str,
    target: str | None,
    module: str | None,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    output: str | None,
    prove: bool,
    model: str | None,
) -> int:
    """Write a part of a program as a program of its own, with the weights that it uses.

    What nothing in it needs stays behind, and so do the sample inputs.
    """
    if module is None and not inputs and not outputs:
        raise click.UsageError("expected --module, or --input and --output")
    if module is not None and (inputs or outputs):
        raise click.UsageError("expected --module, or --input and --output, got both")
    target = one_output(target, output)
    from pt2kit.editing.extracting import extract

    with open_file(source) as package:
        chosen = choose_model(package, model)
        extracted = extract(package, module, inputs=inputs or None, outputs=outputs or None, model=chosen, prove=prove)
        write_result(extracted, target)
        if target != "-":
            [name] = extracted.layout.models
            counts = [
                f"{_count(extracted, name):,} of {_count(package, chosen):,} nodes",
                f"{len(extracted.weights(name)):,} of {len(package.weights(chosen)):,} weights",
            ]
            print_lines([f"{target}: {', '.join(counts)}; no sample inputs"])
    return 0


def _count(package: Package, model: str) -> int:
    return len(package.programs[model].graph_module.graph.nodes)
