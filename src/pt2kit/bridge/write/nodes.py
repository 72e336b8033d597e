"""Write one fx node as an input, as outputs, or as a `Node` of the graph being written.

Higher-order operators have no schema: their arguments are written by their types.

fx has one value per node and unpacks a tuple with `operator.getitem` nodes. The format has nodes with many results
and no getitem: result number i has the name of the getitem node that takes it, or "<node>_unused_<i>" if none does.
Several getitem nodes that take the same result become one name.

A call of a Triton kernel has the compiled kernel and its inputs as arguments. A runtime launches the compiled kernel,
so its name carries a hash, its settings go with it, and values that were compiled in are left out. The kernel must have
been compiled before saving: run the exported module once.

Source: the branch for triton_kernel_wrapper_functional in torch/_export/serde/serialize.py, 2.13.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

import torch
from torch.export.graph_signature import CustomObjArgument
from torch.fx import Node

from pt2kit.bridge.callables import SYMBOLIC_FUNCTIONS, describe, find_type, parameter_names, stored_name, target_text
from pt2kit.bridge.torch_names import HigherOrderOperator, OpOverload, find_higher_order, triton_kernels
from pt2kit.bridge.write.arguments import SYMBOLIC, argument_tensor, element_of, join, write_argument
from pt2kit.bridge.write.scope import Scope
from pt2kit.errors import GraphError, Pt2Error, UnsupportedError, at
from pt2kit.messages import count_text
from pt2kit.schema import Argument, ArgumentKind, NamedArgument
from pt2kit.schema import Node as SchemaNode

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_CONSTANTS = (bool, int, float, str, type(None))

Call: TypeAlias = "tuple[str, list[NamedArgument], list[Argument], bool | None]"
"""Target, inputs and outputs of a node; of a higher-order operator, whether it returns one tensor."""


def write_node(node: Node, scope: Scope) -> None:
    """Add one fx node to the graph that is being written.

    Raises:
        Pt2Error: something that the format cannot hold, with the node, its operator and the argument.
    """
    write = _BY_OP.get(node.op)
    try:
        if write is None:
            raise UnsupportedError(f"expected a graph of function calls, got a node of kind {node.op!r}")
        write(node, scope)
    except Pt2Error as error:
        place = f" ({describe(node.target)})" if node.op == "call_function" else ""
        raise at(f"node {node.name}{place}", error) from error


def _placeholder(node: Node, scope: Scope) -> None:
    value = _value(node)
    if isinstance(value, _CONSTANTS):  # a constant of the calling convention: it has no name in the graph
        argument = write_argument(value, scope)
        scope.uses[node] = argument
    else:
        argument = _define((node,), node.name, value, scope)
    scope.inputs.append(argument)


def _output(node: Node, scope: Scope) -> None:
    results = node.args[0]
    if isinstance(results, Node):
        scope.is_single_tensor_return = True
        scope.outputs = [write_argument(results, scope)]
    elif isinstance(results, (list, tuple)):
        scope.outputs = [write_argument(result, scope) for result in results]
    else:
        raise GraphError(f"expected a tuple of results, got {type(results).__name__}")


def _call(node: Node, scope: Scope) -> None:
    target = node.target
    if target is operator.getitem:
        _check_taken(node, scope)
        return
    if isinstance(target, HigherOrderOperator):
        write = _higher_order_call
    elif isinstance(target, OpOverload) or find_type(type(target)) is not None:
        write = _operator_call
    elif callable(target):
        write = _function_call
    else:
        raise UnsupportedError(f"expected an operator or a function, got {type(target).__name__}")
    text, inputs, outputs, is_single = write(node, scope)
    metadata = scope.shared.metadata.of_node(node)
    scope.nodes.append(SchemaNode(text, inputs, outputs, metadata, is_single, stored_name(node)))


def _operator_call(node: Node, scope: Scope) -> Call:
    """Return a call of an operator that has a schema."""
    called = scope.shared.operator(node.target)
    inputs = []
    kwargs: Mapping[str, Any] = node.kwargs
    args = node.args
    for index, parameter in enumerate(called.parameters.values()):
        name = parameter.name
        if name in kwargs:
            value, kind = kwargs[name], ArgumentKind.KEYWORD
        elif index < len(args) and not parameter.is_keyword_only:
            value, kind = args[index], ArgumentKind.POSITIONAL
        else:  # it has its default value, which is not written
            continue
        inputs.append(_named(name, value, kind, scope, element=element_of(parameter.type)))
    outputs = define_results(node, _value(node), len(called.result_arms), scope) if called.result_arms else []
    return called.text, inputs, outputs, None


def _function_call(node: Node, scope: Scope) -> Call:
    """Return a call of a plain function: symbolic arithmetic, or one of the wrappers that export leaves in place.

    Arithmetic has its parameters named, as far as Python has them; wrappers are written like higher-order operators.
    """
    function: Any = node.target
    value = node.meta.get("val")
    if function in SYMBOLIC_FUNCTIONS or isinstance(value, _SYMBOLIC):
        if node.kwargs:
            raise UnsupportedError(f"expected no keyword arguments, got {', '.join(node.kwargs)}")
        given = node.args[:-1] if node.args[-1:] == (None,) else node.args  # `round(n, None)` is what fx traces
        inputs = write_untyped(given, {}, scope, parameter_names(function))
        outputs = [_define((node,), node.name, value, scope)]
    else:
        value = _value(node)
        inputs = write_untyped(node.args, node.kwargs, scope)
        outputs = define_untyped(node, value, scope)
    return target_text(function), inputs, outputs, None


def _check_taken(node: Node, scope: Scope) -> None:
    """Check that the node whose result a getitem node takes was written: getitem is no node of the format."""
    if node in scope.uses or _is_taken_list(node):
        return
    raise UnsupportedError(f"expected it to take one result of a node with several, got {node.args}")


def _is_taken_list(node: Node) -> bool:
    """Return whether a getitem node takes a result that is a list, whose entries further getitem nodes take."""
    owner = node.args[0]
    value = owner.meta.get("val") if isinstance(owner, Node) else None
    return isinstance(value, (list, tuple)) and isinstance(value[node.args[1]], (list, tuple))


_BY_OP: Mapping[str, Callable[[Node, Scope], None]] = {
    "placeholder": _placeholder,
    "get_attr": lambda node, scope: None,  # written where it is used
    "call_function": _call,
    "output": _output,
}


def _higher_order_call(node: Node, scope: Scope) -> Call:
    """Write a call of a higher-order operator.

    Raises:
        Pt2Error: an argument or a result that the format cannot hold.

    Source: `handle_call_function` in torch/_export/serde/serialize.py, 2.13.
    """
    if node.target is find_higher_order("aoti_call_delegate"):
        inputs = write_untyped(_delegate_arguments(node, scope), node.kwargs, scope)
        return target_text(node.target), inputs, define_results(node, list(_value(node)), 1, scope), False
    if node.target is find_higher_order("triton_kernel_wrapper_functional"):
        positional, keywords = kernel_call(node)
        inputs = [_named(name, value, ArgumentKind.POSITIONAL, scope) for name, value in positional.items()]
        inputs += [_named(name, value, ArgumentKind.KEYWORD, scope) for name, value in keywords.items()]
    else:
        inputs = write_untyped(node.args, node.kwargs, scope)
    value = _value(node)
    return target_text(node.target), inputs, define_untyped(node, value, scope), isinstance(value, torch.Tensor)


def write_untyped(
    args: Sequence[Any], kwargs: Mapping[str, Any], scope: Scope, names: Sequence[str] = ()
) -> list[NamedArgument]:
    """Write arguments for which there is no schema: positional ones get their names as far as these go, then "".

    Source: `serialize_hoo_inputs` in torch/_export/serde/serialize.py, 2.13.
    """
    named = zip_longest(names[: len(args)], args, fillvalue="")
    inputs = [
        _named(name, value, ArgumentKind.POSITIONAL, scope, label=str(index))
        for index, (name, value) in enumerate(named)
    ]
    inputs += [_named(name, value, ArgumentKind.KEYWORD, scope) for name, value in kwargs.items()]
    return inputs


def _named(
    name: str, value: Any, kind: ArgumentKind, scope: Scope, *, element: str | None = None, label: str = ""
) -> NamedArgument:
    try:  # Not `placed`: a context for each argument takes a twentieth of the time of saving.
        return NamedArgument(name, write_argument(value, scope, element), kind)
    except Pt2Error as error:
        raise at(f"argument {label or repr(name)}", error) from error


def _value(node: Node) -> Any:
    if "val" not in node.meta:
        raise GraphError("expected a value in its metadata ('val'), got none")
    return node.meta["val"]


def _delegate_arguments(node: Node, scope: Scope) -> list[Any]:
    """Return the arguments of a call into code that AOTInductor compiled: the module's path replaces the module.

    The graph it was compiled from is left out, and so are weights that are no tensors: the format has no list for them.
    """
    args = list(node.args)
    lowered = getattr(scope.module, args[0].name, None)
    if lowered is None:
        raise GraphError(f"expected a compiled module {args[0].name!r}, got none")
    args[0], args[1] = lowered.aoti_path, None
    if isinstance(args[2], (list, tuple)):
        args[2] = [weight for weight in args[2] if not _is_object(weight)]
    return args


def _is_object(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), CustomObjArgument)


def define_results(node: Node, value: Any, count: int, scope: Scope) -> list[Argument]:
    """Define the results of an operator that has a schema.

    Args:
        node: the call.
        value: fx's metadata of the results.
        count: how many the schema has, at least one.
        scope: the graph being written.

    Raises:
        GraphError: the value does not fit the schema, or the node's results are used in a way the format cannot
            express.
        UnsupportedError: a kind of result that the format does not have.

    Source: `serialize_outputs` in torch/_export/serde/serialize.py, 2.13.
    """
    is_list = isinstance(value, (list, tuple))
    if count == 1 and is_list:
        return [_define_list((node,), f"{node.name}_unused", value, scope)]
    if count > 1 and not is_list:
        raise GraphError(f"expected {count_text(count, 'result')}, got {type(value).__name__}")
    return define_untyped(node, value, scope)


def define_untyped(node: Node, value: Any, scope: Scope) -> list[Argument]:
    """Define the results of a higher-order operator or a plain function, which have no schema.

    Source: `serialize_hoo_outputs` in torch/_export/serde/serialize.py, 2.13.
    """
    if not isinstance(value, (tuple, list, dict)):
        return [_define((node,), node.name, value, scope)]
    results = _define_parts((node,), f"{node.name}_unused", value, scope)
    if isinstance(value, dict):  # the results of a triton kernel, by parameter
        return [Argument(as_tensors=[argument_tensor(result) for result in results])]
    return results


def _define_parts(owners: Sequence[Node], unused: str, values: Any, scope: Scope) -> list[Argument]:
    """Define the parts of a result.

    Args:
        owners: the nodes whose users take the parts.
        unused: the prefix of the names of unused parts.
        values: fx's metadata of the parts: a list, a tuple or a dict.
        scope: the graph being written.
    """
    by_key = values if isinstance(values, dict) else dict(enumerate(values))
    takers = _takers(owners, None if by_key is values else len(values))
    results = []
    for key, value in by_key.items():
        define = _define_list if isinstance(value, (list, tuple)) else _define
        results.append(define(takers.get(key, ()), f"{unused}_{key}", value, scope))
    return results


def _define_list(owners: Sequence[Node], unused: str, values: Sequence[Any], scope: Scope) -> Argument:
    """Define a result that is a list; arguments as of `_define_parts`."""
    entries = _define_parts(owners, unused, values, scope)
    arms = {entry.type for entry in entries}
    if arms <= {"as_tensor", "as_none"} or (len(arms) == 1 and arms <= SYMBOLIC.keys()):
        return join([entries])  # type: ignore[return-value]
    raise UnsupportedError(f"expected a list of one kind as result, got one of {', '.join(sorted(arms))}")


def _define(takers: Sequence[Node], unused: str, value: Any, scope: Scope) -> Argument:
    """Define one result under the name of the first node that takes it."""
    name = takers[0].name if takers else unused
    result = scope.define(name, value)
    for taker in takers:
        scope.uses[taker] = result
        if taker.name != name:
            scope.renamed[taker.name] = name
    return result


def _takers(owners: Sequence[Node], count: int | None) -> dict[Any, list[Node]]:
    """Return the getitem nodes of each result, in the order of use, which is the order torch looks in.

    Args:
        owners: the nodes that hold the results.
        count: how many results there are, to make sense of a negative index; None where keys are not indices.
    """
    takers: dict[Any, list[Node]] = {}
    for owner in owners:
        for user in owner.users:
            if user.target is not operator.getitem or user.args[0] is not owner:
                raise GraphError(f"expected its results to be taken one by one, got node {user.name} using them whole")
            key: Any = user.args[1]
            if count is not None:
                if not isinstance(key, int) or not -count <= key < count:
                    raise GraphError(f"expected an index below {count} in node {user.name}, got {key}")
                key = int(key) % count
            takers.setdefault(key, []).append(user)
    return takers


_LAUNCH_SETTINGS = ("num_cpu_threads", "num_warps", "num_stages", "num_ctas")
_TILE_SETTINGS = ("tile_width", "tile_height", "base_pe")
_CONSTANT = re.compile(r"\('constexpr',\s*([^)]+)\)")


def kernel_call(node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the positional and the keyword arguments of a call.

    Args:
        node: a call of `triton_kernel_wrapper_functional`.

    Raises:
        UnsupportedError: triton is not installed, or the kernel was not compiled for exactly this call.
    """
    kernels = triton_kernels()
    if kernels is None:
        raise UnsupportedError("expected triton for a kernel call, got none; install it where the kernel runs")
    kernel = kernels.get_kernel(node.kwargs["kernel_idx"])
    configs: Sequence[Any] = getattr(kernel, "configs", None) or ()
    function = kernel.fn if configs else kernel
    return describe_call(function, configs, node)


