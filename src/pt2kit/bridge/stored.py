"""Common start of `load` and `load_module`: one program of a `.pt2` file, checked, and its payloads live.

Weights that the caller does not want (`include=`) become descriptions without data.

Sample inputs (`ep.example_inputs`) are read in the structure of the program's `in_spec`. The pickle is read as
descriptions of everything in it, known or unknown; nothing it names is imported or called. The tree spec states which
containers the values were in, so objects of registered classes are rebuilt by their registered functions. Inputs with
anything else in them are left out: a program runs without.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from pt2kit import schema, treespec
from pt2kit.bridge.given_weights import Given, given_weights
from pt2kit.bridge.placeholder_types import PICKLED_NAME, stand_in_name
from pt2kit.bridge.read.checked import Checked, check_payloads, check_program, guardable
from pt2kit.bridge.read.pickled_values import (
    MAX_DEPTH,
    MakeValues,
    Payloads,
    PickledValues,
    is_plain_tensor,
    live_tensor,
    load_trusted,
    load_trusted_inputs,
)
from pt2kit.bridge.read.reading import trusted
from pt2kit.bridge.read.tensors import Devices, Moves, Tensors
from pt2kit.bridge.read.treespecs import find_enum, registered_namedtuples
from pt2kit.bridge.torch_names import pytree, walk_specs
from pt2kit.checks.refusals import check_quickly, explained
from pt2kit.checks.stored_inputs import tables_of
from pt2kit.errors import IntegrityError, PayloadError, Pt2Error
from pt2kit.messages import count_text, listed
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, open_package
from pt2kit.package.pickle_free_inputs import read_pickle_free_inputs
from pt2kit.package.samples import in_spec, open_container
from pt2kit.package.stored import Payload
from pt2kit.pickles import values as data
from pt2kit.pickles.reader import globals_in, is_zip, read_payload
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.pickled import FAKE_TENSOR
from pt2kit.tensors.view import TensorView
from pt2kit.treespec.containers import NAMEDTUPLE, FieldTable
from pt2kit.treespec.spec import TreeSpec
from pt2kit.versions.opset_changes import EXPECTED, OperatorChange, convert_opset
from pt2kit.zip.listing import FileLike

_SHOWN: Final = 20
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stored:
    """One program of an open package that may be built.

    Args:
        package: the package.
        name: the program's name in it.
        program: with operators of the expected versions.
        checked: the results of its checks.
        devices: where its tensors go.
        trust: rules, operators and classes that are not refused.
        given: weights to use instead of the file's.
    """

    package: Package
    name: str
    program: schema.ExportedProgram
    checked: Checked
    devices: Devices
    trust: frozenset[str]
    given: Given | None


@contextmanager
def opened_program(
    f: FileLike,
    *,
    device: Moves,
    model: str | None,
    trust: Sequence[str],
    extra_files: dict[str, Any] | None,
    weights: Given | None,
    weights_root: str | os.PathLike[str] | None,
    validates: bool,
    expected: Mapping[str, int] | None = None,
    changes: Sequence[OperatorChange] = (),
) -> Iterator[Stored]:
    """Open one program of a file and check it; let `check` explain what goes wrong with it inside the block.

    The file is opened once, so that one that replaces it in between cannot be mixed with it. Everything that can be
    refused without torch is refused first, then operators and containers that this process lacks.

    Args:
        f, device, model, trust, extra_files, weights, weights_root: as in `pt2kit.load`.
        validates: whether the arguments of unchecked kernels are validated in a run.
        expected, changes: operator sets that the program is converted to, and how.

    Raises:
        TypeError: `trust` is no collection of texts.
        OSError, Pt2Error: the program cannot be read, or is refused.
    """
    allowed = trusted(trust)
    with (
        open_package(f, namedtuples=registered_namedtuples(), weights_root=weights_root) as package,
        explained(package, name := package.choose(model)),
    ):
        devices = devices_of(package, name, device)
        program = _with_operators(package.stored[name].program, name, expected, changes)
        check_quickly(package, name, program, allowed)
        if extra_files is not None:
            extra_files.update(_read_texts(package))
        checked = check_program(program, tables_of(package, name, weights is None), allowed, validates=validates)
        yield Stored(package, name, program, checked, devices, allowed, weights)


def devices_of(package: Package, name: str, device: Moves) -> Devices:
    """Return where the tensors of a program go: as the caller asks, else as its container states."""
    stored = package.stored[name]
    return Devices(stored.model.devices if device is None and stored.model is not None else device)


def _with_operators(
    program: schema.ExportedProgram, model: str, expected: Mapping[str, int] | None, changes: Sequence[OperatorChange]
) -> schema.ExportedProgram:
    """Return the program with operators of the expected versions; changes that cannot be judged are logged."""
    converted = convert_opset(
        program, names.model_json(model), expected={**EXPECTED, **(expected or {})}, changes=changes
    )
    for problem in converted.problems:
        _LOG.warning("%s", problem)
    return converted.program


def _read_texts(opened: Package) -> dict[str, Any]:
    """Return the user's files, as text if they are UTF-8."""
    texts: dict[str, Any] = {}
    for name, content in opened.extra_files.items():
        try:
            texts[name] = str(content, "utf-8")
        except UnicodeDecodeError:
            texts[name] = bytes(content)
    return texts


