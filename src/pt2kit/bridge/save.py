"""Save live programs as a `.pt2` file, or in memory: `save` and `serialize`, the counterparts of torch's own.

The inputs that a program was exported with are written as a torch.save file, the format's form of sample inputs.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import IO, Any

import torch
from torch.export import ExportedProgram

from pt2kit import codec, schema
from pt2kit.bridge.placeholder_types import PICKLED_NAME, STAND_IN_NAME, pickled_name, placeholders_in
from pt2kit.bridge.torch_names import FakeTensor, disable_current_modes, not_traced, pytree, schema_version
from pt2kit.bridge.write.payloads import Payloads
from pt2kit.bridge.write.program import write_program
from pt2kit.bridge.write.values import Values
from pt2kit.errors import ArchiveError, UnsupportedError, placed
from pt2kit.package import record_names as names
from pt2kit.package.plan import PlannedRecord, header, of_bytes, write_records
from pt2kit.release.conversion import convert
from pt2kit.release.destinations import find_destination
from pt2kit.tensors.pickled import FAKE_TENSOR
from pt2kit.versions.conversion_log import HARMLESS
from pt2kit.versions.program import downgrade_program
from pt2kit.zip.writer import ArchiveWriter

DEFAULT_PICKLE_PROTOCOL = 2


@dataclass(frozen=True, slots=True)
class Artifact:
    """A program in memory, ready to be written or read back.

    Args:
        exported_program: everything but the tensors.
        weights: the description of each name of the state dict; `records` hold the bytes.
        constants: likewise, for constants.
        records: tensors and objects; they view the live program's storages and copy nothing before they are read.
        sample_inputs: a torch.save file; empty where the program has none.
        version: the schema version in which the program is written: the one of the torch that is installed.
    """

    exported_program: schema.ExportedProgram
    weights: schema.PayloadConfig
    constants: schema.PayloadConfig
    records: tuple[PlannedRecord, ...]
    sample_inputs: memoryview
    version: str = schema.CURRENT.number

    @disable_current_modes()
    def write(self, f: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write it as a `.pt2` file with one program, "model"."""
        with ArchiveWriter(f) as writer:
            write_records(writer, (*_model_records("model", self), *header(sys.byteorder)))

    def to_bytes(self) -> bytes:
        """Return the `.pt2` file as bytes."""
        buffer = io.BytesIO()
        self.write(buffer)
        return buffer.getvalue()


