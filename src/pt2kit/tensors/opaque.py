"""Opaque payloads, which are not raw tensor bytes: pickled tensors, script objects, Python objects. Never rebuilt.

torch 2.9 and later pickle tensors of classes of their own (`use_pickle` in a config), script objects
(`custom_obj_<i>`) and opaque Python objects (`opaque_obj_<i>`). Loading any of them in torch runs the code that the
pickle names.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from pt2kit.errors import PayloadError, Pt2Error, UnsupportedError, attempt
from pt2kit.messages import listed
from pt2kit.schema import TensorMeta
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.end_record import LOCAL_SIGNATURE
from pt2kit.zip.foreign import LEGACY_MAGIC
from pt2kit.zip.reader import Storage

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array
    from pt2kit.tensors.compound import View
    from pt2kit.tensors.view import TensorView

OpaqueKind = Literal["pickle", "torchbind", "opaque"]

_WHAT: Final[Mapping[OpaqueKind, str]] = MappingProxyType(
    {"pickle": "a pickled tensor", "torchbind": "a script object", "opaque": "a Python object"}
)
_SHOWN: Final = 20
_BEGIN: Final = 32


@dataclass(frozen=True, slots=True, repr=False)
class OpaquePayload:
    """A constant or weight that only code could rebuild.

    Args:
        name: the name it has in its state dict or constants.
        storage: the record's bytes.
        kind: "pickle" for a tensor that torch.save wrote, "torchbind" for a script object, "opaque" for a Python
            object.
        tensor_meta: the config's description of a pickled tensor; its bytes are not compared with it.
        is_param: whether it is a parameter.
    """

    name: str
    storage: Storage
    kind: OpaqueKind
    tensor_meta: TensorMeta | None = None
    is_param: bool = False

    @property
    def is_pickled(self) -> bool:
        """Return whether the record begins as a zip archive or a pickle, so that torch unpickles it. Reads it."""
        return self._begin.startswith((LOCAL_SIGNATURE, b"\x80"))

    @property
    def is_as_written(self) -> bool:
        """Return whether the record begins as its writer writes it: torch.save's pickles begin with a number.

        Reads the record.
        """
        return self.is_pickled and (
            self.kind != "pickle" or self._begin.startswith(LOCAL_SIGNATURE) or LEGACY_MAGIC in self._begin
        )

    @property
    def _begin(self) -> bytes:
        return bytes(self.storage.read(keep=False)[:_BEGIN])

    @property
    def record(self) -> str:
        """Return the archive record that holds it."""
        return self.storage.record

    @property
    def nbytes(self) -> int:
        """Return the length of the record in bytes."""
        return self.storage.nbytes

    @property
    def where(self) -> str:
        """Return the name of this payload for messages: its record and its name."""
        return f"{show_name(self.storage.record)}: {self.name!r}"

    def __repr__(self) -> str:
        return f"OpaquePayload({self.name!r}, {self.kind}, {self.record!r}, {self.nbytes} bytes)"

    def describe(self) -> str:
        """Return a description in words: `a script object, 512 bytes`."""
        return f"{_WHAT[self.kind]}, {self.nbytes} bytes"

    def globals(self) -> tuple[str, ...]:
        """List the globals that unpickling it would import, sorted ("builtins.open").

        Reads the record without building anything.

        Raises:
            UnsupportedError: a TorchScript archive, as real script objects are.
            Pt2Error: the record cannot be read, or is no pickle.
        """
        from pt2kit.pickles.reader import globals_in

        return globals_in(self.storage.read(), self.where)

    def buffer(self) -> memoryview:
        """Return the record unchanged, for callers that can interpret it."""
        return self.storage.read()

    def dense(self) -> TensorView:
        """Return the tensor as one array of numbers, if the payload is one and holds plain data only.

        Raises:
            UnsupportedError, Pt2Error: as `view`, or it is no one array of numbers (P18).
        """
        return self.view().dense()

    def numpy(self, *, upcast: bool = False) -> Array:
        """Return the array; see `dense`."""
        return self.dense().numpy(upcast=upcast)

    def view(self) -> View:
        """Return the tensor, if the payload is one and holds plain data only.

        Raises:
            UnsupportedError: it would take code to rebuild it; its globals are named (P15).
            Pt2Error: the record cannot be read.
        """
        from pt2kit.pickles.reader import is_plain
        from pt2kit.tensors.pickled import from_pickled

        refused: tuple[str, ...] = ()
        reason = ""
        try:
            refused = tuple(path for path in self.globals() if not is_plain(path))
        except Pt2Error as error:
            if self.kind == "pickle":
                raise
            reason = f" ({error})"
        if self.kind == "pickle" and not refused:
            record = show_name(self.record)
            return from_pickled(self.described(record=record), name=self.name, where=record)
        if refused:
            reason = f" that refers to {listed([show_name(name) for name in refused], _SHOWN)}"
        raise UnsupportedError(
            f"{self.where}: expected plain tensor data, got {_WHAT[self.kind]}{reason}; rebuilding it would run code",
            rule="P15",
        )

    def described(self, trust: Set[str] = frozenset(), *, record: str = "") -> Any:
        """Return what the pickle describes, as data; nothing of it is built.

        Args:
            trust: globals outside the allow-list that are read into inert descriptions.
            record: as in `pickles.reader.read_payload`.

        Raises:
            PayloadError: it is malformed, or its tensors contradict themselves (P22).
            UnsupportedError, LimitError, ArchiveError: as `pickles.reader.read_payload`.
        """
        from pt2kit.pickles.reader import read_payload

        try:
            return read_payload(self.storage.read(), self.where, record=record, trust=trust)
        except PayloadError as error:
            raise PayloadError(str(error), rule="P22") from None

    def meaning(self) -> View | OpaquePayload:
        """Return the payload as data: the tensor, if it is one that holds plain data only, and itself otherwise.

        The config states whether it is a parameter. Cost: reads the record of a pickled tensor.
        """
        view = attempt(self.view) if self.kind == "pickle" else None
        return self if view is None else replace(view, is_param=self.is_param)
