"""Pytree specs (`in_spec`, `out_spec`) as data: parsing and printing, flattening and unflattening, fields, call
signatures.

    spec.py     text <-> TreeSpec; counting, walking, rewriting
    containers.py    the children of each container type; validation; key paths
    values.py   plain Python values <-> flat lists of leaves; named tuples by their field names
    callsig.py  the readable call signature; checks of `forward_arg_names`

Types are names and contexts are data: nothing in this package imports, resolves or calls what a file names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.treespec.callsig import CallSignature as CallSignature
    from pt2kit.treespec.callsig import Parameter as Parameter
    from pt2kit.treespec.callsig import call_signature as call_signature
    from pt2kit.treespec.callsig import find_name_problems as find_name_problems
    from pt2kit.treespec.callsig import render as render
    from pt2kit.treespec.callsig import show_name as show_name
    from pt2kit.treespec.callsig import split_call as split_call
    from pt2kit.treespec.containers import EnumKey as EnumKey
    from pt2kit.treespec.containers import FieldTable as FieldTable
    from pt2kit.treespec.containers import Key as Key
    from pt2kit.treespec.containers import child_keys as child_keys
    from pt2kit.treespec.containers import find_problems as find_problems
    from pt2kit.treespec.containers import key_paths as key_paths
    from pt2kit.treespec.containers import mapping_keys as mapping_keys
    from pt2kit.treespec.containers import namedtuple_fields as namedtuple_fields
    from pt2kit.treespec.containers import namedtuple_name as namedtuple_name
    from pt2kit.treespec.containers import names_of_fields as names_of_fields
    from pt2kit.treespec.spec import LEAF as LEAF
    from pt2kit.treespec.spec import MAX_DEPTH as MAX_DEPTH
    from pt2kit.treespec.spec import PROTOCOL as PROTOCOL
    from pt2kit.treespec.spec import TreeSpec as TreeSpec
    from pt2kit.treespec.spec import context_text as context_text
    from pt2kit.treespec.spec import context_value as context_value
    from pt2kit.treespec.spec import depth as depth
    from pt2kit.treespec.spec import dump as dump
    from pt2kit.treespec.spec import fold as fold
    from pt2kit.treespec.spec import inner_context as inner_context
    from pt2kit.treespec.spec import leaf_count as leaf_count
    from pt2kit.treespec.spec import map_nodes as map_nodes
    from pt2kit.treespec.spec import parse as parse
    from pt2kit.treespec.spec import walk as walk
    from pt2kit.treespec.values import Node as Node
    from pt2kit.treespec.values import adapt_values as adapt_values
    from pt2kit.treespec.values import flatten as flatten
    from pt2kit.treespec.values import stand_in as stand_in
    from pt2kit.treespec.values import unflatten as unflatten

__getattr__, __dir__, __all__ = front_door(__name__)
