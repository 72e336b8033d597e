"""The private and moving names of torch that the bridge uses, and which of them the torch of this process lacks.

    /path/to/environment/bin/python tools/names_in_release.py

`NAMES` has a row for each name in `bridge/torch_names.py` and `bridge/torch_export_names.py`. Printed is a JSON list of
the rows whose name is not there. Runs in any torch since 2.9, and needs nothing else.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
import torch.export
from torch import fx
from torch._subclasses import fake_tensor


@dataclass(frozen=True, slots=True)
class TorchName:
    """Name of torch that may move.

    Args:
        path: where it is, below `torch`.
        since: the oldest release that has it; "2.6" also for older names, since none before was tested.
        gives: its purpose here.
        instead: the fallback if it is missing; empty if every supported release has it.
    """

    path: str
    since: str
    gives: str
    instead: str = ""


_TABLE: Final = """
    _C._DisableTorchDispatch | 2.6 | a block in which a subclass is made without its own dispatch
    _C._dispatch_find_schema_or_throw, _C._jit_get_operation | 2.6 | whether the dispatcher has an operator
    _C._functorch.peek_interpreter_stack, _C._functorch.pop_dynamic_layer_stack,
    _C._functorch.push_dynamic_layer_stack | 2.6 | a block outside of vmap, grad and jvp
    _C._get_tracing_state, _C._set_tracing_state | 2.6 | a block outside of torch.jit.trace
    _C._dynamo.eval_frame.set_eval_frame | 2.6 | a block that torch.compile does not look into
    _C._functorch.is_batchedtensor | 2.6 | tensors of vmap
    _C._functorch.is_functorch_wrapped_tensor, _C._functorch.get_unwrapped | 2.6 | tensors of vmap, grad and jvp
    _C._len_torch_function_stack, _C._pop_torch_function_stack,
    _C._push_on_torch_function_stack | 2.6 | a block without function modes
    _C._len_torch_dispatch_stack | 2.6 | whether a tracer, or another mode, sees each operator
    _C._get_custom_class_python_wrapper | 2.6 | whether a script class is registered
    _C._get_privateuse1_backend_name | 2.6 | what the backend for devices of others is called
    _C._get_max_operator_version | 2.6 | the number of the aten operator set
    _assert, _check | 2.6 | conditions on sizes, for tracers
    _is_functional_tensor | 2.6 | tensors of functionalization
    _C._pickle_load_obj, _C._pickle_save | 2.6 | script objects <- and -> pickles
    _C._set_grad_enabled | 2.6 | what `no_grad` leaves in a graph
    _C._set_throw_on_mutable_data_ptr, _C._set_warn_deprecated_on_mutable_data_ptr | 2.6 | what a storage says of memory
    _C._nn, _C._fft, _C._linalg, _C._nested, _C._sparse, _C._special | 2.6 | builtin functions
    _C.ScriptObject, _C.ScriptObject._type, _C.ScriptObject._has_method | 2.6 | script objects, and what they can
    Tensor._make_subclass, Tensor._make_wrapper_subclass | 2.6 | subclasses over a tensor, and without storage
    UntypedStorage._cdata | 2.6 | tells storages without an address apart
    _functionalize_unsafe_set | 2.6 | gives a tensor another storage; since 2.14 none but a plain tensor
    _make_per_channel_quantized_tensor, _make_per_tensor_quantized_tensor | 2.6 | quantized tensors of integers
    _mkldnn, _neg_view | 2.6 | a layout; a view with a lazy negative bit
    _ops.HigherOrderOperator, _ops.OpOverload, _ops.OpOverload._schema | 2.6 | the types of operators, what they take
    _ops._higher_order_ops | 2.6 | name -> higher-order operator
    _export.non_strict_utils._enter_enable_graph_inputs_of_type_nn_module,
    _export.non_strict_utils._exit_enable_graph_inputs_of_type_nn_module | 2.6 | modules as containers of inputs
    _export.serde.schema.SCHEMA_VERSION | 2.6 | the version that `torch.export.save` writes
    _export.serde.serialize._reconstruct_fake_tensor | 2.6 | the function that fake tensors are pickled by
    _export.serde.serialize._serialization_registry | 2.6 | handlers of torch's own `register_extension`
    _export.verifier.SpecViolationError, _export.verifier.Verifier | 2.6 | what checks programs, and what it raises
    _export.verifier._VerifierMeta._registry | 2.6 | dialect -> verifier
    _functorch.predispatch._add_batch_dim, _functorch.predispatch._remove_batch_dim,
    _functorch.predispatch._vmap_increment_nesting, _functorch.predispatch._vmap_decrement_nesting,
    _functorch.predispatch.lazy_load_decompositions | 2.9 | left in a graph by vmap | a missing operator
    _functorch.predispatch._make_dual, _functorch.predispatch._unpack_dual,
    _functorch.predispatch._jvp_increment_nesting, _functorch.predispatch._jvp_decrement_nesting,
    _functorch.predispatch._unwrap_for_grad, _functorch.predispatch._enter_dual_level,
    _functorch.predispatch._exit_dual_level | 2.13 | left in a graph by jvp | a missing operator
    _guards.SLoc, fx.experimental.symbolic_shapes.ValueRangesSLoc | 2.6 | where a range is from, for messages
    _higher_order_ops.triton_kernel_wrap.kernel_side_table | 2.6 | number -> triton kernel
    _library.fake_class_registry.FakeScriptObject | 2.6 | stands for an object while a program is exported
    _library.opaque_object.get_opaque_type_name | 2.10 | the name of an opaque object's class | nothing is opaque
    _library.opaque_object.is_custom_class_obj | 2.14 | whether a value is opaque | `is_opaque_value`
    _library.opaque_object.is_opaque_value | 2.11 | whether a value is opaque | nothing is opaque
    _subclasses.fake_tensor.FakeTensor, _subclasses.fake_tensor.FakeTensorMode | 2.6 | tensors without data
    _subclasses.fake_tensor.FakeTensorMode._allow_unsafe_data_ptr_access | 2.6 | whether their address may be asked for
    _sym_acos, _sym_asin, _sym_atan, _sym_cos, _sym_cosh, _sym_log2, _sym_sin, _sym_sinh, _sym_sqrt, _sym_tan,
    _sym_tanh | 2.6 | functions over numbers
    amp.autocast_mode._enter_autocast, amp.autocast_mode._exit_autocast | 2.6 | ends of an autocast region
    export.ExportedProgram._guards_code | 2.9 | the guards of a program | it has none
    export._unlift._create_stateful_graph_module,
    export._unlift._unlift_exported_program_lifted_states | 2.6 | what `ExportedProgram.module` does
    fx.Graph._codegen | 2.6 | the first and last lines of a source
    fx.Graph._find_nodes_lookup_table, fx.Graph._graph_namespace, fx.Graph._insert, fx.Graph._len,
    fx.Graph._target_to_str | 2.6 | what `create_node` does, without its searches
    fx.Node._rename | 2.6 | gives a node a free name
    fx.experimental._config | 2.6 | whether guards are validated by z3
    fx.experimental.symbolic_shapes.ShapeEnv,
    fx.experimental.symbolic_shapes.ShapeEnv._init | 2.6 | what symbols belong to
    fx.experimental.symbolic_shapes.ShapeEnv._get_sloc | 2.6 | where a guard is from, for messages
    fx.experimental.symbolic_shapes.ShapeEnv._log_guard | 2.6 | logs a guard
    fx.experimental.symbolic_shapes.ShapeEnv._constrain_range_for_size | 2.6 | says that a symbol is a size
    fx.experimental.symbolic_shapes.ShapeEnv._update_var_to_range | 2.6 | gives a symbol a range
    fx.experimental.symbolic_shapes.ShapeEnv.backed_var_to_val | 2.11 | expression -> example value | `var_to_val`
    fx.experimental.symbolic_shapes.ShapeEnv.unbacked_symfloat_counter,
    fx.experimental.symbolic_shapes.ShapeEnv.unbacked_symint_counter | 2.6 | the next symbol; iterators up to 2.10
    fx.experimental.symbolic_shapes.ShapeEnv.var_to_stack | 2.6 | where a symbol was made
    fx.experimental.symbolic_shapes._free_unbacked_symbols_with_path | 2.7 | the symbols that a value brings
    fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless | 2.6 | a function over numbers
    fx.immutable_collections.immutable_dict | 2.6 | the keyword arguments of a node
    fx.traceback.NodeSource, fx.traceback.NodeSource._get_action_string | 2.7 | where a node is from
    fx.traceback.NodeSource._from_dict | 2.9 | the same from a dict
    utils._pytree, utils._pytree.LeafSpec | 2.6 | containers of inputs and outputs
    utils._pytree.TreeSpec.children | 2.10 | the specs of children | `children_specs`
    utils._pytree.treespec_leaf | 2.10 | the spec of a leaf | `LeafSpec()`
    utils._python_dispatch._disable_current_modes | 2.6 | a block without the modes of the caller
    utils._sympy.functions | 2.6 | sympy's functions over sizes
    utils._sympy.functions.BitwiseFn_bitwise_xor | 2.10 | a function in expressions | the expression is refused
    utils._sympy.numbers.int_oo, utils._sympy.value_ranges.ValueRanges | 2.6 | ranges, and the infinity of integers
    utils._traceback.CapturedTraceback | 2.6 | a stack, kept cheaply
    utils._triton.has_triton | 2.6 | whether triton is there
