"""Row syntax of the operator table: the signature of a rule, its requirements, its results, FLOPs.

`data/rows/linalg.txt` has rows like these. Functions that they call are in the module of the family (`linalg.py`), in
`vocabulary.py`, or are other rows (`linalg_inv` is the rule of `aten.linalg_inv.default`). Rows of
`linalg.products.txt` have the module `linalg.py`, too.

    linalg_{lu_factor,qr}.default _lu_with_info.default     names; "aten." unless another namespace is written
        (self[*b, n, k]:fc, dim=-1, bias[k]?)               parameters of the schema that the rule needs
        value dim != 0                                      a requirement: sizes, dtype, dimension or value
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
    cat.default (tensors, dim=0) -> cat(tensors, dim)       a row of one line; "rule cat" names a function of Python

A parameter that is written with sizes is a tensor of that rank. Equal names are equal sizes, `*b` stands for any number
of sizes, which broadcast if they are written twice, `_` is any size. `:fc` requires floats or complex numbers
(b bool, i int, f float, c complex), `:int64|int32` one of some dtypes, `?` makes a tensor optional. Expressions are
those of Python without assignments; a comparison that symbols decide is "not known", which no requirement refuses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import product as combinations
from types import CodeType, FunctionType
from typing import Any, Final

from pt2kit.messages import count_text
from pt2kit.operators.facts import (
    Mismatch,
    Tensor,
    Unknown,
    agree,
    broadcast,
    expect,
    is_equal,
    require_rank,
    shape_text,
)
from pt2kit.symbols.polynomials import Polynomial, Undecided, text

Env = dict[str, Any]
Compiled = Callable[[Env], Any]
_MISSING: Final = object()
_SUBJECTS: Final = ("sizes", "dtype", "dimension", "value")
_PARAMETER: Final = re.compile(
    r"(?P<name>\w+)(\[(?P<sizes>[^\]]*)\])?(:(?P<dtypes>[\w|]+))?(?P<optional>\?)?(=(?P<default>.+))?"
)
_SIGNATURE: Final = re.compile(r"\(([^()]|\([^()]*\))*\)")
_BRACES: Final = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a rule.

    Args:
        name: as in the schema.
        default: its value if a call does not pass it; `_MISSING` if it has to.
        sizes: names of the sizes of a tensor; None if they are not written.
        dtypes: "fc", or names of dtypes.
    """

    name: str
    default: Any = _MISSING
    sizes: tuple[str, ...] | None = None
    dtypes: str = ""

    @property
    def is_required(self) -> bool:
        """Return whether each call must pass the parameter."""
        return self.default is _MISSING

    def bind(self, env: Env) -> None:
        """Check the argument, and bind the names of its sizes.

        Raises:
            Mismatch: another rank, size or dtype.
        """
        tensor = env[self.name]
        if tensor is None and not self.is_required:
            return
        if self.sizes is not None:
            self._bind_sizes(tensor, env)
        if self.dtypes:
            _require_dtypes(tensor, self.dtypes, self.name)

    def _bind_sizes(self, tensor: Tensor, env: Env) -> None:
        names = self.sizes or ()
        star = next((place for place, name in enumerate(names) if name[0] == "*"), None)
        if star is None:
            require_rank(tensor, (len(names),), self.name)
            pairs = list(zip(names, tensor.sizes, strict=True))
        else:
            least, missing = len(names) - 1, tensor.rank - len(names) + 1
            got = shape_text(tensor.sizes)
            expect(missing >= 0, f"{self.name}: expected {least} dimensions or more, got {got}", "sizes")
            key, rest = names[star][1:], tensor.sizes[star : star + missing]
            env[key] = broadcast(env[key], rest) if key in env and key != "_" else rest
            behind = tensor.sizes[star + missing :]
            pairs = [*zip(names, tensor.sizes[:star], strict=False), *zip(names[star + 1 :], behind, strict=True)]
        for name, size in pairs:
            if name.isdigit():
                agree(size, int(name), f"{self.name}: expected a size of {name}")
            elif name != "_":
                what = f"{self.name} [{', '.join(names)}]: expected one size {name}"
                env[name] = agree(env[name], size, what) if name in env else size


