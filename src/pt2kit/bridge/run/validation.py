"""Validation of unchecked kernels at run time: each call goes through the rule of its operator first (rule X10).

Rules are those of `pt2kit.operators.requirements`. In a call that runs, a demand that does not hold raises an error;
in a call that is traced (`torch.compile`, another export, `make_fx`, fake tensors) it becomes an assertion in the
graph, and if that is impossible, tracing ends in an error. Tensors that a kernel uses as addresses are copied first:
the copy is validated and passed on, so that no alias of its memory, no thread and no file can change it in between
or before a backward kernel reads it again. Uninitialized memory is filled with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, Final

import torch

from pt2kit.bridge.operators import DTYPES, Operator
from pt2kit.bridge.read.reading import operator_entry, refused, trusts_operator
from pt2kit.bridge.torch_names import check_symbolic, is_batched, is_functorch_tensor, is_observed, unwrap_functorch
from pt2kit.errors import OperatorError, UnsupportedError
from pt2kit.operators.demands import Call, Demand, Operand, Rule
from pt2kit.operators.kernel_rules import find_rule, is_needed
from pt2kit.operators.requirements import GROWING, UNINITIALIZED, Row, find_requirement, name_of

RULE: Final = "X10"
_ANY_LAYOUT: Final = frozenset(("nothing", "quotient", "saved target", "coordinates", "compressed"))
"""Rules of operators that also accept tensors that are not strided."""
_SCALAR_TYPES: Final = MappingProxyType({dtype: name for name, dtype in DTYPES.items()})
_PLAIN: Final = (
    *(bool, int, float, complex, str, type(None), torch.SymInt, torch.SymFloat, torch.SymBool, torch.dtype),
    *(torch.device, torch.layout, torch.memory_format, torch.Generator),
)
_ORIGINAL: Final = "__pt2kit_operator__"
"""Attribute of a function with the operator that it replaces."""
_SHOWN: Final = 120

_ZEROS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"default": torch.ops.aten.zeros.default, "out": torch.ops.aten.zeros.out}
)


def original(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return the operator that a function replaces (`replacing`); any other callable is returned unchanged."""
    found: Callable[..., Any] = getattr(target, _ORIGINAL, target)
    return found


def replacing(target: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, marked as the one that is called instead of an operator."""
    setattr(function, _ORIGINAL, target)
    return function


def validated(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], label: str, trust: Set[str]
) -> Callable[..., Any]:
    """Return the callable to use for an operator; one with `out=` refuses an operand there that grows.

    Args: as `_replacement`.
    """
    found = _replacement(operator, args, kwargs, label, trust)
    # In the order of the results.
    outs = [one.name for one in operator.parameters.values() if one.is_keyword_only and one.type.is_written]
    if kwargs.keys().isdisjoint(outs) or trusts_operator(trust, operator.text, RULE):
        return found
    return replacing(operator.target, _apart(found, outs, operator_entry(operator.text)))


def _apart(target: Callable[..., Any], outs: Sequence[str], entry: str) -> Callable[..., Any]:
    """Return a function that refuses results that make an operand grow: it would be read after that."""

    def apart(*args: Any, **kwargs: Any) -> Any:
        operands = _flat(value for name, value in [*enumerate(args), *kwargs.items()] if name not in outs)
        written = _flat(value for name, value in kwargs.items() if name in outs)
        if torch.compiler.is_compiling() or any(map(is_observed, written)):
            return _traced(target, {name: kwargs[name] for name in outs if name in kwargs}, args, kwargs, entry)
        before = [one.numel() for one in written]
        result = _run(target, written, args, kwargs)
        for one, count in zip(written, before, strict=True):
            if one.numel() > count and any(one is other for other in operands):
                _fail(f"{entry}: out: expected at least {one.numel()} elements in an operand, got {count}", entry)
        return result

    return apart


def _traced(
    target: Callable[..., Any], outs: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any], entry: str
) -> Any:
    """Call an operator that is traced with tensors of its own to write to, and copy these: nothing restores the sizes
    of the given ones after an error of the traced call."""
    own = {
        name: [torch.empty_like(one) for one in value] if isinstance(value, (list, tuple)) else torch.empty_like(value)
        for name, value in outs.items()
    }
    result = target(*args, **{**kwargs, **own})
    written = _flat(outs.values())
    # torch.compile knows the sizes of results only. Operators that write to lists have none.
    for one, made in zip(written, _flat([result]) or _flat(own.values()), strict=True):
        if made.shape != one.shape:
            _fail(f"{entry}: out: expected the sizes of the results, to be traced", entry)
        one.copy_(made)
    return written[0] if isinstance(result, torch.Tensor) else tuple(written[: len(result or ())])


def _flat(values: Iterable[Any]) -> list[Any]:
    return [one for value in values for one in (value if isinstance(value, (list, tuple)) else [value])]


def _run(target: Callable[..., Any], written: Iterable[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator that may resize tensors, to which torch gives their sizes before their memory has them.

    After an error, for example as mapped memory cannot grow, they have the sizes that they had: with others, the next
    call would read what is behind their memory.
    """
    if torch.compiler.is_compiling():
        # Compiled, it would restore no sizes. torch 2.15 compiles it alone if it cannot compile its caller.
        raise UnsupportedError(f"expected a call that can be traced, got {target}, which may resize tensors")
    plain = [one for one in written if one.layout is torch.strided and not one.is_nested and not is_observed(one)]
    layouts = [(one.shape, one.stride(), one.storage_offset()) for one in plain]
    try:
        return target(*args, **kwargs)
    except BaseException:
        with torch.no_grad():
            for one, layout in zip(plain, layouts, strict=True):
                one.as_strided_(*layout)
        raise


def _replacement(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], label: str, trust: Set[str]
) -> Callable[..., Any]:
    """Return the callable to use for an operator: itself, unless its calls are validated or its results filled.

    Args:
        operator: of the node, one with a schema.
        args, kwargs: of the node: constants, and `Value` for values that are not known yet.
        label: the node, for messages of assertions.
        trust: operators and rules that the caller trusts.
    """
    target, text = operator.target, operator.text
    name = name_of(text)
    if name == "aten._efficientzerotensor":
        # Kernels that take optional lists of tensors read its memory, of which it has none.
        return _ZEROS.get(text.rpartition(".")[2], target)
    if name == "aten._values":
        # Under a new name, which can be resized alone.
        return replacing(target, _followed(target, torch.ops.aten.alias.default))
    if name == "aten.batch_norm":
        return replacing(target, _gathered(target))
    if name in UNINITIALIZED:
        return replacing(target, _followed(target, torch.Tensor.zero_))
    if name in GROWING:
        return replacing(target, _grown(target, name.endswith("_")))
    row = find_requirement(text)
    if row is None or trusts_operator(trust, text, RULE):
        return target
    names = tuple(operator.parameters)
    if not is_needed(row.requires, {**dict(zip(names, args, strict=False)), **kwargs}):
        return target
    return replacing(target, _validated(operator, row, label))


