"""Write tensors as a `.safetensors` file, by the safetensors library.

The format has no strides and no sharing: tensors become row-major, and tied ones are written once per name or once
in all, as the caller chooses. Bytes that a mapped file stores as the format requires go from there to the new file;
all others (fetched, inflated, strided) pass through a temporary file next to it, so that memory never holds more
than one storage.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, Literal

from pt2kit.errors import UnsupportedError
from pt2kit.tensors import arrays
from pt2kit.tensors.bounds import check_copy
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.output import AnyView, Progress, Reader, check_is_file, dense_view, no_progress
from pt2kit.tensors.view import TensorView

_MISSING_TYPES: Final = frozenset({"complex32", "complex128"})
"""Element types that the format has no name for."""

_RESERVED: Final = "__metadata__"


def to_safetensors(
    views: Mapping[str, AnyView],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    tied: Literal["copy", "once"] = "copy",
    progress: Progress = no_progress,
) -> None:
    """Write tensors as a `.safetensors` file.

    Args:
        views: name -> tensor; storages are read once and held no longer than needed.
        path: the file, replaced when everything is written.
        metadata: texts for the header, besides `format: pt`, which identifies a state dict of PyTorch.
        tied: "copy" writes tensors that are the same bytes in full under each name, so that every reader finds them;
            "once" writes the first and notes `other name: first name` in the metadata, as `save_model` of safetensors
            does.
        progress: called after each tensor is ready, and when the file is written.

    Raises:
        OSError: the file cannot be written.
        UnsupportedError: a type, name or kind of tensor that the format lacks (P15, P18), or no safetensors 0.8 is
            installed.
        Pt2Error: a tensor cannot be read.
    """
    from tempfile import TemporaryFile  # Costs more to import than all the rest here.

    library = _library()
    tensors = {name: dense_view(view) for name, view in views.items()}
    notes = {"format": "pt", **(metadata or {})}
    if tied == "once":
        notes.update(_drop_tied(tensors))
    for name, tensor in tensors.items():
        _check(name, tensor)
    total = sum(tensor.nbytes for tensor in tensors.values())
    check_is_file(path)
    with _beside(path) as temporary, TemporaryFile(dir=os.path.dirname(temporary)) as spool:
        buffers = _gather(tensors, spool, progress, total)
        specs = {name: _spec(library, tensor, buffers[name]) for name, tensor in tensors.items()}
        try:
            library.serialize_file(specs, temporary, metadata=notes)
        except (library.SafetensorError, UnicodeEncodeError, TypeError) as error:
            raise UnsupportedError(
                f"{os.fspath(path)}: expected names, texts and a disk that can hold a safetensors file, got: {error}",
                rule="P18",
            ) from error
    progress(total, total)


@contextlib.contextmanager
def _beside(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the path of an empty file next to `path` that replaces it at the end, unless an error occurs.

    The library accepts no file, but a path, and creates the file there anew: so it has a name while it is written,
    and gets its permissions at the end.
    """
    final = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(final), f".pt2kit-{os.urandom(8).hex()}.tmp")
    with open(temporary, "xb") as file:
        mode = os.fstat(file.fileno()).st_mode
    try:
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(final).st_mode
        os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, final)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _library() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise UnsupportedError(
            "expected the safetensors library, got none; install it: pip install 'pt2kit[safetensors]'", rule="P18"
        ) from error
    if not hasattr(safetensors, "TensorSpec"):
        raise UnsupportedError(
            f"expected safetensors 0.8 or later, got {getattr(safetensors, '__version__', 'an older one')}; "
            "upgrade it: pip install -U safetensors",
            rule="P18",
        )
    return safetensors


def _check(name: str, tensor: TensorView) -> None:
    row = DTYPES[tensor.dtype]
    if row.name in _MISSING_TYPES:
        raise UnsupportedError(
            f"{tensor.where}: expected a type that safetensors has, got {row.name}; write .npz instead", rule="P18"
        )
    if name == _RESERVED:
        raise UnsupportedError(
            f"{tensor.where}: expected a name that safetensors does not use itself, got {name!r}", rule="P18"
        )
    check_copy(tensor.where, tensor.nbytes, tensor.storage.nbytes)


def _drop_tied(tensors: dict[str, TensorView]) -> dict[str, str]:
    """Remove every tensor whose elements another one has already; return its name and the other's."""
    first: dict[Any, str] = {}
    notes = {}
    for name, view in list(tensors.items()):
        key = (view.storage, view.dtype, view.sizes, view.strides, view.storage_offset, view.conj, view.neg)
        kept = first.setdefault(key, name)
        if kept != name:
            notes[name] = kept
            del tensors[name]
    return notes


def _gather(
    tensors: Mapping[str, TensorView], spool: IO[bytes], progress: Progress, total: int
) -> dict[str, memoryview]:
    """Return the row-major bytes of each tensor, from their storage or from `spool`, which is mapped."""
    import mmap

    reader = Reader(tensors.values())
    buffers: dict[str, memoryview] = {}
    spooled: dict[str, int] = {}
    done = 0
    for name, tensor in tensors.items():
        data = reader.take(tensor)
        array = arrays.strided(data, tensor.dtype, tensor.sizes, tensor.strides, tensor.storage_offset, tensor.where)
        if tensor.storage.in_place and tensor.is_contiguous and not (tensor.conj or tensor.neg):
            buffers[name] = arrays.raw_bytes(array)
        elif tensor.nbytes:
            spooled[name] = spool.tell()
            for piece in tensor.iter_bytes(data):
                spool.write(piece)
        done += tensor.nbytes
        if done < total:
            progress(done, total)
    if spooled:
        spool.flush()
        mapped = memoryview(mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ))
        for name, start in spooled.items():
            buffers[name] = mapped[start : start + tensors[name].nbytes]
    return {name: buffers.get(name, memoryview(b"")) for name in tensors}


def _spec(library: Any, tensor: TensorView, buffer: memoryview) -> Any:
    """Return the library's description of a tensor; `buffer` must outlive its use."""
    import numpy as np

    # The address of no bytes at all may be null, which the library must not see.
    data = np.frombuffer(buffer if buffer.nbytes else b"\0", np.uint8)
    return library.TensorSpec(
        dtype=DTYPES[tensor.dtype].name, shape=list(tensor.sizes), data_ptr=data.ctypes.data, data_len=buffer.nbytes
    )
