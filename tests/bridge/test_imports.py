"""Modules of torch that `load`, `load_module` and `save` import: not its compiler, ONNX exporter or serializer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from tests.samples import corpus, sample

from pt2kit.bridge.torch_export_names import new_fake_mode, new_shape_env

HEAVY = ("torch._dynamo", "torch._inductor", "torch.onnx", "torch._export.serde.serialize", "torch.distributed.fsdp")
# Runs in a fresh process: prints the heavy modules that the files needed, beyond what `import torch` loads.
SCRIPT = """
import io, json, sys
import torch
before = set(sys.modules)
import pt2kit
found = {}
heavy = tuple(json.loads(sys.argv[1]))
for file in sys.argv[2:]:
    pt2kit.load_module(file)
    found[f"load_module {file}"] = sorted(set(sys.modules) - before)
    program = pt2kit.load(file)
    found[f"load {file}"] = sorted(set(sys.modules) - before)
    pt2kit.save(program, io.BytesIO())
    found[f"save {file}"] = sorted(set(sys.modules) - before)
print(json.dumps({what: [name for name in names if name.startswith(heavy)] for what, names in found.items()}))
"""


def test_no_heavy_modules() -> None:
    """Programs with symbols, guards, subgraphs, containers and numbers of the data load without torch's compiler."""
    files = [file for file in corpus("2.13.0", "2.9.1") if not file.name.startswith("custom_op")]
    assert len(files) > 20
    command = [sys.executable, "-c", SCRIPT, json.dumps(HEAVY), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    found = json.loads(done.stdout)
    assert len(found) == 3 * len(files)
    assert {what: names for what, names in found.items() if names} == {}


def test_shape_env_and_fake_mode() -> None:
    """Objects made without the compiler have the attributes that torch's constructors give."""
    ours = new_shape_env()
    theirs = type(ours)(assume_static_by_default=True)
    assert _plain(ours) == _plain(theirs)
    mode = new_fake_mode(ours)
    wanted = type(mode)(allow_fallback_kernels=False, allow_non_fake_inputs=True, shape_env=theirs)
    assert _plain(mode) == _plain(wanted)


def _plain(owner: object) -> dict[str, object]:
    """Return attributes; of objects that have no equality only the types."""
    plain = (bool, int, float, str, type(None), dict, list, set, tuple, torch.dtype)
    stacks = ("_stack_trace",)
    return {
        name: value if isinstance(value, plain) and name not in stacks else type(value)
        for name, value in vars(owner).items()
    }


@pytest.mark.parametrize("variable", ["TORCH_FAKE_TENSOR_DISPATCH_CACHE", "UNRELATED"])
def test_settings_of_the_user(variable: str) -> None:
    """The user can switch the cache of fake tensors off by the environment; then the compiler is imported."""
    code = (
        "import sys, pt2kit; program = pt2kit.load(sys.argv[1]); "
        "mode = next(n.meta['val'].fake_mode for n in program.graph.nodes if 'val' in n.meta); "
        "print(mode.cache_enabled, 'torch._dynamo.config' in sys.modules)"
    )
    file = sample("2.13.0", "mlp")
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, variable: "0"},
    )
    cached = variable != "TORCH_FAKE_TENSOR_DISPATCH_CACHE"
    assert done.stdout.split() == [str(cached), str(not cached)]
