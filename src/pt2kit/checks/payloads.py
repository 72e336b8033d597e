"""Checks of weights and constants: records, signature and graph (rules P1 to P23, A25), external files (B2 to B7).

`package.weights` stops at the first error. Where payloads are records of their own, each entry is checked here by
itself, so that all errors are reported.

External payloads are files next to an archive, checked for existence, size and digest. They are opened and their
headers read; bytes are compared with their SHA-256 where all payloads are read anyway.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from pt2kit import codec, schema
from pt2kit.checks.findings import ProgramContext, guarded, problem_of
from pt2kit.checks.stored_inputs import mutated_inputs
from pt2kit.dataflow.engine import changed_inputs
from pt2kit.errors import GraphError, LimitError, PayloadError, Problem, Pt2Error
from pt2kit.jsontext import path_text
from pt2kit.messages import cut, quote
from pt2kit.package import record_names as names
from pt2kit.package.external_list import RECORD
from pt2kit.package.open import Package
from pt2kit.package.stored import Payload
from pt2kit.schema.names import is_reserved
from pt2kit.signature.consistency import is_target
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import check_copy
from pt2kit.tensors.compound import MetaView, NestedView, SparseView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.payload import check_against, views_from_config
from pt2kit.tensors.view import TensorView
from pt2kit.zip.reader import Storage

_CONFIG: Final = "_config.json"
_OF_RECORDS: Final = (TensorView, OpaquePayload)

_NOUNS: Final = {
    "parameter": "a parameter",
    "buffer": "a buffer",
    "tensor_constant": "a tensor",
    "custom_obj": "an object",
}
"""Kind of an input -> its payload, for messages."""

_SHOWN: Final = 5
_OF_FILES: Final = frozenset(("B2", "B3", "B4"))


@dataclass(slots=True)
class Stored:
    """The payloads of one program, as far as they can be read; `read_stored` fills it.

    Args:
        places: the records that list weights and constants.
        weights, constants: name -> payload; None where the record that lists them cannot be read.
        broken: names of entries that are there but cannot be read.
        records: full names of the records that entries name.
        unknown: places of keys that the schema of configs does not have.
        problems: why others cannot be read.
        storages: record -> its bytes, which entries share.
    """

    places: tuple[str, str]
    weights: Mapping[str, Payload] | None = None
    constants: Mapping[str, Payload] | None = None
    broken: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    storages: dict[str, Storage] = field(default_factory=dict)

    def tables(self) -> tuple[Mapping[str, Payload] | None, Mapping[str, Payload] | None]:
        """Return the weights and the constants."""
        return self.weights, self.constants


def read_stored(package: Package, model: str) -> tuple[Stored, list[Problem]]:
    """Read the payloads of one program that are stored, and report those that cannot be read.

    Args:
        package: the file.
        model: the name of the program.
    """
    problems: list[Problem] = []
    places = _places(package, model, problems)
    stored = Stored(places, problems=problems)
    stored.weights = _read(package, package.weights, model, places[0], names.WEIGHTS, stored)
    stored.constants = _read(package, package.constants, model, places[1], names.CONSTANTS, stored)
    return stored, list(dict.fromkeys(problems))


def _places(package: Package, model: str, problems: list[Problem]) -> tuple[str, str]:
    """Return the records that list a model's weights and constants, below the root folder."""
    weights, constants = names.weights_config(model), names.constants_config(model)
    try:
        model_parts = package.layout.parts(model)
    except Pt2Error as error:
        if package.layout.record(weights) in package.records:
            problems.append(problem_of(error, weights, package.name))
        return weights, constants
    return package.relative(model_parts.weights or weights), package.relative(model_parts.constants or constants)


def _read(
    package: Package,
    access: Callable[[str], Mapping[str, Payload]],
    model: str,
    listing: str,
    folder: str,
    stored: Stored,
) -> Mapping[str, Payload] | None:
    """Return weights or constants: entry by entry if a config lists them, else as the package has them."""
    full = package.layout.record(listing)
    try:
        if full not in package.records or not listing.endswith(_CONFIG):
            return access(model)
        decoded = codec.decode(package.archive.read(full), schema.PayloadConfig, listing)
    except Pt2Error as error:
        stored.problems.append(problem_of(error, listing, package.name))
        return None
    stored.unknown += [f"{listing}: {key}" for key in decoded.unknown]
    return _entries(package, decoded.value, package.layout.record(folder), listing, stored)


