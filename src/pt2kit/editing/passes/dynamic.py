"""Dynamic shape pass: make a static dimension dynamic, proven by the result rules of operators for every size in the
range.

The dimension becomes a symbol, and sizes are computed again from the inputs, subgraphs included. Sizes that export
wrote into calls as numbers (`expand`, `arange`) are replaced where a call would otherwise not fit. A view keeps the
symbol where it is in memory: `view(x, [2, -1])` of a batch of 2 becomes `view(x, [-1, 8])`, although any batch fits.
What cannot be proven is refused with the node that needs the old size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

import msgspec

from pt2kit import schema
from pt2kit.dataflow.domain import Call, Sizes
from pt2kit.dataflow.engine import run
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.building import signature_of
from pt2kit.editing.editor import Editor
from pt2kit.editing.graphs import Graph, Node, Value
from pt2kit.editing.interface import values_of
from pt2kit.editing.metas import row_major
from pt2kit.errors import GraphError
from pt2kit.graph.argument_values import arguments, results_of
from pt2kit.graph.traversal import graphs, node_outputs, operator_name
from pt2kit.messages import quote
from pt2kit.operators.facts import Mismatch, Tensor, Unknown
from pt2kit.operators.metas import to_size
from pt2kit.operators.pointwise import strides_in_order
from pt2kit.operators.rows import texts
from pt2kit.operators.table import infer
from pt2kit.schema.names import free_name
from pt2kit.symbols.expr import Symbol, default_assumptions, free_symbols
from pt2kit.symbols.polynomials import Polynomial, Size, Undecided, from_expression, hint, product, same, to_expression
from pt2kit.symbols.polynomials import symbol as polynomial_symbol
from pt2kit.symbols.srepr import to_srepr

_REPAIRS: Final = 10_000
"""Calls whose written sizes are replaced, at most."""

_ALL: Final = 16
"""Sizes of a range that are all tried; of a larger one its ends and some between."""

_WRITTEN: Final = frozenset(("size", "repeats", "start", "end", "N", "C", "HxW"))
"""Parameters whose numbers, if they may be symbols, are sizes that the result has, or parts of them."""


def make_dynamic(
    editor: Editor,
    name: str,
    dim: int,
    low: int = 1,
    high: int | None = None,
    *,
    equal: Sequence[tuple[str, int]] = (),
) -> str:
    """Allow the caller to pass another size of one dimension of an input.

    Args:
        editor: the program.
        name: of the input.
        dim: the dimension, from 0.
        low, high: the least and the greatest size; None is unbounded.
        equal: other dimensions, by input and number, that always have the same size.

    Returns:
        the symbol that stands for the size.

    Raises:
        GraphError: no such dimension, a size outside the range, a call that needs the size that it has now, or a
            program with gradients. Nothing was changed but literal sizes of calls that were replaced.
    """
    edit = f"make_dynamic({quote(name)}, {dim})"
    # Derivatives of means are multiplied by numbers that export computed from the sizes (0.2 for a batch of 5).
    if any(one.kind.startswith("gradient_") for one in editor.outputs):
        raise GraphError(
            f"{edit}: expected a program without gradients, got one whose calls have numbers computed from sizes; "
            "export it with a dynamic dimension"
        )
    places = [(_tensor(editor, one, number, edit), number) for one, number in ((name, dim), *equal)]
    olds = {arithmetic.known(value.meta.sizes[number]) for value, number in places}
    if len(olds) != 1 or (old := olds.pop()) is None:
        raise GraphError(f"{edit}: expected static dimensions of one size, got {[one.shape for one, _ in places]}")
    if old < low or (high is not None and old > high):
        raise GraphError(f"{edit}: expected a range with the size it has, {old}, got {low} to {high}", rule="E4")
    symbol = free_name("s", editor.ranges.__contains__, 0, separator="")
    before, ranges = [(value, value.meta) for value, _ in places], dict(editor.ranges)
    editor.ranges[symbol] = (low, high)
    expr = Symbol(symbol, default_assumptions(symbol))
    size = schema.SymInt(as_expr=schema.SymExpr(to_srepr(expr), schema.SymExprHint(as_int=old)))
    try:
        for value, number in places:
            value.meta = _with_size(value.meta, number, size, edit)
        _prove(editor, places[0][0], dim, symbol, old, edit)
    except GraphError:
        for value, meta in before:
            value.meta = meta
        editor.ranges.clear()
        editor.ranges.update(ranges)
        raise
    return symbol


def _tensor(editor: Editor, name: str, dim: int, edit: str) -> Value:
    """Return the value of an input tensor that has a dimension."""
    value = next((one.value for one in editor.user_inputs if one.name == name), None)
    if value is None or value.kind != "tensor":
        there = ", ".join(one.name for one in values_of(editor.user_inputs)) or "none"
        raise GraphError(f"{edit}: expected the name of an input tensor ({there}), got {quote(name)}")
    if dim not in range(len(value.meta.sizes)):
        raise GraphError(f"{edit}: expected a dimension from 0 to {len(value.meta.sizes) - 1}, got {dim!r}")
    return value


def _with_size(meta: schema.TensorMeta, dim: int, size: schema.SymInt, edit: str) -> schema.TensorMeta:
    """Return the meta of an input with another size of one dimension."""
    sizes = [*meta.sizes[:dim], size, *meta.sizes[dim + 1 :]]
    places = zip(meta.sizes, meta.strides, row_major(meta.sizes), strict=True)
    if any(one != other and arithmetic.known(size) != 1 for size, one, other in places):
        raise GraphError(f"{edit}: expected a row-major input, got strides {list(map(arithmetic.known, meta.strides))}")
    return msgspec.structs.replace(meta, sizes=sizes, strides=row_major(sizes))


def _prove(editor: Editor, source: Value, dim: int, symbol: str, old: int, edit: str) -> None:
    """Compute all sizes anew; replace sizes written into calls until every call fits."""
    is_last = False
    for _ in range(_REPAIRS):
        domain = _Followed(editor, symbol, old, is_thorough=is_last)
        try:
            facts = run(domain.program, domain)
            if domain.is_repaired or not is_last:
                is_last = not domain.is_repaired
                continue
        except _Unproven as failed:
            if not _repaired(domain, failed, source, dim):
                raise GraphError(
                    f"{edit}: expected calls that fit every size, got node {quote(failed.name)} "
                    f"({failed.call.target.removeprefix('torch.ops.')}), which does not: {failed.why}",
                    rule="T8",
                ) from failed
            continue
        for path, graph in domain.graphs:
            for name, fact in facts.get(path, {}).items():
                if (value := graph.values.get(name)) is not None:
                    _restate(value, fact, edit)
        return
    raise GraphError(f"{edit}: expected at most {_REPAIRS} calls with sizes written into them, got more")


class _Unproven(Exception):
    """A call that is not known to fit every size."""

    def __init__(self, call: Call, why: str) -> None:
        super().__init__(why)
        self.call = call
        self.why = why
        self.name = call.node.name or next(
            (one.value.name for one in call.node.outputs if one.type == "as_tensor"), "?"
        )


class _Followed(Sizes):
    """Sizes of all values; a call that gets the symbol must have a rule that is certain of its result.

    Views whose sizes do not fit get others at once, in the editor, not in the program that is analysed.
    """

    def __init__(self, editor: Editor, symbol: str, old: int, *, is_thorough: bool) -> None:
        module = editor.program.graph_module
        ranges = {name: schema.RangeConstraint(*limits) for name, limits in editor.ranges.items()}
        self.program = msgspec.structs.replace(
            editor.program,
            graph_module=msgspec.structs.replace(module, graph=editor.graph.written()),
            range_constraints=ranges,
        )
        super().__init__(self.program)
        scopes = zip(graphs(self.program), editor.graph.walk(), strict=True)
        self.graphs = [(scope.path, graph) for scope, graph in scopes]
        self.calls: dict[tuple[str, str], Call] = {}  # by the graph and the name of a result
        self.editor, self.symbol, self.old, self.is_repaired = editor, symbol, old, False
        low, high = editor.ranges[symbol]
        low, top = low or 0, old + 13 if high is None else high
        chosen = {low, low + 1, old, old + 1, old + 7, top - 1, top} if top - low > _ALL else range(low, top + 1)
        numbers = sorted(number for number in chosen if low <= number <= top)
        self._numbers = numbers if is_thorough else [one for one in (old + 1, old - 1) if one in numbers][:1]

    def call(self, call: Call) -> Sequence[Any]:
        """Return what the rule computes; what the program declares if the call does not depend on the symbol."""
        self.calls |= {(call.scope.path, name): call for name in node_outputs(call.node)}
        while True:
            try:
                return self._results(call)
            except _Unproven as failed:
                node, name = self.node(call), _deduced(call.target)
                sizes = None if node is None or not name or self.is_torn(call) else _reshaped(self, node, name, call)
                if sizes is None:
                    raise self._explained(failed) from failed
                self.is_repaired = True
                call = replace(call, arguments={**call.arguments, name: sizes})

    def _explained(self, failed: _Unproven) -> _Unproven:
        """Return the error of a view with its cause, if several of the sizes that it had may have the symbol."""
        if len(self.options(failed.call)) < 2:
            return failed
        why = f"several of its sizes may be the one that changes; export the model with another size than {self.old}"
        return _Unproven(failed.call, why)

    def node(self, call: Call) -> Node | None:
        """Return the node of the editor that a call is of."""
        values = next(graph.values for path, graph in self.graphs if path == call.scope.path)
        return next((values[name].producer for name in node_outputs(call.node) if name in values), None)

    def _results(self, call: Call) -> Sequence[Any]:
        depends = any(_mentions(fact, self.symbol) for fact in call.arguments.values())
        if depends:
            self._check_place(call)
        try:
            results = _inferred(call.target, call.arguments)
            if depends:
                for number in self._numbers:
                    self._check_at(call, results, number)
            if depends and isinstance(results, Tensor) and results.strides is None:
                if self.is_torn(call):
                    raise Unknown("it needs dimensions that are next to each other in memory for one size only")
                results = msgspec.structs.replace(results, strides=self._general_strides(call))
            listed = results if isinstance(results, tuple) else (results,)
            if depends and "as_strided" in call.target and not _is_whole(call.arguments.get("self"), listed[0]):
                raise Unknown("its sizes and strides are those of another size")
            return [_completed(*pair) for pair in zip(listed, self.declared(call), strict=False)]
        except (Unknown, Mismatch, Undecided) as error:
            if depends and call.node.outputs:
                raise _Unproven(call, str(error)) from error
            return self.declared(call)

    def _check_place(self, call: Call) -> None:
        """Check that -1 in a view, such as [2, -1, 8], stands for the size that has the symbol.

        Raises:
            _Unproven: it stands for another one, or for one of several that may have the symbol.
        """
        name = _deduced(call.target)
        written = call.arguments.get(name) if name else None
        if not isinstance(written, list | tuple) or -1 not in written:
            return
        place = list(written).index(-1)
        options, declared = self.options(call), self.declared(call)[0]
        if len(options) > 1 or any(sizes[place] == declared.sizes[place] for sizes in options):
            raise _Unproven(call, "-1 may stand for another size than the one that changes")

    def is_torn(self, call: Call) -> bool:
        """Return whether the strides of a view's operand allow the view for the old size, and for no other."""
        tensor, sizes = call.arguments.get("self"), call.arguments.get(_deduced(call.target))
        if operator_name(call.target) != "aten.view.default" or not isinstance(tensor, Tensor) or not tensor.strides:
            return False
        try:
            seen = [
                _inferred(call.target, {"self": _at(tensor, self.symbol, one), "size": _at(sizes, self.symbol, one)})
                for one in (self.old, *self._numbers)
            ]
        except (Unknown, Mismatch, Undecided):
            return False
        return seen[0].strides is not None and any(one.strides is None for one in seen)

    def _general_strides(self, call: Call) -> tuple[Size, ...] | None:
        """Return the strides of a view for sizes of 2 and more, which a size of 1 may have as well; None if the call is
        no view, or they are not certain."""
        if operator_name(call.target) != "aten.view.default":
            return None
        general = polynomial_symbol(Symbol(self.symbol, default_assumptions(self.symbol)), 2, hint=max(2, self.old))
        strides = _inferred(
            call.target, {name: _at(fact, self.symbol, general) for name, fact in call.arguments.items()}
        ).strides
        return strides and tuple(self._symbols.size(to_size(stride)) for stride in strides)

    def options(self, call: Call) -> list[list[Size]]:
        """Return the sizes that a view may have, by those that it had; of several, nothing tells which are right, and
        other calls have none.

        The symbol keeps its position in memory: in front of it and after it are as many elements as before.
        """
        tensor, declared = call.arguments.get("self"), next(iter(self.declared(call)), None)
        if not (_deduced(call.target) and isinstance(tensor, Tensor) and isinstance(declared, Tensor)):
            return []
        known, fitting = declared.sizes, dict[int, Size]()
        for place, size in enumerate(known):
            others = product([*known[:place], *known[place + 1 :]])
            quotient = tensor.numel // others if others != 0 else 0
            if quotient * others == tensor.numel and hint(quotient) == hint(size):
                fitting[place] = quotient
        carrying = [place for place, size in enumerate(tensor.sizes) if _mentions(size, self.symbol)]
        at = carrying[0] if carrying else 0
        is_one = len(carrying) == 1 and _at(tensor.sizes[at], self.symbol, 1) * self.old == hint(tensor.sizes[at])
        if is_one and len(fitting) > 1 and (inner := self._inner(call, tensor, at)):
            after = inner * product(tensor.sizes[at + 1 :])
            before = product(tensor.sizes[:at]) * _at(tensor.sizes[at], self.symbol, 1) // inner
            around = {place: (product(known[:place]), product(known[place + 1 :])) for place in fitting}
            right = [place for place, (first, last) in around.items() if after and before % first == 0 == after % last]
            # Dimensions of 1 keep their order, if there are as many as before.
            alone, run = [place for place in right if around[place] == (before, after)], [at]
            while run[0] and tensor.sizes[run[0] - 1] == 1:
                run.insert(0, run[0] - 1)
            while run[-1] < tensor.rank - 1 and tensor.sizes[run[-1] + 1] == 1:
                run.append(run[-1] + 1)
            chosen = [alone[run.index(at)]] if len(alone) == len(run) else right or fitting
            fitting = {place: fitting[place] for place in chosen}
        found = [[*known[:place], size, *known[place + 1 :]] for place, size in fitting.items()]
        if is_one:
            return found
        found += filter(None, [self._kept(tensor, carrying, known)])
        return [sizes for sizes in found if _in_order(tensor.sizes, sizes, self.symbol)]

    def _kept(self, tensor: Tensor, dims: Sequence[int], known: Sequence[Size]) -> list[Size] | None:
        """Return the sizes of a view whose operand has the symbol in several dimensions, such as [batch, s0, s0]: each
        of them stands where as many elements follow; None if one has no such place."""
        carrying, sizes, after = [*dims], [*known], product(())
        if len(carrying) < 2:
            return None
        for place in reversed(range(len(known))):
            at = carrying[-1] if carrying else -1
            if known[place] == self.old and carrying and same(after, product(tensor.sizes[at + 1 :])):
                sizes[place] = tensor.sizes[carrying.pop()]
            after *= sizes[place]
        return sizes if not carrying and same(after, tensor.numel) else None

    def _inner(self, call: Call, tensor: Tensor, dim: int) -> Size | None:
        """Return how many entries of the dimension of a view's operand are of one step of the symbol: 1 for length *
        batch, the number of heads for batch * heads; None if the calls that it comes from do not show it."""
        todo, seen = [(call, "self", tensor, dim, product(()), product(()))], set[str]()
        while todo:
            call, parameter, tensor, dim, above, below = todo.pop()
            if _at(size := tensor.sizes[dim], self.symbol, 1) == 1:
                return above // below
            names = [name for one in call.node.inputs if one.name == parameter for name in arguments(one.arg)]
            maker = self.calls.get((call.scope.path, names[0])) if len(names) == 1 and names[0] not in seen else None
            if maker is None:
                continue
            seen.add(names[0])
            operands = [(name, one) for name, one in maker.arguments.items() if isinstance(one, Tensor)]
            if _deduced(maker.target) or "flatten" in maker.target:
                # A view keeps the order of the elements. Dimensions of one size need not be the same.
                (name, source), *_ = operands
                carrying = [at for at, one in enumerate(source.sizes) if _mentions(one, self.symbol)]
                after = above * product(source.sizes[carrying[0] + 1 :]) if len(carrying) == 1 else 0
                if after:
                    todo.append((maker, name, source, carrying[0], after, below * product(tensor.sizes[dim + 1 :])))
                continue
            alike = [(name, one) for name, one in operands if one.sizes.count(size) == 1]
            todo += [(maker, name, one, one.sizes.index(size), above, below) for name, one in reversed(alike)]
            if alike or not operands or "repeat" not in maker.target:
                continue
            (name, source), *_ = operands
            if source.rank == tensor.rank and _mentions(source.sizes[dim], self.symbol):
                # Copies of each entry follow it; copies of a whole tensor follow all of its entries.
                ends = (size, source.sizes[dim]) if "interleave" in maker.target else (1, 1)
                new, old = (_at(one, self.symbol, 1) for one in ends)
                todo.append((maker, name, source, dim, above * new, below * old))
        return None

    def _check_at(self, call: Call, results: Any, number: int) -> None:
        """Infer a call again with a number instead of the symbol, which decides what rules leave open.

        Raises:
            Mismatch, Unknown: the call does not fit the number, or its result is another one.
        """
        got = _inferred(call.target, {name: _at(fact, self.symbol, number) for name, fact in call.arguments.items()})
        if _sizes(got) != _sizes(_at(results, self.symbol, number)):
            raise Unknown(f"its result is not the same formula for {self.symbol} = {number}")

    def declared(self, call: Call) -> list[Any]:
        """Return what the program declares of the results."""
        return results_of(call.node, lambda name: self._symbols.value(call.scope.graph, name))


