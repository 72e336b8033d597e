"""Arguments that kernels trust -> the calls whose arguments nobody vouches for (rule X10).

Some operators take numbers for addresses, or sizes on trust, and are everyday all the same: the derivative of a pooling
operator gets the indices that the pooling found. The table (`refused.py`) says what makes what each of them trusts.
Here that is followed from where it is made, through copies and views, and lost where something writes over it. The
parts of sparse tensors are followed as well: nothing may write to them once a sparse tensor has them.

Who calls the program vouches for what they pass; what the file stores has to be such numbers as the table says
(`stored_numbers.py`). Neither holds for what the program writes to, not even later: it is called again.

A graph is gone through once, in order, and each subgraph where it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET

from pt2kit import codec, schema
from pt2kit.checks import kernel_sizes, stored_numbers
from pt2kit.checks.known_targets import higher_order_name
from pt2kit.checks.passing_on import BECOME_PARTS, FILLED, ITSELF, PARTS, PASSING, RESHAPED, SAME, SPARSE
from pt2kit.checks.refused import Condition, Origin, find_everyday
from pt2kit.checks.stored_numbers import StoredInputs
from pt2kit.graph.argument_values import arguments, leaves
from pt2kit.graph.traversal import Scope, Step, carried, check_depth, walk
from pt2kit.messages import quote
from pt2kit.package.stored import Payload
from pt2kit.schema.operator_text import Operator

if TYPE_CHECKING:
    pass

_OPERATORS: Final = "torch.ops."
_INPUT: Final = "input"
"""What stands for an operator where the caller of the program gave the value."""
_FILE: Final = "file"
"""What stands for one where the file has the value."""
_COMPUTED: Final = "computed"
"""What stands for any where the value was made of something that the caller gave."""

Find = Callable[[str], Operator | None]
"""Target of a node -> its signature; None for what is no operator."""


class Finding(NamedTuple):
    """A call that may make a kernel leave its memory.

    Args:
        step: the call.
        operator: "aten.max_pool2d_with_indices_backward", which a caller would have to trust.
        message: what the call trusts, and where it should come from.
    """

    step: Step
    operator: str
    message: str


class Sized(NamedTuple):
    """A call whose sizes have to fit.

    Args:
        step: the call.
        operator: "aten._fft_c2r".
        rule: the name of the rule.
        made: arguments of the call that made what this one trusts, as far as they stand in the same graph.
    """

    step: Step
    operator: str
    rule: str
    made: Mapping[str, schema.Argument]


class _Maker(NamedTuple):
    """The call that made a value: its operator without overload, which of its results, what it got, and where.

    For what the file stores, it is the payload.
    """

    operator: str
    result: int
    arguments: Mapping[str, Hashable]
    step: Step | None = None
    payload: Payload | None = None


@dataclass(eq=False, slots=True)
class _Value:
    """One value of a graph.

    Args:
        memory: what it shares with its views.
        key: the same for values that are the same tensor, or copies of it.
        maker: the call whose elements it has; None where that is not known any more.
        shaped: it has the shape that the call gave it.
        is_callers: its elements are made of what the caller of the program gave.
    """

    memory: _Memory
    key: Hashable
    maker: _Maker | None = None
    shaped: bool = True
    is_callers: bool = False


@dataclass(eq=False, slots=True)
class _Memory:
    """Memory that values share.

    Args:
        values: those that share it.
        part: the sparse tensor's operator that has it as a part; "" where none has.
        is_written: something writes to it, sooner or later.
    """

    values: list[_Value] = field(default_factory=list)
    part: str = ""
    is_written: bool = False


def is_concerned(targets: Iterable[str], nodes: Iterable[schema.Node]) -> bool:
    """Whether a program calls anything that is looked at here.

    Args:
        targets: what it calls; more may be among them.
        nodes: all of its nodes.
    """
    return any(map(_is_watched, targets)) or any(map(_is_on_meta, nodes))


def _is_watched(target: str) -> bool:
    return find_everyday(target) is not None or name_of(target).rpartition(".")[2] in PARTS | SPARSE


def _called_by(node: schema.Node) -> Iterator[str]:
    """The operators that a higher-order one gets as arguments."""
    if higher_order_name(node.target) is not None:
        for named in node.inputs:
            yield from (leaf.as_operator for _, leaf in leaves(named.arg) if leaf.as_operator is not UNSET)


def name_of(target: str) -> str:
    """The operator without overload: "aten.add"."""
    return ".".join(target.removeprefix(_OPERATORS).split(".")[:2])


def trusting_calls(root: Scope, find: Find, stored: StoredInputs) -> Iterator[Finding | Sized]:
    """Iterate the calls that trust an argument which nobody vouches for, and the writes to parts of sparse tensors.

    Those whose sizes have to fit are for `kernel_sizes`, with whatever sizes the caller knows.

    Args:
        root: the root graph.
        find: target of a node -> its signature; None for what is no operator.
        stored: the inputs that the file fills, and those that the program changes.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    yield from _without_memory(root)
    program = _Walk(find)
    named = [name for argument in root.graph.inputs for name in arguments(argument)]
    yield from program.graph(root, program.inputs(named, stored))
    for trusted, finding in program.trusted:
        if trusted.is_written:
            yield finding


