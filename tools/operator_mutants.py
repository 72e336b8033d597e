"""Measure which wrong descriptions of results `check` finds: sizes, ranks, dtypes and strides, overload by overload.

    python -m tools.operator_mutants FOLDER_OR_FILE … [--seed 1] [--each 3] [--list]

For each operator overload in the given `.pt2` files, some calls are drawn, and the declared meta of one result is made
wrong in each of four ways. An overload counts as covered if at least one of the calls drawn is found wrong; strides
count only for overloads whose rule decides them for some call. `--list` names the overloads that are not covered.
Prints the share of overloads per kind of mutant. Needs no torch.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from tools.operator_rules import calls_below

from pt2kit import schema
from pt2kit.checks.call_results import call_differences
from pt2kit.graph.argument_values import arguments
from pt2kit.operators.metas import Symbols
from pt2kit.operators.symbolic import OperatorSpec
from pt2kit.operators.table import find
from pt2kit.schema.names import OPS

KINDS = ("size", "rank", "dtype", "strides")
Drawn = tuple[schema.Node, schema.Graph, Symbols, str]


def one_more(size: schema.SymInt) -> schema.SymInt:
    """Return a size that is larger by one."""
    if isinstance(size.as_int, int):
        return schema.SymInt(as_int=size.as_int + 1)
    text = size.as_expr.expr_str  # type: ignore[union-attr]
    hint = size.as_expr.hint  # type: ignore[union-attr]
    more = None if hint is None or not isinstance(hint.as_int, int) else schema.SymExprHint(as_int=hint.as_int + 1)
    return schema.SymInt(as_expr=schema.SymExpr(f"Add({text}, Integer(1))", more))


def mutants(meta: schema.TensorMeta, rng: random.Random) -> Iterator[tuple[str, schema.TensorMeta]]:
    """Iterate wrong descriptions of a tensor, each with its kind."""
    replace = msgspec.structs.replace
    rank = len(meta.sizes)
    if rank:
        dim = rng.randrange(rank)
        sizes = [one_more(size) if place == dim else size for place, size in enumerate(meta.sizes)]
        yield "size", replace(meta, sizes=sizes)
    one = schema.SymInt(as_int=1)
    yield "rank", replace(meta, sizes=[*meta.sizes, one], strides=[*meta.strides, one])
    dtypes = (schema.ScalarType.FLOAT, schema.ScalarType.LONG, schema.ScalarType.DOUBLE, schema.ScalarType.BOOL)
    yield "dtype", replace(meta, dtype=rng.choice([one for one in dtypes if one is not meta.dtype]))
    large = [place for place, size in enumerate(meta.sizes) if size.as_int not in (0, 1)]
    if large:
        dim = rng.choice(large)
        strides = [one_more(step) if place == dim else step for place, step in enumerate(meta.strides)]
        yield "strides", replace(meta, strides=strides)


def drawn_calls(paths: list[Path], each: int, rng: random.Random) -> dict[str, list[Drawn]]:
    """Return some calls of each overload: those that have a tensor as a result."""
    calls: dict[str, list[Drawn]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    for _, name, step, symbols in calls_below(paths):
        results = [one for output in step.node.outputs for one in arguments(output)]
        tensors = [one for one in results if one in step.scope.graph.tensor_values]
        if not tensors or name.startswith("higher_order."):
            continue
        seen[name] += 1
        drawn = step.node, step.scope.graph, symbols, rng.choice(tensors)
        if len(calls[name]) < each:
            calls[name].append(drawn)
        elif rng.random() < each / seen[name]:
            calls[name][rng.randrange(each)] = drawn
    return calls


def found(spec: OperatorSpec, call: Drawn, meta: schema.TensorMeta) -> bool:
    """Return whether a call whose result is described so is an error."""
    node, graph, symbols, name = call
    changed = msgspec.structs.replace(graph, tensor_values={**graph.tensor_values, name: meta})
    if any(value == name for named in node.inputs for value in arguments(named.arg)):
        return False  # In place: the argument would be described otherwise, too.
    return bool(call_differences(spec, node, changed, symbols))


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=3)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    calls = drawn_calls(options.paths, options.each, rng)
    covered: dict[str, dict[str, bool]] = {kind: {} for kind in KINDS}
    for name, drawn in sorted(calls.items()):
        spec = find(f"{OPS}{name}")
        for call in drawn:
            meta: Any = call[1].tensor_values[call[3]]
            for kind, wrong in mutants(meta, rng):
                is_found = spec is not None and spec.rule is not None and found(spec, call, wrong)
                covered[kind][name] = covered[kind].get(name, False) or is_found
    for kind, rows in covered.items():
        count = sum(rows.values())
        print(f"{kind:8} {count:5} of {len(rows):5} overloads  {100 * count / max(len(rows), 1):5.1f} %")
        if options.list:
            print("         not found: " + ", ".join(name for name, is_found in rows.items() if not is_found))


if __name__ == "__main__":
    main()
