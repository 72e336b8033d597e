"""The module call graph."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree
from tests.narrow import present
from torch.export.exported_program import ModuleCallEntry as LiveEntry
from torch.export.exported_program import ModuleCallSignature
from torch.export.graph_signature import TensorArgument as LiveTensor
from torch.export.graph_signature import TokenArgument

from pt2kit.bridge.write.program import TreeSpecs, write_graph, write_module_calls
from pt2kit.bridge.write.scope import Scope, Shared
from pt2kit.errors import UnsupportedError
from pt2kit.schema import Argument, ModuleCallEntry, TensorArgument


def scope(**renamed):
    return Scope(torch.nn.Module(), Shared(write_graph), renamed=renamed)


def signature(arg, names=("x",)):
    spec = pytree.tree_structure((1,))
    return ModuleCallSignature([arg], [arg], spec, spec, list(names) if names else names)


def test_entries():
    """Entries with and without a signature; results that go by another name are renamed."""
    entries = [
        LiveEntry("", signature(LiveTensor("t"))),
        LiveEntry("a.b", None),
        LiveEntry("c", signature(LiveTensor("u"), [])),
    ]
    root, plain, last = write_module_calls(entries, TreeSpecs(), scope(t="first"))
    assert plain == ModuleCallEntry("a.b", None)
    whole = present(root.signature)
    assert whole.inputs == whole.outputs == [Argument(as_tensor=TensorArgument("first"))]
    assert whole.forward_arg_names == ["x"]
    assert whole.in_spec == pytree.treespec_dumps(pytree.tree_structure((1,)))
    assert present(last.signature).forward_arg_names is None


@pytest.mark.parametrize(("fqn", "place"), [("", "the root"), ("a.b", r"a\.b")])
def test_place(fqn, place):
    """An error names the module."""
    with pytest.raises(UnsupportedError, match=rf"^module call graph: {place}: expected a tensor, a number"):
        write_module_calls([LiveEntry(fqn, signature(TokenArgument("t")))], TreeSpecs(), scope())
