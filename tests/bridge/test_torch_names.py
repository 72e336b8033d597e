"""torch's private and moving names: in two files, each there on the torch that is installed, and what stands in."""

from __future__ import annotations

import ast
import importlib
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from tools.names_in_release import NAMES, TorchName, is_there
from torch.utils import _pytree as pytree

from pt2kit.bridge import torch_export_names, torch_names
from pt2kit.operators.higher_order import FUNCTIONS
from pt2kit.tensors.pickled import FAKE_TENSOR

BRIDGE = Path(torch_names.__file__).parent
FILES = (Path(torch_names.__file__), Path(torch_export_names.__file__))
OTHERS = sorted(path for path in BRIDGE.rglob("*.py") if path not in FILES)
MOVING = {"torch.fx.experimental", "torch.fx.traceback", "torch.fx.immutable_collections", "torch.export.pt2_archive"}
# Attributes without an underscore that were renamed or changed; nothing else of these names is in the bridge.
ATTRIBUTES = {
    "backed_var_to_val",
    "var_to_val",
    "var_to_stack",
    "unbacked_symint_counter",
    "unbacked_symfloat_counter",
    "treespec_leaf",
    "children_specs",
}
# Private attributes that are no torch's: of Python, of named tuples, and of the schema's enum.
OF_OTHERS = {"_fields", "_field_defaults", "_mkldnn", "_proto_cls"}


def _is_private(path: str) -> bool:
    parts = path.split(".")
    return any(part.startswith("_") and not part.startswith("__") for part in parts)


def moving_names(source: str) -> list[str]:
    """The private and moving names of torch that a file says itself."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [f"{base}{alias.name}" for alias in node.names]
            found += [
                name
                for name in names
                if name.split(".")[0] == "torch" and (_is_private(name) or any(name.startswith(m) for m in MOVING))
            ]
        elif isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            private = _is_private(node.attr) and node.attr not in OF_OTHERS and not own
            operator = text.startswith("torch.ops.aten.")  # the format has those names too
            if (private and not operator) or node.attr in ATTRIBUTES or any(text.startswith(f"{m}.") for m in MOVING):
                found.append(text)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            named = node.args[1] if len(node.args) > 1 else None
            if isinstance(named, ast.Constant) and named.value in ATTRIBUTES:
                found.append(f"{ast.unparse(node.args[0])}.{named.value}")
    return found


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(BRIDGE)))
def test_two_files(path: Path) -> None:
    """No other file of the bridge says such a name."""
    found = moving_names(path.read_text())
    assert found == [], f"these belong into torch_names.py or torch_export_names.py: {found}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from torch._guards import SLoc", ["torch._guards.SLoc"]),
        ("from torch.utils import _pytree", ["torch.utils._pytree"]),
        ("import torch\ntorch._C._nn.gelu", ["torch._C._nn.gelu", "torch._C._nn", "torch._C"]),
        ("node._rename('a')", ["node._rename"]),
        ("env.backed_var_to_val[x] = 1", ["env.backed_var_to_val"]),
        ("from torch.fx.traceback import NodeSource", ["torch.fx.traceback.NodeSource"]),
        ("getattr(pytree, 'treespec_leaf')", ["pytree.treespec_leaf"]),
        ("import torch\ntorch.ops.aten.add.default\nself._own", []),
    ],
)
def test_what_counts(source: str, found: list[str]) -> None:
    """Imports, attributes and names in `getattr` are seen."""
    assert [text for text in moving_names(source) if text != "torch._C._nn.gelu"] == [
        text for text in found if text != "torch._C._nn.gelu"
    ]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.path)
def test_names_are_there(name: TorchName) -> None:
    """The installed torch has each name, or the table says what stands in for it."""
    there = is_there(name.path)
    assert there or name.instead, f"torch {torch.__version__} lacks torch.{name.path}: {name.gives}"


def test_every_name_is_listed() -> None:
    """The table lists all names that the files use of torch, and no others."""
    source = "\n".join(path.read_text() for path in FILES)
    listed = {part for name in NAMES for part in name.path.split(".")}
    said = {text.rpartition(".")[2] for text in moving_names(source)}
    assert said - listed <= ITS_OWN
    code = source + " ".join((*FUNCTIONS, FAKE_TENSOR))  # those are in files; `torch_names.find_function` looks them up
    last = {name.path.rpartition(".")[2] for name in NAMES}
    assert {name for name in last if name not in code and not name.startswith(PUT_TOGETHER)} == set()


# Beginnings of names that the code puts together, or that are found in a table of functions.
PUT_TOGETHER = ("_sym_", "unbacked_", "BitwiseFn_", "_mkldnn")
# Fallbacks for names of the table, and attributes that torch.compile looks for on functions.
ITS_OWN = {"children_specs", "var_to_val", "_torchdynamo_disable", "_torchdynamo_disable_msg"}


def test_missing_names() -> None:
    """A name that only some releases have is None in the others."""
    assert torch_names.optional("torch._no_such_module", "name") is None
    assert torch_names.optional("torch", "_no_such_name") is None
    assert torch_names.optional("torch", "ones") is torch.ones


def test_counters() -> None:
    """New unbacked symbols begin above those of the program, whether the counter is a number or an iterator."""
    for counter in (0, itertools.count()):
        env = torch_export_names.ShapeEnv()
        env.unbacked_symint_counter = counter
        torch_export_names.count_from(env, "symint", 5)
        torch_export_names.count_from(env, "symint", 3)
        made = env.unbacked_symint_counter
        assert (made if isinstance(made, int) else next(made)) == 5


def test_tree_specs() -> None:
    """Leaves and children, in the classes of the installed torch."""
    spec = pytree.tree_structure([1, (2,)])
    assert torch_names.child_specs(spec) == [torch_names.leaf_spec(), pytree.tree_structure((2,))]


def test_hints() -> None:
    """The table of example values is the ShapeEnv's own."""
    env = torch_export_names.ShapeEnv()
    torch_export_names.hints(env)["a"] = 3
    assert torch_export_names.hints(env) == {"a": 3}


