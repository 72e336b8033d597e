"""The source of a loaded program is written on first access, and is the source that torch would have written."""

from __future__ import annotations

import copy
import gc
import inspect
import io
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.threads import in_threads
from torch.fx import GraphModule

import pt2kit

CORPUS = Path("tests/data/corpus/2.13.0")
FILE = CORPUS / "dynamic_batch.pt2"
NESTED = CORPUS / "cond.pt2"


def arguments(program: torch.export.ExportedProgram) -> list[Any]:
    """Return the graph's operands: weights and example inputs."""
    args, _ = program.example_inputs
    return [*program.state_dict.values(), *args]


def packaged(module: GraphModule) -> GraphModule:
    """A module after it went through a torch package."""
    data = io.BytesIO()
    with torch.package.PackageExporter(data) as exporter:
        exporter.extern("**")
        exporter.save_pickle("package", "module.pkl", module)
    data.seek(0)
    loaded: GraphModule = torch.package.PackageImporter(data).load_pickle("package", "module.pkl")
    return loaded


def outcome(look: str, program: torch.export.ExportedProgram) -> str:
    """Return the result of a look, or the error if torch cannot trace a graph with a condition."""
    try:
        return str(LOOKS[look](program.graph_module, arguments(program)))
    except (AssertionError, TypeError, RuntimeError) as error:
        assert look in ("pickle", "package", "trace", "export"), error
        return f"{type(error).__name__}: {error}"


def is_written(module: GraphModule) -> bool:
    """Return whether a module has its source already."""
    return "_code" in vars(module)


LOOKS: dict[str, Callable[[GraphModule, list[Any]], Any]] = {
    "code": lambda module, args: module.code,
    "text": lambda module, args: str(module),
    "call": lambda module, args: module(*args)[0].tolist(),
    "forward": lambda module, args: module.forward(*args)[0].tolist(),
    "of the class": lambda module, args: inspect.signature(type(module).forward),
    "signature": lambda module, args: inspect.signature(module.forward),
    "members": lambda module, args: [name for name, _ in inspect.getmembers(type(module)) if name == "forward"],
    "pickle": lambda module, args: pickle.loads(pickle.dumps(module)).code,
    "package": lambda module, args: packaged(module).code,
    "copy": lambda module, args: copy.copy(module).code,
    "deep copy": lambda module, args: copy.deepcopy(module).code,
    "trace": lambda module, args: torch.fx.symbolic_trace(module).code,
    "transform": lambda module, args: torch.fx.Transformer(module).transform().code,
    "readable": lambda module, args: module.print_readable(print_output=False),
    "compile": lambda module, args: torch.compile(module, backend="eager", fullgraph=True)(*args)[0].tolist(),
    "export": lambda module, args: torch.export.export(module, tuple(args)).graph_module.code,
    "strict export": lambda module, args: torch.export.export(module, tuple(args), strict=True).graph_module.code,
}
"""Everything that makes use of a module's source."""


@pytest.mark.parametrize("file", [FILE, NESTED], ids=lambda file: file.stem)
@pytest.mark.parametrize("look", LOOKS)
def test_looks_are_as_at_torchs_own(look: str, file: Path) -> None:
    ours, theirs = pt2kit.load(file), torch.export.load(file)
    assert not is_written(ours.graph_module)
    assert outcome(look, ours) == outcome(look, theirs)


def test_modules_inside_are_written() -> None:
    ours, theirs = pt2kit.load(NESTED).graph_module, torch.export.load(NESTED).graph_module
    inner = [name for name, each in theirs.named_modules() if isinstance(each, GraphModule) and name]
    assert inner
    for name in inner:
        assert is_written(ours.get_submodule(name))
        assert ours.get_submodule(name).code == theirs.get_submodule(name).code


def test_nothing_that_loading_or_module_does_writes_it() -> None:
    program = pt2kit.load(FILE)
    program.module()(*program.example_inputs[0])
    copy.deepcopy(program)
    program.run_decompositions()
    assert str(program)
    torch.export.save(program, io.BytesIO())
    assert not is_written(program.graph_module)