@cache
def _dtypes() -> Mapping[str, Any]:
    from pt2kit.operators.vocabulary import DTYPE_NAMES

    return DTYPE_NAMES


def _require_dtypes(tensor: Tensor, dtypes: str, name: str) -> None:
    from pt2kit.operators.promotion import KINDS, require_dtype, require_kind

    if set(dtypes) <= set(KINDS):
        require_kind(tensor.dtype, dtypes, name)
    else:
        require_dtype(tensor, [_dtypes()[one] for one in dtypes.split("|")], name)


@dataclass(frozen=True, slots=True)
class TextRule:
    """The rule of a row: called with the arguments that its parameters name.

    Args:
        parameters: of the rule.
        steps: requirements and names, in order; each changes the names that are bound or raises.
        result: computes the results.
    """

    parameters: tuple[Parameter, ...]
    steps: tuple[Compiled, ...]
    result: Compiled

    @property
    def names(self) -> list[str]:
        """Return the names of its parameters."""
        return [*[one.name for one in self.parameters], "result"]

    def __call__(self, /, *positional: Any, **named: Any) -> Any:
        """Compute the results.

        Raises:
            Mismatch: torch refuses such arguments.
            Unknown: the result is not certain.
        """
        given = {**dict(zip((one.name for one in self.parameters), positional, strict=False)), **named}
        env: Env = {}
        for parameter in self.parameters:
            value = given.get(parameter.name, parameter.default)
            if value is _MISSING:
                raise TypeError(f"expected {parameter.name}, got none")
            env[parameter.name] = value
        if "result" in given:
            env["result"] = given["result"]
        for parameter in self.parameters:
            if parameter.sizes is not None or parameter.dtypes:
                parameter.bind(env)
        for step in self.steps:
            step(env)
        return self.result(env)


@dataclass(slots=True)
class RowText:
    """A row as it is written.

    Args:
        file: that it is in: "elementwise.activations.txt".
        statements: its lines, without names.
    """

    file: str
    statements: list[str] = field(default_factory=list)

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
        parameters = tuple(_parameters(signature[1:-1]))
        names = {one.name for one in parameters} | {"result"}
        for one in parameters:
            names |= {size.lstrip("*") for size in one.sizes or ()}
        steps = [step for line in self.statements if (step := self._step(line, names, keyword == "->")) is not None]
        return TextRule(parameters, tuple(steps), _compiled(expression, names, self.family))

    def _step(self, line: str, names: set[str], is_checked: bool) -> Compiled | None:
        word, _, rest = line.partition(" ")
        if rest.startswith("= "):
            compute = _compiled(rest[2:], names, self.family)
            names.add(word)
            return lambda env: env.__setitem__(word, compute(env))
        if not is_checked or word not in (*_SUBJECTS, "unknown", "check"):
            return None
        compiled = _compiled(rest, names, self.family)
        if word == "check":
            return compiled
        if word == "unknown":
            return _doubt(rest, compiled)
        return _requirement(rest, word, compiled, sorted(names), self.family)


def _parameters(signature: str) -> Iterator[Parameter]:
    for written in _split(signature):
        found = _PARAMETER.fullmatch(written)
        if found is None:
            raise ValueError(f"expected a parameter, got {written!r}")
        default, sizes = found["default"], found["sizes"]
        value: Any = _MISSING
        if default is not None:
            value = _dtypes()[default] if default in _dtypes() else ast.literal_eval(default)
        elif found["optional"]:
            value = None
        parts = None if sizes is None else tuple([one.strip() for one in sizes.split(",") if one.strip()])
        yield Parameter(found["name"], value, parts, found["dtypes"] or "")


def _split(signature: str) -> list[str]:
    """Split parameters at the commas that are not in brackets."""
    parts, depth = [""], 0
    for letter in signature:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


_WORDS: Final[Mapping[type, str]] = {
    ast.GtE: "{} or more",
    ast.Gt: "more than {}",
    ast.LtE: "at most {}",
    ast.Eq: "{}",
    ast.In: "one of {}",
    ast.NotEq: "another than {}",
}


