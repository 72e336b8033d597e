"""Random calls of operators, computed by the result rules and by torch's fake tensors.

    report = compare_calls("aten.permute.default", calls=60, dims=lambda draw: draw.permutation("self"))
    assert report.answered

`compare_calls` draws arguments from the operator's schema; a keyword draws one parameter by hand. Each call runs three
ways: with plain sizes; with symbols without examples for sizes, whose results are evaluated afterwards; and, for
some of the calls, with torch's own symbolic sizes. It fails if a rule contradicts torch, or refuses a call that both
the fake tensors and the CPU kernel compute. What torch refuses and a rule answers is counted in the report. A kernel of
the runtime must compute what the CPU kernel does (`drawn_values`).
"""

from __future__ import annotations

import logging
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
import sympy
import torch
from tests.bridge.operators.drawn_values import differences
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    StatelessSymbolicContext,
)

from pt2kit.bridge.operators import SCHEMA, from_device
from pt2kit.checks.call_results import compare
from pt2kit.operators.facts import Mismatch, Symbolic, Tensor, Unknown, row_major
from pt2kit.operators.rows import texts
from pt2kit.operators.table import bases, find, infer, without_out
from pt2kit.schema import Layout
from pt2kit.schema.operators import known_releases, operators_of
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.evaluation import evaluate
from pt2kit.symbols.expr import Symbol
from pt2kit.symbols.polynomials import Polynomial, Size, from_expression, symbol, to_expression

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128, torch.complex32)
DTYPES = (*FLOATS, *INTS, torch.bool, *COMPLEX)
BASE = (2, 5, 3, 4)
"""Shapes are ends of this one, so that tensors often fit each other."""
UNANSWERED = ("aten.linalg_lstsq.default", "aten.istft.default", "aten.ctc_loss.IntList")
"""Operators whose rules or fake tensors answer no call."""
NO_VERDICT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
    UnsupportedOperatorException,
    NotImplementedError,
)
"""Errors of fake tensors that cannot decide."""
Drawer = Callable[["Draw"], Any]


@dataclass(frozen=True)
class Drawn:
    """A tensor to make: fake inside a `FakeTensorMode`, otherwise of zeros or of given numbers."""

    sizes: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...]
    offset: int = 0

    def make(self, numbers: Callable[[torch.dtype, int], torch.Tensor] | None = None) -> torch.Tensor:
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        count = self.offset + (0 if 0 in self.sizes else last + 1)
        storage = torch.zeros(count, dtype=self.dtype) if numbers is None else numbers(self.dtype, count)
        return storage.as_strided(self.sizes, self.strides, self.offset)