def test_storages() -> None:
    """Two fake tensors from one template have storages of their own."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    elem = torch.empty(2, 3, device="meta")
    mode = FakeTensorMode()
    first = torch_export_names.make_fake(mode, elem, torch.device("cpu"))
    made = [
        torch_export_names.fake_over(
            elem,
            torch.empty(24, dtype=torch.uint8, device="meta"),
            torch.device("cpu"),
            grad,
            dict(first.__dict__),
        )
        for grad in (False, True)
    ]
    assert [tensor.requires_grad for tensor in made] == [False, True]
    assert len({torch_names.storage_identity(tensor.untyped_storage()) for tensor in made}) == 2
    assert {(tensor.device.type, tuple(tensor.shape)) for tensor in made} == {("cpu", (2, 3))}


# Files in which TypeErrors or AttributeErrors are the file's, the caller's or Python's: text of expressions that sympy
# refuses, contexts of registered containers, names in `trust=`, objects that cannot be pickled, arithmetic of guards.
THEIRS = {
    "against_torch.py",
    "read/tensors.py",
    "read/pickled_values.py",
    "read/treespecs.py",
    "run/conditions.py",
    "save.py",
    "write/arguments.py",
    "write/scope.py",
    "write/payloads.py",
    "write/program.py",
    "write/values.py",
}


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(BRIDGE)))
def test_mistakes_about_torch_stay_what_they_are(path: Path) -> None:
    """A TypeError or an AttributeError of torch is never caught, so it is never told as a fault of a file."""
    caught = [
        ast.unparse(node.type)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and node.type is not None
    ]
    found = [text for text in caught if "TypeError" in text or "AttributeError" in text]
    assert str(path.relative_to(BRIDGE)) in THEIRS or found == []


@pytest.mark.parametrize("error", [TypeError("got an unexpected keyword argument"), AttributeError("no such name")])
def test_a_torch_that_changed(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """If torch expects other arguments than we pass, `load` raises torch's own error."""
    from tests.samples import sample

    from pt2kit.bridge.load import load
    from pt2kit.bridge.read import values

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error

    loading = importlib.import_module("pt2kit.bridge.load")
    for module, name in ((values, "make_fake"), (loading, "ExportedProgram")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, refuse)
            with pytest.raises(type(error), match=str(error)):
                load(sample("2.13.0", "mlp"))
