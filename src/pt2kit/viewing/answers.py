"""Requests of a page, answered as JSON bytes: the same for the server, for a standalone file, for a notebook.

    index                 the file, its programs, what compares them
    program/N             the picture of program number N
    facts/N               call, signature, symbols
    findings/N            what `check` finds, with the nodes
    details/N/C           the nodes of chunk C
    tensor/N/W/I/J        the numbers of tensor W: statistics, histogram, the slice at I, J
    changes/N             what differs, if there are two files
    costs/N               FLOPs, bytes and memory of the nodes
    data                  numbers of the user's own, by name of a node
    version               changes when a file changes that is watched

An answer that cannot be given is an object with the one key "error".

A tensor's record is read for its numbers and for nothing else; of a large one the histogram takes in evenly spread
blocks.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pt2kit import codec
from pt2kit.checks.run import check, file_name
from pt2kit.diffs.changes import Diff
from pt2kit.diffs.compute import diff
from pt2kit.errors import PayloadError, Problem, Pt2Error, UnsupportedError
from pt2kit.messages import count_text, printable
from pt2kit.package.open import Package, open_package
from pt2kit.tensors import arrays
from pt2kit.tensors.compound import QuantizedView, SparseView
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.summary import Statistics, statistics
from pt2kit.tensors.view import TensorView, stored_array
from pt2kit.viewing.columns import Picture
from pt2kit.viewing.compared import ChangeRow, mark_changes
from pt2kit.viewing.details import CHUNK, findings, node_details, program_facts
from pt2kit.viewing.draw import Data, Drawing, draw, node_costs
from pt2kit.zip.listing import FileLike

if TYPE_CHECKING:
    from pt2kit.tensors.arrays import Array
    from pt2kit.tensors.export import AnyView

MAX_ANSWERED: Final = 4000
"""Characters of one text in an answer."""

MAX_PROGRAMS: Final = 1000
DIRECTORIES: Final = re.compile(rb'(?<![\w.:/\\])(?:/(?:[^/"\\\s]+/)+|[A-Za-z]:(?:\\\\|/)(?:[^/"\\]+(?:\\\\|/))+)')
"""Directories of an absolute path in JSON text, on POSIX and on Windows."""


@dataclass(frozen=True, slots=True)
class Index:
    """The first answer that a page requests.

    Args:
        file: as it was named.
        old: the file it is compared with; "" for none.
        bytes: size of the file.
        programs: the names of its programs.
        chunk: how many nodes' details one answer has.
        live: whether numbers of tensors can be asked for.
        data: whether there are numbers of the user's own.
        watch: whether the page shall follow changes of the files.
        error: why the file cannot be shown; "" where it can.
        notes: what an archive without programs holds instead.
    """

    file: str
    old: str
    bytes: int
    programs: list[str]
    chunk: int
    live: bool
    data: bool
    watch: bool
    error: str
    notes: list[str]


class Answers:
    """Answers about one file, or about two; results are kept. Close it to close the files.

    Args:
        file: a path, a URL, bytes, a file object, or an open package, which stays open.
        old: what to compare it with.
        live: whether numbers of tensors can be asked for later.
        data: numbers to show on nodes, by name of a column and of a node.
        watch: whether to read the files again when they change; both must be paths.
        hide_paths: leave the directories of absolute paths out of all answers.

    Attributes:
        failure: why the files cannot be shown; None if they can.
    """

    def __init__(
        self,
        file: FileLike | Package,
        old: FileLike | Package | None = None,
        *,
        live: bool = True,
        data: Data | None = None,
        watch: bool = False,
        hide_paths: bool = False,
    ) -> None:
        self.live, self.data, self.watch, self.hide_paths = live, data or {}, watch, hide_paths
        self._lock = threading.RLock()
        self._sources = [file] if old is None else [file, old]
        self._opened: list[Package] = []
        self._names = file_name(file), file_name(old) if old is not None else ""
        self._state = self._stat()
        self._read()

    def _read(self) -> None:
        """Open the files, and forget what was found in others."""
        self._drawings: dict[int, Drawing] = {}
        self._changes: dict[int, list[ChangeRow]] = {}
        self._problems: list[Problem] | None = None
        self._diff: Diff | None = None
        self.failure: Exception | None = None
        self.package: Package | None = None
        self.old: Package | None = None
        try:
            self.package, self.old = (*map(self._open, self._sources), None)[:2]
        except (Pt2Error, OSError) as error:
            self.close()
            self.failure = error
        self._error = printable(str(self.failure), MAX_ANSWERED) if self.failure is not None else ""

    def _stat(self) -> str:
        """Return a text that differs after a watched file changed; "" for what is no file."""
        found = []
        for source in self._sources if self.watch else ():
            with suppress(OSError):
                stat = os.stat(source)  # type: ignore[arg-type]
                found.append(f"{stat.st_ino}-{stat.st_size}-{stat.st_mtime_ns}")
        return "/".join(found)

    def version(self) -> str:
        """Return the version of the files that answers are about; reads them again if they changed and are complete."""
        state = self._stat()
        if state != self._state and state == self._stat():
            self.close()
            self._read()
            self._state = state
        return self._state

    def _open(self, file: FileLike | Package) -> Package:
        if isinstance(file, Package):
            return file
        package = open_package(file)
        self._opened.append(package)
        return package

    def close(self) -> None:
        """Close the files that were opened here."""
        for package in self._opened:
            package.close()
        self._opened.clear()

    @property
    def programs(self) -> list[str]:
        """Return the names of the programs that are shown."""
        if self.package is None or self._error:
            return []
        names = list(self.package.layout.models[:MAX_PROGRAMS])
        if self.old is not None:
            both = [name for name in names if name in self.old.layout.models]
            return both or names
        return names

    def answer(self, request: str) -> bytes:
        """Return the answer to a request, as JSON. Requests are answered one at a time.

        Raises:
            KeyError: there is no such request.
        """
        name, *parts = request.split("/")
        count, find = _ANSWERS.get(name, (-1, None))
        are_numbers = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
        if find is None or not are_numbers or len(parts) < count or (len(parts) > count and name != "tensor"):
            raise KeyError(request)
        with self._lock:
            try:
                answer = _encoded(find(self, *map(int, parts)))
            except (Pt2Error, OSError) as error:
                answer = _encoded({"error": str(error)})
            except MemoryError:
                answer = _encoded({"error": "expected more memory than there is: what was asked for is too large"})
            return DIRECTORIES.sub(b"", answer) if self.hide_paths else answer

    def all_requests(self, *, tensors: bool = False) -> Iterator[str]:
        """Yield every request of a standalone page; with `tensors`, those for the values of tensors too."""
        yield from ["index", "data"] if self.data else ["index"]
        for number in range(len(self.programs)):
            yield from (f"{name}/{number}" for name, (count, _) in _ANSWERS.items() if count == 1)
            try:
                drawing = self.drawing(number)
            except Pt2Error:
                continue
            yield from (f"details/{number}/{chunk}" for chunk in range(-(-len(drawing.steps) // CHUNK)))
            if tensors:
                yield from (f"tensor/{number}/{weight}" for weight in range(len(drawing.entries)))

    def prepare(self) -> None:
        """Draw the first program, so that it is there when a page asks for it; an error waits for the page, too."""
        if self.programs:
            with suppress(ValueError):  # closed meanwhile
                self.answer("program/0")

    def index(self) -> Index:
        """Return the first answer that a page requests."""
        size, notes = 0, list[str]()
        if self.package is not None:
            size, records = self.package.archive.source.size, self.package.records
            notes = [count_text(len(records), "record"), *list(records)[:200]] if not self.programs else []
        options = self.live, bool(self.data), self.watch
        return Index(*self._names, size, self.programs, CHUNK, *options, self._error, notes)

    def drawing(self, number: int) -> Drawing:
        """Return a drawn program; in a comparison with its changes marked.

        Raises:
            KeyError: no such program.
            Pt2Error: it cannot be read.
        """
        if number not in self._drawings:
            package, model = self._model(number)
            drawing = draw(package, model)
            if self.old is not None:
                before = draw(self.old, model) if model in self.old.layout.models else None
                self._diff = diff(self.old, package) if self._diff is None else self._diff
                self._changes[number] = mark_changes(drawing, before, self._diff, model)
            self._drawings[number] = drawing
        return self._drawings[number]

    def changes(self, number: int) -> list[ChangeRow]:
        """Return the differences of a program; nothing without another program to compare it with.

        Raises:
            KeyError, Pt2Error: as `drawing`.
        """
        self.drawing(number)
        return self._changes.get(number, [])

    def _model(self, number: int) -> tuple[Package, str]:
        if self.package is None or not 0 <= number < len(self.programs):
            raise KeyError(f"program {number}")
        return self.package, self.programs[number]

    def facts(self, number: int) -> Any:
        """Return the facts of a program as a whole."""
        package, model = self._model(number)
        return program_facts(package, model, self.drawing(number).problem)

    def findings(self, number: int) -> Any:
        """Return the findings of `check` for a program."""
        package, model = self._model(number)
        if self._problems is None:
            self._problems = check(package)
        return findings(package, model, self.drawing(number), self._problems)

    def costs(self, number: int) -> Any:
        """Return the costs of the drawn nodes of a program."""
        return node_costs(*self._model(number), self.drawing(number))

    def tensor(self, number: int, weight: int, *index: int) -> Any:
        """Return the values of one tensor; reads its record."""
        drawing = self.drawing(number)
        entries = drawing.entries
        if not 0 <= weight < len(drawing.picture.weights.name):
            raise KeyError(f"tensor {weight}")
        if weight >= len(entries):
            raise PayloadError(f"{self._names[0]}: expected the bytes of this tensor, got none in the file")
        return sample(entries[weight].payload, index)


def _encoded(found: Any) -> bytes:
    """Return an answer as JSON whose texts are harmless; those of a picture are from the start."""
    return codec.encode(found if isinstance(found, Picture) else _harmless(codec.to_tree(found)))


def _harmless(tree: Any) -> Any:
    """Return a tree with everything in its texts escaped that does not print, and long ones cut."""
    if isinstance(tree, str):
        return printable(tree, MAX_ANSWERED)
    if isinstance(tree, list):
        return [_harmless(item) for item in tree]
    return {key: _harmless(item) for key, item in tree.items()} if isinstance(tree, dict) else tree


_ANSWERS: Final[Mapping[str, tuple[int, Callable[..., Any]]]] = MappingProxyType(
    {
        "index": (0, Answers.index),
        "program": (1, lambda answers, number: answers.drawing(number).picture),
        "facts": (1, Answers.facts),
        "findings": (1, Answers.findings),
        "costs": (1, Answers.costs),
        "changes": (1, Answers.changes),
        "data": (0, lambda answers: answers.data),
        "version": (0, Answers.version),
        "details": (2, lambda answers, number, chunk: node_details(answers.drawing(number), chunk)),
        "tensor": (2, Answers.tensor),
    }
)
"""Name of a request -> how many numbers it has, what answers it; a tensor's may have the indices of a slice, too."""


