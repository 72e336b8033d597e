"""Live values of pickled payloads: plain data from descriptions, and other objects only by globals named in `trust`.

`Payloads` are all live contents of a program.

Plain data is tensors, numbers, texts, containers and torch's small types. The reader of pickles has made descriptions
of the stream, and the live values are built from them; no callable that the stream names is called.

Tensors of torchao (`pickles.tensor_subclasses`): classes are looked up by the names of that table, never by a name from
a file, and their constructors are not called: torch makes an empty wrapper, and the attributes of the table are set.

Payloads of live objects that need code to be rebuilt are refused without `trust`, and the message names their contents.
With it, they are unpickled: globals that the caller names are imported by that name; nothing else that a payload refers
to is looked up, except the functions that rebuild plain tensors.
"""

from __future__ import annotations

import io
import pickle
import pkgutil
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

from pt2kit.bridge.operators import SCHEMA
from pt2kit.bridge.read.reading import refused
from pt2kit.bridge.read.tensors import Devices, Tensors
from pt2kit.bridge.torch_names import mark_parameter, script_object, wrap
from pt2kit.errors import PayloadError, Pt2Error, UnsupportedError
from pt2kit.messages import listed
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import name_global
from pt2kit.pickles.reader import globals_in, is_plain
from pt2kit.pickles.tensor_subclasses import OPTIONS, SUBCLASSES
from pt2kit.pickles.values import ITEM_SIZES, DType, Opaque, SubclassTensor
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import FAKE_TENSOR, fake_tensor, from_pickled
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.bridge.read.values import Values