@dataclass
class Draw:
    """Draws the arguments of one call.

    Args:
        rng: the generator.
        given: the arguments that have been drawn, by parameter.
    """

    rng: random.Random
    given: dict[str, Any] = field(default_factory=dict)

    def tensor(
        self, *sizes: int, ranks: Sequence[int] = (0, 1, 2, 3, 4), dtypes: Sequence[torch.dtype] = DTYPES
    ) -> Drawn:
        """Draw a tensor: contiguous, permuted, channels_last, broadcast, or with gaps.

        Args:
            sizes: its sizes; drawn if there are none.
            ranks: the ranks to draw from.
            dtypes: the dtypes to draw from.
        """
        rng = self.rng
        if not sizes:
            rank = rng.choice(ranks)
            odd = (1, 0) if rng.random() < 0.15 else (1,)
            base = (7, 6, *BASE)[6 - rank :]
            sizes = tuple([rng.choice(odd) if rng.random() < 0.2 else size for size in base])
        dtype = rng.choice(dtypes)
        strides, offset = self._layout(sizes)
        return Drawn(sizes, dtype, strides, offset)

    def scalar_tensor(self, dtypes: Sequence[torch.dtype] = DTYPES) -> Drawn:
        """Draw a tensor without dimensions."""
        return Drawn((), self.rng.choice(dtypes), ())

    def like(self, name: str, **changes: Any) -> Drawn:
        """Draw a tensor of the sizes of a drawn argument: `like("self", dtypes=FLOATS)`; by default of its dtype."""
        other = self.given[name]
        dtypes = changes.get("dtypes", (other.dtype,))
        sizes = changes.get("sizes", other.sizes)
        strides, offset = self._layout(sizes)
        return Drawn(tuple(sizes), self.rng.choice(dtypes), strides, offset)

    def number(self, *, is_float: bool = True, is_complex: bool = False) -> Any:
        """Draw a number."""
        choices: list[Any] = [0, 1, 2, 3, -1, True, False]
        if is_float:
            choices += [0.5, -2.0, 1.0]
        if is_complex:
            choices += [1.5 + 2.0j]
        return self.rng.choice(choices)

    def rank(self, name: str = "self") -> int:
        """Return the rank of a drawn tensor."""
        return len(self.given[name].sizes)

    def dim(self, name: str = "self") -> int:
        """Draw a dimension of a drawn tensor; sometimes there is none of that number."""
        rank = self.rank(name)
        return self.rng.randint(-rank - 1, rank) if self.rng.random() < 0.1 else self.rng.randrange(-rank, rank or 1)

    def dims(self, name: str = "self") -> list[int]:
        """Draw distinct dimensions of a drawn tensor."""
        rank = self.rank(name)
        some = self.rng.sample(range(rank), self.rng.randint(0, rank))
        return [dim - rank if self.rng.random() < 0.3 else dim for dim in some]

    def permutation(self, name: str = "self") -> list[int]:
        """Draw an order of all the dimensions of a drawn tensor."""
        return self.rng.sample(range(self.rank(name)), self.rank(name))

    def choice(self, *values: Any) -> Any:
        """Draw one of some values."""
        return self.rng.choice(values)

    def _layout(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
        rank, rng = len(sizes), self.rng
        kind = rng.choice(("contiguous", "contiguous", "permuted", "channels", "broadcast", "gaps", "offset"))
        strides = [int(stride) for stride in row_major(sizes)]
        if kind == "permuted" or (kind == "channels" and rank in (4, 5)):
            order = rng.sample(range(rank), rank) if kind == "permuted" else [0, *range(2, rank), 1]
            for dim, stride in zip(order, row_major([sizes[dim] for dim in order]), strict=True):
                strides[dim] = int(stride)
        if kind == "broadcast" and rank:
            dim = rng.randrange(rank)
            inner = row_major([1 if one == dim else size for one, size in enumerate(sizes)])
            strides = [0 if one == dim else int(stride) for one, stride in enumerate(inner)]
        if kind == "gaps":
            strides = [2 * stride for stride in strides]
        return tuple(strides), rng.choice((1, 6)) if kind in ("offset", "gaps") else 0


@dataclass
class Report:
    """The outcomes of the calls of one operator."""

    calls: int = 0
    answered: int = 0
    strides: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    kernel_refused: list[str] = field(default_factory=list)
    torch_refused: list[str] = field(default_factory=list)
    no_verdict: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"calls {self.calls} answered {self.answered} strides {self.strides} unknown {sum(self.unknown.values())} "
            f"refused by both {self.refused}, by the CPU kernel {len(self.kernel_refused)}, by torch alone "
            f"{len(self.torch_refused)}, no verdict {self.no_verdict}, wrong {len(self.wrong)}"
        )


