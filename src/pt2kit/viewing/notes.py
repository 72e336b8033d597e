"""Labels of nodes: the important arguments of an operator (kernel, stride, groups), keys of inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pt2kit import treespec
from pt2kit.errors import Pt2Error
from pt2kit.operators.table import find
from pt2kit.schema import Argument, ExportedProgram, Node
from pt2kit.text.arguments import argument_text
from pt2kit.text.values import ValueTexts

UNBOUNDED: Final = 1 << 62
"""Numbers from here on stand for "to the end", as in `slice`."""

_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_SHORT: Final[Mapping[str, str]] = {"stride": "s", "dilation": "d", "groups": "g"}
_PLAIN: Final = frozenset({"kernel_size", "output_size", "other", "dtype", "approximate", "exponent"})
_OPERANDS: Final = ("other", "exponent", "dtype")
"""Arguments that are shown for every operator if they are constants."""

_IN_PANEL: Final = frozenset({"padding", "normalized_shape", "size", "shape", "train", "training"})
"""Arguments that the panel of a node shows and its label does not: shapes say them, or they are details."""

_SKIPPED: Final = frozenset({"None", "False", "'none'"})


def node_note(node: Node, sizes: Mapping[str, Any], texts: ValueTexts) -> str:
    """Return the important arguments of a call as one short text; "" if it has none.

    Args:
        node: the call.
        sizes: value -> its `TensorMeta`.
        texts: formats symbolic sizes.
    """
    row = find(node.target)
    by_name = {named.name: named.arg for named in node.inputs}
    found = [*_kernel(node, by_name, sizes, texts)]
    for name in dict.fromkeys((*(row.shown if row is not None else ()), *_OPERANDS)):
        argument = by_name.get(name)
        text = _text(argument) if argument is not None else ""
        if name in _IN_PANEL:
            continue
        if name in _SHORT:
            parts = set(text.split(_TIMES))
            found += [f"{_SHORT[name]}{parts.pop() if len(parts) == 1 else text}"] if text.strip(f"1{_TIMES}") else []
        elif text in _SKIPPED or not text:
            continue
        elif text == "True":
            found.append(name.removeprefix("is_"))
        else:
            found.append(text if name in _PLAIN else f"{name} {text}")
    return " ".join(found)


def _kernel(node: Node, by_name: Mapping[str, Argument], sizes: Mapping[str, Any], texts: ValueTexts) -> Iterator[str]:
    """Yield what an operator's weight or query says about it: the kernel size, the number of heads."""
    name = node.target.removeprefix("torch.ops.aten.").partition(".")[0]
    key, first = ("query", 1) if "attention" in name else ("weight", 2) if "conv" in name else ("", 0)
    meta = sizes.get(getattr(getattr(by_name.get(key), "value", None), "name", ""))
    if meta is None or len(meta.sizes) <= first:
        return
    if key == "weight":
        yield _TIMES.join(map(texts.size, meta.sizes[first:]))
    elif len(meta.sizes) == 4:
        yield f"{texts.size(meta.sizes[first])} heads"


def _text(argument: Argument) -> str:
    """Return a constant argument as short text; "" for tensors and other values."""
    value = argument.value
    if argument.type in ("as_int", "as_bool"):
        return "" if abs(value) >= UNBOUNDED else str(value)
    if argument.type == "as_float":
        return f"{float(value):g}"
    if argument.type in ("as_ints", "as_floats"):
        return _TIMES.join(f"{float(item):g}" for item in value[:8])
    if argument.type in ("as_string", "as_scalar_type"):
        return argument_text(argument).removeprefix("dtype.")
    return ""


def leaf_names(program: ExportedProgram) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and of the outputs that a caller sees, by their container keys.

    For example `past_key_values[3].key`, `logits`. Empty lists if the program's tree specs cannot be read.
    """
    module = program.graph_module
    root = next((entry.signature for entry in module.module_call_graph if entry.fqn == ""), None)
    if root is None:
        return [], []
    try:
        outer = treespec.parse(root.in_spec, "in_spec").children
        outputs = [name or "output" for name in _keys(treespec.parse(root.out_spec, "out_spec"), "output")]
    except Pt2Error:
        return [], []
    arguments = [child for part in outer for child in part.children]
    names = list(root.forward_arg_names or ())
    labels = [*names, *(f"argument {number}" for number in range(len(names), len(arguments)))]
    return [key for child, name in zip(arguments, labels, strict=False) for key in _keys(child, name)], outputs


def _keys(spec: treespec.TreeSpec, start: str) -> Iterator[str]:
    """Yield the path of each leaf: `name[0].key`; a dict at the top gives its keys alone."""
    stack = [(spec, "" if _fields(spec) and start == "output" else start)]
    while stack:
        node, path = stack.pop()
        if node.is_leaf:
            yield path
            continue
        fields = _fields(node) or [f"[{number}]" for number in range(len(node.children))]
        children = [
            (child, f"{path}{key}" if key.startswith("[") else f"{path}.{key}" if path else key)
            for child, key in zip(node.children, fields, strict=True)
        ]
        stack += reversed(children)


def _fields(spec: treespec.TreeSpec) -> list[str]:
    """Return the keys of a mapping or class with named fields; [] for sequences."""
    try:
        keys: Any = treespec.inner_context(spec)
    except Pt2Error:
        return []
    if isinstance(keys, list) and keys and isinstance(keys[0], list):
        keys = keys[0]
    if not isinstance(keys, list) or len(keys) != len(spec.children) or not all(isinstance(key, str) for key in keys):
        return []
    return keys