def _without_memory(root: Scope) -> Iterator[Finding]:
    """Calls that make tensors without memory, in a program whose inputs have some: kernels mix them up."""
    inputs = {name for argument in root.graph.inputs for name in arguments(argument)}
    metas = [root.graph.tensor_values[name] for name in inputs if name in root.graph.tensor_values]
    if not any(meta.device.type != "meta" for meta in metas):
        return
    for step in walk(root.graph, root.where):
        if _is_on_meta(step.node):
            yield Finding(step, name_of(step.node.target), "makes a tensor without memory beside others that have some")


def _is_on_meta(node: schema.Node) -> bool:
    for named in node.inputs:
        device = named.arg.as_device
        if device is not UNSET and device.type == "meta":
            return True
    return False


def unvouched_calls(root: Scope, find: Find, stored: StoredInputs) -> Iterator[Finding]:
    """Iterate what `trusting_calls` finds, and the calls whose sizes do not fit, as the program declares them.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    for call in trusting_calls(root, find, stored):
        if isinstance(call, Finding):
            yield call
            continue
        sizes = kernel_sizes.declared(call.step.scope.graph.tensor_values)
        argument_by_name = {named.name: named.arg for named in call.step.node.inputs}
        for text in kernel_sizes.misfits(call.rule, argument_by_name, call.made, sizes, lambda _: None):
            yield Finding(call.step, call.operator, f"expected {text}")


class _Walk:
    """One walk through a program."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self.keys = count()
        self.trusted: list[tuple[_Memory, Finding]] = []

    def inputs(self, names: Iterable[str], stored: StoredInputs) -> dict[str, _Value]:
        """The inputs of the root graph: who vouches for each, and which lie in one record of the file."""
        shared: dict[str, _Memory] = {}
        made = {}
        for name in names:
            if name not in stored.payloads:
                made[name] = self.fresh(_Maker(_INPUT, 0, {}), is_callers=True)
            else:
                payload = stored.payloads[name]
                made[name] = value = self.fresh(_Maker(_FILE, 0, {}, None, payload))
                value.memory = shared.setdefault(getattr(payload, "record", "") or name, value.memory)
                value.memory.values = list(dict.fromkeys((*value.memory.values, value)))
            made[name].memory.is_written |= name in stored.written
        return made

    def fresh(self, maker: _Maker | None = None, is_callers: bool = False) -> _Value:
        """A value in memory of its own."""
        value = _Value(_Memory(), next(self.keys), maker, is_callers=is_callers)
        value.memory.values.append(value)
        return value

    def graph(self, scope: Scope, values: dict[str, _Value]) -> Iterator[Finding | Sized]:
        """Go through one graph; `values` has its inputs, and gets the rest."""
        for number, node in enumerate(scope.graph.nodes):
            step = Step(scope, number, node)
            if higher_order_name(node.target) is not None:
                yield from self._higher_order(step, values)
            else:
                yield from self._call(step, values)

    def _call(self, step: Step, values: dict[str, _Value]) -> Iterator[Finding | Sized]:
        node = step.node
        name = name_of(node.target)
        short = name.rpartition(".")[2]
        row = find_everyday(node.target)
        if row is not None:
            yield from _unmet(step, name, row.conditions, values)
            self._remember(step, name, row.conditions, values)
            if row.sizes:
                yield Sized(step, name, row.sizes, _made(step, row.conditions, values))
        operator = self.find(node.target)
        operands = {named.name: [values[n] for n in arguments(named.arg) if n in values] for named in node.inputs}
        is_callers = _is_callers(short, operands)
        for value in _written_to(operator, short, operands):
            if value.memory.part:
                message = f"writes to a part of a sparse tensor ({value.memory.part}), which kernels trust"
                yield Finding(step, name, message)
            self._written(value, is_callers)
        if short in SPARSE:
            for parameter in BECOME_PARTS:
                for value in operands.get(parameter, ()):
                    value.memory.part = name
        self._results(step, name, short, operator, operands, values)

    def _remember(self, step: Step, name: str, conditions: tuple[Condition, ...], values: Mapping[str, _Value]) -> None:
        """What a call trusts because of who gave it, which a later write would make worthless for the next run."""
        call = {named.name: named.arg for named in step.node.inputs}
        for condition in conditions:
            for arg in arguments(call[condition.argument]) if condition.argument in call else ():
                if arg in values and _is_given(values[arg].maker):
                    message = f"expected {condition.argument} to stay as it is, got {quote(arg)}, which is written to"
                    self.trusted.append((values[arg].memory, Finding(step, name, message)))

    def _results(
        self,
        step: Step,
        name: str,
        short: str,
        found: Operator | None,
        given: Mapping[str, list[_Value]],
        values: dict[str, _Value],
    ) -> None:
        node = step.node
        written = _written_to(found, short, given)
        is_callers = _is_callers(short, given)
        first = next(iter(given.values()), [])
        key = self._key(node, values)
        maker = _Maker(name, 0, {named.name: _argument_key(named.arg, values) for named in node.inputs}, step)
        shares = written[:1] or (first[:1] if found is not None and (found.is_view or short in ITSELF) else [])
        keeps = first[0] if first and short in SAME | RESHAPED and not written and _keeps_numbers(node) else None
        for position, output in enumerate(node.outputs):
            for place, result in enumerate(arguments(output)):
                made = _Value(_Memory(), (key, position, place), maker._replace(result=position), True, is_callers)
                if short in PARTS:
                    made.memory = _Memory(part=name)
                    made.key, made.maker = next(self.keys), None
                elif shares:
                    made.memory = shares[0].memory
                if keeps is not None:
                    made.maker = keeps.maker
                    made.shaped = keeps.shaped and short in SAME
                    made.key = keeps.key if short in SAME else made.key
                elif written:
                    made.maker, made.key = None, written[0].key
                made.memory.values.append(made)
                values[result] = made

    def _key(self, node: schema.Node, values: Mapping[str, _Value]) -> Hashable:
        """The same for calls that give the same: views and copies of the same values with the same numbers."""
        short = name_of(node.target).rpartition(".")[2]
        if short not in RESHAPED:
            return next(self.keys)
        return node.target, tuple((named.name, _argument_key(named.arg, values)) for named in node.inputs)

    def _written(self, value: _Value, is_callers: bool) -> None:
        """Nobody vouches for memory that was written to, under any name; its shape may have changed, too."""
        key = next(self.keys)
        for other in value.memory.values:
            other.memory.is_written = True
            other.maker = None
            other.is_callers |= is_callers
            other.key = (key, other.key)

    def _higher_order(self, step: Step, values: dict[str, _Value]) -> Iterator[Finding | Sized]:
        """The subgraphs that a node calls, and the operators that it calls for it."""
        node = step.node
        for called in map(name_of, _called_by(node)):
            if find_everyday(f"{_OPERATORS}{called}.default") is not None:
                message = f"called through {name_of(node.target)}, where nothing is known of its arguments"
                yield Finding(step, called, message)
        passed = [values[name] for named in node.inputs for name in arguments(named.arg) if name in values]
        is_passing = higher_order_name(node.target) in PASSING
        inner = list(carried(step))
        results: list[list[_Value | None]] = []
        for scope in inner:
            check_depth(scope)
            scope_values = self._inputs(scope, passed, is_passing)
            yield from self.graph(scope, scope_values)
            results.append([scope_values.get(name) for output in scope.graph.outputs for name in arguments(output)])
        named_results = [name for output in node.outputs for name in arguments(output)]
        for position, name in enumerate(named_results):
            known = (
                results[0][position]
                if is_passing and len(results) == 1 and len(results[0]) == len(named_results)
                else None
            )
            values[name] = known or self.fresh(is_callers=any(value.is_callers for value in passed))

    def _inputs(self, scope: Scope, passed: list[_Value], is_passing: bool) -> dict[str, _Value]:
        """The inputs of a subgraph: what is passed to it; or values that may share memory with all of that."""
        named = [name for argument in scope.graph.inputs for name in arguments(argument)]
        if is_passing and len(named) <= len(passed):
            return dict(zip(named, passed[len(passed) - len(named) :], strict=True))
        if not passed:
            return {name: self.fresh() for name in named}
        # Which of them is which is not followed: what writes to one may write to any.
        joint = _Memory()
        for value in passed:
            joint.part = joint.part or value.memory.part
            joint.values += value.memory.values
        made = {}
        for name in named:
            made[name] = _Value(joint, next(self.keys), is_callers=any(value.is_callers for value in passed))
        return made