def _requirement(
    source: str, subject: Any, condition: Compiled, names: Sequence[str], family: str
) -> Callable[[Env], None]:
    def require(env: Env) -> None:
        try:
            holds = condition(env)
        except Undecided:
            return
        if holds is not None and not holds:
            limit = _limit(source)
            shown = _shown(_compiled(limit, set(names), family)(env)) if limit else ""
            expected, named = _expected(source, shown)
            rest = source.removesuffix(limit) if named else source
            used = [name for name in names if name != named and re.search(rf"\b{name}\b", rest)]
            got = ", ".join(f"{name} = {_shown(env[name])}" for name in used if name in env)
            got = ", ".join(filter(None, (_shown(env[named]) if named else "", got)))
            raise Mismatch(f"{expected}, got {got}", subject)

    return require


def _limit(source: str) -> str:
    """Return what a requirement compares with, if calls decide it: "n" of "k <= n", "" of "k <= 3"."""
    node = ast.parse(source, mode="eval").body
    limit = node.comparators[0] if isinstance(node, ast.Compare) and len(node.ops) == 1 else ast.Constant(0)
    is_open = any(isinstance(one, ast.Name) for one in ast.walk(limit))
    return (is_open and ast.get_source_segment(source, limit)) or ""


def _expected(source: str, limit: str) -> tuple[str, str]:
    """Return the text of a requirement, and the argument that it is about: "" if it is about several."""
    node = ast.parse(source, mode="eval").body
    if isinstance(node, ast.Compare) and len(node.ops) == 2 and isinstance(node.comparators[0], ast.Name):
        named = node.comparators[0].id  # 0 <= p <= 1
        return f"{named}: expected {ast.unparse(node.left)} to {ast.unparse(node.comparators[1])}", named
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, words = node.left, _WORDS.get(type(node.ops[0]), "")
        right = limit or ast.unparse(node.comparators[0]).strip("()")
        if isinstance(left, ast.Attribute) and left.attr == "rank" and isinstance(left.value, ast.Name) and words:
            return f"{left.value.id}: expected {_amount(words, right, 'dimension', 'dimensions')}", left.value.id
        if (
            isinstance(left, ast.Call)
            and ast.unparse(left.func) == "len"
            and isinstance(left.args[0], ast.Name)
            and words
        ):
            return f"{left.args[0].id}: expected {_amount(words, right, 'entry', 'entries')}", left.args[0].id
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and right == "0":
            return f"expected {ast.unparse(left.left)} to be a multiple of {ast.unparse(left.right)}", ""
        if isinstance(left, ast.Name) and words:
            return f"{left.id}: expected {words.format(right)}", left.id
    return f"expected {source}", ""


def _amount(words: str, number: str, noun: str, plural: str) -> str:
    """Return the number of a requirement and its unit: "at most 1 dimension", "1 or more dimensions"."""
    return f"{words.format(number)} {noun if number == '1' and words.endswith('{}') else plural}"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return shape_text(value.sizes)
    if isinstance(value, (int, Polynomial)) and not isinstance(value, bool):
        return text(value)
    if isinstance(value, (list, tuple)) and all(isinstance(one, (int, Polynomial)) for one in value):
        return shape_text(value)
    if isinstance(value, (list, tuple)):
        return count_text(len(value), "entry", "entries")
    return f"{value!r:.60}"


def _doubt(source: str, condition: Compiled) -> Callable[[Env], None]:
    def doubt(env: Env) -> None:
        if condition(env):
            raise Unknown(f"releases, devices or symbols decide: {source}")

    return doubt


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, (int, Polynomial)) and isinstance(other, (int, Polynomial)):
        return is_equal(one, other)
    return bool(one == other)


def _differs(one: Any, other: Any) -> bool:
    return not _is_equal(one, other)


