"""Compare the result rules of `pt2kit.operators` with what exported programs declare.

    python -m tools.operator_rules FOLDER_OR_FILE … [--only aten.view] [--missing] [--show 5]

Every call in the given `.pt2` files is computed by its rule, from the declared arguments, and compared with the
declared results. Prints one line per overload: calls, how many the rule answers with sizes, dtype, strides, calls it is
not sure of; differences, of which `--show` are listed with their place. `--missing` lists overloads
without a rule by number of calls instead. Exits with 1 if a rule differs from what torch wrote. Needs no torch.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pt2kit
from pt2kit.checks.call_results import call_differences
from pt2kit.graph.argument_values import arguments_of
from pt2kit.graph.traversal import graphs, walk
from pt2kit.operators.facts import Tensor, Unknown
from pt2kit.operators.metas import Symbols
from pt2kit.operators.symbolic import call_rule
from pt2kit.operators.table import find
from pt2kit.schema.names import OPS


@dataclass
class Tally:
    """The outcomes of one overload's calls."""

    calls: int = 0
    sizes: int = 0
    dtype: int = 0
    strides: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)


def calls_below(paths: list[Path]) -> Iterator[tuple[Path, str, Any, Symbols]]:
    """Iterate the calls of all programs in the `.pt2` files among paths and below folders.

    Yields:
        The file, the operator's name, the step, and the symbols of its program. Files that cannot be read are printed.
    """
    for path in (file for one in paths for file in (sorted(one.rglob("*.pt2")) if one.is_dir() else [one])):
        try:
            programs = list(pt2kit.open(path).programs.values())
        except pt2kit.Pt2Error as error:
            print(f"{path}: not read: {error}", file=sys.stderr)
            continue
        for program in programs:
            symbols = Symbols(program.range_constraints, [scope.graph for scope in graphs(program)])
            for step in walk(program):
                yield path, step.node.target.removeprefix(OPS), step, symbols


def tally(paths: list[Path], only: str) -> tuple[dict[str, Tally], Counter[str]]:
    """Compare every call; return the tallies by overload, and the calls without a rule."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    missing: Counter[str] = Counter()
    for path, name, step, symbols in calls_below(paths):
        if only in name:
            _one(tallies, missing, name, step, symbols, str(path))
    return tallies, missing


def _one(tallies: dict[str, Tally], missing: Counter[str], name: str, step: Any, symbols: Symbols, path: str) -> None:
    spec = find(step.node.target)
    if spec is None or spec.rule is None:
        missing[name] += 1
        return
    row = tallies[name]
    row.calls += 1
    graph = step.scope.graph
    place = f"{path} {step.where} {step.node.name}"
    try:
        differences = call_differences(spec, step.node, graph, symbols, is_strict=True)
    except Unknown as error:
        row.unknown[str(error)] += 1
        return
    except Exception as error:  # noqa: BLE001  # An error inside a rule is what is looked for.
        row.different.append(f"{place}: {type(error).__name__}: {error}")
        return
    row.different += [f"{place}: output {position}: {message}" for _, message, position in differences]
    if any(position is None for _, _, position in differences):
        return
    arguments = arguments_of(step.node, lambda value: symbols.value(graph, value))
    computed = call_rule(spec.rule, arguments)
    first = computed[0] if isinstance(computed, (tuple, list)) and computed else computed
    row.sizes += 1
    if isinstance(first, Tensor):
        row.dtype += first.dtype is not None
        row.strides += first.strides is not None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--show", type=int, default=2)
    options = parser.parse_args()
    tallies, missing = tally(options.paths, options.only)
    if options.missing:
        for name, count in missing.most_common():
            print(f"{count:6} {name}")
        print(f"{len(missing)} overloads, {sum(missing.values())} calls without a rule; {len(tallies)} overloads with")
        return
    for name, row in sorted(tallies.items(), key=lambda item: -item[1].calls):
        unknown = sum(row.unknown.values())
        print(
            f"{name:50} calls {row.calls:6} sizes {row.sizes:6} dtype {row.dtype:6} strides {row.strides:6} "
            f"unknown {unknown:5} different {len(row.different)}"
        )
        for line in row.different[: options.show]:
            print(f"    {line}")
        for why, count in row.unknown.most_common(options.show):
            print(f"    unknown {count}: {why}")
    total = sum(len(row.different) for row in tallies.values())
    print(
        f"{sum(row.calls for row in tallies.values())} calls of {len(tallies)} overloads, {total} differences; "
        f"{len(missing)} overloads without a rule"
    )
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
