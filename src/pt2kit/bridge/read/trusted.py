"""Unpickle trusted payloads: live objects that take code to rebuild, from exactly the globals named in `trust`.

Without `trust` every such payload is refused, and the message names its contents. Globals that the caller names are
imported by that name; nothing else a payload refers to is looked up, except the functions that rebuild plain
tensors.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import types
import zipfile
from collections.abc import Callable, Set
from typing import Any, Final

import torch

from pt2kit.bridge.read.devices import Devices
from pt2kit.bridge.read.refusals import refused
from pt2kit.bridge.torch_names import FAKE_TENSOR, script_object
from pt2kit.errors import PayloadError, Pt2Error, UnsupportedError
from pt2kit.messages import listed
from pt2kit.pickles.allowed_globals import name_global
from pt2kit.pickles.reader import globals_in, is_plain
from pt2kit.tensors.opaque import OpaquePayload

_SHOWN: Final = 20
RULE: Final = "P15"
"""Rule of payloads that take code to rebuild; in `trust=` it allows all of them."""


def load_trusted(payload: OpaquePayload, trust: Set[str], devices: Devices | None = None) -> Any:
    """Return the object that a payload represents.

    Args:
        payload: a pickled tensor, a script object or a Python object.
        trust: "package.Class", "package.function", for script objects "__torch__.torch.classes.namespace.Class".
        devices: where tensors in it go; where they were by default.

    Raises:
        UnsupportedError: it refers to globals that are neither plain data nor in `trust`; all are named.
        PayloadError: it cannot be rebuilt.
    """
    names = script_classes(payload) if payload.kind == "torchbind" else globals_of(payload)
    foreign = [name for name in names if name not in trust and not (is_plain(name) or name == FAKE_TENSOR)]
    if RULE not in trust and (foreign or (not names and payload.kind == "torchbind")):
        shown = listed(foreign, _SHOWN) or "no class that can be told"
        message = f"{payload.where}: expected plain tensor data, got {payload.describe()}, that refers to {shown}"
        raise refused(UnsupportedError, f"{message}; rebuilding it would run code", RULE, foreign)
    data = bytes(payload.buffer())
    if payload.kind == "torchbind":
        return _run(payload.where, lambda: script_object(data))
    if payload.kind == "pickle":
        return _run(payload.where, lambda: _torch_load(data, trust, devices))
    return _run(payload.where, lambda: _unpickler(trust)(io.BytesIO(data)).load())


def load_trusted_inputs(payload: memoryview, where: str, trust: Set[str], devices: Devices) -> Any:
    """Return the sample inputs as they were pickled, if everything in them is plain or trusted; else None.

    Args:
        payload: a torch.save file.
        where: its record, for messages.
        trust: as in `load_trusted`.
        devices: where its tensors go.

    Raises:
        PayloadError: it cannot be rebuilt.
        Pt2Error: it cannot be looked through.
    """
    if not trust:
        return None
    foreign = {name for name in globals_in(payload, where) if not is_plain(name)}
    if not foreign or not (foreign <= trust or RULE in trust):
        return None
    return _run(where, lambda: _torch_load(bytes(payload), trust, devices))


def _torch_load(data: bytes, trust: Set[str], devices: Devices | None = None) -> Any:
    places = None if devices is None else devices.map_location()
    return torch.load(io.BytesIO(data), map_location=places, weights_only=False, pickle_module=_module(trust))


def _run(where: str, rebuild: Callable[[], Any]) -> Any:
    try:
        return rebuild()
    except Pt2Error:
        raise
    except Exception as error:
        raise PayloadError(f"{where}: expected an object that can be rebuilt, got: {error}") from error


def script_classes(payload: OpaquePayload) -> tuple[str, ...]:
    """Return the classes of script objects in a payload: "__torch__.torch.classes.namespace.Class".

    Raises:
        UnsupportedError: the payload is not what torchbind writes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(bytes(payload.buffer()))) as archive:
            streams = [name for name in archive.namelist() if name.endswith(".pkl")]
            paths = {path for name in streams for path in globals_in(archive.read(name), payload.where)}
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, Pt2Error) as error:
        raise UnsupportedError(
            f"{payload.where}: expected a script object as torch writes it, got {payload.nbytes} bytes that are none; "
            f"rebuilding it would run code ({error})",
            rule="P15",
        ) from error
    return tuple(sorted(paths))


def globals_of(payload: OpaquePayload) -> tuple[str, ...]:
    """Return the globals that a pickled payload refers to.

    Raises:
        UnsupportedError: it is no pickle.
    """
    try:
        return payload.globals()
    except Pt2Error as error:
        raise UnsupportedError(
            f"{payload.where}: expected plain tensor data, got {payload.describe()}; rebuilding it would run code "
            f"({error})",
            rule="P15",
        ) from error


def _unpickler(trust: Set[str]) -> type[pickle.Unpickler]:
    """Return a class of unpicklers that find only trusted or plain globals; a class of its own for each load."""

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            named = name_global(module, name)  # protocol 2 has the names of Python 2
            if RULE not in trust and named.path not in trust and not is_plain(named.path):
                raise UnsupportedError(f"expected plain data or what trust= names, got {named.path}")
            value: Any = sys.modules.get(named.module) or importlib.import_module(named.module)
            for part in named.name.split("."):
                value = getattr(value, part)
            return value

    return Unpickler


def _module(trust: Set[str]) -> types.ModuleType:
    """Return a module to pass to `torch.load` as `pickle_module`."""
    module = types.ModuleType("pt2kit_trusted_pickle")
    module.Unpickler = _unpickler(trust)  # type: ignore[attr-defined]
    module.load = _refuse  # type: ignore[attr-defined]
    return module


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError("expected a payload in torch's zip format, got one of torch before 1.6")
