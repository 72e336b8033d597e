"""Two live programs -> every difference between them, in words."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from typing import Any

import sympy
import torch
from tests.packages import bytes_of
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.exported_program import _get_shape_env
from torch.utils import _pytree as pytree

from pt2kit.bridge.torch_export_names import hints
from pt2kit.bridge.torch_names import guards_code, writes_origins

UNREAD = frozenset(() if writes_origins() else ("from_node",))
"""Metadata that the installed torch does not read, and pt2kit does."""
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def differences(got: ExportedProgram, want: ExportedProgram) -> list[str]:
    """Everything that differs; empty where the programs are the same."""
    return [
        *_modules(got.graph_module, want.graph_module, "graph"),
        *_plain(got.graph_module.meta, want.graph_module.meta, "graph_module.meta"),
        *_plain(got.graph_signature, want.graph_signature, "graph_signature"),
        *_plain(list(got.range_constraints.items()), list(want.range_constraints.items()), "range_constraints"),
        *_plain(got.module_call_graph, want.module_call_graph, "module_call_graph"),
        *_plain(got.verifiers, want.verifiers, "verifiers"),
        *_plain(guards_code(got), guards_code(want), "guards_code"),
        *_tensors(got.state_dict, want.state_dict, "state_dict"),
        *_tensors(got.constants, want.constants, "constants"),
        *_trees(got.example_inputs, want.example_inputs, "example_inputs"),
        *_shape_env(_get_shape_env(got.graph_module), _get_shape_env(want.graph_module)),
    ]


def _plain(got: Any, want: Any, where: str) -> Iterator[str]:
    if got != want:
        yield f"{where}: {got!r} is not {want!r}"


def _modules(got: fx.GraphModule, want: fx.GraphModule, where: str) -> Iterator[str]:
    yield from _plain(type(got).__name__, type(want).__name__, f"{where}: class")
    yield from _plain(got.code, want.code, f"{where}: code")
    yield from _nodes(got.graph, want.graph, where)
    children, wanted = (dict(module.named_children()) for module in (got, want))
    yield from _plain(list(children), list(wanted), f"{where}: children")
    for name in children.keys() & wanted.keys():
        yield from _modules(children[name], wanted[name], f"{where}/{name}")


def _nodes(got: fx.Graph, want: fx.Graph, where: str) -> Iterator[str]:
    yield from _plain([node.name for node in got.nodes], [node.name for node in want.nodes], f"{where}: node names")
    for a, b in zip(got.nodes, want.nodes, strict=False):
        place = f"{where}: {b.name}"
        yield from _plain((a.op, a.target, type(a.target)), (b.op, b.target, type(b.target)), place)
        yield from _plain(_args(a), _args(b), f"{place}: args")
        yield from _plain([user.name for user in a.users], [user.name for user in b.users], f"{place}: users")
        keys = [sorted(node.meta.keys() - UNREAD) for node in (a, b)]
        yield from _plain(keys[0], keys[1], f"{place}: meta keys")
        for key in a.meta.keys() & b.meta.keys():
            yield from _value(a.meta[key], b.meta[key], f"{place}: meta[{key!r}]")


def _args(node: fx.Node) -> str:
    return repr((node.args, dict(node.kwargs)))


def _value(got: Any, want: Any, where: str) -> Iterator[str]:
    """Compare descriptions of values: fake tensors, symbolic numbers, containers of them."""
    if type(got) is not type(want):
        yield f"{where}: a {type(got).__name__}, not a {type(want).__name__}"
    elif isinstance(want, torch.Tensor):
        yield from _tensor(got, want, where)
    elif isinstance(want, SYMBOLIC):
        yield from _plain(_symbolic(got), _symbolic(want), where)
    elif isinstance(want, (tuple, list)):
        yield from _plain(len(got), len(want), f"{where}: length")
        for index, (a, b) in enumerate(zip(got, want, strict=False)):
            yield from _value(a, b, f"{where}[{index}]")
    elif isinstance(want, dict):
        yield from _plain(list(got), list(want), f"{where}: keys")
        for key in got.keys() & want.keys():
            yield from _value(got[key], want[key], f"{where}[{key!r}]")
    elif not (isinstance(want, float) and want != want and got != got):
        yield from _plain(got, want, where)


def _trees(got: Any, want: Any, where: str) -> Iterator[str]:
    """Compare values of any registered container, structure and leaves."""
    leaves, spec = pytree.tree_flatten(got)
    wanted, wanted_spec = pytree.tree_flatten(want)
    yield from _plain(spec, wanted_spec, f"{where}: structure")
    yield from _value(leaves, wanted, where)


def _symbolic(value: Any) -> Any:
    """A symbolic number as what tells it apart: its expression, with assumptions, and its hint."""
    return (sympy.srepr(value.node.expr), value.node.expr, value.node.hint, value.node.pytype)


def _number(value: Any) -> Any:
    return _symbolic(value) if isinstance(value, SYMBOLIC) else value


def _tensor(got: torch.Tensor, want: torch.Tensor, where: str) -> Iterator[str]:
    for name in ("dtype", "device", "layout", "requires_grad", "is_leaf"):
        yield from _plain(getattr(got, name), getattr(want, name), f"{where}: {name}")
    yield from _plain([_number(n) for n in got.shape], [_number(n) for n in want.shape], f"{where}: shape")
    if got.layout is want.layout is torch.strided:
        yield from _plain([_number(n) for n in got.stride()], [_number(n) for n in want.stride()], f"{where}: stride")
    if isinstance(want, FakeTensor):
        yield from _plain(
            torch._C._dispatch_keys(got).raw_repr(), torch._C._dispatch_keys(want).raw_repr(), f"{where}: keys"
        )
        names = ("_fake_device", "constant", "pytype", "dispatch_keys", "real_tensor", "_is_param")
        for name in names:
            yield from _plain(getattr(got, name, None), getattr(want, name, None), f"{where}: {name}")
        if got.layout is not torch.strided or not _is_zero(got.storage_offset()):
            return  # torch's reader leaves the offset out
        nbytes = [_number(tensor.untyped_storage().nbytes()) for tensor in (got, want)]
        yield from _plain(nbytes[0], nbytes[1], f"{where}: storage")
    elif not _equal(got, want):
        yield f"{where}: other numbers"


def _is_zero(number: Any) -> bool:
    return type(number) is int and number == 0


def _equal(got: torch.Tensor, want: torch.Tensor) -> bool:
    if got.layout is not torch.strided or got.device.type == "meta":
        return got.shape == want.shape
    bits = [tensor.detach().contiguous().flatten().view(torch.uint8) for tensor in (got, want) if tensor.numel()]
    return len(bits) == 0 or (len(bits) == 2 and torch.equal(*bits))


def _tensors(got: dict[str, Any], want: dict[str, Any], where: str) -> Iterator[str]:
    """Compare named tensors, and which of them lie in one storage where."""
    yield from _plain(list(got), list(want), f"{where}: names")
    for name in got.keys() & want.keys():
        yield from _value(got[name], want[name], f"{where}.{name}")
    yield from _plain(_aliases(got), _aliases(want), f"{where}: aliases")


def _aliases(tensors: dict[str, Any]) -> dict[str, Any]:
    first: dict[int, str] = {}
    found = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and tensor.numel():
            pointer = tensor.untyped_storage()._cdata
            found[name] = (first.setdefault(pointer, name), tensor.storage_offset(), tensor.untyped_storage().nbytes())
    return found


@functools.cache
def torch_keeps_expressions() -> bool:
    """Return whether the installed torch's reader enters example values of expressions, not only of symbols."""

    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, x])

    sizes = {"x": {0: torch.export.Dim.AUTO}}
    data = bytes_of(torch.export.save, torch.export.export(Twice(), (torch.ones(5),), dynamic_shapes=sizes))
    return any(not key.is_Symbol for key in hints(_get_shape_env(torch.export.load(io.BytesIO(data)).graph_module)))