@not_traced
@disable_current_modes()
def serialize(
    ep: ExportedProgram,
    opset_version: Mapping[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
) -> Artifact:
    """Turn a live program into data, in memory.

    Args:
        ep: the program; it is not changed.
        opset_version: operator namespace -> version, in addition to that of aten.
        pickle_protocol: for the parts of the format that are pickles.

    Returns:
        An artifact that shares the program's tensors.

    Raises:
        TypeError: `ep` is no ExportedProgram.
        Pt2Error: something that the format cannot hold, with its node, operator and argument.
    """
    _check_program(ep, "ep")
    return _serialize(ep, opset_version, Payloads(pickle_protocol), pickle_protocol, own_version().number)


@not_traced
@disable_current_modes()
def save(
    ep: ExportedProgram | Mapping[str, ExportedProgram],
    f: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: Mapping[str, str | bytes] | None = None,
    opset_version: Mapping[str, int] | None = None,
    pickle_protocol: int = DEFAULT_PICKLE_PROTOCOL,
    target: str | None = None,
    fsync: bool = False,
    compress: bool = True,
) -> None:
    """Save a program, or several in one archive, as a `.pt2` file that torch.export.load and pt2kit.load read.

    The file equals that of the installed release of torch, with the schema version of that release.

    Args:
        ep: the program, which gets the name "model", or name -> program.
        f: a path, replaced whole or not at all, or a binary file object, which is rewound afterwards if it can be.
        extra_files: name -> content of files that go along; text is stored as UTF-8.
        opset_version: operator namespace -> version, in addition to that of aten.
        pickle_protocol: for the parts that are pickles: sample inputs, tensor subclasses, opaque objects.
        target: another release of torch, whose file it is to be ("2.9", "torch==2.9"): what is saved goes through a
            temporary file (next to `f` if that is a path) and `pt2kit.convert`.
        fsync: wait for the disk also where no file is replaced; replacing one always does.
        compress: deflate the JSON; False stores it, for readers in other languages that accept stored records only.

    Raises:
        TypeError: an argument of another type.
        VersionError: no such target.
        ConversionError: something that the version of the schema, or the target, cannot express, with all places.
        Pt2Error: something that the format cannot hold, with its node, operator and argument; the target was not
            touched.
        OSError: the target cannot be written.

    Cost: linear in the number of nodes; the tensors' bytes are written from where they are.

    Source: `save` in torch/export/__init__.py and `package_pt2` in torch/export/pt2_archive/_package.py, 2.13.
    """
    own = own_version()
    if target is None and not find_destination(own.number).layout.has_configs:
        target = own.releases[0]  # up to torch 2.8 the records are others
    if target is None:
        _save(ep, f, extra_files, opset_version, pickle_protocol, own.number, fsync, compress)
    else:  # with the current version of the schema, and convert the result
        release = f"torch=={target.removeprefix('torch==')}"
        find_destination(release)  # before anything is written
        folder = os.path.dirname(os.path.abspath(f)) if isinstance(f, (str, os.PathLike)) else None
        with tempfile.TemporaryFile(dir=folder) as whole:
            _save(ep, whole, extra_files, opset_version, pickle_protocol, schema.CURRENT.number)
            whole.seek(0)
            convert(whole, f, target=release, opset_version=opset_version, fsync=fsync, compress=compress)
    if isinstance(f, (io.IOBase, IO)) and f.seekable():
        f.seek(0)


def _save(
    ep: ExportedProgram | Mapping[str, ExportedProgram],
    f: str | os.PathLike[str] | IO[bytes],
    extra_files: Mapping[str, str | bytes] | None,
    opset_version: Mapping[str, int] | None,
    pickle_protocol: int,
    version: str,
    fsync: bool = False,
    compress: bool = True,
) -> None:
    programs = ep if isinstance(ep, Mapping) else {"model": ep}
    for name, program in programs.items():
        _check_program(program, f"ep[{name!r}]" if isinstance(ep, Mapping) else "ep")
    extra = {name: _content(name, content) for name, content in (extra_files or {}).items()}
    _check_names(programs, extra)
    payloads = Payloads(pickle_protocol)
    records: list[PlannedRecord] = []
    for name, program in programs.items():
        with placed(f"program {name!r}") if len(programs) > 1 else nullcontext():
            artifact = _serialize(program, opset_version, payloads, pickle_protocol, version)
            records += _model_records(name, artifact)
    records += (of_bytes(names.extra(name), content) for name, content in extra.items())
    with ArchiveWriter(f, fsync=fsync, compress=compress) as writer:
        write_records(writer, (*records, *header(sys.byteorder)))


def own_version() -> schema.Version:
    """Return the version of the schema that the installed torch writes, or the newest known one before it."""
    return max((row for row in schema.LOG if row.pair <= schema_version() and row.releases), key=lambda row: row.pair)


def _serialize(ep: Any, opsets: Mapping[str, int] | None, payloads: Payloads, protocol: int, version: str) -> Artifact:
    """Do everything that can fail; `payloads` may hold other programs' records already."""
    known = len(payloads.records)
    program, shared = write_program(ep, opsets)
    weights = payloads.weights(ep.state_dict, shared.values)
    constants = payloads.constants(ep.constants, shared.objects, shared.values)
    inputs = write_sample_inputs(ep.example_inputs, shared.values, protocol)
    return Artifact(program, weights, constants, tuple(payloads.records[known:]), inputs, version)


def _model_records(name: str, artifact: Artifact) -> tuple[PlannedRecord, ...]:
    """Return the records of one program, in the order in which torch writes them."""
    return (
        *artifact.records,
        of_bytes(names.weights_config(name), codec.encode(artifact.weights), deflate=True),
        of_bytes(names.constants_config(name), codec.encode(artifact.constants), deflate=True),
        of_bytes(names.model_json(name), _program_text(artifact.exported_program, artifact.version), deflate=True),
        of_bytes(names.sample_inputs(name), artifact.sample_inputs),
    )


def _program_text(program: schema.ExportedProgram, version: str) -> bytes:
    """Return the JSON of a program, as a version of the schema has it.

    Raises:
        ConversionError: the version cannot express it; all places are listed (M3).
    """
    if version == schema.CURRENT.number:
        return codec.encode(program)
    allow = HARMLESS | {"unreadable"}  # torch saves such a program, too
    lowered = downgrade_program(codec.to_tree(program), version, "the program", allow=allow)
    return lowered.encode("the program")


def _check_program(value: Any, name: str) -> None:
    if not isinstance(value, ExportedProgram):
        raise TypeError(f"{name}: expected an instance of ExportedProgram, got {type(value).__name__}")


def _check_names(models: Iterable[str], extra: Iterable[str]) -> None:
    """Try the names that the caller chose on an archive that is not written anywhere.

    Raises:
        ArchiveError, LimitError: a name that no record can have, or that is taken.
    """
    with ArchiveWriter(io.BytesIO()) as writer:
        for model in models:
            if names.model_name(names.model_json(model)) != model:
                raise ArchiveError(f"ep: expected names of programs that a record can have, got {model!r}")
            for record in (names.weights_config, names.constants_config, names.model_json, names.sample_inputs):
                writer.write(record(model), b"")
        for name in extra:
            writer.write(names.extra(name), b"")


def _content(name: Any, content: Any) -> bytes:
    if not isinstance(name, str) or not isinstance(content, (str, bytes)):
        raise TypeError(
            f"extra_files: expected names and contents as text or bytes, got {type(name).__name__}: "
            f"{type(content).__name__}"
        )
    return content.encode() if isinstance(content, str) else content


_LOG = logging.getLogger(__name__)
# The pickler written in Python produces the same bytes as the one in C, which writes only names that it can import.
_PURE_PICKLER: Any = vars(pickle)["_Pickler"]
_CLASS = re.compile(r"\w+(\.\w+)+")
_RECONSTRUCT = type("_reconstruct_fake_tensor", (), {STAND_IN_NAME: FAKE_TENSOR, PICKLED_NAME: FAKE_TENSOR})
"""Placeholder for torch's function of that name, whose module imports torch's compiler."""


def write_sample_inputs(inputs: Any, values: Values, protocol: int) -> memoryview:
    """Return the record of a program's `(args, kwargs)`; empty if it has none.

    Args:
        inputs: as the live program holds them.
        values: makes the metas of fake tensors, which are written without bytes.
        protocol: of the pickle.

    Raises:
        UnsupportedError: something in them cannot be pickled.

    Source: `serialize_torch_artifact` in torch/_export/serde/serialize.py, 2.13.
    """
    if inputs is None:
        return memoryview(b"")
    spec = pytree.tree_structure(inputs)
    if missing := placeholders_in(spec):
        _LOG.warning("sample inputs are left out: no class is registered as %s", ", ".join(sorted(missing)))
        return memoryview(b"")
    buffer = io.BytesIO()
    with placed("sample inputs"):
        try:
            module = _pickle_module(values)
            torch.save(_unshared(inputs), buffer, pickle_module=module, pickle_protocol=protocol)
        except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, RecursionError) as error:
            raise UnsupportedError(f"expected values that can be pickled: {error}") from error
    # Not a view of the buffer itself: Python 3.12.1 crashes if it collects one whose buffer is gone.
    return memoryview(buffer.getvalue())