def _compiled(source: str, names: set[str], family: str) -> Compiled:
    """Return a function of the names that are bound; rows are part of the package, and Python compiles them like it."""
    written = ast.parse(source, mode="eval")
    inner = {node.id for node in ast.walk(written) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if inner & names:
        raise ValueError(f"{source}: expected other names inside a comprehension, got {sorted(inner & names)}")
    rewriter = _Rewriter(names, inner, family)
    tree = ast.parse("lambda env: 0", mode="eval")
    tree.body.body = rewriter.visit(written.body)  # type: ignore[attr-defined]  # The body is the lambda.
    module = compile(ast.fix_missing_locations(tree), f"<a row of {family}>", "eval")
    [code] = [one for one in module.co_consts if isinstance(one, CodeType)]
    return FunctionType(code, rewriter.globals)


class _Rewriter(ast.NodeTransformer):
    """Makes an expression of a row one of Python: bound names are in `env`, `==` asks symbols, lists are tuples.

    Args:
        names: that are bound in the row.
        inner: names that comprehensions bind.
        family: the file of the row.
    """

    def __init__(self, names: set[str], inner: set[str], family: str) -> None:
        self.names, self.inner, self.family = names, inner, family
        self.globals: dict[str, Any] = {"_is_equal": _is_equal, "_differs": _differs}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names:
            return ast.Subscript(ast.Name("env", ast.Load()), ast.Constant(node.id), ast.Load())
        if node.id not in self.inner:
            self.globals[node.id] = _resolve(node.id, self.family)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        tests = [_comparison(*one) for one in zip(operands, node.ops, operands[1:], strict=False)]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        return ast.Tuple(node.elts, ast.Load())

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        self.generic_visit(node)
        return ast.ListComp(node.elt, node.generators)


def _comparison(left: ast.expr, test: ast.cmpop, right: ast.expr) -> ast.expr:
    function = {ast.Eq: "_is_equal", ast.NotEq: "_differs"}.get(type(test))
    if function is None:
        return ast.Compare(left, [test], [right])
    return ast.Call(ast.Name(function, ast.Load()), [left, right], [])


def _resolve(name: str, family: str) -> Any:
    """Return what a name stands for that a row does not bind: a function of Python, or the rule of another row."""
    from pt2kit.operators.vocabulary import NAMES

    module = _module(family)
    if hasattr(module, name):
        return getattr(module, name)
    if name in NAMES:
        return NAMES[name]
    if f"aten.{name}.default" not in texts():
        raise ValueError(f"{family}: expected a function or an operator, got {name}")
    return lambda *args, **named: _rule_of(name)(*args, **named)


@cache
def _module(family: str) -> Any:
    is_there = (files("pt2kit.operators") / f"{family}.py").is_file()
    return import_module(f"pt2kit.operators.{family}") if is_there else None


@cache
def _rule_of(name: str) -> TextRule:
    written = texts().get(f"aten.{name}.default")
    rule: TextRule | None = None if written is None else written.compile("->")
    if rule is None:
        raise LookupError(f"expected a function or the rule of an operator, got {name}")
    return rule


_FUNCTIONS: Final = ("_operator.", "math.", "torch.")


# The files are part of the package and never change.
@cache
def texts() -> Mapping[str, RowText]:
    """Return the rows that are written, by the full name of each overload; none of them is compiled."""
    found: dict[str, RowText] = {}
    for path in sorted((files("pt2kit.operators") / "data" / "rows").iterdir(), key=lambda one: one.name):
        row = RowText("")
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("        "):
                row.statements[-1] += f" {line.strip()}"
            elif line.startswith("    "):
                row.statements.append(line.strip())
            elif line and not line.startswith("#"):
                row = RowText(path.name)
                names, *row.statements = _statements(line)
                for name in _names(names):
                    if name in found:
                        raise ValueError(f"{name}: expected one row, got two")
                    found[name] = row
    return found


def _statements(line: str) -> list[str]:
    """Split the first line of a row: names, a signature, a result, arguments worth showing."""
    line, _, shown = line.partition(" | ")
    start = min(place for word in (" (", " ->", " rule ", "\n") if (place := f"{line}\n".find(word)) >= 0)
    parts, rest = [line[:start]], line[start:].strip()
    if signature := _SIGNATURE.match(rest):
        parts.append(signature[0])
        rest = rest[signature.end() :].strip()
    return [*parts, *([rest] if rest else []), *([f"shown {shown}"] if shown else [])]


def _names(written: str) -> Iterator[str]:
    """Yield full names: "aten.add.default" of "add", each of the words in braces."""
    for word in written.split():
        fixed = _BRACES.split(word) if "{" in word else [word]
        for chosen in combinations(*[part.split(",") if at % 2 else [part] for at, part in enumerate(fixed)]):
            name = "".join(chosen)
            if not name.startswith(_FUNCTIONS):
                name = name if "." in name else f"{name}.default"
                name = name if name.count(".") > 1 else f"aten.{name}"
            yield name
