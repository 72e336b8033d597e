"""torch reads what `pt2kit.write` writes, and a package holds what torch finds in the file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from tests import samples
from tests.bridge import recorded
from tests.narrow import instance, present
from tests.packages import bytes_of
from torch.export.pt2_archive._package import load_pt2

import pt2kit
from pt2kit import schema
from pt2kit.bridge.operators import LAYOUTS
from pt2kit.errors import Pt2Error
from pt2kit.tensors import TensorView

WITHOUT_CUSTOM_OPERATORS = [
    path
    for path in recorded.readable(samples.corpus("2.9.1", "2.13.0"))
    if not path.stem.startswith(("custom_op", "namedtuple_io", "kwargs_and_nested_inputs"))
]


def _load(data: bytes) -> Any:
    """All programs of a file as torch loads them, or the error it raises."""
    try:
        return load_pt2(io.BytesIO(data)).exported_programs
    except Exception as error:  # noqa: BLE001 - torch raises many kinds, and the two loads are compared
        return type(error)


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and _bits(left) == _bits(right)


def _bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


@pytest.mark.parametrize("path", WITHOUT_CUSTOM_OPERATORS, ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """A package holds the weights, constants and sample inputs that torch finds, and torch reads what is written."""
    programs = _load(path.read_bytes())
    with pt2kit.open(path) as package:
        written = _load(bytes_of(pt2kit.write, package, programs=dict(package.programs)))
        if isinstance(programs, type):
            assert written is programs, "torch refuses both files alike"
            return
        assert written.keys() == programs.keys() == package.programs.keys()
        for name, program in programs.items():
            _assert_same_program(written[name], program)
            _assert_weights(package.weights(name), program.state_dict)
            for key, tensor in program.constants.items():
                if isinstance(tensor, torch.Tensor):
                    assert instance(TensorView, package.constants(name)[key]).tobytes() == _bits(tensor)
            _assert_same(package.sample_inputs(name), program.example_inputs)


def _assert_same_program(found: Any, expected: Any) -> None:
    """The same code, signature and weights, bit for bit."""
    assert found.graph_module.code == expected.graph_module.code
    assert found.graph_signature == expected.graph_signature
    assert found.state_dict.keys() == expected.state_dict.keys()
    assert all(_same_bits(found.state_dict[key], value) for key, value in expected.state_dict.items())


def _assert_weights(found: Mapping[str, Any], expected: Mapping[str, torch.Tensor]) -> None:
    """Every weight has the numbers, strides and flags that torch gives it."""
    assert set(found) == set(expected)
    for key, tensor in expected.items():
        view = found[key]
        assert (view.sizes, view.strides) == (tuple(tensor.shape), tensor.stride())
        assert (view.is_param, view.requires_grad) == (isinstance(tensor, torch.nn.Parameter), tensor.requires_grad)
        assert LAYOUTS[view.layout] is tensor.layout
        assert view.tobytes() == _bits(tensor)


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert found.sizes == tuple(expected.shape)
        assert found.tobytes() == _bits(expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            _assert_same(found[key], value)
    elif isinstance(expected, list | tuple):
        assert type(found) is type(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
    else:
        assert found == expected


def test_a_changed_program_runs() -> None:
    """A program that was changed without torch and written runs in torch with the change."""
    path = samples.sample("2.13.0", "mlp")
    with pt2kit.open(path) as package:
        program = package.programs["model"]
        graph = program.graph_module.graph
        relu = next(node for node in graph.nodes if node.target == "torch.ops.aten.relu.default")
        nodes = [replace(node, target="torch.ops.aten.neg.default") if node is relu else node for node in graph.nodes]
        module = replace(program.graph_module, graph=replace(graph, nodes=nodes))
        file = bytes_of(pt2kit.write, package, programs={"model": replace(program, graph_module=module)})
        (example, *_), _ = present(package.sample_inputs())
        value = torch.from_numpy(np.array(example.numpy()))
    old = torch.export.load(io.BytesIO(path.read_bytes())).module()
    new = torch.export.load(io.BytesIO(file)).module()
    assert not torch.equal(old(value), new(value))


def test_torch_reads_a_newer_minor_as_it_reads_the_original() -> None:
    """A minor version that neither knows, with a key that both pass over, goes through rewriting and loads in torch."""
    from tests.packages import edited

    def change(tree: Any) -> None:
        tree["schema_version"]["minor"] = schema.CURRENT.pair[1] + 1
        tree["novelty"] = 1

    data = edited(samples.sample("2.13.0", "mlp"), change)
    with pt2kit.open(data) as package:
        file = bytes_of(pt2kit.write, package)
        assert package.unknown() == ("models/model.json: $.novelty",)
    old, new = _load(data), _load(file)
    if isinstance(old, type):
        assert old is new
    else:
        assert new["model"].graph_module.code == old["model"].graph_module.code


def test_a_refused_file_is_refused_by_class() -> None:
    """The errors that reading raises are one family."""
    with pytest.raises(Pt2Error, match=r"expected a \.pt2 file, got a text"):
        pt2kit.open(b"PK")
