"""Plan of a sanitized file: all of its records, or every obstacle as a problem; classification of records.

Records of an archive are those of a program, or belong to nothing.

Weights and constants of all programs become raw records with configs, or problems if they cannot be raw. A storage is
written once, however many names or programs share it. Storages are numbered as they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pt2kit import codec
from pt2kit.errors import Problem, Pt2Error, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.package.pickle_free_inputs import PickleFreeInputs, input_tensors, write_index
from pt2kit.package.plan import Numbering, PlannedRecord, copied, header, of_bytes, of_storage
from pt2kit.package.stored import StoredProgram
from pt2kit.pickles.reader import read_payload
from pt2kit.pickles.values import PickledTensor
from pt2kit.sanitizing.options import Options, not_text
from pt2kit.sanitizing.programs import find_code, find_container, find_unknown, read_samples, rewrite_metadata
from pt2kit.schema import PayloadConfig, PayloadMeta
from pt2kit.schema.names import target_of
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.export import AnyView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import from_pickled
from pt2kit.tensors.view import TensorView
from pt2kit.zip.chosen_names import show_name
from pt2kit.zip.reader import Storage
from pt2kit.zip.writer import DEFAULT_ROOT

_SHOWN = 20


@dataclass(slots=True)
class Plan:
    """The records that sanitizing a package would write; grows program by program.

    Args:
        package: its source.
        options: what may be left out.

    Attributes:
        records: of the new file, in order; of no use where there are problems.
        problems: the obstacles.
        kept: safety findings about plain data that stock torch needs.
        samples: model -> its sample inputs, of those that have some.
        unpickled: tensors that were pickles ("model: weight 'w'").
        dropped: what is left out, by name.
        raised: what changed when programs of older versions became current ones ("model: …").
    """

    package: Package
    options: Options
    records: list[PlannedRecord] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    kept: list[Problem] = field(default_factory=list)
    samples: dict[str, PickleFreeInputs] = field(default_factory=dict)
    unpickled: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    """Full names of the records that programs and payloads are read from."""
    _unfit: list[Problem] = field(default_factory=list)
    """Problems of payloads."""
    _names: dict[tuple[object, ...], str] = field(default_factory=dict)
    _numbering: Numbering = field(default_factory=Numbering)

    @property
    def root(self) -> str:
        """Return the root folder of the new file."""
        return self.package.layout.root.rstrip("/") or DEFAULT_ROOT

    @property
    def changes_metadata(self) -> bool:
        """Return whether metadata is stripped or scrubbed."""
        return bool(self.options.strip) or self.options.scrub_paths

    def fill(self) -> None:
        """Plan all records; raise as `make_plan`."""
        package = self.package
        self._check_asked()
        models = [record for model in package.layout.models for record in self._model(model)]
        refused, self.kept = find_code(package)
        self.problems += [*self._unfit, *refused]
        self.records += [*models, *self._others(), *header()]  # after the payloads

    def _check_asked(self) -> None:
        package = self.package
        if not package.layout.models:
            raise UnsupportedError(package.without_program())
        for record in sorted(self.options.drop):
            name = names.extra_name(record)
            if name is not None and name not in package.extra_files:
                there = ", ".join(map(names.extra, list(package.extra_files)[:5])) or "none"
                raise UnsupportedError(f"drop: expected an extra file of {package.name} ({there[:300]}), got {record}")

    def _model(self, model: str) -> Iterator[PlannedRecord]:
        package = self.package
        stored, place = package.stored[model], package.layout.parts(model)
        configs = self._payloads(model)
        self._used |= set(place.all)
        self.raised += [f"{model}: {text}" for text in _raised(stored)]
        self.problems += find_unknown(package, model)
        self.problems += find_container(stored, model)
        program, paths = rewrite_metadata(stored.program, package.relative(place.program), self.options)
        self.problems += paths
        for kind, config in configs.items():
            yield of_bytes(names.payload_config(model, kind), codec.encode(config), deflate=True)
        # An unchanged program is copied: upgraded to a newer minor, an older torch might not read it.
        if program is stored.program and _is_current_shape(package, stored):
            yield copied(package, place.program, names.model_json(model), deflate=True)
        else:
            yield of_bytes(names.model_json(model), codec.encode(program), deflate=True)
        yield of_bytes(names.sample_inputs(model), b"")
        yield from self._sample_inputs(model, place.sample_inputs)

    def _sample_inputs(self, model: str, record: str | None) -> Iterator[PlannedRecord]:
        package, drop = self.package, "sample-inputs" in self.options.drop
        try:
            samples = read_samples(package, model, record)
        except Pt2Error as error:
            samples = None
            # Which of the raw records are those of an index that cannot be read, nobody can say.
            self._used |= {name for name in package.records if names.is_samples_storage(package.relative(name))}
            if drop:
                self.dropped.append(f"sample inputs of {model}")
            else:
                self.problems.append(_unmoved(model, error))
        if samples is None:
            return
        self._used |= {package.layout.record(name) for name in samples.records}
        if drop:
            self.dropped.append(f"sample inputs of {model}")
            return
        self.samples[model] = samples
        config = self._config(input_tensors(samples.leaves, samples.where), "samples")
        index = write_index(samples.leaves, config, samples.where)
        yield of_bytes(names.samples_index(model), index, deflate=True)

    def _others(self) -> Iterator[PlannedRecord]:
        """Decide what happens to all records except those that programs and payloads are read from.

        Raises:
            Pt2Error: an extra file cannot be read.
        """
        package, options = self.package, self.options
        extra = dict(package.layout.extra_files())
        known = {*self._used, *(package.layout.record(names.samples_index(one)) for one in package.layout.models)}
        left = [record for record in package.records if record not in known and record not in extra.values()]
        relative = [package.relative(record) for record in left]
        compiled = [name for name in relative if name.startswith((names.AOTINDUCTOR, names.EXECUTORCH))]
        unused = [name for name in relative if name not in compiled and not _is_header(name)]
        for name, record in extra.items():
            where = names.extra(name)
            if record in known:
                continue
            if options.drops_extra(where):
                self.dropped.append(where)
                continue
            if what := not_text(package.archive.read(record), where):
                message = f"expected text, got {what}; drop {where!r} to leave it out"
                self.problems.append(Problem(where, "Z2", message, "safety"))
            yield copied(package, record, where)
        for group, records, rule, message in (
            ("compiled", compiled, "X8", "torch loads compiled code into the process"),
            ("unused", unused, "Z1", "expected a record that something refers to, got one that nothing does"),
        ):
            if group in options.drop:
                self.dropped += records
            else:
                self.problems += _refuse(records, rule, f"{message}; drop {group!r} to leave it out")

    def _payloads(self, model: str) -> dict[str, PayloadConfig]:
        """Plan the payloads of a program, and return kind -> config. No tensor is read.

        Raises:
            Pt2Error: they cannot be listed.
        """
        package, configs, there = self.package, {}, set[str]()
        for kind, payloads in (("weights", package.weights(model)), ("constants", package.constants(model))):
            dense = {}
            there |= payloads.keys()
            for name, payload in payloads.items():
                self._used |= _records(payload)
                view = self._dense(payload, f"{model}: {kind.removesuffix('s')} {name[:200]!r}")
                if view is not None:
                    dense[name] = view
            configs[kind] = self._config(dense, kind)
        # Without what the program takes in, torch could not load the new file.
        for spec in package.programs[model].graph_module.signature.input_specs:
            if (target := target_of(spec)) is not None and target not in there:
                message = "expected a weight or constant of that name, got none"
                self._refuse(f"{model}: {target[:200]!r}", "Z4", message)
        return configs

    def _dense(self, payload: AnyView, what: str) -> TensorView | MetaView | None:
        """Return the dense tensor of a payload, or one without data; None, and a problem, if there is none."""
        if isinstance(payload, OpaquePayload):
            tensor = self._unpickled(payload, what)
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

    def _unpickled(self, payload: OpaquePayload, what: str) -> TensorView | None:
        where = self.package.relative(payload.record)
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
            view = from_pickled(value, name=payload.name, where=payload.where)
        except Pt2Error as error:
            self._refuse(what, "X2", str(error))
            return None
        return replace(view, is_param=payload.is_param) if isinstance(view, TensorView) else None

    def _refuse(self, what: str, rule: str, message: str) -> None:
        self._unfit.append(Problem(what, rule, message, "safety"))

    def _config(self, tensors: Mapping[str, TensorView | MetaView], kind: str) -> PayloadConfig:
        """Return the config of some tensors, and add their records."""
        return PayloadConfig(
            {
                name: PayloadMeta(self._path_name(view, kind), view.is_param, False, view.meta())
                for name, view in tensors.items()
            }
        )

    def _path_name(self, view: TensorView | MetaView, kind: str) -> str:
        """Return the record of a tensor's storage, by the last part of its name. A record has elements of one type."""
        storage = view.storage if isinstance(view, TensorView) else Storage(view.record, 0, lambda: memoryview(b""))
        # Records of an archive are the same ones for all of its programs; storages of a pickle are not.
        shared = storage.record if storage.record in self.package.records else id(storage)
        key = (kind, shared, view.dtype)
        if key not in self._names:
            record = self._numbering.take(names.PAYLOADS[kind])
            self._names[key] = record.rpartition("/")[2]
            self.records.append(of_storage(record, storage, DTYPES[view.dtype].itemsize))
        return self._names[key]


