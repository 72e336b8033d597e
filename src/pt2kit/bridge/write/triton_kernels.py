"""Write a call of a triton kernel with the arguments of the format: the compiled kernel and its inputs.

A runtime launches the compiled kernel, so its name carries a hash, its settings go with it, and values that were
compiled in are left out. The kernel must have been compiled before saving: run the exported module once.

Source: the branch for triton_kernel_wrapper_functional in torch/_export/serde/serialize.py, 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch.fx import Node

from pt2kit.bridge.torch_names import triton_kernels
from pt2kit.errors import UnsupportedError

_LAUNCH_SETTINGS = ("num_cpu_threads", "num_warps", "num_stages", "num_ctas")
_TILE_SETTINGS = ("tile_width", "tile_height", "base_pe")
_CONSTANT = re.compile(r"\('constexpr',\s*([^)]+)\)")


def kernel_call(node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the positional and the keyword arguments of a call.

    Args:
        node: a call of `triton_kernel_wrapper_functional`.

    Raises:
        UnsupportedError: triton is not installed, or the kernel was not compiled for exactly this call.
    """
    kernels = triton_kernels()
    if kernels is None:
        raise UnsupportedError("expected triton for a kernel call, got none; install it where the kernel runs")
    kernel = kernels.get_kernel(node.kwargs["kernel_idx"])
    configs: Sequence[Any] = getattr(kernel, "configs", None) or ()
    function = kernel.fn if configs else kernel
    return describe_call(function, configs, node)


def describe_call(function: Any, configs: Sequence[Any], node: Node) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of a call, for a jitted function and the configurations it was tuned over, if it was.

    Raises:
        UnsupportedError: see `kernel_call`.
    """
    arguments: Any = node.kwargs["kwargs"]
    compiled = _compiled(function, configs, arguments)
    positional = _positional(function, arguments)
    results = node.meta["val"]
    settings = compiled.metadata
    keywords: dict[str, Any] = {
        "name": f"{function.fn.__name__}_{settings.hash}",
        "grid": node.kwargs["grid"][0],
        "output_indices": [index for index, name in enumerate(positional) if name in results],
        "num_warps": settings.num_warps,
    }
    if hasattr(settings, "num_cpu_threads"):
        keywords["num_cpu_threads"] = settings.num_cpu_threads
    if hasattr(settings, "shared"):
        keywords["shared_memory_bytes"] = int(settings.shared)
    keywords.update({name: getattr(settings, name) for name in _TILE_SETTINGS if hasattr(settings, name)})
    parameters = [parameter for parameter in function.params if not parameter.is_constexpr]
    types = getattr(getattr(compiled, "src", None), "signature", None) or {}
    keywords["kernel_param_names"] = [parameter.name for parameter in parameters]
    keywords["kernel_param_types"] = [str(types.get(p.name, p.annotation)) for p in parameters]
    return positional, keywords


def _positional(function: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments passed at run time: those that were not compiled in, which come first."""
    constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
    names = list(given)
    runtime = [name for name in names if name not in constants]
    if names[: len(runtime)] != runtime:
        raise UnsupportedError(f"expected constexpr arguments after all others, got {', '.join(names)}")
    return {name: given[name] for name in runtime}


def _compiled(function: Any, configs: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Return the compiled kernel that this call launches."""
    cache = _cache(function)
    if len(cache) == 1:
        return next(iter(cache.values()))
    entries = list(_matching(function, cache, given))
    if len(entries) > 1 and configs:
        tuned = [entry for config in configs for entry in entries if _was_tuned(config, entry.metadata)]
        entries = tuned[:1]
    if len(entries) != 1:
        raise UnsupportedError(
            f"kernel {function.fn.__name__}: expected one compiled version for this call, got {len(entries)} "
            f"of {len(cache)}; run the exported module once before saving, in a fresh process"
        )
    return entries[0]


def _cache(function: Any) -> Mapping[str, Any]:
    """Return the compiled versions of a kernel on its one device, by signature."""
    devices = getattr(function, "device_caches", None)
    by_device = getattr(function, "cache", {}) if devices is None else devices
    if len(by_device) != 1:
        raise UnsupportedError(
            f"kernel {function.fn.__name__}: expected it compiled for one device, got {len(by_device)}; "
            "run the exported module once before saving"
        )
    entry = next(iter(by_device.values()))
    return entry if devices is None else entry[0]  # type: ignore[no-any-return]


def _matching(function: Any, cache: Mapping[str, Any], given: Mapping[str, Any]) -> Iterable[Any]:
    """Yield the compiled versions whose compiled-in values are those of the call."""
    constants = [function.arg_names[index] for index in getattr(function, "constexprs", ())]
    wanted = [_comparable(given[name]) for name in constants if name in given]
    for signature, entry in cache.items():
        texts = _CONSTANT.findall(signature)
        if not constants or (texts and [_comparable(_value(text)) for text in texts] == wanted):
            yield entry


def _value(text: str) -> Any:
    """Return a compiled-in value as triton writes it into a signature."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return text


def _comparable(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) else str(value)


def _was_tuned(config: Any, settings: Any) -> bool:
    """Return whether a compiled kernel has the launch settings of a configuration."""
    return all(
        getattr(config, name) == getattr(settings, name)
        for name in _LAUNCH_SETTINGS
        if hasattr(config, name) and hasattr(settings, name)
    )