BINS: Final = 40
CELLS: Final = 64
"""Rows and columns of a heat map at most."""

MAX_HISTOGRAM: Final = 1 << 22
"""Elements that a histogram takes in."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A slice of two dimensions, thinned out.

    Args:
        index: the leading indices that were fixed.
        rows, columns: sizes of the slice.
        cells: rows of numbers, None where one is not finite; at most `CELLS` by `CELLS`.
    """

    index: tuple[int, ...]
    rows: int
    columns: int
    cells: list[list[float | None]]


@dataclass(frozen=True, slots=True)
class TensorSample:
    """Statistics and a heat map of a tensor's values.

    Args:
        statistics: over all elements.
        sizes: of the tensor.
        strides: of the tensor, in elements.
        record: where its bytes are.
        counts: of `BINS` equal bins between the least and the largest finite value.
        counted: elements that were counted; fewer than there are in a large tensor.
        heat: of the slice asked for; None for a tensor without elements.
    """

    statistics: Statistics
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    record: str
    counts: list[int]
    counted: int
    heat: HeatMap | None


def sample(view: AnyView, index: Sequence[int] = ()) -> TensorSample:
    """Compute the statistics and the heat map of a tensor.

    Args:
        view: the tensor.
        index: the leading indices of the slice to show; what is missing is 0, what is too large is the last.

    Raises:
        UnsupportedError: no tensor but a pickle, or a nested tensor.
        Pt2Error: the record cannot be read.
    """
    if not isinstance(view, TensorView | SparseView | QuantizedView):
        raise UnsupportedError(f"expected a tensor, got {view.describe()}, whose numbers cannot be looked at")
    numbers = statistics(view)
    tensor = view if isinstance(view, TensorView) else view.dense()
    array = stored_array(tensor, tensor.storage.read(keep=False))
    counts, counted = _histogram(array, tensor, numbers)
    heat = _heat(array, tensor, index) if tensor.numel else None
    return TensorSample(
        numbers, tuple(tensor.sizes), tuple(tensor.strides), str(getattr(view, "record", "")), counts, counted, heat
    )