def make_plan(package: Package, options: Options) -> Plan:
    """Plan how to move, remove or refuse everything in a package. Reads no tensor.

    Raises:
        UnsupportedError: there is no program in it; an extra file to be dropped that is not there.
        Pt2Error: a program or a list of payloads cannot be read.
    """
    plan = Plan(package, options)
    plan.fill()
    return plan


def _is_header(name: str) -> bool:
    return names.kind(name) == "header" or name == names.PLAIN_VERSION


def _refuse(found: list[str], rule: str, message: str) -> Iterator[Problem]:
    for name in found[:_SHOWN]:
        yield Problem(name, rule, message, "safety")
    if len(found) > _SHOWN:
        yield Problem(f"{len(found) - _SHOWN:,} more records", rule, message, "safety")


def _unmoved(model: str, error: Pt2Error) -> Problem:
    message = f"expected sample inputs that are plain data; drop 'sample-inputs' to leave them out ({error})"
    return Problem(names.sample_inputs(model), "X1", message, "safety")


def _is_current_shape(package: Package, stored: StoredProgram) -> bool:
    """Return whether a program has a record of its own, in the current layout."""
    return package.layout.has_configs and stored.model is None and not stored.is_raised


def _raised(stored: StoredProgram) -> Iterator[str]:
    """Yield the changes of a program's upgrade to the current version, and the data that its container had."""
    yield from map(str, stored.notes)
    if stored.model is not None:
        yield f"a method of the container {show_name(stored.model.name[:100])} became a program of its own"


def _records(payload: AnyView) -> set[str]:
    """Return the names of the records that a payload comes from, among other names of storages."""
    return {payload.record} if isinstance(payload, OpaquePayload | TensorView | MetaView) else set()
