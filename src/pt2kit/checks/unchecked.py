"""Check of calls of unchecked kernels for arguments that a file shows to be wrong (rule X10).

Such kernels take indices for addresses, or trust sizes. `pt2kit.load_module` validates the actual arguments of each
call; what a file shows of them is literals, stored tensors that are passed on directly, and sizes: those that the
result rules compute from the inputs, else the declared ones. If that contradicts the requirement of the kernel
(`pt2kit.operators.requirements`), no run can be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from pt2kit import schema
from pt2kit.checks.known_targets import higher_order_name
from pt2kit.checks.stored_inputs import StoredInputs, numbers_of
from pt2kit.dataflow.domain import Call as SizedCall
from pt2kit.dataflow.engine import run
from pt2kit.dataflow.memory import effects_of
from pt2kit.dataflow.sizes import Sizes
from pt2kit.errors import GraphError, LimitError
from pt2kit.graph.argument_values import arguments, leaves
from pt2kit.graph.traversal import Scope, Step, graphs
from pt2kit.messages import quote
from pt2kit.operators.demands import Call, Demand, Operand
from pt2kit.operators.facts import UNKNOWN, Tensor
from pt2kit.operators.kernel_values import NEEDED
from pt2kit.operators.requirements import RULES, Row, find_requirement, name_of
from pt2kit.operators.tags import overloads_with
from pt2kit.schema import ScalarType
from pt2kit.schema.operator_text import Operator

Find = Callable[[str], Operator | None]
"""Target of a node -> its signature; None for what is no operator."""

_PREFIX: Final = "torch.ops."
_EFFECTS: Final = "with_effects"
_PLAIN: Final = frozenset(("as_int", "as_ints", "as_float", "as_floats", "as_bool", "as_bools", "as_string"))
_RESIZING: Final = frozenset(("resize_", "resize_as_", "set_", "resize", "as_strided_"))
"""Operators without the tag `inplace_view` that may give a tensor that they write other sizes."""
_NOTHING_COMPUTED: Final[tuple[Mapping[str, Any], ...]] = (MappingProxyType({}),)
_LEAST: Final[Mapping[ScalarType, int]] = MappingProxyType(
    {
        ScalarType.BOOL: 0, ScalarType.BYTE: 0, ScalarType.CHAR: -(1 << 7), ScalarType.SHORT: -(1 << 15),
        ScalarType.INT: -(1 << 31), ScalarType.LONG: -(1 << 63),
    }
)  # fmt: skip
_SLIPS: Final = (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError)
"""Errors that a rule may raise for arguments of kinds that the operator does not take; rule T5 reports those."""


class Finding(NamedTuple):
    """A call of an unchecked kernel.

    Args:
        step: the call.
        operator: "aten.max_pool2d_with_indices_backward".
        message: what is wrong with it.
        is_wrong: the file shows that; otherwise only a run tells.
    """

    step: Step
    operator: str
    message: str
    is_wrong: bool


class _Arrays:
    """Makes arrays of NumPy."""

    def arange(self, count: Any, like: Any) -> Any:
        import numpy as np

        return np.arange(count)

    def array(self, numbers: Sequence[Any], like: Any) -> Any:
        import numpy as np

        return np.array(numbers, dtype=np.int64)


def is_concerned(targets: Iterable[str]) -> bool:
    """Return whether a program calls an unchecked kernel."""
    return any(find_requirement(target) is not None for target in targets)


def kernel_findings(
    root: Scope, find: Find, stored: StoredInputs, program: schema.ExportedProgram | None = None
) -> Iterator[Finding]:
    """Iterate the calls of unchecked kernels that a file shows to be wrong, and those that only a run can judge.

    Args:
        root: the root graph.
        find: target of a node -> its signature.
        stored: the inputs that the file fills.
        program: whose root graph it is, to compute sizes from its inputs; None to judge by declared sizes alone.

    Raises:
        LimitError: subgraphs or dicts of arguments nest too deep (G11).
    """
    computed = {} if program is None else _computed(program)
    for scope in graphs(root.graph, root.where):
        known = _Known(scope, find, stored) if scope.graph is root.graph else None
        for number, node in enumerate(scope.graph.nodes):
            step = Step(scope, number, node)
            row = find_requirement(node.target)
            if row is not None:
                for operands in computed.get(id(node), _NOTHING_COMPUTED):
                    finding = _judge(step, row, find(node.target), known, operands)
                    if finding is not None:
                        yield finding
                        break
            elif higher_order_name(node.target) is not None:
                yield from _passed_on(step)


def _passed_on(step: Step) -> Iterator[Finding]:
    """Yield unchecked kernels that a higher-order operator gets as an argument, and calls itself."""
    name = higher_order_name(step.node.target)
    for named in step.node.inputs:
        for _, leaf in leaves(named.arg):
            if leaf.as_operator is not UNSET and find_requirement(leaf.as_operator) is not None:
                called = name_of(leaf.as_operator)
                message = f"called through higher_order.{name}, where its arguments cannot be validated"
                yield Finding(step, called, message, is_wrong=name != _EFFECTS)


def _judge(
    step: Step, row: Row, operator: Operator | None, known: _Known | None, computed: Mapping[str, Any]
) -> Finding | None:
    """Return what is wrong with a call, or that only a run can judge it.

    Args:
        step: the call.
        row: of the kernel.
        operator: its signature.
        known: the inputs whose numbers are known.
        computed: facts of the operands by parameter, as far as they were computed.
    """
    values = step.scope.graph.tensor_values
    given: dict[str, Any] = dict.fromkeys(operator.parameters if operator else ())
    for named in step.node.inputs:
        stored = None if known is None else known.payload_reader(named.arg, step.number)
        given[named.name] = _as_computed(_plain(named.arg, values, stored), computed.get(named.name))
    name = name_of(step.node.target)
    needed = NEEDED.get(row.requires)
    if needed is not None and not needed(_constants(step.node, operator)):
        return None
    call = Call(given, _Arrays())
    demand = _broken(row, call)
    if demand is not None:
        return Finding(step, name, f"{demand.argument}: expected {demand.expected}", is_wrong=True)
    if call.unknown:
        trusted = " and ".join(dict.fromkeys(call.trusted)) or "its arguments"
        return Finding(step, name, f"{trusted} only known in a run", is_wrong=False)
    return None


def _constants(node: schema.Node, operator: Operator | None) -> dict[str, Any]:
    """Return the literal arguments of a call; those that are none are missing."""
    found: dict[str, Any] = {}
    for named in node.inputs:
        argument = named.arg
        found[named.name] = argument.value if argument.type in _PLAIN else argument
        if argument.type == "as_none":
            found[named.name] = None
    if operator is not None and "rounding_mode" in operator.parameters:
        found.setdefault("rounding_mode", None)
    return found


def _broken(row: Row, call: Call) -> Demand | None:
    """Return the first demand that does not hold."""
    try:
        for demand in RULES[row.requires](call):
            if not demand.holds:
                return demand
    except _SLIPS:
        call.unknown = True
    return None


class _Known:
    """The inputs of a root graph whose numbers a call gets as the file stores them."""

    def __init__(self, scope: Scope, find: Find, stored: StoredInputs) -> None:
        self._stored = stored
        self._changed: dict[str, int] = dict.fromkeys(stored.written, -1)
        for number, node in enumerate(scope.graph.nodes):
            for named in node.inputs:
                names = [name for name in arguments(named.arg) if name in stored.payloads]
                if names and _may_change(find(node.target), named.name):
                    for name in names:
                        self._changed.setdefault(name, number)

    def payload_reader(self, argument: schema.Argument, number: int) -> Any:
        """Return the numbers of a stored tensor that is an argument of a node; None if they are not known."""
        names = list(arguments(argument))
        if len(names) != 1 or names[0] not in self._stored.payloads:
            return None
        if self._changed.get(names[0], number + 1) <= number:
            return None
        return numbers_of(self._stored.payloads[names[0]])


def _may_change(operator: Operator | None, name: str) -> bool:
    """Return whether a call may write to an argument, or give another name to its memory."""
    parameter = None if operator is None else operator.parameters.get(name)
    return parameter is None or bool(parameter.type.alias)


def _plain(argument: schema.Argument, values: Mapping[str, schema.TensorMeta], numbers: Any) -> Any:
    """Return an argument as rules take it, as far as it is known."""
    value = argument.value
    match argument.type:
        case "as_tensor":
            return _operand(value.name, values, numbers)
        case "as_tensors":
            return [_operand(one.name, values, None) for one in value]
        case "as_optional_tensor":
            return None if value.as_tensor is UNSET else _operand(value.as_tensor.name, values, numbers)
        case "as_sym_int":
            return value.as_int if value.as_int is not UNSET else None
        case "as_sym_ints":
            return [one.as_int if one.as_int is not UNSET else None for one in value]
        case "as_layout":
            return value.name
    return value if argument.type in _PLAIN else None


def _operand(name: str, values: Mapping[str, schema.TensorMeta], numbers: Any) -> Operand | None:
    meta = values.get(name)
    if meta is None:
        return None
    sizes = tuple(_whole(size.as_int) for size in meta.sizes)
    strides = tuple(_whole(step.as_int) for step in meta.strides)
    return Operand(sizes, strides, numbers, _LEAST.get(meta.dtype))


class _Computing(Sizes):
    """Sizes computed from the inputs of a program, and the facts that each call of an unchecked kernel gets.

    Attributes:
        seen: id of a node -> the facts of its arguments, for each time that it is called.
    """

    def __init__(self, program: schema.ExportedProgram) -> None:
        super().__init__(program)
        self.seen: dict[int, list[Mapping[str, Any]]] = {}

    def call(self, call: SizedCall) -> Sequence[Any]:
        if find_requirement(call.target) is not None:
            self.seen.setdefault(id(call.node), []).append(call.arguments)
        return super().call(call)

    def write(self, fact: Any, call: SizedCall, parameter: str) -> Any:
        """Return the fact, or nothing if the call may give the tensor other sizes."""
        return UNKNOWN if _is_resizing(call.target) else fact


def _is_resizing(target: str) -> bool:
    """Return whether an operator may change the sizes of a tensor that it writes."""
    name = target.removeprefix(_PREFIX)
    return name_of(target).partition(".")[2] in _RESIZING or name in overloads_with("inplace_view")


def _computed(program: schema.ExportedProgram) -> Mapping[int, Sequence[Mapping[str, Any]]]:
    """Return the facts that calls of unchecked kernels get, by node; only what leads to those calls is analyzed."""
    graph = program.graph_module.graph
    release = ".".join(program.torch_version.split(".")[:2])
    needed: set[str] = set()
    kept: list[schema.Node] = []
    for node in reversed(graph.nodes):
        results = [name for output in node.outputs for name in arguments(output)]
        is_kernel = find_requirement(node.target) is not None or higher_order_name(node.target) is not None
        if is_kernel or not needed.isdisjoint(results) or effects_of(node.target, release).written:
            kept.append(node)
            needed.update(name for named in node.inputs for name in arguments(named.arg))
    domain = _Computing(program)
    try:
        run(replace(graph, nodes=kept[::-1], outputs=[]), domain, release=release)
    except (GraphError, LimitError):  # rules of their own
        return {}
    return domain.seen


def _as_computed(declared: Any, fact: Any) -> Any:
    """Return an argument with its computed value instead of the declared one."""
    if isinstance(declared, Operand) and isinstance(fact, Tensor):
        sizes: list[Any] = [_whole(size) for size in fact.sizes]
        if len(sizes) == len(declared.sizes):
            sizes = [old if new is None else new for old, new in zip(declared.sizes, sizes, strict=True)]
        strides = declared.strides if fact.strides is None else tuple(_whole(step) for step in fact.strides)
        return Operand(tuple(sizes), strides, declared.values, declared.least)
    if isinstance(declared, list) and isinstance(fact, (list, tuple)) and len(declared) == len(fact):
        return [_as_computed(one, other) for one, other in zip(declared, fact, strict=True)]
    return fact if declared is None and type(fact) is int else declared


def _whole(number: Any) -> int | None:
    return number if isinstance(number, int) else None


def text_of(finding: Finding) -> str:
    """Return what `check` says of a call."""
    said = "torch calls" if finding.is_wrong else "torch does not validate"
    return f"{said} {quote(finding.operator)}: {finding.message}"