def _followed(target: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function that calls an operator, and changes its result."""

    def followed(*args: Any, **kwargs: Any) -> Any:
        return change(target(*args, **kwargs))

    return followed


def _gathered(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that normalizes with contiguous tensors: the backward kernel ignores their strides."""

    def gathered(
        input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, *rest: Any, **more: Any
    ) -> Any:
        if torch.is_grad_enabled():
            weight = None if weight is None else weight.contiguous()
            if not training and running_mean is not None and running_var is not None:
                running_mean, running_var = running_mean.contiguous(), running_var.contiguous()
        return target(input, weight, bias, running_mean, running_var, training, *rest, **more)

    return gathered


def _grown(target: Callable[..., Any], in_place: bool) -> Callable[..., Any]:
    """Return a function that resizes a tensor and fills the memory that is new."""

    def grown(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if torch.compiler.is_compiling() or not _is_concrete(self):
            # It is not known while tracing if the memory grows.
            raise UnsupportedError(
                f"expected a call that can be traced, got {target}, which may leave memory unwritten"
            )
        if not in_place:
            resized = self.clone()
            size = args[0].shape if isinstance(args[0], torch.Tensor) else args[0]
            before = _nbytes(resized)
            resized.resize_(size)
            _fill(resized, before)
            return target(resized, *args, **kwargs)
        before = _nbytes(self)
        result: torch.Tensor = _run(target, [self], (self, *args), kwargs)
        _fill(result, before)
        return result

    return grown


def _nbytes(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())


def _fill(tensor: torch.Tensor, start: int) -> None:
    """Write zeros to the bytes of a tensor's memory from `start` on."""
    storage = tensor.untyped_storage()
    if storage.nbytes() > start and not tensor.is_meta:
        whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        whole.set_(storage, start, (storage.nbytes() - start,), (1,)).zero_()


class _Live(Operand):
    """A tensor of a call that runs or is traced; its values are those of a copy.

    Args:
        tensor: the tensor.
        is_written: the kernel writes to it, so that it works on the tensor itself.
    """

    def __init__(self, tensor: torch.Tensor, is_written: bool) -> None:
        self.tensor = tensor
        self.is_written = is_written
        self.copied: torch.Tensor | None = None

    @property
    def sizes(self) -> Any:  # type: ignore[override]
        return tuple(self.tensor.shape)

    @property
    def strides(self) -> Any:  # type: ignore[override]
        return self.tensor.stride()

    @property
    def values(self) -> Any:
        return self.tensor if self.is_written else self.copy()

    @property
    def dtype(self) -> Any:
        # Not what autocast makes of it: that converts some operands of some operators, and equal types remain equal.
        return _SCALAR_TYPES.get(self.tensor.dtype)

    def copy(self) -> torch.Tensor:
        if self.copied is None:
            self.copied = self.tensor.clone()
        return self.copied


def _array(numbers: Sequence[Any], like: torch.Tensor | None) -> torch.Tensor:
    return torch.tensor(list(numbers), dtype=torch.int64, device=None if like is None else like.device)


def _validated(operator: Operator, row: Row, label: str) -> Callable[..., Any]:
    """Return a function that validates a call's arguments, and calls the operator with copies of those it trusts."""
    target, rule = operator.target, find_rule(row.requires)
    names = tuple(operator.parameters)
    defaults = {
        argument.name: argument.default_value for argument in operator.schema.arguments if argument.has_default_value()
    }
    written = {parameter.name for parameter in operator.parameters.values() if parameter.type.is_written}
    entry = operator_entry(operator.text)
    has_any_layout = row.requires in _ANY_LAYOUT
    copied = row.copied
    fills = row.requires == "groups"

    def validated_call(*args: Any, **kwargs: Any) -> Any:
        given = {**defaults, **dict(zip(names, args)), **kwargs}  # noqa: B905  fewer arguments than parameters
        call = Call(
            {name: _described(value, name in written, entry, name) for name, value in given.items()},
            _array,
            torch.is_grad_enabled(),
        )
        if not has_any_layout:
            _check_memory(given.values(), entry, is_strided=True)
        asserted = _hold_all(rule, call, entry, label)
        if call.trusted:
            args, kwargs = _with_copies(call, names, args, kwargs, asserted)
        if torch.compiler.is_compiling():
            result = target(*args, **kwargs)
        else:
            live = _flat(value for name, value in call.arguments.items() if name in written)
            result = _run(target, [one.tensor for one in live if isinstance(one, _Live)], args, kwargs)
        if fills:
            result = _without_rest(result, call)
        return _with_own(result, copied) if (copied and torch.is_grad_enabled()) or copied == (0,) else result

    return validated_call


def _described(value: Any, is_written: bool, entry: str, name: str) -> Any:
    if isinstance(value, torch.Tensor):
        return _Live(value, is_written)
    if isinstance(value, (list, tuple)):
        return [_described(item, is_written, entry, name) for item in value]
    if not isinstance(value, _PLAIN):
        raise UnsupportedError(
            f"{entry}: {name}: expected a tensor or a number, to be validated, got a {type(value).__name__}"
        )
    return value


def _check_memory(given: Iterable[Any], entry: str, *, is_strided: bool = False) -> None:
    """Refuse arguments of which some tensors have memory and others none.

    Args:
        given: of a call.
        entry: the operator.
        is_strided: also refuse tensors of layouts that kernels of strided tensors mistake for these.
    """
    tensors = [item for item in _flat(given) if isinstance(item, torch.Tensor)]
    for tensor in tensors:
        if is_strided and (tensor.layout is not torch.strided or tensor.is_nested):
            _fail(f"{entry}: expected strided tensors, got a {tensor.layout} one", entry)
        if tensor.is_meta is not tensors[0].is_meta:
            _fail(f"{entry}: expected tensors with memory, got one on the meta device next to others", entry)


def _hold_all(rule: Rule, call: Call, entry: str, label: str) -> list[torch.Tensor]:
    """Refuse a call that a rule does not allow; return the conditions on values that a tracer asserts."""
    asserted = []
    for demand in rule(call):
        holds = demand.holds
        if isinstance(holds, torch.Tensor):
            if _hold(holds, demand, call, entry, label):
                asserted.append(holds)
        elif torch.compiler.is_compiling() or isinstance(holds, torch.SymBool):
            _hold_symbolic(holds, demand, entry, label)
        elif not holds:
            _fail(_message(demand, call, entry), entry)
    return asserted


def _hold_symbolic(holds: Any, demand: Demand, entry: str, label: str) -> None:
    """Make the tracer assert a condition on sizes."""
    text = _assertion(demand, entry, label)
    if isinstance(holds, torch.SymBool) and not torch.compiler.is_dynamo_compiling():
        torch.ops.aten._assert_scalar.default(holds, text)
    check_symbolic(holds, text)


def _hold(holds: torch.Tensor, demand: Demand, call: Call, entry: str, label: str) -> bool:
    """Refuse a call for a condition on values, or have the tracer assert it, and return whether it does."""
    if torch.compiler.is_dynamo_compiling():
        if is_batched(holds):
            # No assertion can be on one of vmap: without fullgraph=True, the call is not compiled, and validated when
            # it runs. The compiler cannot make an error of ours.
            raise RuntimeError(f"{_assertion(demand, entry, label)}, which vmap inside torch.compile cannot validate")
        torch.ops.aten._assert_async.msg(holds, _assertion(demand, entry, label))
        return True
    if torch.compiler.is_exporting() and is_batched(holds):
        raise UnsupportedError(f"{_assertion(demand, entry, label)}, which torch.export cannot assert inside vmap")
    while is_functorch_tensor(holds):  # Of vmap, grad and jvp: one truth value for each of the batch.
        holds = unwrap_functorch(holds)
    if holds.dim():
        holds = holds.all()
    if holds.is_meta:
        return False  # Kernels of the meta device touch no memory.
    if _is_concrete(holds):
        if not holds:
            _fail(_message(demand, call, entry), entry)
        return False
    text = _assertion(demand, entry, label)
    try:
        torch.ops.aten._assert_async.msg(holds, text)
    except RuntimeError as error:
        if text in str(error):
            raise OperatorError(_message(demand, None, entry), rule=RULE) from error
        raise
    return True


def _is_concrete(tensor: torch.Tensor) -> bool:
    """Return whether the numbers of a tensor can be looked at: no tracer is at work on it."""
    if torch.jit.is_tracing():
        raise UnsupportedError("expected a tracer that keeps assertions, got torch.jit.trace")
    return not is_observed(tensor)


def _with_copies(
    call: Call,
    names: Sequence[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    asserted: Sequence[torch.Tensor],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with copies of the tensors that the kernel trusts.

    In a traced graph each is computed from the asserted conditions: compilers move an assertion behind a call that does
    not depend on it.
    """
    placed, named = list(args), dict(kwargs)
    for name in dict.fromkeys(call.trusted):
        operand = call.arguments[name]
        if isinstance(operand, _Live) and not operand.is_written:
            copy = operand.copy()
            for holds in asserted:
                copy = _copy_if(copy, holds)
            position = names.index(name)
            if position < len(placed):
                placed[position] = copy
            elif name in named:
                named[name] = copy
    return tuple(placed), named


def _copy_if(tensor: torch.Tensor, holds: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor in a traced graph, from an index that is out of range if a condition does not hold."""
    return tensor[None].index_select(0, (~holds).long()[None])[0]


def _with_own(result: Any, copied: Sequence[int]) -> Any:
    """Return results with copies of those that backward kernels, or other tensors, trust later."""
    if isinstance(result, torch.Tensor):
        return result.clone()
    return tuple(part.clone() if position in copied else part for position, part in enumerate(result))


def _without_rest(result: torch.Tensor, call: Call) -> torch.Tensor:
    """Fill the rows, or columns, of a product of groups that belong to none: the kernel leaves them uninitialized."""
    ends = call.values("offs")
    if ends is None or not ends.shape[0] or result.dim() != 2:
        return result
    is_rows = len(call.get("self").sizes) == 2
    places = torch.arange(result.shape[0 if is_rows else 1], device=result.device)
    rest = places >= ends[-1]
    return result.masked_fill(rest[:, None] if is_rows else rest, 0)


def _fail(message: str, entry: str) -> None:
    raise refused(OperatorError, message, RULE, [entry])


def _message(demand: Demand, call: Call | None, entry: str) -> str:
    got = ""
    if call is not None:
        got = f", got {_shown(call.arguments.get(demand.argument.partition('[')[0]))}"
    return f"{entry}: {demand.argument}: expected {demand.expected}{got}"


def _assertion(demand: Demand, entry: str, label: str) -> str:
    """Return the text of an assertion: it contains no sizes, which would become constants of the traced graph."""
    return f"{label}: {entry}: {demand.argument}: expected {demand.expected} [{RULE}]"


def _shown(argument: Any) -> str:
    if isinstance(argument, _Live):
        tensor = argument.tensor
        text = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        numbers = argument.copied
        while numbers is not None and is_functorch_tensor(numbers):
            numbers = unwrap_functorch(numbers)
        if numbers is None or not numbers.numel() or numbers.is_complex() or not _is_concrete(numbers):
            return text
        return f"{text} with values from {numbers.min().item()} to {numbers.max().item()}"
    if isinstance(argument, list):
        return f"[{', '.join(map(_shown, argument[:8]))}]"[:_SHOWN]
    return repr(argument)[:_SHOWN]


def with_memory(target: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses to call an operator with tensors of which some have memory and others none."""

    name = str(original(target))

    def with_memory_call(*args: Any, **kwargs: Any) -> Any:
        _check_memory((*args, *kwargs.values()), name)
        return target(*args, **kwargs)

    return replacing(original(target), with_memory_call)
