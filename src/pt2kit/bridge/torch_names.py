"""Private and moving names of torch, under one set of names for the rest of the bridge, for every supported release.

Together with `torch_export_names.py`, this is the only file that uses a name which no release promises to keep: with
an underscore anywhere in its path, out of `torch.fx.experimental`, or added, removed or changed between releases. A
fallback is chosen by looking for the name, never by the release's number. `tools/names_in_release.py` has a row for
each, of both files: its purpose, its first release, its fallback. The names in this file come with torch itself and
cost no import of their own.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

import torch
from torch import fx
from torch._C._dynamo import eval_frame
from torch._export.verifier import SpecViolationError as SpecViolationError
from torch._export.verifier import Verifier as Verifier
from torch._export.verifier import _VerifierMeta
from torch._library.fake_class_registry import FakeScriptObject as FakeScriptObject
from torch._ops import HigherOrderOperator as HigherOrderOperator
from torch._ops import OpOverload as OpOverload
from torch._ops import _higher_order_ops
from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
from torch.fx.immutable_collections import immutable_dict as immutable_dict
from torch.fx.traceback import NodeSource as NodeSource
from torch.utils import _pytree
from torch.utils._python_dispatch import _disable_current_modes

from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.symbols.functions import TARGETS

_Function = TypeVar("_Function", bound=Callable[..., Any])


ScriptObject = torch._C.ScriptObject
pytree = _pytree


def optional(module: str, name: str) -> Any:
    """Return a name that some release lacks, or None."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


SUBGRAPHS_NEED_METADATA: Final = (
    "GraphModule" in optional("torch._higher_order_ops.cond", "CondOp").gen_schema.__code__.co_names
    or "check_input_alias_and_mutation_return_outputs"
    in optional("torch._higher_order_ops.while_loop", "WhileLoopOp").gen_schema.__code__.co_names
)
"""True if autograd asks subgraphs for the metadata of their inputs (`cond`, 2.9) or outputs (`while_loop`, up to 2.11),
False if it uses those that it is called with."""

_COMPILER_REFUSES_FUNCTIONS: Final = torch.torch_version.TorchVersion(torch.__version__) < "2.13"
"""True if torch.compile does not trace a call that takes a function with a closure, as `torch._check` does."""

# Operators, and questions to the dispatcher


def is_batched(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is one of vmap; torch.compile sees through this call."""
    return bool(torch._C._functorch.is_batchedtensor(tensor))


def is_functorch_tensor(tensor: torch.Tensor) -> bool:
    """Return whether a tensor wraps another one at a level of vmap, grad or jvp."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def unwrap_functorch(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor that a tensor wraps at its level of vmap, grad or jvp."""
    unwrapped: torch.Tensor = torch._C._functorch.get_unwrapped(tensor)
    return unwrapped


def check_symbolic(holds: Any, text: str) -> None:
    """Require a condition on sizes; a tracer notes it."""
    if _COMPILER_REFUSES_FUNCTIONS and torch.compiler.is_dynamo_compiling():
        torch._assert(holds, text)
    else:
        torch._check(holds, lambda: text)


def is_observed(tensor: torch.Tensor) -> bool:
    """Return whether a tracer or another mode is at work on a tensor, so that its numbers cannot be looked at."""
    return (
        type(tensor) not in (torch.Tensor, torch.nn.Parameter)
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._is_functional_tensor(tensor)
    )


def find_schema(qualified: str, overload: str) -> bool:
    """Return whether the dispatcher has an operator; nothing is created by asking."""
    return _is_found(torch._C._dispatch_find_schema_or_throw, qualified, overload)


def has_packet(qualified: str) -> bool:
    """Return whether there is any overload of an operator "aten::add"; nothing is created by asking."""
    return torch._C._jit_get_operation(qualified)[0] is not None


def has_script_class(namespace: str, name: str) -> bool:
    """Return whether a script class is registered."""
    return _is_found(torch._C._get_custom_class_python_wrapper, namespace, name)


def _is_found(find: Callable[[str, str], object], first: str, second: str) -> bool:
    try:
        find(first, second)
    except RuntimeError:
        return False
    return True


def renamed_backend() -> str:
    """Return torch's name for the backend of other vendors: "privateuseone" until one is registered."""
    return str(torch._C._get_privateuse1_backend_name())


def register_late() -> None:
    """Make torch register the operators that come with its compiler, not with itself."""
    importlib.import_module("torch._export.non_strict_utils")
    importlib.import_module("torch._export.serde.serialize")


def schema_of(operator: Any) -> Any:
    """Return the `torch.FunctionSchema` of an OpOverload."""
    return operator._schema


def find_higher_order(name: str) -> Any:
    """Return the higher-order operator of that name, or None."""
    return _higher_order_ops.get(name)


def operator_version() -> int:
    """Return the version of the aten operator set."""
    return int(torch._C._get_max_operator_version())


def extension_registry() -> Mapping[Any, Any]:
    """Return the handlers by type of operator, as registered with torch's own `register_extension`."""
    serializer = sys.modules.get("torch._export.serde.serialize")  # a caller that registers one has imported it
    return MappingProxyType({} if serializer is None else dict(serializer._serialization_registry))


def triton_kernels() -> Any:
    """Return torch's table of triton kernels, or None without triton."""
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
    from torch.utils._triton import has_triton

    return kernel_side_table if has_triton() else None


# The installed torch as a writer. Its serializer is not asked, because it imports torch's compiler.


@functools.cache
def schema_version() -> tuple[int, int]:
    """Return (major, minor) of the schema that `torch.export.save` writes."""
    from torch._export.serde.schema import SCHEMA_VERSION

    major, minor = SCHEMA_VERSION
    return major, minor


def groups_weights() -> bool:
    """Return whether `torch.export.save` writes weights storage by storage, pickled ones first (2.10 and later)."""
    return schema_version() >= (8, 15)


def writes_origins() -> bool:
    """Return whether `torch.export.save` writes the entry `from_node` of a node's metadata (2.11 and later)."""
    return schema_version() >= (8, 16)


def find_verifier(dialect: str) -> type[Verifier] | None:
    """Return the verifier class of a dialect, or None."""
    verifier: type[Verifier] | None = _VerifierMeta._registry.get(dialect)
    return verifier


# Contents of a graph besides operators

BUILTIN_NAMESPACES: Final = (
    torch._C._nn,
    torch._C._fft,
    torch._C._linalg,
    torch._C._nested,
    torch._C._sparse,
    torch._C._special,
)
"""Modules of builtin functions that a `source_fn_stack` names."""

SYMBOLIC: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {target: function for target in TARGETS if (function := optional(*target.rsplit(".", 1))) is not None}
)
"""Target -> function over numbers, whose one result is a number or a truth value: all that a file may name.

Source: `Verifier.allowed_builtin_ops` in torch/_export/verifier.py, 2.13, and the functions that follow it there.
"""