def test_an_edit_is_seen() -> None:
    program = pt2kit.load(FILE)
    (relu,) = (node for node in program.graph.nodes if node.target is torch.ops.aten.relu.default)
    relu.target = torch.ops.aten.sigmoid.default
    program.graph_module.recompile()
    assert "sigmoid" in program.graph_module.code
    args = arguments(program)
    torch.testing.assert_close(program.graph_module(*args)[0], program.module()(*program.example_inputs[0]))


def test_threads_may_look_at_once() -> None:
    module = (program := pt2kit.load(FILE)).graph_module
    args = arguments(program)
    results = in_threads(lambda _: module(*args)[0].tolist(), range(8))
    assert all(result == results[0] for result in results)


def test_a_class_does_not_keep_its_module() -> None:
    program = pt2kit.load(FILE)
    kind, gone = type(program.graph_module), weakref.ref(program.graph_module)
    del program
    gc.collect()
    assert gone() is None
    with pytest.raises(AttributeError, match="forward"):
        kind.forward  # noqa: B018


def test_module_is_torchs() -> None:
    """`module()` gives the code, signature, guards and hooks that it gives for torch's own program, and is written."""
    checked = 0
    for file in sorted(CORPUS.glob("*.pt2")):
        try:
            ours, theirs = pt2kit.load(file), torch.export.load(file)
        except (pt2kit.Pt2Error, TypeError):  # operators that are not registered here; two programs in a file
            continue
        for check_guards in (True, False):
            got, want = (program.module(check_guards=check_guards) for program in (ours, theirs))
            assert "python_code" not in vars(got.graph), file
            assert _described(got) == _described(want), file
            checked += 1
    assert checked > 60


def _described(module: GraphModule) -> dict[str, Any]:
    guards = getattr(module, "_guards_fn", None)
    return {
        "kind": type(module).__name__,
        "code": module.code,
        "lines": vars(module)["_lineno_map"],
        "signature": str(inspect.signature(module.forward)),
        "guards": None if guards is None else str(getattr(guards, "code", guards)),
        "hooks": [len(module._forward_hooks), len(module._forward_pre_hooks)],
        "nodes": [(node.name, node.op, str(node.target)) for node in module.graph.nodes],
    }


def test_module_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the four sources that `module()` asks for, one is written in full."""
    program = pt2kit.load(FILE)
    written = []
    whole = torch.fx.Graph.python_code

    def count(graph: torch.fx.Graph, *args: Any, **options: Any) -> Any:
        written.append(len(graph.nodes))
        return whole(graph, *args, **options)

    monkeypatch.setattr(torch.fx.Graph, "python_code", count)
    module = program.module()
    nodes = len(module.graph.nodes)
    assert [size for size in written if size == nodes] == [nodes]
    assert torch.equal(module(*program.example_inputs[0]), torch.export.load(FILE).module()(*program.example_inputs[0]))


def test_copies_are_plain() -> None:
    """Copies of the graph that others make are torch's own."""
    graph = copy.deepcopy(pt2kit.load(FILE).graph)
    assert not {"python_code", "__deepcopy__"} & vars(graph).keys()
    assert copy.deepcopy(pt2kit.load(FILE).graph_module).code == torch.export.load(FILE).graph_module.code


def test_held_source_is_written_for_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a release of torch ends `module()` early, calling the resulting module writes the source."""
    program = pt2kit.load(FILE)

    def _unlift_exported_program_lifted_states() -> GraphModule:
        return GraphModule(program.graph_module, copy.deepcopy(program.graph))

    names = {**globals(), "__name__": "torch.export._unlift", "program": program}
    early = FunctionType(
        _unlift_exported_program_lifted_states.__code__,
        names,
        closure=_unlift_exported_program_lifted_states.__closure__,
    )
    module = early()
    assert "python_code" in vars(module.graph)
    assert torch.equal(module(*arguments(program))[0], program.graph_module(*arguments(program))[0])
    assert module.code == program.graph_module.code
