"""Node metadata as data: parsing of every text of the format's metadata, and printing of the identical text.

    modules.py     nn_module_stack, in the styles of all releases; the module tree of a program; separators inside names
    frames.py      stack_trace, source_fn_stack, source_fn, torch_fn
    redaction.py   removal of metadata and of machine paths; process addresses removed or numbered

Parsers raise `Pt2Error`s; a viewer that shows what it can wraps them in `lenient`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.node_metadata.frames import Frame as Frame
    from pt2kit.node_metadata.frames import NodeSource as NodeSource
    from pt2kit.node_metadata.frames import SourceFn as SourceFn
    from pt2kit.node_metadata.frames import StackTrace as StackTrace
    from pt2kit.node_metadata.frames import compact as compact
    from pt2kit.node_metadata.frames import dump_custom as dump_custom
    from pt2kit.node_metadata.frames import dump_from_node as dump_from_node
    from pt2kit.node_metadata.frames import dump_source_fn_stack as dump_source_fn_stack
    from pt2kit.node_metadata.frames import dump_stack_trace as dump_stack_trace
    from pt2kit.node_metadata.frames import dump_torch_fn as dump_torch_fn
    from pt2kit.node_metadata.frames import expand as expand
    from pt2kit.node_metadata.frames import expand_all as expand_all
    from pt2kit.node_metadata.frames import frame_text as frame_text
    from pt2kit.node_metadata.frames import is_reference as is_reference
    from pt2kit.node_metadata.frames import lenient as lenient
    from pt2kit.node_metadata.frames import parse_custom as parse_custom
    from pt2kit.node_metadata.frames import parse_from_node as parse_from_node
    from pt2kit.node_metadata.frames import parse_source_fn_stack as parse_source_fn_stack
    from pt2kit.node_metadata.frames import parse_stack_trace as parse_stack_trace
    from pt2kit.node_metadata.frames import parse_torch_fn as parse_torch_fn
    from pt2kit.node_metadata.modules import ModuleEntry as ModuleEntry
    from pt2kit.node_metadata.modules import ModuleNode as ModuleNode
    from pt2kit.node_metadata.modules import Style as Style
    from pt2kit.node_metadata.modules import decode_name as decode_name
    from pt2kit.node_metadata.modules import dump_module_stack as dump_module_stack
    from pt2kit.node_metadata.modules import encode_name as encode_name
    from pt2kit.node_metadata.modules import module_fqn as module_fqn
    from pt2kit.node_metadata.modules import module_stack_style as module_stack_style
    from pt2kit.node_metadata.modules import module_tree as module_tree
    from pt2kit.node_metadata.modules import parse_module_stack as parse_module_stack
    from pt2kit.node_metadata.redaction import METADATA_KEYS as METADATA_KEYS
    from pt2kit.node_metadata.redaction import PROVENANCE_KEYS as PROVENANCE_KEYS
    from pt2kit.node_metadata.redaction import STACK_TRACE_KEYS as STACK_TRACE_KEYS
    from pt2kit.node_metadata.redaction import AddressNumbers as AddressNumbers
    from pt2kit.node_metadata.redaction import hide_paths as hide_paths
    from pt2kit.node_metadata.redaction import strip_metadata as strip_metadata
    from pt2kit.node_metadata.redaction import without_addresses as without_addresses

__getattr__, __dir__, __all__ = front_door(__name__)