def find_function(target: str) -> Callable[..., Any] | None:
    """Return one of `higher_order.FUNCTIONS`; None if this release does not have it."""
    module, _, name = target.rpartition(".")
    function: Callable[..., Any] | None = optional(module, name) if target in FUNCTIONS else None
    return function


_is_opaque = optional("torch._library.opaque_object", "is_custom_class_obj") or optional(
    "torch._library.opaque_object", "is_opaque_value"
)
_opaque_type_name = optional("torch._library.opaque_object", "get_opaque_type_name")


def is_opaque_value(value: Any) -> bool:
    """Return whether a value is an opaque object of a registered class; False in releases without such objects."""
    return _opaque_type_name is not None and _is_opaque is not None and bool(_is_opaque(value))


def opaque_type_name(kind: type) -> str:
    """Return the name under which the class of an opaque object is registered."""
    return str(_opaque_type_name(kind))


# Graphs and their nodes

SOURCE_OF_MODULES: Final = ("_code", "_lineno_map", "_prologue_start")
"""The attributes in which a graph module keeps the source of its graph."""


UNLIFT: Final = "_unlift_exported_program_lifted_states"
"""The function that makes the module of an exported program."""
UNLIFT_LAST: Final = "_create_stateful_graph_module"
"""The function that it makes its last graph module by."""


def copy_codegen(graph: fx.Graph, copied: fx.Graph) -> None:
    """Make the source of a graph begin and end like that of another one."""
    copied._codegen = graph._codegen


def argument_names(graph: fx.Graph) -> list[str]:
    """Return the names of the arguments that the source of a graph packs into containers; none if it packs nothing."""
    info = getattr(graph._codegen, "pytree_info", None)
    return info.orig_args if info else []


def append_call(
    graph: fx.Graph, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, name: str | None = None
) -> fx.Node:
    """Append a `call_function` node to a graph without owner and hooks.

    Args:
        graph: the graph.
        target: the callable.
        args, kwargs: nodes of the same graph, constants, and containers of them.
        name: a name to begin with; the graph makes it its own and free. By default the target's.
    """
    space = graph._graph_namespace
    own = str(space.create_name(graph._target_to_str(target) if name is None else name, None))
    node = fx.Node(graph, own, "call_function", target, args, kwargs or immutable_dict())
    space.associate_name_with_obj(node.name, node)
    graph._insert(node)
    graph._find_nodes_lookup_table.insert(node)
    graph._len += 1
    return node


def called_name(graph: fx.Graph, target: Any) -> str:
    """Return fx's name for a node after the function that it calls."""
    return str(graph._target_to_str(target))


def rename(node: fx.Node, name: str) -> None:
    """Rename a node to a name like this one that is free in its graph."""
    node._rename(name)


def node_source(tree: dict[str, Any]) -> NodeSource:
    """Return an origin of a node from its dict, with the dicts of older origins inside it."""
    return NodeSource._from_dict(tree)


def action_text(source: NodeSource) -> str:
    """Return the text of what a pass did with a node."""
    return str(source._get_action_string())


def guards_code(program: Any) -> list[str]:
    """Return the guards of an exported program as source."""
    return list(getattr(program, "_guards_code", ()))


def set_guards_code(program: Any, guards: list[str]) -> None:
    """Set the guards of an exported program as source."""
    program._guards_code = guards