def _numbers(array: Array, tensor: TensorView) -> Array:
    """Return values as doubles; complex ones as their magnitudes."""
    import numpy as np

    wide = arrays.values(array, tensor.dtype, neg=tensor.neg, wide=True)
    if DTYPES[tensor.dtype].kind == "complex":
        wide = np.abs(wide.astype(np.complex128))
    return wide.astype(np.float64)


def _histogram(array: Array, tensor: TensorView, found: Statistics) -> tuple[list[int], int]:
    import numpy as np

    if found.min is None or found.max is None:
        return [], 0
    low, high = float(found.min), float(found.max)
    if not (math.isfinite(low) and math.isfinite(high - low)):
        return [], 0
    once = arrays.without_repeats(array)
    step = max(1, once.size // MAX_HISTOGRAM)
    counts, counted = np.zeros(BINS, np.int64), 0
    for position, block in enumerate(arrays.blocks(once)):
        if position % step:
            continue
        numbers = _numbers(block, tensor).reshape(-1)
        numbers = numbers[np.isfinite(numbers)]
        counts += np.histogram(numbers, BINS, (low, high if high > low else low + 1))[0]
        counted += numbers.size
    return [int(count) for count in counts], counted


def _heat(array: Array, tensor: TensorView, index: Sequence[int]) -> HeatMap:
    """Return one slice, of which every n-th row and column is shown."""
    leading = tuple(
        min(max(index[place] if place < len(index) else 0, 0), size - 1) for place, size in enumerate(array.shape[:-2])
    )
    plane: Any = array[leading]
    plane = plane.reshape((1,) * (2 - plane.ndim) + plane.shape)
    rows, columns = plane.shape
    thin = plane[:: math.ceil(rows / CELLS), :: math.ceil(columns / CELLS)]
    cells = [[value if math.isfinite(value) else None for value in row] for row in _numbers(thin, tensor).tolist()]
    return HeatMap(leading, rows, columns, cells)
