"""Row syntax of the operator table: the signature of a rule, its requirements, its results, FLOPs.

`data/rows/linalg.txt` has rows like these. Functions that they call are in the module of the family (`linalg.py`), in
`vocabulary.py`, or are other rows (`linalg_inv` is the rule of `aten.linalg_inv.default`). Rows of
`linalg.products.txt` have the module `linalg.py`, too.

    linalg_{lu_factor,qr}.default _lu_with_info.default     names; "aten." unless another namespace is written
        (self[*b, n, k]:fc, dim=-1, bias[k]?)               parameters of the schema that the rule needs
        value dim != 0                                      a requirement: sizes, dtype, dimension or value
        value dim < 4, "dim: expected less than 4, got {dim}"    the same, with a message of its own
        check one_dtype(self, bias)                         a function that refuses
        unknown self.rank == 1                              the result is not certain if this holds
        inner = smallest(n, k)                              a name for a part of the result
        -> like(self, [*b, inner]), like(self, b)           the results
        flops 2 * n * k                                     floating-point operations; `result` is known too
        shown dim                                           arguments worth showing to people
    looks_up self                                       the operand of which as much is read as is returned
    elements kept                                       where sizes and dtype stay, so do the elements; "changed": of
                                                        a view, they do not
    deduced size                                        the sizes in which -1 stands for the rest of the elements
    gradient none                                       results require no gradient, although an operand may
    answers places                                      several are right: the last result is places in the first
                                                        operand, of equal elements any; "factors": the results are
                                                        factors of a matrix, whose vectors can have other signs
    cat.default (tensors, dim=0) -> cat(tensors, dim)       a row of one line; "rule cat" names a function of Python

A parameter that is written with sizes is a tensor of that rank. Equal names are equal sizes, `*b` stands for any number
of sizes, which broadcast if they are written twice, `_` is any size. `:fc` requires floats or complex numbers
(b bool, i int, f float, c complex), `:int64|int32` one of some dtypes, `?` makes a tensor optional. Expressions are
those of Python without assignments; a comparison that symbols decide is "not known", which no requirement refuses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product as combinations
from types import CodeType, FunctionType
from typing import Any, Final, NoReturn

from pt2kit.data_files import data_file
from pt2kit.operators.facts import (
    Mismatch,
    Subject,
    Tensor,
    agree,
    broadcast,
    decided,
    is_equal,
    require,
    require_rank,
    shown,
)
from pt2kit.symbols.polynomials import Polynomial

_SUBJECTS: Final = ("sizes", "dtype", "dimension", "value")
_PARAMETER: Final = re.compile(
    r"(?P<name>\w+)(\[(?P<sizes>[^\]]*)\])?(:(?P<dtypes>[\w|]+))?(?P<optional>\?)?(=(?P<default>.+))?"
)
_PARTS: Final = re.compile(r"(?:[^,(\[]|\([^)]*\)|\[[^\]]*\])+")
"""The parameters of a signature, at whose commas in brackets it is not split."""
_FIRST: Final = re.compile(r"(.+?)(?: (\((?:[^()]|\([^()]*\))*\)))?(?: ((?:->|rule) .*))?")
"""The first line of a row: names, a signature, a result or the name of a rule."""
_WITH_TEXT: Final = re.compile(r'(.+), "([^"]+)"')
_BRACES: Final = re.compile(r"\{([^}]*)\}")


def _bound(name: str, tensor: Tensor, names: Sequence[str], known: dict[str, Any]) -> list[Any]:
    """Return what the names of a tensor's sizes stand for.

    Args:
        name: of the parameter.
        tensor: the argument.
        names: of its sizes, as they are written.
        known: what the names stand for that are bound already.

    Raises:
        Mismatch: another rank or size.
    """
    star, each = next((place for place, size in enumerate(names) if size[0] == "*"), None), [*names]
    if star is None:
        require_rank(tensor, (len(names),), name)
    else:
        missing = tensor.rank - len(names) + 1
        require(missing >= 0, "sizes", f"{name}: expected {len(names) - 1} dimensions or more", tensor)
        key, rest = names[star][1:], tensor.sizes[star : star + missing]
        known[key] = broadcast(known[key], rest) if key in known and key != "_" else rest
        each[star : star + 1] = ["_"] * missing
    for key, size in zip(each, tensor.sizes, strict=True):
        if key.isdigit():
            agree(size, int(key), f"{name}: expected a size of {key}")
        elif key != "_":
            what = f"{name} [{', '.join(names)}]: expected one size {key}"
            known[key] = agree(known[key], size, what) if key in known else size
    return [known[key] for key in _keys(names)]


def _keys(names: Iterable[str]) -> list[str]:
    """Return the names of sizes that stand for something: no numbers, and not `_`."""
    return [name.lstrip("*") for name in names if not name.isdigit() and name not in ("_", "*_")]


def _require_dtypes(tensor: Tensor, dtypes: str, name: str) -> None:
    from pt2kit.operators.promotion import KINDS, require_dtype, require_kind
    from pt2kit.operators.vocabulary import DTYPE_NAMES

    if set(dtypes) <= set(KINDS):
        require_kind(tensor.dtype, dtypes, name)
    else:
        require_dtype(tensor, [DTYPE_NAMES[one] for one in dtypes.split("|")], name)


@dataclass(slots=True)
class RowText:
    """A row as it is written.

    Args:
        file: that it is in: "elementwise.activations.txt".
        statements: its lines, without names.
    """

    file: str
    statements: list[str]

    @property
    def family(self) -> str:
        """Return the module with the functions of the row: "elementwise"."""
        return self.file.partition(".")[0]

    def value(self, keyword: str) -> str:
        """Return what follows a keyword; "" if the row does not have it."""
        start = f"{keyword} "
        return next((line.removeprefix(start) for line in self.statements if line.startswith(start)), "")

    def compile(self, keyword: str) -> Any:
        """Return the rule behind a keyword: "->" or "flops"; None if the row does not have it."""
        if keyword == "->" and (name := self.value("rule")):
            return _resolve(name, self.family)
        expression = self.value(keyword)
        if not expression:
            return None
        signature = next(line for line in self.statements if line[0] == "(")
        parameters = [*_parameters(signature[1:-1]), *_parameters("result?" if keyword == "flops" else "")]
        steps = [_step(line, is_checked=keyword == "->") for line in self.statements]
        body = [*map(_binding, parameters), *steps, f"return {expression}"]
        return _function(parameters, body, self.family)


def _parameters(signature: str) -> Iterator[re.Match[str]]:
    for written in filter(None, map(str.strip, _PARTS.findall(signature))):
        found = _PARAMETER.fullmatch(written)
        if found is None:
            raise ValueError(f"expected a parameter, got {written!r}")
        yield found


def _binding(parameter: re.Match[str]) -> str:
    """Return the statement that checks an argument, and binds the names of its sizes; "" if nothing is written."""
    name, sizes, dtypes = parameter["name"], parameter["sizes"], parameter["dtypes"]
    statements = []
    if sizes is not None:
        names = [one.strip() for one in sizes.split(",") if one.strip()]
        statements.append(f"[{', '.join(_keys(names))}] = _bound({name!r}, {name}, {names!r}, locals())")
    if dtypes:
        statements.append(f"_require_dtypes({name}, {dtypes!r}, {name!r})")
    is_optional = parameter["optional"] or parameter["default"] is not None
    condition = f"if {name} is not None: " if statements and is_optional else ""
    return condition + "; ".join(statements)


def _step(line: str, *, is_checked: bool) -> str:
    """Return the statement for a line of a row: a name for something, or a requirement; "" for others."""
    word, _, rest = line.partition(" ")
    if rest.startswith("= "):
        return line
    if is_checked and word == "check":
        return rest
    if is_checked and word == "unknown":
        return f"if {rest}: raise Unknown({f'releases, devices or symbols decide: {rest}'!r})"
    if is_checked and word in _SUBJECTS and (found := _WITH_TEXT.fullmatch(rest)):
        return f'if not _holds(lambda: {found[1]}): raise Mismatch(f"{found[2]}", {word!r})'
    if is_checked and word in _SUBJECTS:
        refused = f"_refuse({word!r}, {rest!r}, lambda: {_limit(rest) or None}, locals())"
        return f"_holds(lambda: {rest}) or {refused}"
    return ""


def _function(parameters: Sequence[re.Match[str]], body: Sequence[str], family: str) -> FunctionType:
    """Return a function; rows are part of the package, and Python compiles them like it.

    Args:
        parameters: its parameters, those with a default last.
        body: its statements.
        family: the file of the row.
    """
    names = [one["name"] for one in parameters]
    defaults = [_default(one["default"]) for one in parameters if one["optional"] or one["default"] is not None]
    source = "\n    ".join([f"def rule({', '.join(names)}):", *filter(None, body)])
    tree = _Rewriter().visit(ast.parse(source))
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    local = {*names, *(node.id for node in used if isinstance(node.ctx, ast.Store))}
    outside = {name: _resolve(name, family) for name in {node.id for node in used} - local}
    module = compile(ast.fix_missing_locations(tree), f"<a row of {family}>", "exec")
    [code] = [one for one in module.co_consts if isinstance(one, CodeType)]
    return FunctionType(code, outside, "rule", tuple(defaults))


def _default(written: str | None) -> Any:
    """Return the value that a parameter has if a call does not pass it."""
    from pt2kit.operators.vocabulary import DTYPE_NAMES

    if written is None:
        return None
    return DTYPE_NAMES[written] if written in DTYPE_NAMES else ast.literal_eval(written)


_WORDS: Final[Mapping[type, str]] = {
    ast.GtE: "{} or more",
    ast.Gt: "more than {}",
    ast.LtE: "at most {}",
    ast.Eq: "{}",
    ast.In: "one of {}",
    ast.NotEq: "another than {}",
}


def _holds(condition: Callable[[], bool | None]) -> bool:
    """Return whether a condition holds, or may hold: symbols decide, or it is not known."""
    holds = decided(condition)
    return holds is None or bool(holds)


def _refuse(subject: Subject, source: str, limit: Callable[[], Any], known: Mapping[str, Any]) -> NoReturn:
    """Raise a mismatch for a requirement that does not hold.

    Args:
        subject: what is wrong.
        source: the requirement.
        limit: computes what it compares with, if calls decide that.
        known: what the names of the row stand for.
    """
    written = _limit(source)
    expected, named = _expected(source, shown(limit()) if written else "")
    rest = source.removesuffix(written) if named else source
    used = [name for name in sorted(known) if name != named and re.search(rf"\b{name}\b", rest)]
    got = ", ".join(f"{name} = {shown(known[name])}" for name in used)
    got = ", ".join(filter(None, (shown(known[named]) if named else "", got)))
    raise Mismatch(f"{expected}, got {got}", subject)


def _limit(source: str) -> str:
    """Return what a requirement compares with, if calls decide it: "n" of "k <= n", "" of "k <= 3"."""
    match ast.parse(source, mode="eval").body:
        case ast.Compare(_, [_], [limit]) if any(isinstance(one, ast.Name) for one in ast.walk(limit)):
            return ast.get_source_segment(source, limit) or ""
    return ""


def _expected(source: str, limit: str) -> tuple[str, str]:
    """Return the text of a requirement, and the argument that it is about: "" if it is about several."""
    match ast.parse(source, mode="eval").body:
        case ast.Compare(least, [_, _], [ast.Name(named), most]):
            return f"{named}: expected {ast.unparse(least)} to {ast.unparse(most)}", named
        case ast.Compare(left, [test], [right]):
            words, limit = _WORDS.get(type(test)), limit or ast.unparse(right).strip("()")
            match left:
                case ast.BinOp(whole, ast.Mod(), part) if limit == "0":
                    return f"expected {ast.unparse(whole)} to be a multiple of {ast.unparse(part)}", ""
                case ast.Attribute(ast.Name(named), "rank") if words:
                    return f"{named}: expected {_amount(words, limit, 'dimension', 'dimensions')}", named
                case ast.Call(ast.Name("len"), [ast.Name(named)]) if words:
                    return f"{named}: expected {_amount(words, limit, 'entry', 'entries')}", named
                case ast.Name(named) if words:
                    return f"{named}: expected {words.format(limit)}", named
    return f"expected {source}", ""


def _amount(words: str, number: str, noun: str, plural: str) -> str:
    """Return the number of a requirement and its unit: "at most 1 dimension", "1 or more dimensions"."""
    return f"{words.format(number)} {noun if number == '1' and words.endswith('{}') else plural}"


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, (int, Polynomial)) and isinstance(other, (int, Polynomial)):
        return is_equal(one, other)
    return bool(one == other)


class _Rewriter(ast.NodeTransformer):
    """Makes a row one of Python: `==` asks symbols, lists are tuples, and generators lists."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        tests = [_comparison(*one) for one in zip(operands, node.ops, operands[1:], strict=False)]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        return ast.Tuple(node.elts, node.ctx)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        self.generic_visit(node)
        return ast.ListComp(node.elt, node.generators)


