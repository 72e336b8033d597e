"""Calls of triton kernels, with stubs of compiled kernels, because triton compiles on a GPU only."""

from __future__ import annotations

from types import SimpleNamespace as Some

import pytest
import torch
from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_functional
from torch.fx import Graph

from pt2kit.bridge.write import nodes
from pt2kit.errors import UnsupportedError

T = torch.ones(2)


def parameter(name, constant=False, annotation=""):
    return Some(name=name, is_constexpr=constant, annotation=annotation)


def compiled(**settings):
    source = Some(signature={"x": "*fp32", "n": "i32"})
    return Some(metadata=Some(**{"hash": "abc", "num_warps": 4, "shared": False, **settings}), src=source)


def kernel(cache):
    def add_kernel():
        """The function that was compiled."""

    return Some(
        fn=add_kernel,
        params=[parameter("x"), parameter("out"), parameter("n"), parameter("BLOCK", True)],
        arg_names=["x", "out", "n", "BLOCK"],
        constexprs=[3],
        device_caches={0: (cache, None)},
    )


def call(**more):
    graph = Graph()
    x = graph.placeholder("x")
    given = {"x": x, "out": x, "n": 8, "BLOCK": 16, **more}
    kwargs = {"kernel_idx": 0, "constant_args_idx": 0, "grid": [(1, 2, 3)], "kwargs": given, "tensors_to_clone": []}
    node = graph.call_function(triton_kernel_wrapper_functional, (), kwargs)
    node.meta["val"] = {"out": T}
    return node


def test_call():
    """Compiled-in constants are left out; the compiled kernel is named by its hash and carries its settings."""
    positional, keywords = nodes.describe_call(kernel({"key": compiled(shared=128)}), (), call())
    assert list(positional) == ["x", "out", "n"]
    assert keywords == {
        "name": "add_kernel_abc",
        "grid": (1, 2, 3),
        "output_indices": [1],
        "num_warps": 4,
        "shared_memory_bytes": 128,
        "kernel_param_names": ["x", "out", "n"],
        "kernel_param_types": ["*fp32", "", "i32"],
    }


def test_other_settings():
    """Settings of other backends are passed on where they are there; older kernels have neither cache nor source."""
    entry = compiled(num_cpu_threads=2, tile_width=8, base_pe=1)
    del entry.src, entry.metadata.shared
    old = kernel({})
    del old.device_caches
    old.cache = {0: {"key": entry}}
    _, keywords = nodes.describe_call(old, (), call())
    assert list(keywords)[4:] == [
        "num_cpu_threads",
        "tile_width",
        "base_pe",
        "kernel_param_names",
        "kernel_param_types",
    ]
    assert keywords["kernel_param_types"] == ["", "", ""]


def test_chosen_by_constants():
    """Of several versions, the one that was compiled with the call's values is meant."""
    cache = {f"('constexpr', {value})": compiled(hash=str(value)) for value in (8, 16, True)}
    assert nodes.describe_call(kernel(cache), (), call())[1]["name"] == "add_kernel_16"
    assert nodes.describe_call(kernel(cache), (), call(BLOCK=8))[1]["name"] == "add_kernel_8"


def test_chosen_by_tuning():
    """Of several that were tuned, the one with the settings of the best configuration is meant."""
    cache = {f"('constexpr', 16) {warps}": compiled(num_warps=warps) for warps in (2, 4)}
    configs = [Some(num_warps=4, num_stages=1), Some(num_warps=2)]
    assert nodes.describe_call(kernel(cache), configs, call())[1]["num_warps"] == 4


def test_text_constants():
    """Values that are no numbers are compared as texts."""
    cache = {f"('constexpr', {name})": compiled(hash=name) for name in ("torch.float32", "torch.int8")}
    assert nodes.describe_call(kernel(cache), (), call(BLOCK=torch.int8))[1]["name"] == "add_kernel_torch.int8"


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        ({}, "got 0 of 0"),
        ({"('constexpr', 1)": compiled(), "('constexpr', 2)": compiled()}, "got 0 of 2"),
        ({"('constexpr', 16)a": compiled(), "('constexpr', 16)b": compiled()}, "got 2 of 2"),
    ],
)
def test_not_one_version(cache, message):
    """No version, or several that fit, are errors that say what to do."""
    with pytest.raises(
        UnsupportedError, match=f"kernel add_kernel: expected one .*{message}; run the exported module once"
    ):
        nodes.describe_call(kernel(cache), (), call())


def test_several_devices():
    """A kernel that was compiled for two devices is ambiguous."""
    both = kernel({})
    both.device_caches = {0: ({},), 1: ({},)}
    with pytest.raises(UnsupportedError, match="expected it compiled for one device, got 2"):
        nodes.describe_call(both, (), call())


def test_order():
    """Values that were compiled in come last."""
    node = call()
    given = dict(node.kwargs["kwargs"])
    node.kwargs = {**node.kwargs, "kwargs": {"BLOCK": 16, **{k: v for k, v in given.items() if k != "BLOCK"}}}
    with pytest.raises(UnsupportedError, match="expected constexpr arguments after all others, got BLOCK, x, out, n"):
        nodes.describe_call(kernel({"key": compiled()}), (), node)


def test_without_triton(monkeypatch):
    """Without triton there is one clear error."""
    monkeypatch.setattr(nodes, "triton_kernels", lambda: None)
    with pytest.raises(UnsupportedError, match="expected triton for a kernel call, got none; install it"):
        nodes.kernel_call(call())


def test_kernel_is_looked_up(monkeypatch):
    """The kernel of a call is found in torch's table; a tuned one is taken apart."""
    plain = kernel({"key": compiled()})
    tuned = Some(fn=plain, configs=[Some(num_warps=4)])
    for found in (plain, tuned):
        table = Some(get_kernel=lambda index, found=found: found)
        monkeypatch.setattr(nodes, "triton_kernels", lambda table=table: table)
        assert nodes.kernel_call(call())[1]["name"] == "add_kernel_abc"