def _entries(
    package: Package, config: schema.PayloadConfig, folder: str, where: str, stored: Stored
) -> dict[str, Payload]:
    """Read the entries of one config, each by itself."""
    views: dict[str, Payload] = {}
    for name, meta in config.config.items():
        stored.records.add(folder + meta.path_name)
        try:
            one = schema.PayloadConfig({name: meta})
            views |= views_from_config(one, package.archive, folder=folder, where=where, storages=stored.storages)
        except Pt2Error as error:
            stored.broken.add(name)
            stored.problems.append(problem_of(error, where, package.name))
    good = schema.PayloadConfig({name: meta for name, meta in config.config.items() if name in views})
    try:
        views_from_config(good, package.archive, folder=folder, where=where)
    except Pt2Error as error:  # Two entries that contradict one another (P11).
        stored.problems.append(problem_of(error, where, package.name))
    return views


def payload_problems(context: ProgramContext, stored: Stored) -> Iterator[Problem]:
    """Yield payloads that the signature names and that are missing (P19) or of another type (P5, P14)."""
    values = context.program.graph_module.graph.tensor_values
    yield from taken_twice_problems(context, stored)
    yield from _reserved_names(context, stored)
    yield from _broken_pickles(stored)
    trained = {
        one.record
        for one in (stored.weights or {}).values()
        if isinstance(one, TensorView) and one.is_param and one.requires_grad
    }
    for name in sorted({*(stored.weights or {})} & {*(stored.constants or {})}):
        message = f"expected {quote(name)} among the weights or the constants, got it in both"
        yield Problem(stored.places[1], "P24", message)
    for place, spec, target in context.targets():
        is_weight = spec.type == "parameter" or getattr(spec.value, "persistent", False)
        table = stored.weights if is_weight else stored.constants
        if table is not None and target in table:
            meta = values.get(spec.value.arg.name)
            yield from guarded(_compare(spec, table[target], meta, context.record, place), place)
            yield from _gradient_problems(spec, table[target], meta, context, trained)
        elif table is not None and target not in stored.broken:
            expected = f"{_NOUNS[spec.type]} among the {'weights' if is_weight else 'constants'}"
            message = f"expected {expected} with the name {quote(target)}, got none of that name"
            yield Problem(place, "P19", message)


def _compare(
    spec: schema.InputSpec, payload: Payload, meta: schema.TensorMeta | None, record: str, place: str
) -> Iterator[Problem]:
    """Compare a payload with the signature and the graph."""
    if spec.type == "parameter" and not getattr(payload, "is_param", True):
        yield Problem(place, "P19", f"expected {quote(payload.name)} to be stored as a parameter, got one that is not")
    if spec.type != "custom_obj" and isinstance(payload, OpaquePayload) and payload.kind != "pickle":
        yield Problem(place, "P19", f"expected {quote(payload.name)} to be a tensor, got a {payload.kind} object")
    if isinstance(payload, MetaView):
        yield from _without_data(payload, place)
    if meta is None or not isinstance(payload, (TensorView, MetaView)):
        return
    # The value's meta is in the graph's table of tensors.
    where = f"{record}: {path_text(('graph_module', 'graph', 'tensor_values', spec.value.arg.name))}"
    if isinstance(payload, TensorView) and meta.layout is not payload.layout:
        message = (
            f"expected the layout {payload.layout.name}, as {quote(payload.name)} is stored, got {meta.layout.name}"
        )
        yield Problem(where, "P5", message)
    try:
        check_against(payload, meta, where)
    except Pt2Error as error:
        yield problem_of(error, where)
    else:
        yield from _stride_problems(payload, meta, where)


def _gradient_problems(
    spec: schema.InputSpec, payload: Payload, meta: schema.TensorMeta | None, context: ProgramContext, trained: Set[str]
) -> Iterator[Problem]:
    """Report payloads that require a gradient where the graph does not, or the reverse (P14), as a warning.

    Torch and `load` accept them.

    A detached view of a parameter requires one after torch read and wrote the program: torch makes it from the
    parameter again. A buffer that the program writes to is described as it is at the end of the trace.
    """
    if spec.type == "parameter" or meta is None or not isinstance(payload, (TensorView, MetaView)):
        return
    if payload.requires_grad is meta.requires_grad or (payload.requires_grad and payload.record in trained):
        return
    name = spec.value.arg.name
    if meta.requires_grad and name in _written(context):
        return
    message = f"expected {quote(payload.name)} to require a gradient as in the graph, {meta.requires_grad}, got "
    where = f"{context.record}: {path_text(('graph_module', 'graph', 'tensor_values', name))}"
    yield Problem(where, "P14", f"{message}{payload.requires_grad}", "warning")