def describe_call(function: Any, configs: Sequence[Any], node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of a call, for a jitted function and the configurations it was tuned over, if it was.

    Raises:
        UnsupportedError: see `kernel_call`.
    """
    arguments: Any = node.kwargs["kwargs"]
    compiled = _compiled(function, configs, arguments)
    positional = _positional(function, arguments)
    results = node.meta["val"]
    settings = compiled.metadata
    keywords: dict[str, Any] = {
        "name": f"{function.fn.__name__}_{settings.hash}",
        "grid": node.kwargs["grid"][0],
        "output_indices": [index for index, name in enumerate(positional) if name in results],
        "num_warps": settings.num_warps,
    }
    if hasattr(settings, "num_cpu_threads"):
        keywords["num_cpu_threads"] = settings.num_cpu_threads
    if hasattr(settings, "shared"):
        keywords["shared_memory_bytes"] = int(settings.shared)
    keywords.update({name: getattr(settings, name) for name in _TILE_SETTINGS if hasattr(settings, name)})
    parameters = [parameter for parameter in function.params if not parameter.is_constexpr]
    types = getattr(getattr(compiled, "src", None), "signature", None) or {}
    keywords["kernel_param_names"] = [parameter.name for parameter in parameters]
    keywords["kernel_param_types"] = [str(types.get(p.name, p.annotation)) for p in parameters]
    return positional, keywords


def _positional(function: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments passed at run time: those that were not compiled in, which come first."""
    constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
    names = list(given)
    runtime = [name for name in names if name not in constants]
    if names[: len(runtime)] != runtime:
        raise UnsupportedError(f"expected constexpr arguments after all others, got {', '.join(names)}")
    return {name: given[name] for name in runtime}


def _compiled(function: Any, configs: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Return the compiled kernel that this call launches."""
    cache = _cache(function)
    if len(cache) == 1:
        return next(iter(cache.values()))
    entries = list(_matching(function, cache, given))
    if len(entries) > 1 and configs:
        tuned = [entry for config in configs for entry in entries if _was_tuned(config, entry.metadata)]
        entries = tuned[:1]
    if len(entries) != 1:
        raise UnsupportedError(
            f"kernel {function.fn.__name__}: expected one compiled version for this call, got {len(entries)} "
            f"of {len(cache)}; run the exported module once before saving, in a fresh process"
        )
    return entries[0]


def _cache(function: Any) -> Mapping[str, Any]:
    """Return the compiled versions of a kernel on its one device, by signature."""
    devices = getattr(function, "device_caches", None)
    by_device = getattr(function, "cache", {}) if devices is None else devices
    if len(by_device) != 1:
        raise UnsupportedError(
            f"kernel {function.fn.__name__}: expected it compiled for one device, got {len(by_device)}; "
            "run the exported module once before saving"
        )
    entry = next(iter(by_device.values()))
    return entry if devices is None else entry[0]  # type: ignore[no-any-return]


def _matching(function: Any, cache: Mapping[str, Any], given: Mapping[str, Any]) -> Iterable[Any]:
    """Yield the compiled versions whose compiled-in values are those of the call."""
    constants = [function.arg_names[index] for index in getattr(function, "constexprs", ())]
    wanted = [_comparable(given[name]) for name in constants if name in given]
    for signature, entry in cache.items():
        texts = _CONSTANT.findall(signature)
        if not constants or (texts and list(map(_comparable, texts)) == wanted):
            yield entry


def _comparable(value: Any) -> float | str:
    """Return a compiled-in value, or its text in a signature: as a number if it is one."""
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _was_tuned(config: Any, settings: Any) -> bool:
    """Return whether a compiled kernel has the launch settings of a configuration."""
    return all(
        getattr(config, name) == getattr(settings, name)
        for name in _LAUNCH_SETTINGS
        if hasattr(config, name) and hasattr(settings, name)
    )
