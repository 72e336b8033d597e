"""Declared results of calls compared with result rules: sizes, dtypes, strides, devices (T8, T9, T11 to T13, T15).

The facts of the arguments are those that the value tables declare; the operator's rule computes what the results must
be, and what the tables declare for them may not contradict it. What symbols leave open is no problem.

T8, T11, T12, T15    sizes, dtypes, strides, devices of results
T9                   calls that create too many bytes out of numbers alone
T13                  results of functions over numbers, and numbers read out of tensors that are declared as known
S15                  values that are written to inputs of other sizes or another dtype

Devices that a program names, in values and calls, and that torch does not have are reported by rule P6.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.checks.findings import ProgramContext, problem_of
from pt2kit.checks.stored_inputs import mutated_inputs
from pt2kit.errors import Problem, Pt2Error
from pt2kit.graph.argument_values import FUNCTION_MODULES, arguments_of, plain, results_of
from pt2kit.graph.traversal import Step, carried, entry_place, graphs, node_outputs, spanned_bytes
from pt2kit.messages import count_text, quote
from pt2kit.operators.facts import Mismatch, Subject, Tensor, Unknown, shape_text
from pt2kit.operators.higher_order import CLOSES, OPENS
from pt2kit.operators.metas import Symbols
from pt2kit.operators.promotion import KEPT_BEFORE_2_13, with_default_float
from pt2kit.operators.rows import texts
from pt2kit.operators.schemas import DATA_DEPENDENT, overloads_with
from pt2kit.operators.symbolic import OperatorSpec, call_rule
from pt2kit.operators.table import find, infer
from pt2kit.schema import Layout, ScalarType
from pt2kit.schema.names import ATEN_OPS, OPS
from pt2kit.symbols.dialects import parse
from pt2kit.symbols.expr import Symbol
from pt2kit.symbols.polynomials import Polynomial, Size, hint, same, text, to_expression
from pt2kit.tensors.bounds import check_device, device_text, parse_device
from pt2kit.tensors.dtypes import DTYPES, short_name

_EQUAL: Final = re.compile(r"_operator\.eq\('(\w+)', (\d{1,18})\)")

MAX_CREATED_BYTES: Final = 16 << 30
"""Limit of what one call may create from numbers alone: a causal mask of 131,072 tokens in bools."""

Difference: TypeAlias = "tuple[Subject, str, int | None]"
"""The kind of error, the message, and the number of the output; None for errors of arguments."""

_BEFORE_2_13: Final = frozenset(("", *(f"2.{minor}" for minor in range(1, 13))))
"""Releases whose files may declare a dimension too many for states of an LSTM with projections, some results in another
dtype, and sizes that depend on data as 2 or more: 2.4 to 2.10 write the first, 2.13 does not; older ones may have it
from a conversion, and "" is one that is not stated."""

RULES_OF_SUBJECTS: Final[Mapping[Subject, str]] = {
    "sizes": "T8",
    "dtype": "T11",
    "dimension": "T12",
    "value": "T15",
}
_SIZES: Final = frozenset(("size", "output_size", "repeats", "dims", "pad", "padding", "num_classes"))
"""Parameters that make a result larger than the operands, if the operator returns no view."""


def result_problems(context: ProgramContext) -> list[Problem]:
    """List calls whose arguments or declared results are wrong (T8, T11, T12, T13, T15).

    Floats that are computed from no floats have torch's default dtype, which a file does not record. It is taken to be
    float32, or the dtype of the program's own floats if that leaves fewer problems.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    found = list(_problems(context))
    if all(problem.rule != "T11" for problem in found):
        return found
    for default in _default_floats(context.program):
        with with_default_float(default):
            found = min(found, list(_problems(context)), key=len)
    return found