def _in_order(sizes: Sequence[Size], others: Sequence[Size], symbol: str) -> bool:
    """Return whether a view can have other sizes with the symbol where it is in memory: dimensions that end at one
    place for the known numbers do so for all, and none with the symbol is split."""

    def ends(sizes: Sequence[Size]) -> list[tuple[int, Size]]:
        return [(hint(end) or 0, end) for end in (product(sizes[place:]) for place in range(len(sizes) + 1))]

    before, after = ends(sizes), ends(others)
    for number in {number for number, _ in after}:
        there = [end for at, end in before if at == number]
        if there and not any(at == number and end in there for at, end in after):
            return False
        whole = [size for size, (at, _) in zip(sizes, before, strict=False) if at > number]
        if not there and whole and _mentions(whole[-1], symbol):
            return False
    return True


def _is_whole(tensor: Any, view: Any) -> bool:
    """Return whether a view has all elements of a tensor, without gaps, in another order of strides at most."""
    if not (isinstance(tensor, Tensor) and isinstance(view, Tensor) and view.strides is not None):
        return False
    places = zip(view.sizes, view.strides, _dense_like(view.strides, view.sizes), strict=True)
    return tensor.sizes == view.sizes and all(size == 1 or one == other for size, one, other in places)


def _dense_like(strides: Sequence[Size], sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Return strides without gaps, in the order of others."""
    order = sorted(range(len(sizes)), key=lambda dim: -(hint(strides[dim]) or 0))
    return strides_in_order(sizes, order[::-1])


def _inferred(target: str, arguments: Mapping[str, Any]) -> Any:
    """Infer the results of a call; under autocast, where operands need not be of one type, those of untyped ones."""
    try:
        return infer(target, arguments)
    except Mismatch as error:
        if error.subject != "dtype":
            raise
        return infer(target, {name: _untyped(fact) for name, fact in arguments.items()})


def _untyped(fact: Any) -> Any:
    if isinstance(fact, (list, tuple)):
        return type(fact)(map(_untyped, fact))
    return msgspec.structs.replace(fact, dtype=None) if isinstance(fact, Tensor) else fact


def _completed(fact: Any, declared: Any) -> Any:
    """Return a result with the declared type, and what its rule leaves open: strides in the declared order."""
    if fact is None:
        return declared
    if isinstance(fact, list) and isinstance(declared, list):
        return [_completed(one, other) for one, other in zip(fact, declared, strict=True)]
    if not (isinstance(fact, Tensor) and isinstance(declared, Tensor)):
        return fact
    if fact.dtype is not declared.dtype:
        fact = msgspec.structs.replace(fact, dtype=declared.dtype)
    if fact.strides is not None or not declared.strides:
        return fact
    is_same = fact.sizes == declared.sizes
    return msgspec.structs.replace(
        fact, strides=declared.strides if is_same else _dense_like(declared.strides, fact.sizes)
    )


def _mentions(fact: Any, symbol: str) -> bool:
    """Return whether a fact depends on a symbol."""
    if isinstance(fact, Tensor):
        return any(_mentions(size, symbol) for size in (*fact.sizes, *(fact.strides or ())))
    if isinstance(fact, (list, tuple)):
        return any(_mentions(one, symbol) for one in fact)
    if not isinstance(fact, Polynomial) or fact.is_unknown:
        return False
    return any(one.name == symbol for one in free_symbols(to_expression(fact)))


def _at(fact: Any, symbol: str, size: Size) -> Any:
    """Return a fact with a number, or another symbol, instead of a symbol."""
    if isinstance(fact, Tensor):
        changed = {name: _at(getattr(fact, name), symbol, size) for name in ("sizes", "strides", "offset")}
        return msgspec.structs.replace(fact, **changed)
    if isinstance(fact, (list, tuple)):
        return type(fact)([_at(one, symbol, size) for one in fact])
    if isinstance(fact, Polynomial) and _mentions(fact, symbol):
        found = to_expression(fact)
        return from_expression(found, lambda leaf: size if leaf.name == symbol else polynomial_symbol(leaf))
    return fact


def _sizes(fact: Any) -> Any:
    """Return the sizes in a fact, and numbers."""
    if isinstance(fact, Tensor):
        return fact.sizes
    return [_sizes(one) for one in fact] if isinstance(fact, (list, tuple)) else fact


def _repaired(domain: _Followed, failed: _Unproven, source: Value, dim: int) -> bool:
    """Replace one size that is written into a call which failed, or into one that its operands come from."""
    editor, symbol, old, node = domain.editor, domain.symbol, domain.old, domain.node(failed.call)
    if node is None:
        return False
    if domain.is_torn(failed.call) and not any(one.writes for one in node.graph.nodes):
        # Export clones operands of such views where the size is dynamic; nothing is written, so a copy is the same.
        copy = node.insert_before("aten.clone", node.inputs[0], memory_format=schema.MemoryFormat.ContiguousFormat)
        node.set_argument("self", copy.output)
        return True
    if _deduced(node.target) or node.graph is not editor.graph:
        return False
    for factor in (1, *_factors(failed.call.arguments.values(), symbol, old)):
        for maker in _made(node, {old, factor * old}):
            # Sizes of views have been replaced when they were analyzed.
            if not _deduced(maker.target) and any(_sized(domain, maker, source, dim, one) for one in (factor, 1)):
                return True
    return False


def _factors(facts: Iterable[Any], symbol: str, old: int) -> Iterator[int]:
    """Yield how often sizes of operands have the symbol: 4 for 4 * s0."""
    for fact in facts:
        if isinstance(fact, list | tuple):
            yield from _factors(fact, symbol, old)
        for size in fact.sizes if isinstance(fact, Tensor) else ():
            factor = _at(size, symbol, 1)
            if _mentions(size, symbol) and isinstance(factor, int) and _at(size, symbol, old + 1) == factor * (old + 1):
                yield factor


def _sized(domain: _Followed, node: Node, source: Value, dim: int, factor: int) -> bool:
    """Replace a number among the sizes of a call that is the old size, or a multiple of it: one where the operand has
    the symbol, or else the first."""
    call = domain.calls.get(("", node.outputs[0].name)) if node.outputs else None
    operand: Any = call.arguments.get("self") if call is not None else None
    wanted = factor * domain.old
    for slot in node.slots:
        if not _is_size(node, slot.name):
            continue
        is_list = isinstance(slot.plain, tuple)
        numbers = [*slot.plain] if is_list else [slot.plain]
        places = [place for place, number in enumerate(numbers) if number == wanted]
        ahead = len(numbers) - operand.rank if isinstance(operand, Tensor) else len(numbers)
        carrying = [at for at in places if at >= ahead and _mentions(operand.sizes[at - ahead], domain.symbol)]
        has_symbol = isinstance(operand, Tensor) and _mentions(operand.sizes, domain.symbol)
        if carrying or (places and not has_symbol and all(isinstance(number, int) for number in numbers)):
            numbers[(carrying or places)[0]] = _size_node(domain.editor.graph, source, dim, factor)
            node.set_argument(slot.name, numbers if is_list else numbers[0])
            return True
    return False


def _is_size(node: Node, name: str) -> bool:
    """Return whether an argument of a call is a size of its result, or an end of the range that it returns."""
    signature = signature_of(node.target)
    parameter = signature.parameters.get(name) if signature is not None and name in _WRITTEN else None
    return parameter is not None and (parameter.type.base == "SymInt" or ".arange." in node.target)


def _deduced(target: str) -> str:
    """Return the name of the sizes in which -1 stands for the rest of the elements; "" if the operator has none."""
    row = texts().get(operator_name(target))
    return row.value("deduced") if row is not None else ""


def _made(node: Node, sizes: Set[int]) -> Iterator[Node]:
    """Yield the calls that have one of some sizes among a node and what its operands come from, the nearest first."""
    seen, queue = {node}, [node]
    for one in queue:
        if one is node or any(sizes & {*(value.shape or ())} for value in one.outputs):
            yield one
        for value in one.inputs:
            # A size may be merged with others: batch * heads.
            merged = value.shape is None or any(one % min(sizes) == 0 for one in value.shape if isinstance(one, int))
            if value.producer is not None and value.producer not in seen and merged:
                seen.add(value.producer)
                queue.append(value.producer)


def _reshaped(domain: _Followed, node: Node, name: str, call: Call) -> list[Size] | None:
    """Rewrite the sizes of a view: -1 for one that may depend on the symbol, a number for the old -1.

    Returns:
        The new sizes; None if there are no others to try.
    """
    slot, options = next((slot for slot in node.slots if slot.name == name), None), domain.options(call)
    if slot is None or len(options) != 1:
        return None
    written, known = list(slot.plain), domain.declared(call)[0].sizes
    if len(written) != len(known):
        return None
    changed = [place for place, (size, old) in enumerate(zip(options[0], known, strict=True)) if size != old]
    sizes = [-1 if [place] == changed else size for place, size in enumerate(options[0])]
    new = [
        one if one != -1 and size == old else _written(domain.editor, node, size)
        for one, size, old in zip(written, sizes, known, strict=True)
    ]
    if None in new or new == written:
        return None
    node.set_argument(slot.name, new)
    return sizes


def _written(editor: Editor, node: Node, size: Size) -> int | Value | None:
    """Return a size as an argument: a number, or the value of a dimension of an input; None if no input has it, or in a
    subgraph."""
    if isinstance(size, int):
        return size
    for value in values_of(editor.user_inputs) if node.graph is editor.graph else ():
        for dim, other in enumerate(value.meta.sizes if value.dtype else ()):
            if arithmetic.same(to_size(size), other):
                return _size_node(editor.graph, value, dim)
    return None


def _size_node(graph: Graph, source: Value, dim: int, factor: int = 1) -> Value:
    """Return the value of the dimension, or of a multiple: of the node that computes it, made if there is none."""
    size = _asked(graph, "aten.sym_size.int", "dim", dim, source)
    if size is None:
        name = f"sym_size_{source.name}"
        size = graph.prepend("aten.sym_size.int", source, dim, meta=source.meta.sizes[dim], name=name).output
    if factor == 1:
        return size
    multiple = _asked(graph, "_operator.mul", "1", factor, size)
    if multiple is None and size.producer is not None:
        meta = arithmetic.product((size.meta, arithmetic.number(factor)))
        multiple = graph.insert_after(size.producer, "_operator.mul", size, factor, meta=meta, name="mul").output
    return size if multiple is None else multiple


def _asked(graph: Graph, target: str, parameter: str, number: int, operand: Value) -> Value | None:
    """Return the result of a call with a value and a number; None if the graph has no such call."""
    for node in graph.nodes:
        if operator_name(node.target) == target and node.inputs == (operand,):
            argument = node.argument(parameter)
            if isinstance(argument, schema.Argument) and argument.type == "as_int" and argument.as_int == number:
                return node.output
    return None


def _restate(value: Value, fact: Any, edit: str) -> None:
    """Set the sizes and strides that were computed."""
    meta = value.meta
    try:
        if isinstance(fact, Tensor) and isinstance(meta, schema.TensorMeta):
            strides = meta.strides if fact.strides is None else [to_size(stride) for stride in fact.strides]
            new: Any = msgspec.structs.replace(meta, sizes=[to_size(size) for size in fact.sizes], strides=strides)
        elif isinstance(fact, (int, Polynomial)) and isinstance(meta, schema.SymInt):
            new = to_size(fact)
        else:
            return
    except Undecided as error:
        raise GraphError(
            f"{edit}: expected sizes that are certain, got {quote(value.name)}: {error}", rule="T8"
        ) from error
    if new != meta:
        value.meta = new