def _shape_env(got: Any, want: Any) -> Iterator[str]:
    if want is None or got is None:
        yield from _plain(got is None, want is None, "shape env")
        return
    examples = [hints(env) for env in (got, want)]
    if not torch_keeps_expressions():  # their values follow from those of their symbols
        examples = [{key: value for key, value in known.items() if key.is_Symbol} for known in examples]
    yield from _plain(examples[0], examples[1], "shape env: example values")
    for name in ("var_to_range", "replacements", "size_like", "divisible"):
        yield from _plain(getattr(got, name), getattr(want, name), f"shape env: {name}")
    for name in ("unbacked_symint_counter", "unbacked_symfloat_counter"):
        # iterators up to 2.10, whose text says the next number
        yield from _plain(repr(getattr(got, name)), repr(getattr(want, name)), f"shape env: {name}")
    yield from _plain(set(got.var_to_stack), set(want.var_to_stack), "shape env: var_to_stack")
    yield from _plain([str(g.expr) for g in got.guards], [str(g.expr) for g in want.guards], "shape env: guards")
    asserts = [
        {str(symbol): [str(item.expr) for item in items] for symbol, items in env.deferred_runtime_asserts.items()}
        for env in (got, want)
    ]
    yield from _plain(asserts[0], asserts[1], "shape env: deferred_runtime_asserts")