def _default_floats(program: schema.ExportedProgram) -> list[ScalarType]:
    """Return the types other than float32 that a program's inputs and weights have; all if none of these are floats."""
    graph = program.graph_module.graph
    floats = (ScalarType.FLOAT, ScalarType.DOUBLE, ScalarType.BFLOAT16, ScalarType.HALF)
    metas = [graph.tensor_values.get(getattr(one.value, "name", "")) for one in graph.inputs]
    own = {meta.dtype for meta in metas if meta is not None}
    return [dtype for dtype in floats[1:] if dtype in own or own.isdisjoint(floats)]


def _problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the problems of calls, by the default dtype that is set."""
    known = [one.graph for one in graphs(context.program)]
    calls: dict[Hashable, list[Difference]] = {}
    cast = _inside(context, "._enter_autocast", "._exit_autocast", ".wrap_with_autocast")
    # A tensor there has one dimension more than it declares, anywhere among the others, which the strides show.
    batched = _inside(context, OPENS, CLOSES)
    is_old, ranges = context.release in _BEFORE_2_13, context.program.range_constraints
    if is_old:
        unbacked = {name: one for name, one in ranges.items() if one.min_val == 2 and not name.startswith("s")}
        ranges = {**ranges, **{name: replace(one, min_val=0) for name, one in unbacked.items()}}
    root = context.program.graph_module.graph
    asserted = {id(root): _asserted(root)}
    ranges = {**ranges, **dict(_learned(root, asserted[id(root)]))}
    symbols = {it: Symbols(ranges, known, knows_strides=not it) for it in (False, True)}
    for step in context.steps():
        for problem in _node_problems(step, symbols[id(step.node) in batched], calls):
            if problem.rule == "T11" and (id(step.node) in cast or (is_old and step.node.target in KEPT_BEFORE_2_13)):
                continue
            if not (problem.rule == "T8" and is_old and _has_stacked_states(step)):
                yield problem
        yield from _known_number(step, asserted)


def _has_stacked_states(step: Step) -> bool:
    """Return whether only the states of an LSTM with projections are wrong, as torch declared them before 2.13.

    For each layer and direction, it declared a state of three dimensions, and stacked these.
    """
    if step.node.target != "torch.ops.aten.lstm.input":
        return False
    states = next((named.arg.as_tensors for named in step.node.inputs if named.name == "hx"), UNSET) or ()
    names = [one.name for one in (*states, *(output.as_tensor for output in step.node.outputs[1:])) if one]
    found = [meta.sizes for name in names if (meta := step.scope.graph.tensor_values.get(name))]
    return len(found) == 4 and found[2:] == [[*sizes[:1], schema.SymInt(as_int=1), *sizes[1:]] for sizes in found[:2]]


def created_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield calls that create more than `MAX_CREATED_BYTES` out of numbers alone (T9).

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    symbols = Symbols()
    for step in context.steps():
        if (needed := created_bytes(step.node, step.scope.graph, symbols)) > MAX_CREATED_BYTES:
            message = f"expected at most {MAX_CREATED_BYTES:,} bytes from one call, got {needed:,}"
            yield Problem(step.where, "T9", message)


def created_bytes(node: schema.Node, graph: schema.Graph, symbols: Symbols) -> int:
    """Return the bytes that a call creates as its numbers decide, computed or declared; 0 for other calls."""
    if not node.target.startswith(ATEN_OPS) or not node.outputs or node.outputs[0].as_tensor is UNSET:
        return 0
    if any("tensor" in named.arg.type for named in node.inputs) and not _has_sizes(node):
        return 0
    meta = graph.tensor_values.get(node.outputs[0].as_tensor.name)
    if meta is None:
        return 0
    arguments = arguments_of(node, lambda name: symbols.value(graph, name))
    count: Size = 0
    with suppress(Unknown, Mismatch):
        result = infer(node.target, arguments)
        count = result.numel if isinstance(result, Tensor) else 0
    row = DTYPES.get(meta.dtype)
    return max(spanned_bytes(meta), count * (row.itemsize if row else 1) if isinstance(count, int) else 0)


def _has_sizes(node: schema.Node) -> bool:
    """Return whether numbers of a call decide how much it creates, although it has operands."""
    row = texts().get(node.target.removeprefix(OPS))
    return row is not None and row.family != "views" and not _SIZES.isdisjoint(row.value("shown").split())


def _node_problems(step: Step, symbols: Symbols, calls: dict[Hashable, list[Difference]]) -> Iterator[Problem]:
    """Yield problems of the arguments and declared results of one call.

    Args:
        step: the call.
        symbols: the symbols of the program.
        calls: what was found in equal calls of the program, of which layers of a model have many; grows.
    """
    node, graph = step.node, step.scope.graph
    spec = find(node.target)
    if spec is None or spec.rule is None:
        return
    key = (id(symbols), _call_key(node, graph))
    if (differences := calls.get(key)) is None:
        differences = calls[key] = call_differences(spec, node, graph, symbols)
    for subject, message, position in differences:
        place = step.where if position is None else f"{step.where}.outputs[{position}]"
        rule = "T13" if node.target.startswith(FUNCTION_MODULES) else RULES_OF_SUBJECTS[subject]
        yield Problem(place, rule, f"{message} ({node.target.removeprefix(OPS)})")


def _call_key(node: schema.Node, graph: schema.Graph) -> Hashable:
    """Return what distinguishes a call from others: its target, constants, and descriptions of values, which equal
    values of a large program share; if it has dicts, the node itself.
    """
    tensors, numbers = graph.tensor_values, graph.sym_int_values

    def described(name: str) -> Any:
        meta = tensors.get(name)
        if meta is not None:
            return id(meta)
        number = numbers.get(name)
        return (name, id(graph)) if number is None or number.as_expr is UNSET else number.as_expr.expr_str

    try:
        key = (
            node.target,
            tuple([(named.name, named.arg.type, plain(named.arg, described)) for named in node.inputs]),
            tuple([plain(output, described) for output in node.outputs]),
        )
        hash(key)
    except TypeError:
        return id(node)
    return key


def _inside(context: ProgramContext, opens: str, closes: str, wrapper: str | None = None) -> set[int]:
    """Return the ids of the nodes in regions: under autocast, which converts operands when a node runs, or in vmap.

    Args:
        context: the program.
        opens, closes: ends of the targets that open and close a region.
        wrapper: the end of the target of a call whose subgraphs are regions.
    """
    nodes: set[int] = set()
    opened: Counter[int] = Counter()  # how many regions are open in a graph, by its id
    if not any(step.node.target.endswith((opens, wrapper or opens)) for step in context.steps()):
        return nodes
    for step in context.steps():
        graph, target = id(step.scope.graph), step.node.target
        opened[graph] += target.endswith(opens) - target.endswith(closes)
        if opened[graph] > 0:
            nodes.add(id(step.node))
        if opened[graph] > 0 or (wrapper is not None and target.endswith(wrapper)):
            opened.update(id(scope.graph) for scope in carried(step))
    return nodes


def _known_number(step: Step, asserted: dict[int, set[str]]) -> Iterator[Problem]:
    """Report a number that is read out of a tensor, which only running the program tells, and is declared as known.

    torch declares bools as known that `torch._check` made so, and numbers whose value the program asserts.

    Args:
        step: the call.
        asserted: what each graph asserts, by its id; grows.
    """
    graph = step.scope.graph
    tables: Any = (graph.sym_int_values, graph.sym_float_values)
    for output in step.node.outputs:
        name = getattr(output.value, "as_name", UNSET)
        number = next((table[name] for table in tables if name is not UNSET and name in table), None)
        if number is None or number.as_expr is not UNSET:
            continue
        if step.node.target.removeprefix(OPS) in overloads_with(DATA_DEPENDENT):
            if id(graph) not in asserted:
                asserted[id(graph)] = _asserted(graph)
            if {f"_operator.{bound}{(name, number.value)}" for bound in ("ge", "le")} <= asserted[id(graph)]:
                continue
            message = f"expected an expression for a number that only running determines, got {number.value!r:.40}"
            yield Problem(f"{step.where}.outputs[0]", "T13", message)


def _asserted(graph: schema.Graph) -> set[str]:
    """Return the calls of functions over numbers whose results a graph asserts, as text: `_operator.ge('item', 3)`."""
    calls: dict[str, str] = {}
    asserted: set[str] = set()
    for node in graph.nodes:
        if node.target.startswith("_operator."):
            text = f"{node.target}{tuple(arguments_of(node, str).values())}"
            calls.update(dict.fromkeys(node_outputs(node), text))
        elif node.target == f"{ATEN_OPS}_assert_scalar.default":
            names = map(str, arguments_of(node, str).values())
            asserted.update(calls[name] for name in names if name in calls)
    return asserted


def _learned(graph: schema.Graph, asserted: set[str]) -> Iterator[tuple[str, schema.RangeConstraint]]:
    """Yield symbols that a program asserts to be a number, for which `draft_export` declares it without their range."""
    for match in filter(None, map(_EQUAL.fullmatch, asserted)):
        value = graph.sym_int_values.get(match[1])
        with suppress(Pt2Error):  # Not an expression: rule E1 of `check` reports it.
            if value is not None and value.as_expr and isinstance(symbol := parse(value.as_expr.expr_str), Symbol):
                yield symbol.name, schema.RangeConstraint(int(match[2]), int(match[2]))


def call_differences(
    spec: OperatorSpec, node: schema.Node, graph: schema.Graph, symbols: Symbols, *, is_strict: bool = False
) -> list[Difference]:
    """List the differences between what a call computes and what the graph declares.

    Args:
        spec: the row of the operator, with a rule.
        node: the call.
        graph: the graph that it is in.
        symbols: the symbols of the program.
        is_strict: raise `Unknown`, and errors inside the rule, for tests.
    """
    if spec.rule is None:
        return []

    lookup = partial(symbols.value, graph)
    arguments = arguments_of(node, lookup)
    try:
        computed = call_rule(spec.rule, arguments, is_strict=is_strict)
    except Unknown:
        if is_strict:
            raise
        return []
    except Mismatch as error:
        return [(error.subject, str(error), None)]
    declared = results_of(node, lookup)
    results = computed if isinstance(computed, tuple) else (computed,)
    differences: list[Difference] = []
    for position, (expected, got) in enumerate(zip(results, declared, strict=False)):
        if _has_open_layout(expected, got, arguments.values(), node.target):
            expected = Tensor(expected.sizes, expected.dtype, None, expected.device, None, got.layout)
        differences += [(subject, message, position) for subject, message in compare(expected, got)]
    return differences


def _has_open_layout(expected: Any, got: Any, arguments: Iterable[Any], target: str) -> bool:
    """Return whether layout and strides that are declared for a result say nothing: it is a sparse one that torch read,
    or has the layout of an operand, which few result rules know of.
    """
    if not isinstance(expected, Tensor) or not isinstance(got, Tensor) or not got.may_be_sparse:
        return False
    given = [one for argument in arguments for one in (argument if isinstance(argument, (list, tuple)) else [argument])]
    is_open = not target.endswith("to_dense.default") and any(
        isinstance(one, Tensor) and one.rank and one.may_be_sparse and got.layout in (one.layout, Layout.Strided)
        for one in given
    )
    return is_open or (got.layout is Layout.Strided and expected.layout is not Layout.Strided)


def compare(expected: Any, got: Any) -> Iterator[tuple[Subject, str]]:
    """Yield the contradictions between a declared result and the computed one: a tensor, a size, or a list of these."""
    if isinstance(expected, Tensor) and isinstance(got, Tensor):
        yield from _compare_tensors(expected, got)
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            yield "sizes", f"expected {count_text(len(expected), 'tensor')}, got {len(got)} declared"
        for one, other in zip(expected, got, strict=False):
            yield from compare(one, other)
    elif _is_size(expected) and _is_size(got) and same(expected, got) is False:
        yield "sizes", f"expected {text(expected)}, got {text(got)} declared"


def _is_size(fact: Any) -> bool:
    return isinstance(fact, (int, Polynomial)) and not isinstance(fact, bool)


def _compare_tensors(expected: Tensor, got: Tensor) -> Iterator[tuple[Subject, str]]:
    if expected.layout is not got.layout:
        yield "dtype", f"expected layout {expected.layout.name}, got {got.layout.name} declared"
        return
    is_equal = [same(one, other) for one, other in zip(expected.sizes, got.sizes, strict=False)]
    if expected.rank != got.rank or False in is_equal or any(map(_is_fixed, expected.sizes, got.sizes)):
        yield "sizes", f"expected sizes {shape_text(expected.sizes)}, got {shape_text(got.sizes)} declared"
    if expected.dtype is not None and got.dtype is not None and expected.dtype is not got.dtype:
        yield "dtype", f"expected dtype {short_name(expected.dtype)}, got {short_name(got.dtype)} declared"
    if expected.strides is None or got.strides is None or expected.rank != got.rank or False in is_equal:
        pass
    elif _strides_differ(expected, got):
        yield "sizes", f"expected strides {shape_text(expected.strides)}, got {shape_text(got.strides)} declared"
    if expected.device is not None and got.device is not None and expected.device != got.device:
        yield "value", f"expected a result on {device_text(expected.device)}, got {device_text(got.device)} declared"


def _is_fixed(expected: Size, got: Size) -> bool:
    """Return whether a number is declared for a size that only running the program determines.

    torch declares the symbol, unless it learned the number: then the range of the symbol, or an assertion, has it.
    """
    if isinstance(expected, int) or not isinstance(got, int) or expected.is_unknown or same(expected, got):
        return False
    symbol = to_expression(expected)
    return isinstance(symbol, Symbol) and symbol.name.startswith("u") and hint(expected) is None


def mutation_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield values that are written to inputs of other sizes or another dtype (S15)."""
    module = context.program.graph_module
    symbols = Symbols(context.program.range_constraints, [module.graph])
    for position, names in mutated_inputs(module.signature):
        if len(names) != 1:
            continue  # S8 is about shared targets, S7 about missing ones.
        result_name = module.signature.output_specs[position].value.arg.name
        into, result = symbols.value(module.graph, names[0]), symbols.value(module.graph, result_name)
        if isinstance(into, Tensor) and isinstance(result, Tensor):
            plain = (Tensor(one.sizes, one.dtype, None, None, None) for one in (into, result))
            for _, message in _compare_tensors(*plain):
                place = f"{context.record}: $.graph_module.signature.output_specs[{position}]"
                yield Problem(place, "S15", f"{message} for what is written to {quote(names[0])}")