def _is_callers(short: str, given: Mapping[str, Iterable[_Value]]) -> bool:
    """Whether the elements that a call gives are made of what the caller of the program gave."""
    read = [held for name, held in given.items() if short not in FILLED or name == "fill_value"]
    return any(value.is_callers for held in read for value in held)


def _written_to(found: Operator | None, short: str, given: Mapping[str, Iterable[_Value]]) -> list[_Value]:
    """The arguments of a call whose elements it changes."""
    if found is None or short in SAME:
        return []
    written = {name for name, parameter in found.parameters.items() if parameter.type.is_written}
    return [value for name, values in given.items() if name in written for value in values]


def _keeps_numbers(node: schema.Node) -> bool:
    """Whether a copy has the numbers of its source: as another type, some come out as others."""
    dtypes = [named.arg.as_scalar_type for named in node.inputs if named.arg.as_scalar_type is not UNSET]
    if name_of(node.target) == "aten.view" and dtypes:
        return False  # The same bits, read as another type.
    return all(dtype is schema.ScalarType.LONG for dtype in dtypes) and not node.target.endswith(".other")


def _argument_key(argument: schema.Argument, values: Mapping[str, _Value]) -> Hashable:
    """The same for arguments that say the same."""
    named = list(arguments(argument))
    if named and all(name in values for name in named):
        keys = tuple(values[name].key for name in named)
        return keys[0] if len(keys) == 1 else keys
    return codec.encode(argument)