def read_payloads(
    stored: Stored, tensors: Tensors, values: MakeValues, include: Callable[[str], bool] | None = None
) -> Payloads:
    """Return the weights, constants and sample inputs of a program, live.

    Args:
        stored: the program.
        tensors: makes its tensors.
        values: returns what makes its fake tensors.
        include: which weights to load; the others are left on the meta device. None for all.

    Raises:
        Pt2Error: one cannot be read, is refused, or is not what the program's signature says.
    """
    opened, model, trust = stored.package, stored.name, stored.trust
    weights, constant_views = opened.weights(model), opened.constants(model)
    views = weights if include is None else leave_out(weights, include)
    left_out = {name for name, view in views.items() if view is not weights[name]}
    read = {name: view for name, view in views.items() if stored.given is None or name in left_out}
    tensors.read([*read.values(), *constant_views.values()])
    state_dict = {name: _payload(view, tensors, values, trust) for name, view in read.items()}
    if not opened.layout.parts(model).configs:
        state_dict = _as_objects(state_dict, read)
    if stored.given is not None:
        wanted = {name: view for name, view in views.items() if name not in left_out}
        state_dict |= given_weights(stored.given, wanted, tensors, left_out)
        state_dict = {name: state_dict[name] for name in views}
    constants = {name: _payload(view, tensors, values, trust) for name, view in constant_views.items()}
    without = [view.name for views in (read, constant_views) for view in views.values() if _is_without_data(view)]
    if without:
        shown = listed(without, _SHOWN)
        _LOG.warning(
            "%s saved without data, on the meta device: %s; fill them with load_state_dict(..., assign=True)",
            count_text(len(without), "tensor"),
            shown,
        )
    examples = guardable(_sample_inputs(stored, tensors, values), stored.checked.signature.input_specs)
    check_payloads(stored.checked, state_dict, constants)
    return Payloads(state_dict, constants, examples)


def _as_objects(state_dict: dict[str, Any], views: Mapping[str, Payload]) -> dict[str, Any]:
    """Return the state dict with one object for each in a torch.save file: tied weights are one parameter there."""
    object_by_view: dict[Any, Any] = {}
    for name, view in views.items():
        if isinstance(view, TensorView):
            key = replace(view, name="")
            state_dict[name] = object_by_view.setdefault(key, state_dict[name])
    return state_dict


def _is_without_data(view: Payload) -> bool:
    """Return whether a tensor was saved without its data; one that was on the meta device never had any."""
    return isinstance(view, MetaView) and view.device.type != "meta"


def _payload(view: Payload, tensors: Tensors, values: MakeValues, trust: Set[str]) -> Any:
    if not isinstance(view, OpaquePayload):
        return tensors.any(view)
    if view.kind == "opaque" and is_zip(view.buffer()):
        # A constant of torch 2.8 or older: one entry of a torch.save file.
        entries = load_trusted(replace(view, kind="pickle"), trust, tensors.devices)
        if not isinstance(entries, dict) or view.name not in entries:
            raise PayloadError(f"{view.where}: expected a dict with that name, got a {type(entries).__name__}")
        return entries[view.name]
    if not is_plain_tensor(view, {FAKE_TENSOR}):
        return load_trusted(view, trust, tensors.devices)
    return live_tensor(view, tensors, values)


