"""Write a node's origin (`node.meta`) as the metadata texts of the format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring_ascii as quote
from typing import Any

from torch.fx import Node

from pt2kit.bridge.callables import describe
from pt2kit.bridge.torch_names import NodeSource, action_text, writes_origins
from pt2kit.errors import SchemaError
from pt2kit.node_metadata.frames import SourceFn, dump_source_fn_stack, dump_torch_fn
from pt2kit.node_metadata.modules import ModuleEntry, dump_module_stack
from pt2kit.node_metadata.origin import dump_custom
from pt2kit.node_metadata.redaction import AddressNumbers


class Metadata:
    """Writer of the metadata of nodes; it formats each distinct stack once."""

    def __init__(self) -> None:
        self._stacks: dict[Any, str] = {}
        self._addresses = AddressNumbers()

    def of_node(self, node: Node) -> dict[str, str]:
        """Return the texts of one node in torch's order, with numbers for process addresses.

        Raises:
            SchemaError: custom metadata that JSON cannot hold, or an entry of another type than its key requires.

        Source: `serialize_metadata` in torch/_export/serde/serialize.py, 2.13.
        """
        meta = node.meta
        texts: dict[str, str] = {}
        if trace := meta.get("stack_trace"):
            texts["stack_trace"] = _unicode(_text(trace, "stack_trace"))
        if modules := meta.get("nn_module_stack"):
            texts["nn_module_stack"] = self._once(tuple(modules.items()), _module_stack)
        if sources := meta.get("source_fn_stack"):
            texts["source_fn_stack"] = self._once(tuple(map(tuple, sources)), _source_stack)
        if function := meta.get("torch_fn"):
            texts["torch_fn"] = dump_torch_fn([_text(part, "torch_fn") for part in function])
        if custom := meta.get("custom"):
            texts["custom"] = dump_custom(custom, "metadata 'custom'")
        if "from_node" in meta and writes_origins():
            texts["from_node"] = _sources(meta["from_node"])
        return self._addresses.numbered(texts)

    def _once(self, key: Any, write: Callable[[Any], str]) -> str:
        try:
            text = self._stacks.get(key)
        except TypeError:  # a function without a hash
            return write(key)
        if text is None:
            text = self._stacks[key] = write(key)
        return text


def of_graph_module(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata of a whole graph module: the user's entries under "custom"."""
    custom = meta.get("custom")
    return {"custom": dump_custom(custom, "graph metadata 'custom'")} if custom else {}


def _module_stack(items: Iterable[tuple[Any, Any]]) -> str:
    entries = []
    for key, value in items:
        if not isinstance(value, tuple) or len(value) != 2:
            raise SchemaError(f"metadata 'nn_module_stack': expected a path and a type for {key!r}, got {value!r}")
        path, kind = value
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        entries.append(ModuleEntry(str(key), _text(path, "nn_module_stack"), name))
    return dump_module_stack(entries)


def _source_stack(items: Iterable[tuple[Any, ...]]) -> str:
    return dump_source_fn_stack([SourceFn(str(item[0]), describe(item[1])) for item in items])


def _sources(sources: Iterable[Any] | None) -> str:
    """Return the text of from_node.

    Made by hand: programs hold tens of thousands of these, and `json.dumps` is four times slower.
    """
    if sources is None:
        return "null"
    return f"[{', '.join([_source(source) for source in sources if isinstance(source, NodeSource)])}]"


def _source(source: NodeSource) -> str:
    return (
        f'{{"name": {quote(source.name)}, "target": {quote(source.target)}, "graph_id": {source.graph_id}, '
        f'"pass_name": {quote(source.pass_name)}, "action": {quote(action_text(source))}, '
        f'"from_node": {_sources(source.from_node)}}}'
    )


def _text(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"metadata {key!r}: expected text, got {type(value).__name__}")
    return value


def _unicode(text: str) -> str:
    """Return text without lone surrogates, which paths on Linux may hold and UTF-8 may not: they are escaped."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