def _strides_differ(expected: Tensor, got: Tensor) -> bool:
    """Return whether strides contradict for certain; those of dimensions with one element or none do not count.

    Nor do those of dimensions with one element in the example only: torch then computes strides as for one.
    """
    counts = [{hint(one), hint(other)} for one, other in zip(expected.sizes, got.sizes, strict=True)]
    if any(0 in one for one in counts):
        return False
    strides = zip(expected.strides or (), got.strides or (), strict=True)
    return any(same(*pair) is False and 1 not in one for one, pair in zip(counts, strides, strict=True))


def device_problems(context: ProgramContext) -> Iterator[Problem]:
    """Yield the devices that torch does not have, each once, at its first place.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    known: dict[schema.Device, str] = {}
    for scope in graphs(context.program, context.graph_place):
        for name, meta in scope.graph.tensor_values.items():
            if meta.device not in known:
                known[meta.device] = entry_place(scope.where, "tensor", name)
    for step in context.steps():
        for position, named in enumerate(step.node.inputs):
            device = named.arg.as_device
            if named.name == "device" and isinstance(named.arg.as_string, str):
                device = parse_device(named.arg.as_string) or schema.Device(named.arg.as_string)
            if device is not UNSET:
                known.setdefault(device, f"{step.where}.inputs[{position}].arg")
    for device, place in known.items():
        try:
            check_device(place, device)
        except Pt2Error as error:
            yield problem_of(error, place)