def _unmet(step: Step, name: str, conditions: tuple[Condition, ...], values: Mapping[str, _Value]) -> Iterator[Finding]:
    """The conditions of the table that a call does not meet."""
    call = {named.name: named.arg for named in step.node.inputs}
    for condition in conditions:
        argument = call.get(condition.argument)
        if argument is None or argument.type == "as_none":
            continue  # The default, which no kernel takes on trust.
        if condition.values is not None:
            if argument.type == "as_bool" and argument.as_bool in condition.values:
                continue
            expected = " or ".join(map(str, condition.values))
            yield Finding(step, name, f"expected {condition.argument} to be {expected}, got {_said(argument)}")
            continue
        named = list(arguments(argument))
        for value in named or [""]:
            if value not in values or not _is_vouched(values[value], condition, call, values):
                yield Finding(
                    step, name, f"expected {condition.argument} to be {condition.text()}, got {_said(argument)}"
                )
                break


def _made(step: Step, conditions: tuple[Condition, ...], values: Mapping[str, _Value]) -> dict[str, schema.Argument]:
    """What the call got that made the arguments which this one trusts."""
    call = {named.name: named.arg for named in step.node.inputs}
    for condition in conditions:
        for name in arguments(call[condition.argument]) if condition.argument in call else ():
            maker = values[name].maker if name in values else None
            if maker is not None and maker.step is not None and maker.step.scope is step.scope:
                return {named.name: named.arg for named in maker.step.node.inputs}
    return {}


def _is_given(maker: _Maker | None) -> bool:
    """Whether a value is there before the program runs."""
    return maker is not None and maker.operator in (_INPUT, _FILE)


def _is_vouched(
    value: _Value, condition: Condition, call: Mapping[str, schema.Argument], values: Mapping[str, _Value]
) -> bool:
    maker = value.maker
    if value.is_callers and any(origin.operator == _COMPUTED for origin in condition.origins):
        return True
    return maker is not None and any(
        origin.operator == maker.operator
        and (_is_given(maker) or origin.result == maker.result)
        and (value.shaped or not condition.shaped)
        and (maker.operator != _FILE or (value.shaped and stored_numbers.keeps(origin.numbers, maker.payload)))
        and _agree(origin, maker, call, values)
        for origin in condition.origins
    )


def _agree(origin: Origin, maker: _Maker, call: Mapping[str, schema.Argument], values: Mapping[str, _Value]) -> bool:
    """Whether the call that made a value got the same tensors as the one that trusts it."""
    return all(
        maker.arguments.get(theirs) == (_argument_key(call[ours], values) if ours in call else None)
        for ours, theirs in origin.same
    ) and (
        all(_number(maker.step, name, float("inf")) >= least for name, least in origin.least)
        and all(_number(maker.step, name, float("-inf")) <= most for name, most in origin.most)
    )


def _number(step: Step | None, name: str, left_out: float) -> float:
    """The number that an argument is; NaN where it is a value, which is neither less nor more than any."""
    for named in step.node.inputs if step is not None else ():
        if named.name == name:
            number = named.arg.as_int
            return number if isinstance(number, int) else float("nan")
    return left_out


def _said(argument: schema.Argument) -> str:
    named = list(arguments(argument))
    return (
        ", ".join(quote(name) for name in named[:3])
        if named
        else argument.type.removeprefix("as_") + f" {argument.value!r}"[:40]
    )
