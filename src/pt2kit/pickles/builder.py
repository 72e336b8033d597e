"""Build the value of a pickle stream of allowed globals: scalars, containers and descriptions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import force_setattr

from pt2kit.errors import UnsupportedError
from pt2kit.messages import count_text, printable
from pt2kit.pickles import builtin_reducers
from pt2kit.pickles import values as pickle_values
from pt2kit.pickles.allowed_globals import CALLS, CONSTANTS, INERT, name_global
from pt2kit.pickles.budget import Budget, Place, describe
from pt2kit.pickles.machine import Hooks
from pt2kit.pickles.opcodes import run
from pt2kit.pickles.values import (
    ITEM_SIZES,
    STORAGES,
    Global,
    NumpyArray,
    NumpyDType,
    Opaque,
    PickledDict,
    PickledStorage,
)
from pt2kit.zip.reader import Storage


def build(
    stream: bytes,
    budget: Budget,
    storage: Callable[[str], Storage],
    named_tuples: Set[str],
    trust: Set[str],
) -> Any:
    """Interpret a whole pickle stream and return its value.

    Args:
        stream: the pickle, nothing behind it; `reader.scan` has found nothing to refuse in it.
        budget: the reading.
        storage: key -> the record of the storage of that key; raises for a key without one.
        named_tuples: the classes to describe as `NamedTuple`.
        trust: the classes and functions to describe as `Opaque`.

    Raises:
        PayloadError: a malformed stream, or arguments that a call cannot have.
        UnsupportedError: a call that is not understood.
        LimitError: a limit was passed.
    """
    builder = _Builder(budget, storage, named_tuples, trust | INERT)
    value, end = run(stream, budget.where, builder, budget.limits)
    if end != len(stream):
        raise budget.error(
            "pickle", f"nothing after the STOP at byte {end - 1}", count_text(len(stream) - end, "more byte")
        )
    return value


@dataclass(slots=True)
class _Builder(Hooks):
    """Hooks that build values.

    Args:
        budget, storage, named_tuples: as in `build`.
        opaque: the classes and functions to describe as `Opaque`.
        storages: those made so far.
    """

    budget: Budget
    storage: Callable[[str], Storage]
    named_tuples: Set[str]
    opaque: Set[str]
    storages: dict[str, PickledStorage] = field(default_factory=dict)

    def find(self, module: str, name: str) -> Any:
        reference = name_global(module, name)
        return CONSTANTS.get(reference.path, reference)

    def call(self, callee: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], opcode: str) -> Any:
        if not isinstance(callee, Global):
            raise self.budget.error(opcode, "a class or function to call", describe(callee))
        at = Place(self.budget, callee.path)
        if at.path in CALLS:
            if kwargs:
                raise at.error("no keyword arguments", str(len(kwargs)))
            return at.call(CALLS[at.path], args)
        if at.path in self.named_tuples and opcode == "NEWOBJ":
            return pickle_values.NamedTuple(at.path, args)
        if at.path in self.opaque:
            return Opaque(callee, args, kwargs)
        raise UnsupportedError(f"{self.budget.where}: expected a call that is understood, got {opcode} of {at.path}")

    def build(self, target: Any, state: Any) -> None:
        if isinstance(target, NumpyDType):
            builtin_reducers.build_dtype(Place(self.budget, "numpy.dtype"), target, state)
        elif isinstance(target, NumpyArray):
            builtin_reducers.build_array(Place(self.budget, "numpy.ndarray"), target, state)
        elif isinstance(target, PickledDict):
            target.attributes = Place(self.budget, "collections.OrderedDict").attributes(state)
        elif isinstance(target, Opaque):
            if target.built:
                raise self.budget.error(printable(target.cls.path), "one state", "a second one")
            # The description is frozen for all other code: a pickle makes an object first and sets its state next.
            force_setattr(target, "state", state)
            force_setattr(target, "built", True)
        else:
            raise self.budget.error("BUILD", "an object that takes a state", describe(target))

    def persistent(self, persistent_id: Any) -> PickledStorage:
        where = self.budget.where
        if not isinstance(persistent_id, tuple) or len(persistent_id) != 5 or persistent_id[0] != "storage":
            raise UnsupportedError(f"{where}: expected a persistent id of a storage, got {describe(persistent_id)}")
        _, cls, key, device, numel = persistent_id
        if not isinstance(cls, Global) or cls.path not in STORAGES:
            raise self.budget.error("storage", "a storage class of torch", describe(cls))
        if not isinstance(key, str) or not isinstance(device, str):
            got = f"{describe(key)} and {describe(device)}"
            raise self.budget.error("storage", "a key and a device as text", got)
        count = Place(self.budget, f"storage '{printable(key)}'").count(numel, "elements")
        return self._storage(key, STORAGES[cls.path], count, device)

    def _storage(self, key: str, dtype_name: str, count: int, device: str) -> PickledStorage:
        known = self.storages.get(key)
        nbytes = count * ITEM_SIZES[dtype_name]
        if known is not None:
            before = known.storage.nbytes
            if (known.dtype_name, before, known.device) == (dtype_name, nbytes, device):
                return known
            # torch lets an empty storage be viewed as several types; of any other it refuses to write that.
            if before or nbytes:
                was = f"{before} bytes of {known.dtype_name} on {printable(known.device, 40)}"
                now = f"{nbytes} bytes of {dtype_name} on {printable(device, 40)}"
                raise self.budget.error(f"storage '{printable(key)}'", f"{was}, as before", now)
        record = self.storage(key)
        # A storage of bytes viewed as a wider type may end in bytes too few for one more element.
        if count != record.nbytes // ITEM_SIZES[dtype_name]:
            raise self.budget.error(
                f"storage '{printable(key)}'", f"{nbytes} bytes ({count} of {dtype_name})", f"{record.nbytes} bytes"
            )
        whole = (
            record
            if nbytes == record.nbytes
            else Storage(record.record, nbytes, lambda: record.read(keep=False)[:nbytes])
        )
        made = self.storages[key] = PickledStorage(key, dtype_name, device, whole)
        return made

    def extend(self, target: Any, values: list[Any]) -> None:
        if isinstance(target, list | deque):
            target.extend(values)
        elif isinstance(target, Opaque):
            target.items.extend(values)
        else:
            raise self.budget.error("APPENDS", "a list", describe(target))

    def update(self, target: Any, items: list[Any]) -> None:
        if isinstance(target, dict):
            for index in range(0, len(items), 2):
                self.budget.check_key(items[index])
                target[items[index]] = items[index + 1]
        elif isinstance(target, Opaque):
            target.pairs.extend(zip(items[::2], items[1::2], strict=True))
        else:
            raise self.budget.error("SETITEMS", "a dict", describe(target))

    def add(self, target: Any, values: list[Any]) -> None:
        if isinstance(target, set):
            for value in values:
                self.budget.check_key(value)
                target.add(value)
        elif isinstance(target, Opaque):
            target.items.extend(values)
        else:
            raise self.budget.error("ADDITEMS", "a set", describe(target))

    def freeze(self, values: list[Any]) -> frozenset[Any]:
        for value in values:
            self.budget.check_key(value)
        return frozenset(values)
