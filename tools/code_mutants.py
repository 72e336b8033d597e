"""Mutation testing of the source code: print a diff of each drawn mutant, or apply one to a copy of the repository.

    python -m tools.code_mutants [--seed 261127] [--count 40] [--apply K --to COPY]

A mutant is the source with one small fault (`_faults`); the tests should fail with it. Mutants are drawn from all
subpackages in proportion to their code lines. Excluded are docstrings, annotations, decorators, texts of errors,
`__repr__`, and blocks for type checkers.

Needs nothing but Python.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tools.budgets import ROOT, SOURCE, counted, modules

_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    a: b
    for pair in [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
    for a, b in (pair, pair[::-1])
}
_SIGNS: Mapping[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_NOT_CODE = ("annotation", "returns", "decorator_list", "exc", "cause", "msg")
"""Fields of nodes that hold annotations, decorators and errors."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with a fault: a part of its bytes is replaced.

    Args:
        path: the file, relative to the folder of the package.
        line: the line where the part begins.
        kind: the kind of fault, such as "comparison".
        begin, end: where the part begins and ends, in bytes.
        text: what replaces the part.
    """

    path: str
    line: int
    kind: str
    begin: int
    end: int
    text: str

    def mutated(self, source: bytes) -> bytes:
        """Return the contents of the file with the fault."""
        return source[: self.begin] + self.text.encode() + source[self.end :]


def diff(mutant: Mutant, source: Path = SOURCE) -> str:
    """Return a fault as a unified diff."""
    name, before = f"src/pt2kit/{mutant.path}", (source / mutant.path).read_bytes()
    old, new = (data.decode().splitlines(keepends=True) for data in (before, mutant.mutated(before)))
    return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=1))


def _faults(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the faults that fit a node of the syntax tree: their kind, and the text that replaces the node."""
    match node:
        case ast.Compare(left, [op, *others], values):
            yield "comparison", ast.unparse(ast.Compare(left, [_COMPARED[type(op)](), *others], values))
        case ast.BoolOp(op, values):
            swapped = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and for or", f"({ast.unparse(ast.BoolOp(swapped, values))})"
        case ast.AugAssign(target, ast.Add() | ast.Sub() as op, value):
            yield "sum for difference", ast.unparse(ast.AugAssign(target, _SIGNS[type(op)](), value))
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right) if not (_is_joined(left) or _is_joined(right)):
            yield "sum for difference", ast.unparse(ast.BinOp(left, _SIGNS[type(op)](), right))
        case ast.Constant(bool() as value):
            yield "flag", str(not value)
        case ast.Constant(int() as value):
            yield "off by one", str(value + 1)
        case ast.Constant(str() as value) if " " not in value:
            yield "text", repr(f"{value}_")
        case ast.Return(ast.Compare() | ast.UnaryOp(ast.Not()) | ast.Constant(bool()) as value):
            yield "result", f"return not ({ast.unparse(value)})"
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "result", "return None"
        case ast.Continue() | ast.Break():
            yield "continue for break", "break" if isinstance(node, ast.Continue) else "continue"
        case ast.Raise() | ast.Expr(ast.Call()):
            yield "deleted statement", "pass"


def _is_joined(node: ast.AST) -> bool:
    """Return whether an operand of + is a text or a list: these have no difference, so that any test would fail."""
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return isinstance(node, (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)) and not is_number


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Make each mutant of a file, in the order of the tree."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for field, node in _places(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        if field in ("test", "ifs"):
            yield Mutant(path, node.lineno, "condition negated", begin, end, f"not ({ast.unparse(node)})")
        is_default = field in ("defaults", "kw_defaults")
        for kind, text in _faults(node):
            if not is_default or isinstance(node, ast.Constant):
                yield Mutant(path, node.lineno, "default" if is_default else kind, begin, end, text)


def _places(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Iterate the nodes that may be changed, each after the field of its parent that holds it."""
    if isinstance(node, ast.JoinedStr) or _is_left_out(node):
        return
    for name, field in ast.iter_fields(node):
        for child in field if isinstance(field, list) else [field]:
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if not isinstance(child, ast.AST) or name in _NOT_CODE or is_docstring:
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield name, child
            yield from _places(child)


def _is_left_out(node: ast.AST) -> bool:
    """Return whether a node is for type checkers, or a table of names or a `__repr__`, which are no behavior."""
    match node:
        case ast.If(test):
            return "TYPE_CHECKING" in ast.unparse(test)
        case ast.Subscript(ast.Name(name)):
            return name == "Literal"
        case ast.Assign([target]) | ast.AnnAssign(target):
            return ast.unparse(target).lstrip("(").startswith("__")
    return isinstance(node, ast.FunctionDef) and node.name == "__repr__"


def drawn(seed: int, count: int, source: Path = SOURCE) -> list[Mutant]:
    """Draw mutants: subpackages in proportion to their code lines, then a kind, then a place of that kind."""
    files, lines = modules(source), counted(source)
    dice = random.Random(seed)
    step = sum(lines.values()) / count
    offset = dice.random() * step
    result: list[Mutant] = []
    for name in sorted(files):
        offset += lines[name]
        if offset >= step:
            result += _some(dice, int(offset // step), source, files[name])
            offset %= step
    return result


def _some(dice: random.Random, count: int, source: Path, paths: list[Path]) -> Iterator[Mutant]:
    kinds: dict[str, list[Mutant]] = {}
    for path in paths:
        for mutant in mutants(path.relative_to(source).as_posix(), path.read_bytes()):
            kinds.setdefault(mutant.kind, []).append(mutant)
    for _ in range(count):
        kind = dice.choice(sorted(kinds))
        yield kinds[kind].pop(dice.randrange(len(kinds[kind])))
        if not kinds[kind]:
            del kinds[kind]


def main() -> None:
    """Print the diffs, or apply one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=261127, help="what the choice follows from")
    parser.add_argument("--count", type=int, default=40, help="how many mutants")
    parser.add_argument("--apply", type=int, metavar="K", help="apply the mutant of this number instead")
    parser.add_argument("--to", type=Path, metavar="COPY", help="the copy of the repository that gets it")
    args = parser.parse_args()
    found = drawn(args.seed, args.count)
    if args.apply is None:
        for number, mutant in enumerate(found):
            print(f"{number}: {mutant.kind}, line {mutant.line}\n{diff(mutant)}")
    elif args.to is None or args.to.resolve() == ROOT or args.apply not in range(args.count):
        parser.error(f"--apply: expected a number below {args.count}, and --to with a copy of {ROOT}")
    else:
        mutant = found[args.apply]
        changed = args.to / "src" / "pt2kit" / mutant.path
        changed.write_bytes(mutant.mutated((SOURCE / mutant.path).read_bytes()))
        print(diff(mutant))


if __name__ == "__main__":
    main()