def _comparison(left: ast.expr, test: ast.cmpop, right: ast.expr) -> ast.expr:
    if not isinstance(test, (ast.Eq, ast.NotEq)):
        return ast.Compare(left, [test], [right])
    is_equal = ast.Call(ast.Name("_is_equal", ast.Load()), [left, right], [])
    return is_equal if isinstance(test, ast.Eq) else ast.UnaryOp(ast.Not(), is_equal)


def _resolve(name: str, family: str) -> Any:
    """Return what a name stands for that a row does not bind: a function of Python, or the rule of another row."""
    from pt2kit.operators.vocabulary import NAMES

    if name in _HELPERS:
        return _HELPERS[name]
    module = import_module(f"pt2kit.operators.{family}")
    if hasattr(module, name):
        return getattr(module, name)
    if name in NAMES:
        return NAMES[name]
    if f"aten.{name}.default" not in texts():
        raise ValueError(f"{family}: expected a function or an operator, got {name}")
    return lambda *args, **named: _rule_of(name)(*args, **named)


_HELPERS: Final = {one.__name__: one for one in (_bound, _holds, _is_equal, _refuse, _require_dtypes)}
"""Functions that the statements of rows call."""


@cache
def _rule_of(name: str) -> Any:
    """Return the rule of another row, which is compiled when a rule calls it."""
    return texts()[f"aten.{name}.default"].compile("->")


