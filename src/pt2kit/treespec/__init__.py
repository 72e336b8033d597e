"""Pytree specs (`in_spec`, `out_spec`) as data: text <-> `TreeSpec`, values <-> leaves, fields, call signatures.

    spec.py     text <-> TreeSpec; counting, walking, rewriting
    kinds.py    what each container type says about its children; validation; key paths
    fields.py   the named-tuple field table, stand-in classes, adapting to a class that changed
    values.py   plain Python values <-> flat lists of leaves
    callsig.py  the readable call signature; checks of `forward_arg_names`

Types are names and contexts are data: nothing in this room imports, resolves or calls what a file names.
"""

from pt2kit.treespec.callsig import (
    CallSignature,
    Parameter,
    annotation,
    call_signature,
    check_arg_names,
    find_name_problems,
    render,
    show_name,
    split_call,
)
from pt2kit.treespec.fields import adapt_leaves, adapt_values, collect_fields, stand_in
from pt2kit.treespec.kinds import (
    EnumKey,
    FieldTable,
    Key,
    child_keys,
    find_problems,
    key_paths,
    mapping_keys,
    namedtuple_fields,
    namedtuple_name,
    validate,
)
from pt2kit.treespec.spec import (
    LEAF,
    MAX_DEPTH,
    PROTOCOL,
    TreeSpec,
    context_text,
    context_value,
    depth,
    dump,
    fold,
    inner_context,
    leaf_count,
    map_nodes,
    node_types,
    parse,
    walk,
)
from pt2kit.treespec.values import Node, flatten, unflatten

__all__ = [
    "TreeSpec", "LEAF", "PROTOCOL", "MAX_DEPTH", "parse", "dump",
    "leaf_count", "node_types", "depth", "walk", "fold", "map_nodes", "context_value", "inner_context", "context_text",
    "Key", "EnumKey", "FieldTable", "child_keys", "mapping_keys", "namedtuple_name", "namedtuple_fields", "key_paths",
    "validate", "find_problems",
    "collect_fields", "stand_in", "adapt_values", "adapt_leaves",
    "Node", "flatten", "unflatten",
    "CallSignature", "Parameter", "call_signature", "annotation", "render", "show_name", "split_call",
    "check_arg_names", "find_name_problems",
]  # fmt: skip
