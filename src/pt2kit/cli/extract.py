"""`pt2 extract FILE OUT`: a module, or the nodes between two values, as a program of its own."""

from __future__ import annotations

from dataclasses import dataclass

import click

from pt2kit.cli.common import choose_model, one_output, open_file, write_result
from pt2kit.cli.completion import complete_modules, complete_nodes
from pt2kit.cli.frame import argument, model_option, option, output_option, prove_option
from pt2kit.messages import count_text
from pt2kit.package.open import Package


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `pt2 extract`."""

    source: str = argument("FILE")
    target: str | None = argument("[OUT]")
    module: str | None = option("The path of a module.", "PATH", shell_complete=complete_modules)
    from_value: tuple[str, ...] = option(
        "A value that becomes an input; repeatable.", "VALUE", shell_complete=complete_nodes
    )
    to_value: tuple[str, ...] = option(
        "A value that becomes an output; repeatable.", "VALUE", shell_complete=complete_nodes
    )
    output: str | None = output_option()
    prove: bool = prove_option()
    model: str | None = model_option()


def run(options: Options) -> int:
    """Write a part of a program as a program of its own, with the weights that it uses.

    Everything else is left out, sample inputs included.

    Examples:
      pt2 extract model.pt2 layer.pt2 --module layers.3.mlp
      pt2 extract model.pt2 head.pt2 --from-value relu_4 --to-value linear_5

    Exit codes: 0 written, 1 --prove found a difference, 2 it cannot be done (the error says why; nothing was written).
    """
    module, inputs, outputs = options.module, options.from_value or None, options.to_value or None
    if (module is None) == (inputs is None and outputs is None):
        got = "" if module is None else ", got both"
        raise click.UsageError(f"expected --module, or --from-value and --to-value{got}")
    target = one_output(options.target, options.output)
    from pt2kit.editing.extracting import extract

    with open_file(options.source) as package:
        chosen = choose_model(package, options.model)
        extracted = extract(package, module, inputs=inputs, outputs=outputs, model=chosen, prove=options.prove)
        [name] = extracted.layout.models
        counts = [
            f"{_count(extracted, name):,} of {_count(package, chosen):,} nodes",
            f"{len(extracted.weights(name)):,} of {count_text(len(package.weights(chosen)), 'weight')}",
        ]
        write_result(extracted, target, done=f"{', '.join(counts)}; no sample inputs")
    return 0


def _count(package: Package, model: str) -> int:
    return len(package.programs[model].graph_module.graph.nodes)