def _written(context: ProgramContext) -> Set[str]:
    """Return the values that a program writes to: by an output, or by a call, also through a view or in a subgraph."""
    mutated = {name for _, names in mutated_inputs(context.program.graph_module.signature) for name in names}
    try:
        return mutated | changed_inputs(context.program, context.release)
    except (GraphError, LimitError):  # rules of their own
        return context.program.graph_module.graph.tensor_values.keys()


def _reserved_names(context: ProgramContext, stored: Stored) -> Iterator[Problem]:
    """Report payloads without an input whose names can be no attributes, or are those that modules have (S10)."""
    targets = {target for *_, target in context.targets()}
    for listing, table in zip(stored.places, stored.tables(), strict=True):
        for name in table or ():
            if name not in targets and (is_reserved(name) or not is_target(name)):
                place = f"{listing}: {path_text(('config', cut(name)))}"
                expected = "a name that modules do not have as an attribute"
                expected = expected if is_reserved(name) else "names with dots between them, without double quotes"
                yield Problem(place, "S10", f"expected {expected}, got {quote(name)}")


def _broken_pickles(stored: Stored) -> Iterator[Problem]:
    """Report payloads that are marked as pickled and begin otherwise (P22), also those without an input."""
    for payload in itertools.chain.from_iterable((table or {}).values() for table in stored.tables()):
        if isinstance(payload, OpaquePayload) and not payload.is_as_written:
            message = f"expected what torch.save or pickle writes as {quote(payload.name)}, got other bytes"
            yield Problem(payload.record, "P22", message)


def _stride_problems(payload: TensorView | MetaView, meta: schema.TensorMeta, where: str) -> Iterator[Problem]:
    """Report strides that the graph does not have (P14): a warning, as the numbers are those that are stored."""
    declared = [stride.as_int for stride in meta.strides]
    rows = zip(payload.sizes, payload.strides, declared, strict=False)
    if 0 not in payload.sizes and any(
        size != 1 and isinstance(wanted, int) and got != wanted for size, got, wanted in rows
    ):
        shown = ", ".join("?" if not isinstance(one, int) else str(one)[:24] for one in declared)
        message = (
            f"payload {quote(payload.name)}: strides: expected [{shown}] as in the graph, got {list(payload.strides)}"
        )
        yield Problem(where, "P14", message, "warning")


def taken_twice_problems(context: ProgramContext, stored: Stored) -> Iterator[Problem]:
    """Yield inputs with the payload of another input, if a similar payload has no input (P23).

    Tied weights have two inputs as well; then the tensor under the other name shares its record.
    """
    taken = [(place, target) for place, _, target in context.targets()]
    counts = Counter(name for _, name in taken)
    tables = {**(stored.constants or {}), **(stored.weights or {})}
    views = {name: payload for name, payload in tables.items() if isinstance(payload, TensorView)}
    records = {views[name].record for name in counts if name in views}
    left = [view for name, view in views.items() if name not in counts and view.record not in records]
    for place, name in taken:
        view = views.get(name)
        if counts[name] > 1 and view is not None:
            like = next((one for one in left if (one.dtype, one.sizes) == (view.dtype, view.sizes)), None)
            if like is not None:
                message = (
                    f"expected one input to take {quote(name)}, got {counts[name]}, while {quote(like.name)} has none"
                )
                yield Problem(place, "P23", message)


def _without_data(payload: MetaView, place: str) -> Iterator[Problem]:
    """Yield the payloads that the file itself declares to have no data."""
    where = payload.record or place
    if payload.device.type == "meta":
        yield Problem(where, "P6", f"{quote(payload.name)} is on the meta device, which holds no data", "note")
    else:
        message = f"{quote(payload.name)} was saved without data: its record is empty"
        yield Problem(where, "P9", message, "note")


def unused_problems(package: Package, used: Mapping[str, tuple[ProgramContext | None, Stored]]) -> Iterator[Problem]:
    """Yield payloads that no program uses, and records that no config names (P20).

    An entry without a use is a note: export keeps state that it found no use for. A name that shares its record with
    one that is used is a tie and costs nothing.

    Args:
        package: the file.
        used: model -> its program, None where it cannot be read, and what is stored of it.
    """
    named: set[str] = set()
    for context, stored in used.values():
        named |= stored.records
        if context is not None:
            yield from _unused_entries(context, stored)
    if any(context is None or None in stored.tables() for context, stored in used.values()):
        return
    for record in package.records:
        kind = names.kind(package.relative(record))
        if kind in ("weight", "tensor constant", "custom object", "opaque object") and record not in named:
            message = f"expected records that a config names, got one of {package.records[record].size:,} bytes without"
            yield Problem(package.relative(record), "P20", message, "warning")