def overload(name: str) -> Any:
    """Return torch's operator: "aten.add.Tensor"."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found


@cache
def _with_rules() -> tuple[str, ...]:
    """Return the overloads that have a rule, but those of lists, of which fake ones end the process, and `out` ones."""
    newest = operators_of(known_releases()[-2]).keys() | {name for name in texts() if not name.startswith("aten.")}
    return tuple(
        name for name in newest if "_foreach_" not in name and not without_out(name) and find(name) is not None
    )


def names_in(*files: str) -> list[str]:
    """Return the overloads whose rule is written in files of rows, or follows from one that is; no `out` overloads."""
    written = texts()

    def source(name: str) -> str:
        if name in written:
            return written[name].file
        return next((found for base, _ in bases(name) if (found := source(base))), "")

    return sorted(name for name in _with_rules() if source(name) in files)


def compare_calls(
    name: str, calls: int = 40, *, symbolic: int = 2, seed: int = 0, kernel: bool = True, **drawers: Drawer
) -> Report:
    """Compare the rule of an operator with torch on random calls.

    Args:
        name: "aten.permute.default".
        calls: how many.
        symbolic: how many of them also run with torch's symbolic sizes, which are 30 times as slow.
        seed: of the generator.
        kernel: ask the CPU kernel if a rule refuses what fake tensors answer, and compare values; False for kernels
            that may crash.
        drawers: parameter -> draws its argument.

    Raises:
        AssertionError: a rule contradicts torch.
    """
    operator = overload(name)
    rng, of_values = random.Random(f"{name} {seed}"), random.Random(f"values of {name} {seed}")
    report = Report()
    with quiet():
        for count in range(calls):
            draw = Draw(rng)
            draw_arguments(operator._schema, draw, drawers)
            compare_call(name, draw.given, report, rng=rng, kernel=kernel, symbolic=count < symbolic)
            if kernel:
                report.wrong += value_differences(name, draw.given, of_values)
    assert not report.wrong, f"{name}: {len(report.wrong)} of {calls}\n" + "\n".join(report.wrong[:5])
    return report


def agreement(
    cases: Iterable[tuple[str, dict[str, Any]]], calls: int = 25, *, refused: bool = False
) -> Callable[..., None]:
    """Return a test that rules contradict no fake tensor, and answer calls of each case.

    Args:
        cases: (operator, drawers by parameter).
        calls: how many for each case.
        refused: some cases have only calls that torch refuses, too.
    """
    listed = list(cases)

    @pytest.mark.parametrize(("name", "drawers"), listed, ids=[f"{name}-{at}" for at, (name, _) in enumerate(listed)])
    def test(name: str, drawers: dict[str, Any]) -> None:
        report = compare_calls(name, calls, symbolic=1, **drawers)
        unanswered = name in UNANSWERED and report.calls > len(report.torch_refused)
        assert report.answered or (refused and report.refused) or unanswered, report

    return test


def value_differences(name: str, arguments: Mapping[str, Any], rng: random.Random) -> Iterator[str]:
    """Yield what a kernel of the runtime computes otherwise than torch, with random numbers in the drawn tensors."""
    return differences(name, lambda numbers: _mapped(arguments, lambda drawn: drawn.make(numbers)), rng)


@contextmanager
def quiet() -> Iterator[None]:
    """Drop torch's warnings, and the tracebacks that it logs for each refused call."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def draw_arguments(schema: Any, draw: Draw, drawers: Mapping[str, Drawer]) -> None:
    """Draw arguments for a schema into `draw.given`; parameters with a default are sometimes left out."""
    for parameter in schema.arguments:
        if parameter.name in drawers:
            draw.given[parameter.name] = drawers[parameter.name](draw)
        elif parameter.has_default_value() and draw.rng.random() < 0.6:
            continue
        else:
            draw.given[parameter.name] = _of_type(str(parameter.real_type), draw)