_FUNCTIONS: Final = ("_operator.", "math.", "torch.")


# The files are part of the package and never change.
@cache
def texts() -> Mapping[str, RowText]:
    """Return the rows that are written, by the full name of each overload; none of them is compiled."""
    found: dict[str, RowText] = {}
    for path in sorted(data_file("operators/data/rows").iterdir(), key=lambda one: one.name):
        for first, *others in read_rows(path.read_text(encoding="utf-8")):
            names, *statements = _statements(first)
            row = RowText(path.name, [*statements, *others])
            for name in _names(names):
                if name in found:
                    raise ValueError(f"{name}: expected one row, got two")
                found[name] = row
    return found


def read_rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of a file: the first line and the statements, which continue in lines that are indented more."""
    row: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line.startswith("        "):
            row[-1] += f" {line.strip()}"
        elif line.startswith("    "):
            row.append(line.strip())
        else:
            if row:
                yield row
            row = [line]
    yield row


def _statements(line: str) -> list[str]:
    """Split the first line of a row: names, a signature, a result, arguments worth showing."""
    line, _, shown = line.partition(" | ")
    if (found := _FIRST.fullmatch(line.rstrip())) is None:
        raise ValueError(f"expected names, a signature and a result, got {line!r}")
    return [*filter(None, found.groups()), *([f"shown {shown}"] if shown else [])]


def _names(written: str) -> Iterator[str]:
    """Yield full names: "aten.add.default" of "add", each of the words in braces."""
    for word in written.split():
        for name, _ in choices(word):
            if not name.startswith(_FUNCTIONS):
                name = name if "." in name else f"{name}.default"
                name = name if name.count(".") > 1 else f"aten.{name}"
            yield name


def choices(written: str) -> Iterator[tuple[str, str]]:
    """Yield what a text with words in braces stands for, one of each pair of braces, and the words that are chosen."""
    parts = [part.split(",") if at % 2 else [part] for at, part in enumerate(_BRACES.split(written))]
    for chosen in combinations(*parts):
        yield "".join(chosen), "".join(chosen[1::2])