def _sample_inputs(
    stored: Stored, tensors: Tensors, values: MakeValues
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the example inputs of a program: arguments and keyword arguments.

    None if there are none, or none that can be rebuilt (the log has the reason).
    """
    opened, model, checked = stored.package, stored.name, stored.checked
    record = opened.layout.sample_inputs_record(model)
    payload = opened.archive.read(record) if record is not None else memoryview(b"")
    where = record or opened.layout.record(names.sample_inputs(model))
    live, sources = checked.calls[0].signature.in_spec, checked.sources
    rebuilt = PickledValues(where, tensors, values)
    try:
        moved = None if payload else read_pickle_free_inputs(opened.layout, model)
        if not payload and moved is None:
            return None
        if payload and sources is None:
            inputs = load_trusted_inputs(payload, where, stored.trust, tensors.devices)
            if isinstance(inputs, tuple) and len(inputs) == 2:
                return inputs
        spec, fields = in_spec(opened.programs[model], where)
        leaves = _pickled_leaves(payload, where, spec, fields, live) if moved is None else moved.leaves
        if moved is not None and len(leaves) != (wanted := treespec.leaf_count(spec)):
            raise PayloadError(f"{moved.where}: leaves: expected {wanted}, got {len(leaves)}")
        made = [rebuilt.live(leaf) for leaf in leaves]
    except Pt2Error as error:
        if isinstance(error, IntegrityError) and not payload:
            raise  # A record of the archive itself; what torch.save wrote may be unreadable.
        _LOG.warning("sample inputs are left out: %s", error)
        return None
    if sources is not None:
        made = [None if source is None else made[source] for source in sources]
    try:
        args, kwargs = pytree.tree_unflatten(made, live)
    except Exception as error:  # noqa: BLE001 - The constructor of a library's container may raise anything.
        what = type(error).__name__
        _LOG.warning("sample inputs are left out: a container could not be built: %s: %s", what, error)
        return None
    return args, kwargs


def _pickled_leaves(
    payload: memoryview, where: str, spec: TreeSpec, fields: FieldTable, live: pytree.TreeSpec
) -> Sequence[Any]:
    """Return the leaves of pickled sample inputs, and set the pickled names of placeholder classes in `live`."""
    described = read_payload(payload, where, trust=frozenset(globals_in(payload, where)))
    fields_by_kind = treespec.names_of_fields(spec, where, fields)
    named_tuples: list[str] = []  # that were opened, in the order of `treespec.walk`

    def expand(kind: str, value: object) -> Sequence[object] | None:
        if isinstance(value, data.NamedTuple) and kind == NAMEDTUPLE:
            named_tuples.append(value.class_name)
        elif isinstance(value, data.Opaque) and isinstance(value.state, dict):
            own = fields_by_kind.get(kind)
            if own and all(name in value.state for name in own):
                return [value.state[name] for name in own]
        return open_container(kind, value)

    leaves = treespec.flatten(_plain_keys(described), spec, where, fields=fields, expand=expand)
    opened = [treespec.namedtuple_name(node, where) for node in treespec.walk(spec) if node.type == NAMEDTUPLE]
    pickled = dict(zip(opened, named_tuples, strict=True))
    for part in walk_specs(live):
        name = stand_in_name(part.context)
        if name in pickled:
            setattr(part.context, PICKLED_NAME, pickled[name])
    return leaves


def leave_out(weights: Mapping[str, Payload], include: Callable[[str], bool]) -> dict[str, Payload]:
    """Replace unwanted weights by descriptions on the meta device.

    Args:
        weights: the weights of a program.
        include: whether a name is wanted; called once for each.

    Returns:
        All of them, in their order. Those not wanted are descriptions on the meta device, with their ties. A weight
        that shares memory with a wanted one is wanted, too, and so is anything but a dense tensor: only its data
            describe it.
    """
    names = {name for name in weights if include(name)}
    wanted = {view.storage for name, view in weights.items() if name in names and isinstance(view, TensorView)}
    return {
        name: view if name in names or not isinstance(view, TensorView) or view.storage in wanted else _described(view)
        for name, view in weights.items()
    }


def _described(view: TensorView) -> MetaView:
    return MetaView(
        view.name,
        view.dtype,
        view.sizes,
        view.strides,
        requires_grad=view.requires_grad,
        is_param=view.is_param,
        storage_offset=view.storage_offset,
        tie=view.storage.record if view.storage.nbytes else "",
    )


def _plain_keys(value: Any, depth: int = 0) -> Any:
    """Return the same description, with the enum members among the keys of dicts as tree specs have them."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        items = [(_key(key), _plain_keys(item, depth + 1)) for key, item in value.items()]
        return OrderedDict(items) if isinstance(value, OrderedDict) else dict(items)
    if type(value) in (list, tuple):
        return type(value)(_plain_keys(item, depth + 1) for item in value)
    return value


def _key(key: Any) -> Any:
    """Return a dict key; an enum member is pickled as a call of its class with its value."""
    if isinstance(key, data.Opaque) and len(key.args) == 1:
        fqn = f"{key.cls.module}:{key.cls.name}"
        for member in find_enum(fqn) or ():
            if type(member.value) is type(key.args[0]) and member.value == key.args[0]:
                return treespec.EnumKey(fqn, member.name)
    return key
