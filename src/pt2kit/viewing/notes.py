"""Labels of nodes: the important arguments of an operator (kernel, stride, groups), keys of inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pt2kit import treespec
from pt2kit.errors import Pt2Error
from pt2kit.operators.table import find
from pt2kit.schema import Argument, ExportedProgram, Node
from pt2kit.schema.names import ATEN_OPS
from pt2kit.text.values import ValueTexts, argument_text
from pt2kit.treespec.containers import leaf_keys

UNBOUNDED: Final = 1 << 62
"""Numbers from here on stand for "to the end", as in `slice`."""

_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_SHORT: Final[Mapping[str, str]] = {"stride": "s", "dilation": "d", "groups": "g"}
_PLAIN: Final = frozenset({"kernel_size", "output_size", "other", "dtype", "approximate", "exponent"})
_OPERANDS: Final = ("other", "exponent", "dtype")
"""Arguments that are shown for every operator if they are constants."""

_IN_PANEL: Final = frozenset({"padding", "normalized_shape", "size", "shape", "train", "training", "batch_first"})
"""Arguments that the panel of a node shows and its label does not: shapes say them, or they are details."""

_POSITIONS: Final = frozenset({"dim", "dims", "axes", "pad", "shifts", "split_sizes"})
"""Lists in which each number is something by itself, not a factor of a size."""

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
        text = _text(argument, "," if name in _POSITIONS else _TIMES) if argument is not None else ""
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
            found.append(text if name in _PLAIN or name == _operator(node) else f"{name} {text}")
    return " ".join(found)


def _kernel(node: Node, by_name: Mapping[str, Argument], sizes: Mapping[str, Any], texts: ValueTexts) -> Iterator[str]:
    """Yield what an operator's weight or query says about it: the kernel size, the number of heads."""
    name = _operator(node)
    key, first = ("query", 1) if "attention" in name else ("weight", 2) if "conv" in name else ("", 0)
    meta = sizes.get(getattr(getattr(by_name.get(key), "value", None), "name", ""))
    if meta is None or len(meta.sizes) <= first:
        return
    if key == "weight":
        yield _TIMES.join(map(texts.size, meta.sizes[first:]))
    elif len(meta.sizes) == 4:
        yield f"{texts.size(meta.sizes[first])} heads"


def _operator(node: Node) -> str:
    """Return the name of an operator of `aten` without its overload."""
    return node.target.removeprefix(ATEN_OPS).partition(".")[0]


def _text(argument: Argument, between: str = _TIMES) -> str:
    """Return a constant argument as short text, `between` the numbers of a list; "" for tensors and other values."""
    value = argument.value
    if argument.type in ("as_int", "as_bool"):
        return "" if abs(value) >= UNBOUNDED else str(value)
    if argument.type == "as_float":
        return f"{float(value):.4g}"
    if argument.type in ("as_ints", "as_floats"):
        return between.join(f"{float(item):.4g}" for item in value[:8])
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
    fields = {key: row.field_names for key, row in module.treespec_namedtuple_fields.items()}
    try:
        outer = treespec.parse(root.in_spec, "in_spec").children
        arguments = [child for part in outer for child in part.children]
        names = list(root.forward_arg_names or ())
        labels = [*names, *(f"argument {number}" for number in range(len(names), len(arguments)))]
        inputs = [path for child, name in zip(arguments, labels, strict=False) for path in _leaves(child, name, fields)]
        outputs = _leaves(treespec.parse(root.out_spec, "out_spec"), "output", fields)
        return inputs, [path.removeprefix("output.") for path in outputs]
    except Pt2Error:
        return [], []


def _leaves(spec: treespec.TreeSpec, name: str, fields: Mapping[str, list[str]]) -> list[str]:
    """Return the path of each leaf of a tree, such as `cache.key_cache[0]`."""
    return [
        name + "".join(f".{key.value}" if isinstance(key.value, str) else str(key) for key in keys)
        for keys in leaf_keys(spec, name, fields)
    ]