def not_traced(function: _Function) -> _Function:
    """Make torch.compile call a function unchanged, and a strict export report that it cannot.

    Source: `DisableContext` in torch/_dynamo/eval_frame.py, 2.13; torch.compiler.disable itself imports the compiler.
    """
    marked: Any = function
    marked._torchdynamo_disable = True
    marked._torchdynamo_disable_msg = f"pt2kit.{marked.__name__} reads or writes a file, which no graph can do"
    return function


@contextlib.contextmanager
def disable_current_modes() -> Iterator[None]:
    """Suspend the caller's modes around a block: dispatch and function modes, inference mode, functorch, traces.

    Tensors that the block makes are plain ones, whatever transform the caller is in. torch.compile calls a function
    that it does not trace, but would trace what that calls, and then specialize the symbols of the program at hand.

    Source: `temporarily_clear_interpreter_stack` in torch/_functorch/pyfunctorch.py, 2.13.
    """
    functorch = torch._C._functorch
    compiler = eval_frame.set_eval_frame(None)
    with contextlib.ExitStack() as suspended:  # restored in the opposite order
        suspended.callback(eval_frame.set_eval_frame, compiler)
        if (trace := torch._C._get_tracing_state()) is not None:
            torch._C._set_tracing_state(None)
            suspended.callback(torch._C._set_tracing_state, trace)
        while functorch.peek_interpreter_stack() is not None:
            suspended.callback(functorch.push_dynamic_layer_stack, functorch.pop_dynamic_layer_stack())
        while torch._C._len_torch_function_stack():
            suspended.callback(torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack())
        suspended.enter_context(_disable_current_modes())
        if torch.is_inference_mode_enabled():
            suspended.enter_context(torch.inference_mode(False))
        yield


# Trees of inputs and outputs


def leaf_spec() -> _pytree.TreeSpec:
    """Return the spec of a leaf."""
    make = getattr(pytree, "treespec_leaf", None)
    return pytree.LeafSpec() if make is None else make()


def child_specs(spec: _pytree.TreeSpec) -> list[_pytree.TreeSpec]:
    """Return the specs of a container's children."""
    return list(spec.children() if hasattr(spec, "children") else spec.children_specs)


def walk_specs(spec: _pytree.TreeSpec) -> Iterator[_pytree.TreeSpec]:
    """Yield a spec and all specs inside it."""
    todo = [spec]
    while todo:
        found = todo.pop()
        todo += child_specs(found)
        yield found


SAME_CONTAINERS: Final[Mapping[Any, Any]] = MappingProxyType({torch.Size: tuple})
"""Types that are treated as another when structures of inputs are compared, as in `torch.export`."""


@contextlib.contextmanager
def modules_as_containers(kinds: Collection[type[torch.nn.Module]]) -> Iterator[None]:
    """Treat inputs that are modules of these classes as containers of their tensors, inside a block."""
    # Not above: it imports torch's compiler.
    from torch._export import non_strict_utils

    with _CONTAINERS:  # Torch registers them for the whole process, and another export has done so already.
        added = {kind for kind in kinds if kind not in _pytree.SUPPORTED_NODES}
        non_strict_utils._enter_enable_graph_inputs_of_type_nn_module(added)
        try:
            yield
        finally:
            non_strict_utils._exit_enable_graph_inputs_of_type_nn_module(added)


_CONTAINERS: Final = threading.RLock()


# Tensors and storages


def wrap(kind: type, sizes: Sequence[Any], strides: Sequence[Any], offset: Any, **options: Any) -> torch.Tensor:
    """Return a tensor of a subclass without storage of its own; adds no guards for symbolic sizes."""
    return torch.Tensor._make_wrapper_subclass(kind, sizes, strides, offset, **options)


def mark_parameter(tensor: torch.Tensor) -> None:
    """Make a tensor of a subclass a parameter, as `torch.nn.Parameter` does."""
    vars(tensor)["_is_param"] = True


def storage_identity(storage: torch.UntypedStorage) -> int:
    """Return a key that distinguishes two storages without addresses."""
    return int(storage._cdata)


def negated(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of a tensor with a lazy negative bit."""
    return torch._neg_view(tensor)


QUANTIZERS: Final[Mapping[str, Callable[..., torch.Tensor]]] = MappingProxyType(
    {
        "per_tensor_affine": torch._make_per_tensor_quantized_tensor,
        "per_channel_affine": torch._make_per_channel_quantized_tensor,
    }
)
"""Function that makes a quantized tensor of its integers, by qscheme."""

# Script objects


def script_object(data: bytes) -> Any:
    """Build a script object from its pickle. Runs code of its class."""
    return torch._C._pickle_load_obj(data)


def pickled_script(value: Any) -> bytes:
    """Return a script object as a pickle."""
    return bytes(torch._C._pickle_save(value))


def script_class(value: Any) -> str:
    """Return the qualified name of a script object's class."""
    return str(value._type().qualified_name())


def script_method(value: Any, name: str) -> bool:
    """Return whether the class of a script object has a method."""
    return bool(value._has_method(name))