"""


def _names() -> tuple[TorchName, ...]:
    names: list[TorchName] = []
    waiting: list[str] = []
    for line in _TABLE.split("\n"):
        paths, *rest = (part.strip() for part in line.split("|"))
        waiting += [path.strip() for path in paths.split(",") if path.strip()]
        if rest:
            names += [TorchName(path, *rest) for path in waiting]
            waiting = []
    return tuple(names)


NAMES: Final = _names()
"""Every private or moving name that the bridge takes from torch."""


class _Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def _environment() -> Any:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return ShapeEnv()


# Attributes that only instances have are looked for on one.
INSTANCES: dict[str, Callable[[], Any]] = {
    "torch.fx.Graph": fx.Graph,
    "torch.fx.experimental.symbolic_shapes.ShapeEnv": _environment,
    "torch.export.ExportedProgram": lambda: torch.export.export(_Plain(), (torch.ones(1),)),
    "torch.UntypedStorage": lambda: torch.UntypedStorage(0),
    "torch._subclasses.fake_tensor.FakeTensorMode": fake_tensor.FakeTensorMode,
    "torch._ops.OpOverload": lambda: torch.ops.aten.add.Tensor,
}


def find(path: str) -> Any:
    """Return the object at a path of `torch`.

    Raises:
        ImportError: there is no such module or attribute.
    """
    found: Any = torch
    done = "torch"
    for part in path.split("."):
        owner = INSTANCES[done]() if done in INSTANCES else found
        done = f"{done}.{part}"
        found = getattr(owner, part) if hasattr(owner, part) else importlib.import_module(done)
    return found


def is_there(path: str) -> bool:
    """Return whether a path below `torch` exists."""
    try:
        find(path)
    except ImportError:
        return False
    return True


def main() -> int:
    print(json.dumps([asdict(name) for name in NAMES if not is_there(name.path)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
