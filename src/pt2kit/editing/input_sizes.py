"""A program -> the sizes of inputs that torch cannot tell to be sizes when it loads them.

Torch learns what a symbol is in the example from the first input that has it as a size of its own. A size that is
computed from symbols which only later inputs have must be at least 0 by their ranges alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from pt2kit import schema, symbols
from pt2kit.checks.program_context import ProgramContext
from pt2kit.editing import sizes as arithmetic
from pt2kit.errors import Problem
from pt2kit.graph.argument_values import arguments
from pt2kit.messages import quote
from pt2kit.symbols.ranges import bounds


def early_sizes(context: ProgramContext) -> Iterator[Problem]:
    """Iterate the sizes that may be negative for all that is known when their input is loaded (E8).

    Source: `deserialize_tensor_meta` and `deserialize_sym_int` in torch/_export/serde/serialize.py, 2.13.
    """
    program = context.program
    graph = program.graph_module.graph
    ranges = {name: (limits.min_val, limits.max_val) for name, limits in program.range_constraints.items()}
    known: set[str] = set()
    for position, argument in enumerate(graph.inputs):
        for name in arguments(argument):
            if (meta := graph.tensor_values.get(name)) is None:
                continue
            computed = [size for size in meta.sizes if arithmetic.known(size) is None]
            known.update(one.name for size in computed if isinstance(one := _parsed(size), symbols.Symbol))
            for size in computed:
                used = set(arithmetic.symbols_of(size))
                if not used <= known and bounds(_parsed(size), ranges)[0] < 0:
                    late = ", ".join(map(quote, sorted(used - known)))
                    said = (
                        f"expected an input before {quote(name)} with a size {late}, which one of its sizes is made of"
                    )
                    yield Problem(f"{context.graph_place}.inputs[{position}]", "E8", f"{said}, got none")
                    break


def _parsed(size: schema.SymInt) -> symbols.Expr:
    return symbols.parse(size.value.expr_str)
