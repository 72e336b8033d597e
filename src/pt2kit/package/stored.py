"""Parts of an archive as they were read: a program, its container, its weights or constants, each with its origin.

Mappings of them are lazy: names known immediately, values computed on first access, unknown names refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar

from pt2kit import codec, schema
from pt2kit.messages import suggestion
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.pickles.values import PickledTensor
    from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, SubclassView
    from pt2kit.versions.conversion_log import Note

V = TypeVar("V")

_SHOWN = 8


class Lazy(Mapping[str, V]):
    """A read-only mapping that computes its values. Safe to use from several threads.

    Args:
        names: the keys, in order.
        compute: key -> value; what it raises comes through, and nothing is kept then.
        what: the kind of things named, for messages.
    """

    def __init__(self, names: tuple[str, ...], compute: Callable[[str], V], what: str = "name") -> None:
        self._names = dict.fromkeys(names)
        self._compute = compute
        self._what = what
        self._kept: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name in self._kept:
            return self._kept[name]
        if name not in self._names:
            raise unknown_name(self._what, name, self._names)
        # Two threads may both compute; the first result is the one everybody gets.
        return self._kept.setdefault(name, self._compute(name))

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<Lazy: {', '.join(map(repr, self._names)) or 'empty'}>"


class Named(dict[str, V]):
    """Dict that must not be changed, whose errors list the existing names, and whose repr is short.

    Args:
        values: name -> value.
        what: the kind of things named, for messages.

    Raises (from whatever would change it):
        TypeError: advises to make a new dict.
    """

    __slots__ = ("_what",)

    def __init__(self, values: Mapping[str, V], what: str) -> None:
        super().__init__(values)
        self._what = what

    def __missing__(self, name: str) -> NoReturn:
        raise unknown_name(self._what, name, self)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"expected to read a {self._what} of a package, which does not change; make a new dict of it")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r}: {self[name]!r}" for name in list(self)[:_SHOWN])
        more = f", … {len(self) - _SHOWN:,} more" if len(self) > _SHOWN else ""
        return f"{{{shown}{more}}}"

    def __reduce__(self) -> tuple[type, tuple[dict[str, V], str]]:
        return Named, (dict(self), self._what)


def unknown_name(what: str, name: object, names: Iterable[str]) -> KeyError:
    """Return the error for an unknown name: those that are close to it, and the first of the existing ones."""
    there = list(names)
    listed = ", ".join(map(repr, there[:_SHOWN])) + (f", … {len(there) - _SHOWN:,} more" if there[_SHOWN:] else "")
    meant = suggestion(str(name), there)
    article = "an" if what[0] in "aeiou" else "a"
    return KeyError(f"expected {article} {what}, one of {listed or 'none'}, got {str(name)[:200]!r}{meant}")


Payload: TypeAlias = "TensorView | SparseView | QuantizedView | NestedView | MetaView | SubclassView | OpaquePayload"
"""Whatever a weight or constant may be. Raw records are dense; torch.save files also hold the other kinds."""
Kind = Literal["weights", "constants"]


@dataclass(frozen=True, slots=True)
class StoredPayloads:
    """The weights or the constants of one program.

    Args:
        payloads: name -> view, in the file's order; read-only.
        config: the record that lists them.
        unknown: keys of that record that this build's schema does not have.
    """

    payloads: Mapping[str, Payload]
    config: str
    unknown: tuple[codec.Unknown, ...]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The container of schema 8.6 that a program is one method of.

    Args:
        name: of the model, as it states itself; "" if it states none.
        method: the program's name in it.
        delegates: name of a delegate -> its methods.
        weight_paths: weight name -> path of its record below the root of the archive, or next to the JSON file.
        constant_paths: constant name -> likewise.
        devices: device of the graph ("cuda:0") -> device to use; `pt2kit.load` applies it.
    """

    name: str
    method: str
    delegates: Mapping[str, Mapping[str, schema.ExportedProgram]] = field(default_factory=dict)
    weight_paths: Mapping[str, str] = field(default_factory=dict)
    constant_paths: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program as it was read.

    Args:
        program: upgraded to the current schema version.
        version: the version it was stored in ("8.14"); "draft" for the design draft, "5.3-traces" for the development
            state with tables of source files, whose number is that of another version.
        unknown: keys that this build's schema does not have, with their values.
        notes: what changed on the way to the current version.
        weights: name -> tensor, for versions that keep parameters and buffers inside the program (the draft).
        constants: name -> tensor, or bytes of a torch.save file or custom object, for versions that keep them there.
        model: the container it was in.
        is_raised: whether it was stored in an older form, and not in the current one with fields left out.
    """

    program: schema.ExportedProgram
    version: str
    unknown: tuple[codec.Unknown, ...]
    notes: tuple[Note, ...] = ()
    weights: Mapping[str, PickledTensor] = field(default_factory=dict)
    constants: Mapping[str, bytes | PickledTensor] = field(default_factory=dict)
    model: StoredModel | None = None
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class ReadContext:
    """Data that reading programs of older versions may need.

    Args:
        folder: the file's folder, for payloads stored next to it; None if it is no local file.
        namedtuples: class name -> name under which it is registered, for versions that have the class name only.
    """

    folder: str | None = None
    namedtuples: Mapping[str, str] = field(default_factory=dict)