def _unused_entries(context: ProgramContext, stored: Stored) -> Iterator[Problem]:
    targets = {target for *_, target in context.targets()}
    for listing, table in zip(stored.places, stored.tables(), strict=True):
        records = {name: payload.record for name, payload in (table or {}).items() if isinstance(payload, _OF_RECORDS)}
        shared = {record for name, record in records.items() if name in targets}
        for name, record in records.items():
            if name not in targets and record not in shared:
                place = f"{listing}: {path_text(('config', name)) if listing.endswith(_CONFIG) else quote(name)}"
                message = f"no input of the program is {quote(name)}, which is stored with it"
                yield Problem(place, "P20", message, "note")


def number_problems(
    stored: Stored, file: str = "", advance: Callable[[int], object] = lambda count: None
) -> Iterator[Problem]:
    """Read the tensors, and yield those with values that are no numbers (P13, P21), indices or offsets outside of a
    tensor of another layout (P17), and pickled tensors that contradict themselves (P22).

    Args:
        stored: the payloads of a program.
        file: the name of the file, which errors begin with.
        advance: called with the bytes of each piece that was read.

    NaN is a warning; infinities, which masks are made of, are a note. Reads one tensor at a time and keeps none.
    """
    for name, payload in itertools.chain.from_iterable((table or {}).items() for table in stored.tables()):
        try:
            if isinstance(payload, TensorView) and DTYPES[payload.dtype].kind in ("float", "complex", "bool"):
                yield from _numbers(name, payload, advance)
            elif isinstance(payload, SparseView):
                payload.check_indices()
            elif isinstance(payload, NestedView):
                payload.tensors()
            elif isinstance(payload, OpaquePayload) and payload.kind == "pickle" and payload.is_as_written:
                payload.view()
        except Pt2Error as error:
            # Pickled tensors that only code can rebuild are left to X2.
            if isinstance(error, PayloadError) or not isinstance(payload, OpaquePayload):
                yield problem_of(error, payload.record, file)


def _numbers(name: str, view: TensorView, advance: Callable[[int], object]) -> Iterator[Problem]:
    """Report the elements of a tensor that are NaN, or infinite; repeated ones count once."""
    plain = arrays.without_repeats(view.over(view.storage.read(keep=False)))
    check_copy(view.where, plain.nbytes, view.storage.nbytes)
    nans, infinities = 0, 0
    for block in arrays.blocks(plain):
        numbers = arrays.values(block, view.dtype, wide=True)
        for part in (numbers.real, numbers.imag) if DTYPES[view.dtype].kind == "complex" else (numbers,):
            nans += int((part != part).sum())
            infinities += int((abs(part) == math.inf).sum())
        advance(block.nbytes)
    if nans:
        message = f"expected numbers in {quote(name)}, got {nans:,} NaN among {view.numel:,} elements"
        yield Problem(view.record, "P21", message, "warning")
    elif infinities:
        message = f"{infinities:,} of the {view.numel:,} elements of {quote(name)} are infinite"
        yield Problem(view.record, "P21", message, "note")


def external_problems(package: Package) -> Iterator[Problem]:
    """Yield problems of the external payloads of a package; first a note that external payloads exist (B7)."""
    if not package.external:
        return
    files = list(dict.fromkeys(row.url for row in package.external.values()))
    total = sum(row.nbytes for row in package.external.values())
    shown = ", ".join(ascii(url)[1:-1] for url in files[:_SHOWN]) + (", …" if len(files) > _SHOWN else "")
    yield Problem(
        RECORD,
        "B7",
        f"{len(package.external):,} of the payloads ({total:,} bytes) are in {shown}: torch does not read such a file, "
        "pt2 convert makes it whole",
        "note",
    )
    broken: set[str] = set()
    for record, row in package.external.items():
        if row.url in broken:
            continue
        try:
            package.archive.place_of(package.layout.record(record))
        except Pt2Error as error:
            yield problem_of(error, RECORD, package.name)
            if error.rule in _OF_FILES:
                broken.add(row.url)
