"""Names in graphs: prefixes of operators, and variable names that are valid in the source that torch generates from a
graph, with its names as variables.

Attributes of torch modules are names that subgraphs, parameters, buffers and constants cannot have.

Source: `dir(torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()))`, torch 2.9 to 2.15;
the first two are what torch's compiler adds to the class once it ran.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pt2kit.schema.types import InputSpec, OutputSpec

OPS: Final = "torch.ops."
"""Start of the target of an operator of torch's dispatcher: "torch.ops.aten.add.Tensor"."""
ATEN_OPS: Final = "torch.ops.aten."
HIGHER_ORDER_OPS: Final = "torch.ops.higher_order."
_DEFINED: Final = "torch._higher_order_ops."

MAX_NAME: Final = 10_000
"""Characters of one name; torch makes names from module paths, which stay below a few hundred."""

GLOBALS: Final[Mapping[str, str]] = {
    "torch": "import torch",
    "fx_pytree": "import torch.fx._pytree as fx_pytree",
    "pytree": "import torch.utils._pytree as pytree",
    "device": "from torch import device",
    "inf": "from math import inf",
    "nan": "from math import nan",
    "NoneType": "NoneType = type(None)",
}
"""Name of generated source that a variable of the same name would hide -> the statement that binds it.

Source: `_custom_builtins` in torch/fx/graph.py, 2.13.
"""


_TARGETS: Final = ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "user_input_name")


def target_of(spec: InputSpec | OutputSpec) -> str | None:
    """Return the name of the weight, constant or user input that a spec is about; None if it names nothing."""
    return next((getattr(spec.value, field) for field in _TARGETS if hasattr(spec.value, field)), None)


def plain_target(target: str) -> str:
    """Return a target in the one spelling that every rule about operators uses.

    Higher-order operators are also reached through the modules that define them
    ("torch._higher_order_ops.triton_kernel_wrap.print"): what counts is their name.
    """
    if target.startswith(_DEFINED):
        return f"{HIGHER_ORDER_OPS}{target.rpartition('.')[2]}"
    return target


def is_variable(name: str) -> bool:
    """Return whether a value or argument can have a name: an identifier as Python spells it, no keyword, not `self`."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name not in ("self", "__debug__")  # the parameter of the generated function; what nothing is assigned to
        and len(name) <= MAX_NAME
        and is_own_spelling(name)
    )


def is_own_spelling(name: str) -> bool:
    """Return whether Python keeps the spelling of an identifier; it treats some different spellings as one
    identifier."""
    return name.isascii() or unicodedata.normalize("NFKC", name) == name


def free_name(stem: str, is_taken: Callable[[str], bool], first: int = 1, *, separator: str = "_") -> str:
    """Return the first of "stem_1", "stem_2", … that is not taken.

    Args:
        stem: the beginning of the name.
        is_taken: returns whether a name is taken.
        first: the first number to try.
        separator: what is put between stem and number.
    """
    number = first
    while is_taken(name := f"{stem}{separator}{number}"):
        number += 1
    return name


_MODULES_OWN: Final = """
___has_generation_tag_patch ___needs_generation_tag_patch T_destination __annotations__ __call__ __class__ __delattr__
__annotate_func__ __firstlineno__ __static_attributes__
__dict__ __dir__ __doc__ __eq__ __format__ __ge__ __getattr__ __getattribute__ __getstate__ __gt__ __hash__ __init__
__init_subclass__ __le__ __lt__ __module__ __ne__ __new__ __reduce__ __reduce_ex__ __repr__ __setattr__ __setstate__
__sizeof__ __str__ __subclasshook__ __weakref__ _apply _backward_hooks _backward_pre_hooks _buffers _call_impl
_compiled_call_impl _forward_hooks _forward_hooks_always_called _forward_hooks_with_kwargs _forward_pre_hooks
_forward_pre_hooks_with_kwargs _get_backward_hooks _get_backward_pre_hooks _get_name _is_full_backward_hook
_load_from_state_dict _load_state_dict_post_hooks _load_state_dict_pre_hooks _maybe_warn_non_full_backward_hook _modules
_named_members _non_persistent_buffers_set _parameters _register_load_state_dict_pre_hook _register_state_dict_hook
_replicate_for_data_parallel _save_to_state_dict _slow_forward _state_dict_hooks _state_dict_pre_hooks _version
_wrapped_call_impl add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval
extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia
named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer
register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter
register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory
state_dict to to_empty train training type xpu zero_grad
"""
_GRAPH_MODULES_OWN: Final = """
__copy__ __deepcopy__ __jit_unused_properties__ __reduce_package__ _boxed_call _code _create_node_hooks _deepcopy_hooks
_deepcopy_init _erase_node_hooks _graph _lineno_map _prologue_start _recompile_submodules _register_create_node_hook
_register_deepcopy_hook _register_erase_node_hook _register_replace_node_hook _replace_hooks _set_replace_hook
_tracer_cls _tracer_extras _unregister_create_node_hook _unregister_deepcopy_hook _unregister_erase_node_hook
_unregister_replace_node_hook _wrapped_call add_submodule code delete_all_unused_submodules delete_submodule graph meta
print_readable recompile shape_env to_folder
"""
_EXPORTED_MODULES_OWN: Final = "_guards_fn _in_spec _out_spec range_constraints validate_inputs self"
"""Further attributes of a program's module, as `ExportedProgram.module()` makes it; `self` is a parameter there.

Source: torch/export/_unlift.py, 2.13.
"""
PLAIN_MODULE_ATTRIBUTES: Final = frozenset(_MODULES_OWN.split())
"""The attributes of every `torch.nn.Module`."""
MODULE_ATTRIBUTES: Final = PLAIN_MODULE_ATTRIBUTES | frozenset(_GRAPH_MODULES_OWN.split())
"""The attributes of a graph module: the root of a program, and subgraphs."""
ROOT_ATTRIBUTES: Final = MODULE_ATTRIBUTES | frozenset(_EXPORTED_MODULES_OWN.split())
"""The attributes of the module of a program."""


def is_reserved(path: str) -> bool:
    """Return whether the path of a parameter, buffer or constant would hide an attribute of a module."""
    first, *rest = path.split(".")
    return first in ROOT_ATTRIBUTES or any(
        part in PLAIN_MODULE_ATTRIBUTES or (part.startswith("__") and part.endswith("__")) for part in (first, *rest)
    )
