"""Conversion of weights and constants of all programs to raw records with configs, and problems of those that cannot be
raw.

A storage is written once, however many names or programs share it. Storages are numbered as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pt2kit.errors import Problem, Pt2Error, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.package.plan import Numbering, PlannedRecord, of_storage
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor
from pt2kit.schema import PayloadConfig, PayloadMeta
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.export import AnyView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import from_pickled
from pt2kit.tensors.view import Storage, TensorView

KINDS = ("weights", "constants")
_WHAT = {"weights": "weight", "constants": "constant"}
_FOLDERS: Mapping[str, Callable[[int], str]] = {"weights": names.weight, "constants": names.tensor_constant}


@dataclass(slots=True)
class PayloadPlan:
    """Grows program by program.

    Attributes:
        records: in the order in which they are to be written.
        configs: model -> kind -> config.
        views: model -> kind -> name -> tensor, with pickled tensors as what they hold.
        unpickled: what was a pickle and is none any more ("model: weight 'w'").
        problems: what cannot be a raw record.
        used: full names of the records that hold payloads.
    """

    records: list[PlannedRecord] = field(default_factory=list)
    configs: dict[str, dict[str, PayloadConfig]] = field(default_factory=dict)
    views: dict[str, dict[str, dict[str, AnyView]]] = field(default_factory=dict)
    unpickled: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    _names: dict[tuple[object, ...], str] = field(default_factory=dict)
    _numbering: Numbering = field(default_factory=Numbering)

    def add(self, package: Package, model: str) -> None:
        """Add the payloads of a program. No tensor is read.

        Raises:
            Pt2Error: they cannot be listed.
        """
        configs, views = self.configs.setdefault(model, {}), self.views.setdefault(model, {})
        for kind, payloads in (("weights", package.weights(model)), ("constants", package.constants(model))):
            rows: dict[str, PayloadMeta] = {}
            views[kind] = {}
            for name, payload in payloads.items():
                self.used |= _records(payload)
                view = self._dense(payload, f"{model}: {_WHAT[kind]} {name[:200]!r}", package)
                views[kind][name] = view if view is not None else payload
                if view is not None:
                    rows[name] = self._meta(view, kind, package)
            configs[kind] = PayloadConfig(rows)
        self._check_whole(package, model)

    def _check_whole(self, package: Package, model: str) -> None:
        """Note what the program takes in and the file does not have: without it torch could not load the new file."""
        there = {name for payloads in self.views[model].values() for name in payloads}
        for spec in package.programs[model].graph_module.signature.input_specs:
            for key in ("parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name"):
                name = getattr(spec.value, key, None)
                if name is not None and name not in there:
                    self._refuse(
                        f"{model}: {name[:200]!r}", "Z4", "expected a weight or constant of that name, got none"
                    )

    def _dense(self, payload: AnyView, what: str, package: Package) -> TensorView | MetaView | None:
        """Return the dense tensor of a payload, or one without data; None, and a problem, if there is none."""
        if isinstance(payload, OpaquePayload):
            tensor = self._unpickled(payload, what, package)
            if tensor is None:
                return None
            payload = tensor
            self.unpickled.append(what)
        if isinstance(payload, MetaView):
            return payload
        if not isinstance(payload, TensorView):
            self._refuse(what, "Z4", f"expected a dense tensor, as raw records are, got {payload.describe()[:200]}")
            return None
        if payload.conj or payload.neg:
            self._refuse(what, "Z4", "expected the numbers as they are, got a tensor marked as conjugate or negative")
            return None
        return payload

    def _unpickled(self, payload: OpaquePayload, what: str, package: Package) -> TensorView | None:
        where = package.relative(payload.record)
        if payload.kind != "pickle":
            self._refuse(
                what, "X3", f"expected a tensor, got {payload.describe()} in {where}, which only code rebuilds"
            )
            return None
        try:
            value = read_payload(payload.buffer(), payload.where)
            if not isinstance(value, PickledTensor) or value.attributes:
                kind = "tensor with attributes" if isinstance(value, PickledTensor) else type(value).__name__
                raise UnsupportedError(f"{payload.where}: expected a dense tensor, as raw records are, got a {kind}")
            view = from_pickled(value, name=payload.name, where=payload.where, storages={})
        except Pt2Error as error:
            self._refuse(what, "X2", str(error))
            return None
        return view if isinstance(view, TensorView) else None

    def _refuse(self, what: str, rule: str, message: str) -> None:
        self.problems.append(Problem(what, rule, message, "safety"))

    def _meta(self, view: TensorView | MetaView, kind: str, package: Package) -> PayloadMeta:
        return PayloadMeta(self._path_name(view, kind, package), view.is_param, False, view.meta())

    def _path_name(self, view: TensorView | MetaView, kind: str, package: Package) -> str:
        """Return the record of a tensor's storage, by the last part of its name. A record has elements of one type."""
        storage = view.storage if isinstance(view, TensorView) else Storage(view.record, 0, lambda: memoryview(b""))
        # Records of an archive are the same ones for all of its programs; storages of a pickle are not.
        shared = storage.record if storage.record in package.records else id(storage)
        key = (kind, shared, view.dtype)
        if key not in self._names:
            record = self._numbering.take(_FOLDERS[kind])
            self._names[key] = record.rpartition("/")[2]
            self.records.append(of_storage(record, storage, DTYPES[view.dtype].itemsize))
        return self._names[key]


def _records(payload: AnyView) -> set[str]:
    """Return the names of the records that a payload comes from, among other names of storages."""
    return {payload.record} if isinstance(payload, OpaquePayload | TensorView | MetaView) else set()