def _unshared(inputs: Any) -> Any:
    """Return inputs in which no container occurs twice, as reading returns them."""
    seen: list[Any] = []

    def note(value: Any) -> bool:
        seen.append(value)
        return False

    leaves, spec = pytree.tree_flatten(inputs, is_leaf=note)
    containers = Counter(map(id, seen)) - Counter(map(id, leaves))
    return pytree.tree_unflatten(leaves, spec) if max(containers.values(), default=0) > 1 else inputs


def _pickle_module(values: Values) -> Any:
    """Return Python's pickle, with torch's form for fake tensors, and without attributes that others set on tensors.

    `Dim.DYNAMIC` leaves a mark on the caller's tensors. Reading drops it, and a file must not change by being read.
    For the same reason equal texts are one object.

    torch puts that form into the process-wide table of `copyreg` while it saves; a pickler of our own lets two threads
    save in parallel.
    """

    def reduce_tensor(self: Any, value: Any) -> Any:
        if type(value) is torch.Tensor and vars(value):
            return value.detach().requires_grad_(value.requires_grad).__reduce_ex__(self.proto)
        if not isinstance(value, FakeTensor):
            return NotImplemented
        meta = codec.encode(values.tensor_meta(value))
        return _RECONSTRUCT, (meta, isinstance(value, torch.nn.Parameter))

    def save_value(self: Any, obj: Any, save_persistent_id: bool = True) -> None:
        _PURE_PICKLER.save(self, sys.intern(obj) if type(obj) is str else obj, save_persistent_id)

    overrides = {"reducer_override": reduce_tensor, "save_global": _save_global, "save": save_value}
    pickler = type("Pickler", (_PURE_PICKLER,), overrides)
    return SimpleNamespace(**{**vars(pickle), "Pickler": pickler})


def _save_global(self: Any, obj: Any, name: str | None = None) -> None:
    """Write a class or function; a placeholder class as the class that it represents."""
    stored = pickled_name(obj)
    if stored is None:
        _PURE_PICKLER.save_global(self, obj, name)
        return
    if not _CLASS.fullmatch(stored):
        raise UnsupportedError(f"expected named tuples whose class can be named in a pickle, got {stored[:80]!a}")
    module, _, last = stored.rpartition(".")
    if self.proto >= 4:
        self.save(module)
        self.save(last)
        self.write(pickle.STACK_GLOBAL)
    else:
        self.write(pickle.GLOBAL + f"{module}\n{last}\n".encode())
    self.memoize(obj)
