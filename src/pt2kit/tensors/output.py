"""Common parts of exports: atomic files, and a pass over tensors that reads each storage once."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TypeAlias

from pt2kit.errors import UnsupportedError
from pt2kit.tensors.compound import MetaView, NestedView, QuantizedView, SparseView, SubclassView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.tensors.storage import Storage
from pt2kit.tensors.view import TensorView
from pt2kit.zip.opening import is_url
from pt2kit.zip.replacement import replacing

AnyView: TypeAlias = TensorView | SparseView | QuantizedView | NestedView | MetaView | SubclassView | OpaquePayload
"""Whatever a weight or constant may be."""

Progress: TypeAlias = Callable[[int, int], object]
"""Called with the bytes done and the bytes in all; the last call has them equal."""


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], *, fsync: bool = False) -> Iterator[IO[bytes]]:
    """Yield an empty file that replaces `path` at the end, unless an error occurs.

    Args:
        path, fsync: as for `Replacement`; or a URL that fsspec can write to.

    Raises:
        OSError: the folder does not exist or cannot be written to.
        ArchiveError: the URL cannot be written to.
        UnsupportedError: `path` exists and is no file (P18).
    """
    if isinstance(path, str) and is_url(path):
        from pt2kit.zip.remote import create_url

        with create_url(path) as file:
            yield file
        return
    check_is_file(path)
    with replacing(path, fsync=fsync) as file:
        yield file


def check_is_file(path: str | os.PathLike[str]) -> None:
    """Refuse a target that is there and no plain file (P18)."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise UnsupportedError(f"{os.fspath(path)}: expected a file to write, got a folder or a device", rule="P18")


def dense_view(view: AnyView) -> TensorView:
    """Return a tensor as one array of numbers: sparse ones with their zeros, quantized ones as floats.

    Raises:
        UnsupportedError: a nested tensor, one without data, or a payload that would take code to rebuild (P15, P18).
    """
    return view.dense()


class Reader:
    """Reads the storages of some views: each once, and held only until the last view of it is taken.

    Args:
        views: those that will be taken, in any order.
    """

    def __init__(self, views: Iterable[TensorView]) -> None:
        self._left = Counter(view.storage for view in views)
        self._held: dict[Storage, memoryview] = {}

    def take(self, view: TensorView) -> memoryview:
        """Return the bytes of a view's storage."""
        storage = view.storage
        data = self._held.pop(storage, None)
        if data is None:
            data = storage.read(keep=False)
        self._left[storage] -= 1
        if self._left[storage] > 0:
            self._held[storage] = data
        return data