MakeValues: TypeAlias = "Callable[[], Values]"
"""Returns what makes the fake tensors of a program, for payloads that hold some."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """Live contents of a program in addition to its graph.

    Args:
        state_dict: parameters and persistent buffers.
        constants: lifted constants, non-persistent buffers and custom objects.
        example_inputs: arguments and keyword arguments of the export; None without any from which torch can write
            guards.
    """

    state_dict: dict[str, Any]
    constants: dict[str, Any]
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None


MAX_DEPTH: Final = 200
"""Containers inside each other."""

_BY_NAME: Final[Mapping[str, Any]] = MappingProxyType({str(live).removeprefix("torch."): live for live in SCHEMA})
_SHOWN: Final = 20
RULE: Final = "P15"
"""Rule of payloads that take code to rebuild; in `trust=` it allows all of them."""


class PickledValues:
    """Makes the live values of one payload; tensors that share a storage there share it here.

    Args:
        where: the record, for messages.
        tensors: makes dense tensors.
        values: returns what makes fake tensors; None if there are none.
    """

    def __init__(self, where: str, tensors: Tensors, values: MakeValues | None) -> None:
        self._where = where
        self._tensors = tensors
        self._values = values
        self._made: dict[int, tuple[Any, torch.Tensor]] = {}

    def live(self, value: Any, depth: int = 0) -> Any:
        """Return the live value of a description; containers are new.

        Raises:
            UnsupportedError: an object of a class, or a type that has no live form here.
            PayloadError, Pt2Error: a tensor that cannot be read.
        """
        if depth > MAX_DEPTH:
            raise UnsupportedError(
                f"{self._where}: expected at most {MAX_DEPTH} containers inside each other, got more"
            )
        if isinstance(value, data.SubclassTensor):
            return live_subclass(value, lambda item: self.live(item, depth + 1), self._where)
        if isinstance(value, TensorView | MetaView):
            return self._tensors.any(value)
        if isinstance(value, data.TensorLike):
            if (
                id(value) not in self._made
            ):  # a tensor that is pickled once is one tensor; the entry keeps the id in use
                view = from_pickled(value, name="value", where=self._where)
                self._made[id(value)] = value, self._tensors.any(view)
            return self._made[id(value)][1]
        if type(value) in (list, tuple, set, frozenset):
            return type(value)(self.live(item, depth + 1) for item in value)
        if type(value) is dict:
            return {self.live(key, depth + 1): self.live(item, depth + 1) for key, item in value.items()}
        match value:
            case data.DType(name) | data.Layout(name) | data.MemoryFormat(name) if name in _BY_NAME:
                return _BY_NAME[name]
            case data.Device(kind, index):
                return torch.device(kind) if index is None else torch.device(kind, index)
            case data.Size(sizes):
                return torch.Size(sizes)
            case data.PickledDict():
                return OrderedDict((key, self.live(item, depth + 1)) for key, item in value.items())
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | slice | range):
            return value
        if self._values is not None and (found := fake_tensor(value, self._where)) is not None:
            meta, is_param = found
            fake = self._values().tensor(meta, self._where)
            return torch.nn.Parameter(fake, requires_grad=meta.requires_grad) if is_param else fake
        raise UnsupportedError(f"{self._where}: expected plain data, got {data.kind_text(value)}")


def is_plain_tensor(payload: OpaquePayload, trust: Set[str] = frozenset()) -> bool:
    """Return whether a payload is a pickled tensor that no code needs to be run for.

    Args:
        payload: of a program.
        trust: globals outside the allow-list that are known to be harmless.
    """
    return payload.kind == "pickle" and all(is_plain(name) or name in trust for name in _globals(payload))


def live_tensor(payload: OpaquePayload, tensors: Tensors, values: MakeValues | None = None) -> torch.Tensor:
    """Return the tensor of a plain payload.

    Args:
        payload: for which `is_plain_tensor` holds.
        tensors: makes dense tensors.
        values: returns what makes fake tensors; None if there are none.

    Raises:
        PayloadError, UnsupportedError: it is no tensor, or one that cannot be read.
    """
    trust = frozenset() if values is None else frozenset({FAKE_TENSOR})
    made = PickledValues(payload.where, tensors, values).live(payload.described(trust))
    if not isinstance(made, torch.Tensor):
        raise PayloadError(f"{payload.where}: expected a tensor, got a {type(made).__name__}")
    if payload.is_param and not isinstance(made, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=made.requires_grad)
    return made


def live_subclass(value: SubclassTensor, live: Callable[[Any], Any], where: str) -> torch.Tensor:
    """Return the tensor of torchao that a description is of.

    Args:
        value: the description.
        live: makes dtypes, sizes, and dense tensors.
        where: the record, for messages.

    Raises:
        UnsupportedError: torchao is not installed, or has no such class.
        Pt2Error: an inner tensor cannot be read.
    """
    cls = _find(next(name for name in SUBCLASSES if name == value.class_name), where)
    parts = {name: live(part) for name, part in value.parts.items()}
    attributes = parts | {name: _option(option, live, where) for name, option in value.options.items()}
    # torchao reads optional tensors that a file does not have as None.
    attributes |= {name: None for name in SUBCLASSES[value.class_name].optional if name not in attributes}
    device = next(iter(parts.values())).device
    tensor: torch.Tensor = wrap(
        cls,
        value.sizes,
        value.strides,
        value.storage_offset,
        dtype=getattr(torch, value.dtype_name),
        layout=torch.strided,
        device=device,
        requires_grad=value.requires_grad,
    )
    tensor.__dict__.update(attributes)
    if value.kind == "parameter":
        mark_parameter(tensor)
    return tensor


def _option(value: Any, live: Callable[[Any], Any], where: str) -> Any:
    """Return an option: plain data, a member of an enumeration, or an object of a data class with its fields set."""
    if isinstance(value, list | tuple):
        return type(value)(_option(item, live, where) for item in value)
    if isinstance(value, DType) and value.name in ITEM_SIZES:
        return getattr(torch, value.name)
    if not isinstance(value, Opaque):
        return live(value)
    cls = _find(next(name for name in OPTIONS if name == value.cls.path), where)
    args = [_option(item, live, where) for item in value.args]
    if issubclass(cls, Enum | tuple):
        try:
            return cls(*args)
        except (TypeError, ValueError) as error:
            raise PayloadError(f"{where}: expected a value of {value.cls.name}, got another one: {error}") from None
    made = object.__new__(cls)
    fields = value.state if value.built else {}
    made.__dict__.update({name: _option(item, live, where) for name, item in fields.items()})
    return made


def _find(name: str, where: str) -> Any:
    """Return a class of the tables by its name there."""
    try:
        return pkgutil.resolve_name(":".join(name.rsplit(".", 1)))
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            f"{where}: expected torchao with {name}, got {error}; install torchao 0.13 or later, or pass other weights"
        ) from None


def load_trusted(payload: OpaquePayload, trust: Set[str], devices: Devices) -> Any:
    """Return the object that a payload represents.

    Args:
        payload: a pickled tensor, a script object or a Python object.
        trust: "package.Class", "package.function", for script objects "__torch__.torch.classes.namespace.Class".
        devices: where tensors in it go.

    Raises:
        UnsupportedError: it refers to globals that are neither plain data nor in `trust`; all are named.
        PayloadError: it cannot be rebuilt.
    """
    names = _globals(payload)
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


def _torch_load(data: bytes, trust: Set[str], devices: Devices) -> Any:
    places = devices.map_location()
    return torch.load(io.BytesIO(data), map_location=places, weights_only=False, pickle_module=_module(trust))


def _run(where: str, rebuild: Callable[[], Any]) -> Any:
    try:
        return rebuild()
    except Pt2Error:
        raise
    except Exception as error:
        raise PayloadError(f"{where}: expected an object that can be rebuilt, got: {error}") from error


def _globals(payload: OpaquePayload) -> tuple[str, ...]:
    """Return the globals that a payload refers to, sorted.

    Those of a script object are its classes: "__torch__.torch.classes.namespace.Class".

    Raises:
        UnsupportedError: it is neither a pickle nor what torchbind writes.
    """
    try:
        if payload.kind != "torchbind":
            return payload.globals()
        with zipfile.ZipFile(io.BytesIO(bytes(payload.buffer()))) as archive:
            streams = [name for name in archive.namelist() if name.endswith(".pkl")]
            return tuple(sorted({path for name in streams for path in globals_in(archive.read(name), payload.where)}))
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, Pt2Error) as error:
        raise UnsupportedError(
            f"{payload.where}: expected plain tensor data, got {payload.describe()}; rebuilding it would run code "
            f"({error})",
            rule=RULE,
        ) from error


def _unpickler(trust: Set[str]) -> type[pickle.Unpickler]:
    """Return a class of unpicklers that find only trusted or plain globals; a class of its own for each load."""

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            named = name_global(module, name)  # protocol 2 has the names of Python 2
            if RULE not in trust and named.path not in trust and not is_plain(named.path):
                raise UnsupportedError(f"expected plain data or what trust= names, got {named.path}")
            return pkgutil.resolve_name(f"{named.module}:{named.name}")

    return Unpickler


def _module(trust: Set[str]) -> SimpleNamespace:
    """Return a module to pass to `torch.load` as `pickle_module`."""
    return SimpleNamespace(__name__="pt2kit_trusted_pickle", Unpickler=_unpickler(trust), load=_refuse)


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError("expected a payload in torch's zip format, got one of torch before 1.6")