def _of_type(text: str, draw: Draw) -> Any:
    rng = draw.rng
    if text.startswith("Optional["):
        return None if rng.random() < 0.4 else _of_type(text[9:-1], draw)
    if text.startswith("List["):
        return [_of_type(text[5:-1], draw) for _ in range(rng.randint(0, 3))]
    simple: dict[str, Callable[[], Any]] = {
        "Tensor": draw.tensor,
        "int": lambda: rng.randint(-2, 4),
        "float": lambda: rng.choice((0.0, 0.5, 1.0)),
        "number": draw.number,
        "bool": lambda: rng.random() < 0.5,
        "ScalarType": lambda: rng.choice(DTYPES),
        "Device": lambda: torch.device(rng.choice(("cpu", "meta"))),
        "Layout": lambda: torch.strided,
        "MemoryFormat": lambda: rng.choice((torch.contiguous_format, torch.preserve_format, torch.channels_last)),
        "str": lambda: rng.choice(("none", "mean", "sum", "trunc", "floor", "x")),
    }
    return simple[text]() if text in simple else None


def compare_call(
    name: str,
    arguments: Mapping[str, Any],
    report: Report,
    *,
    rng: random.Random,
    kernel: bool = True,
    symbolic: bool = False,
) -> None:
    """Compare one call into a report.

    Args:
        name: the operator.
        arguments: by parameter; tensors as `Drawn`.
        report: is extended.
        rng: draws which sizes become symbols.
        kernel: ask the CPU kernel if the rule refuses what fake tensors answer.
        symbolic: also run with torch's symbolic sizes.
    """
    report.calls += 1
    with FakeTensorMode(allow_non_fake_inputs=True):
        made = _mapped(arguments, Drawn.make)
        facts = to_facts(made)
        expected = _torch_results(name, made)
    if _judge(name, arguments, facts, expected, report, kernel) and isinstance(expected, tuple):
        symbols = _Symbols(rng)
        _judge_point(name, arguments, to_facts(_mapped(arguments, symbols.fact)), symbols, expected, report)
        if symbolic:
            _compare_symbolic(name, arguments, report, rng)


def _torch_results(name: str, made: Mapping[str, Any]) -> tuple[Any, ...] | Exception:
    operator = overload(name)
    try:
        found = operator(**made)
    except Exception as error:  # noqa: BLE001  # Whatever an operator raises.
        return error
    returns = operator._schema.returns
    return tuple(map(to_facts, found)) if len(returns) > 1 else () if not returns else (to_facts(found),)


def _judge(
    name: str, arguments: Mapping[str, Any], facts: Mapping[str, Any], expected: Any, report: Report, kernel: bool
) -> bool:
    """Compare the rule with what fake tensors computed, with plain sizes; return whether it does not refuse."""
    try:
        results = _results(infer(name, facts, is_strict=True))
    except Unknown as error:
        report.unknown[str(error)] += 1
        return True
    except Mismatch as error:
        if isinstance(expected, NO_VERDICT):
            report.no_verdict += 1
        elif isinstance(expected, Exception):
            report.refused += 1
        elif kernel and isinstance(_torch_results(name, _mapped(arguments, Drawn.make)), Exception):
            report.kernel_refused.append(f"{_shown(arguments)}: {error}")
        else:
            report.wrong.append(f"refused: {_shown(arguments)}: {error}")
        return False
    except Exception as error:  # noqa: BLE001  # An error inside a rule, which is a mistake unless torch refuses too.
        if isinstance(expected, tuple):
            report.wrong.append(f"{_shown(arguments)}: {type(error).__name__}: {error}")
        return False
    if isinstance(expected, NO_VERDICT):
        report.no_verdict += 1
    elif isinstance(expected, Exception):
        first = (str(expected).splitlines() or [""])[0][:120]
        report.torch_refused.append(f"{_shown(arguments)}: {type(expected).__name__}: {first}")
    else:
        report.answered += 1
        result = next(_tensors(results), None)
        report.strides += result is None or result.strides is not None
        report.wrong += [f"{_shown(arguments)}: {message}" for message in _differences(results, expected)]
    return True


def _judge_point(
    name: str, arguments: Mapping[str, Any], facts: Mapping[str, Any], symbols: _Symbols, expected: Any, report: Report
) -> None:
    """Compare the rule for symbolic sizes, evaluated at the drawn sizes, with what fake tensors computed for these."""
    try:
        results = _results(infer(name, facts, is_strict=True))
    except Unknown:
        return
    except Mismatch as error:
        if not _is_judged(arguments, report):
            report.wrong.append(f"symbols refused: {_shown(arguments)}: {error}")
        return
    except Exception as error:  # noqa: BLE001  # An error inside a rule.
        report.wrong.append(f"symbols: {_shown(arguments)}: {type(error).__name__}: {error}")
        return
    evaluated = tuple(map(symbols.evaluated, results))
    report.wrong += [f"symbols: {_shown(arguments)}: {message}" for message in _differences(evaluated, expected)]


def _compare_symbolic(name: str, arguments: Mapping[str, Any], report: Report, rng: random.Random) -> None:
    """Compare the rule with what fake tensors of torch's symbolic sizes are."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    kind = rng.choice((DimDynamic.DUCK, DimDynamic.DYNAMIC))

    def fake(drawn: Drawn) -> torch.Tensor:
        context = StatelessSymbolicContext(dynamic_sizes=[kind] * len(drawn.sizes))
        source = ConstantSource(f"x{rng.random()}")
        found: torch.Tensor = mode.from_tensor(drawn.make(), symbolic_context=context, source=source)
        return found

    made = _mapped(arguments, fake)
    facts = to_facts(made)
    with mode:
        expected = _torch_results(name, made)
    if not isinstance(expected, tuple):
        return
    try:
        results = _results(infer(name, facts, is_strict=True))
    except Unknown:
        return
    except Mismatch as error:
        if not _is_judged(arguments, report):
            report.wrong.append(f"symbolic sizes refused: {_shown(arguments)}: {error}")
        return
    report.wrong += [f"symbolic sizes: {_shown(arguments)}: {line}" for line in _differences(results, expected)]


def _is_judged(arguments: Mapping[str, Any], report: Report) -> bool:
    """Return whether a refusal of the call has been reported, or the CPU kernel refuses it too."""
    refusals = [line for line in report.wrong if line.startswith("refused: ")] + report.kernel_refused
    return any(f"{_shown(arguments)}: " in line for line in refusals)


def _results(computed: Any) -> tuple[Any, ...]:
    return computed if isinstance(computed, tuple) else () if computed is None else (computed,)


def _differences(results: Sequence[Any], expected: Sequence[Any]) -> Iterator[str]:
    if len(results) != len(expected):
        yield f"expected {len(expected)} results, got {len(results)}"
    for result, wanted in zip(results, expected, strict=False):
        if type(result) is not type(wanted) and not _are_numbers(result, wanted) and None not in (result, wanted):
            yield f"expected {wanted}, got {result}"
        yield from (message.replace("declared", "from torch") for _, message in compare(result, wanted))
        for one, other in zip(_tensors(result), _tensors(wanted), strict=False):
            if isinstance(one.offset, int) and isinstance(other.offset, int) and one.offset != other.offset:
                yield f"expected offset {one.offset}, got {other.offset} from torch"


def _are_numbers(one: Any, other: Any) -> bool:
    return all(isinstance(number, (int, float, Polynomial, Symbolic)) for number in (one, other))


def _tensors(fact: Any) -> Iterator[Tensor]:
    if isinstance(fact, Tensor):
        yield fact
    elif isinstance(fact, (list, tuple)):
        for one in fact:
            yield from _tensors(one)


def _mapped(value: Any, convert: Callable[[Drawn], Any]) -> Any:
    if isinstance(value, Drawn):
        return convert(value)
    if isinstance(value, Mapping):
        return {key: _mapped(one, convert) for key, one in value.items()}
    return [_mapped(one, convert) for one in value] if isinstance(value, list) else value


def to_facts(value: Any) -> Any:
    """Return what torch's values are as facts: tensors, sizes, dtypes, devices, and lists and dicts of these.

    Lists of arguments are compared as lists; results too.
    """
    if isinstance(value, torch.Tensor):
        strided = value.layout is torch.strided
        return Tensor(
            tuple([_size(size) for size in value.shape]),
            SCHEMA.get(value.dtype),
            tuple([_size(stride) for stride in value.stride()]) if strided else None,
            from_device(value.device),
            _size(value.storage_offset()) if strided else None,
            SCHEMA.get(value.layout, Layout.Unknown),
        )
    if isinstance(value, torch.SymInt):
        return _size(value)
    if isinstance(value, (torch.SymFloat, torch.SymBool)):
        return Symbolic(float if isinstance(value, torch.SymFloat) else bool)
    if isinstance(value, torch.device):
        return from_device(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return SCHEMA[value]
    if isinstance(value, dict):
        return {key: to_facts(one) for key, one in value.items()}
    return [to_facts(one) for one in value] if isinstance(value, (list, tuple)) else value


def _size(size: Any) -> Size:
    """Return a size of torch as a size of ours, with the range and example value of its symbols."""
    if not isinstance(size, torch.SymInt):
        return int(size)
    env, expr = size.node.shape_env, size.node.expr

    def known(node: Symbol) -> Size:
        name = sympy.Symbol(node.name, **dict(node.assumptions))
        limits, example = env.var_to_range.get(name), env.backed_var_to_val.get(name)
        low = 0 if limits is None else int(limits.lower)
        return symbol(node, low, hint=None if example is None else int(example))

    return from_expression(parse(sympy.srepr(expr)), known)


class _Symbols:
    """Symbols for the sizes of drawn tensors, and the sizes that they stand for."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._shared = rng.random() < 0.7
        self._low = rng.choice((2, 2, 0))
        self._values: dict[str, int] = {}

    def fact(self, drawn: Drawn) -> Tensor:
        """Return a drawn tensor with symbols for some of its sizes, and dense strides in terms of them."""
        sizes = tuple([self._symbol(size) if size > 1 and self._rng.random() < 0.8 else size for size in drawn.sizes])
        order = sorted(range(len(sizes)), key=lambda dim: (-drawn.strides[dim], dim))
        strides: list[Size] = list(drawn.strides)
        dense = row_major([drawn.sizes[dim] for dim in order])
        if dense == tuple([drawn.strides[dim] for dim in order]) and 0 not in drawn.sizes:
            for dim, stride in zip(order, row_major([sizes[dim] for dim in order]), strict=True):
                strides[dim] = stride
        device = from_device(torch.device("cpu"))
        return Tensor(sizes, SCHEMA[drawn.dtype], tuple(strides), device, drawn.offset)

    def evaluated(self, fact: Any) -> Any:
        """Return a fact with the drawn sizes for the symbols."""
        if isinstance(fact, Tensor):
            strides = None if fact.strides is None else tuple(map(self.evaluated, fact.strides))
            sizes, offset = tuple(map(self.evaluated, fact.sizes)), self.evaluated(fact.offset)
            return Tensor(sizes, fact.dtype, strides, fact.device, offset, fact.layout)
        if isinstance(fact, Polynomial) and not fact.is_unknown:
            return evaluate(to_expression(fact), self._values)
        return list(map(self.evaluated, fact)) if isinstance(fact, list) else fact

    def _symbol(self, size: int) -> Size:
        name = f"s{size}" if self._shared else f"s{len(self._values)}"
        self._values[name] = size
        return symbol(name, self._low)


def _shown(arguments: Mapping[str, Any]) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, Drawn):
            return f"{str(value.dtype)[6:]}{list(value.sizes)}{list(value.strides)}" + (
                f"+{value.offset}" * (value.offset > 0)
            )
        return f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else repr(value)

    return ", ".join(f"{name}={shown(value)}" for name, value in arguments.items())
