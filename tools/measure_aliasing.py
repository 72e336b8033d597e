"""Measure which results of operators share memory with arguments, and which arguments are written, schemas aside.

    python -m tools.measure_aliasing --out evidence.jsonl              measure; continues a file that exists
    python -m tools.measure_aliasing --out evidence.jsonl --only bn    measure operators whose names fit a pattern
    python -m tools.measure_aliasing --out evidence.jsonl --table      write src/pt2kit/operators/data/aliasing.txt

Every overload is called with recorded valid calls (`tools/kernels/samples.py`) and with variants of them: other flags,
dtypes, memory formats, sizes, strides and numbers. Before and after each call, the storages of arguments and results,
the bytes of arguments, and the state of the random generator are compared. Calls run in child processes, because a
wrong argument may end the process. Needs torch and what its test databases import (expecttest, numpy).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from tools.children import in_children, in_time
from tools.kernels import by_hand, samples
from tools.kernels.runner import operator_names
from torch.utils import _pytree as pytree

from pt2kit.schema.operators import operators_of

TARGET = Path(__file__).parents[1] / "src" / "pt2kit" / "operators" / "data" / "aliasing.txt"
SECONDS: Final = 6
"""How long the calls of one overload may take."""
CPU_SECONDS: Final = 10
"""After which the process of an overload ends; only a kernel that never returns takes so long."""
BATCH: Final = 40
ENOUGH: Final = 3
"""Valid calls after which no calls are made from the schema."""
MAX_CALLS: Final = 8
MAX_SAMPLES: Final = 8
MAX_OBSERVED: Final = 20
"""Samples of one operator that are only observed."""
MAX_BASES: Final = 12
MAX_VARIANTS: Final = 80
"""Variants of one valid call."""
CASTS: Final = (torch.float64, torch.bfloat16, torch.int64, torch.complex64, torch.bool)
FORMATS: Final = (torch.contiguous_format, torch.preserve_format, torch.channels_last)
_STATISTICS: Final = ("running_mean", "running_var")
NOT_ON_CPU: Final = {
    f"aten.{name}.{overload}": _STATISTICS
    for name in (
        *("cudnn_batch_norm", "miopen_batch_norm"),
        *("batch_norm_gather_stats", "batch_norm_gather_stats_with_counts"),
    )
    for overload in ("default", "out")
}
"""Overloads of other devices that write as their CPU counterparts do, which cannot be called here -> parameters."""
EQUATIONS: Final = ("ij->ji", "ii->i", "ij->i", "ij->ij")
"""Of einsum: text is not varied."""
NEVER_CALLED: Final = ("aten.manual_seed", "aten.seed", "aten.initial_seed", "profiler.", "aten.from_file", "aten.save")

Given = dict[str, Any]
"""The arguments of a call by name."""
Memory = dict[int, Any]
"""Tensors and storages by address."""
Counts = dict[str, list[int]]
"""Effect looked for -> how often it was seen, in how many calls it could have been."""


# --- Calls ---------------------------------------------------------------------------------------------------------


def named(schema: Any, call: samples.Call) -> Given:
    """Return the arguments of a call by name."""
    return {argument.name: value for argument, value in zip(schema.arguments, call[0], strict=False)} | call[1]


def variants(schema: Any, given: Given, seed: str) -> Iterator[Given]:
    """Yield a call and changed copies of it: all tensors, one argument, or two arguments differ. Some are invalid."""
    yield given
    for change in _tensor_changes():
        with contextlib.suppress(Exception):
            yield pytree.tree_map_only(torch.Tensor, change, given)
    tensors = [leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, torch.Tensor)]
    single = [
        (argument.name, option)
        for argument in schema.arguments
        for option in _options(argument, tensors[0] if tensors else torch.ones(2, 3))
    ]
    chance = random.Random(seed)
    pairs = [pair for pair in itertools.combinations(single, 2) if pair[0][0] != pair[1][0]]
    chosen = [*((one,) for one in single), *chance.sample(pairs, min(len(pairs), MAX_VARIANTS))]
    # Among equal numbers a write may change nothing.
    other = _with_other_numbers(given)
    yield other
    for changes in chosen[:MAX_VARIANTS]:
        yield given | dict(changes)
        yield other | dict(changes)


def _with_other_numbers(given: Given) -> Given:
    """Return a call with random floats; other dtypes are often indices, and layouts have structure."""

    def change(value: torch.Tensor) -> torch.Tensor:
        is_plain = value.layout is torch.strided and value.is_floating_point() and not value.is_nested
        return torch.rand_like(value) if is_plain else value

    return pytree.tree_map_only(torch.Tensor, change, given)


def _tensor_changes() -> Iterator[Any]:
    """Yield functions of a tensor: other strides, dtypes, and one that requires a gradient."""
    yield lambda value: value.mT.contiguous().mT if value.dim() > 1 else value
    yield lambda value: value.contiguous()
    yield lambda value: value.to(memory_format=torch.channels_last) if value.dim() == 4 else value
    yield lambda value: value.detach().requires_grad_(value.is_floating_point())
    yield lambda value: value.to(torch.complex64).conj()
    yield torch._neg_view
    yield _uncoalesced
    for dtype in CASTS:
        yield lambda value, dtype=dtype: value.to(dtype)
        # Indices stay what they are.
        yield lambda value, dtype=dtype: value.to(dtype) if value.is_floating_point() else value


def _uncoalesced(value: torch.Tensor) -> torch.Tensor:
    """Return a sparse tensor that may have elements several times, as far as it knows."""
    if value.layout is not torch.sparse_coo:
        return value
    return torch.sparse_coo_tensor(value._indices(), value._values(), value.shape)


def _own(value: torch.Tensor) -> torch.Tensor:
    """Return a copy in memory of its own, with the same strides and lazy bits."""
    if value.is_conj():
        return _own(value.conj()).conj()
    if value.is_neg():
        return torch._neg_view(_own(torch._neg_view(value)))
    return samples.copy_tensor(value).requires_grad_(value.requires_grad)


def _options(argument: Any, first: torch.Tensor) -> Sequence[Any]:
    """Return other values of an argument; `first` is the first tensor of the call."""
    kind = str(argument.real_type)
    base = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    dims = first.dim()
    options: dict[str, Sequence[Any]] = {
        "bool": (False, True),
        "int": (0, 1, -1),
        "SymInt": (0, 1, -1),
        "float": (0.0, 0.5, 1.0),
        "number": (0, 1),
        "List[int]": (list(first.shape), [0] * dims, [1] * dims, list(range(dims)), [0], [1], []),
        "List[SymInt]": (list(first.shape), [0] * dims, [1] * dims, list(range(dims)), [0], [1], []),
        "ScalarType": (first.dtype, torch.float32, torch.float64, torch.int64),
        "MemoryFormat": FORMATS,
        "Layout": (first.layout,),
        "Device": (torch.device("cpu"),),
    }
    return (*options.get(base, ()), *([None] if base is not kind else ()))


# --- One call ------------------------------------------------------------------------------------------------------


@dataclass
class Evidence:
    """The evidence of one overload's calls.

    Args:
        calls: that succeeded.
        aliases: "0 self", result and parameter that shared memory.
        written: "running_mean", a parameter whose memory changed although the schema does not declare it.
        drawn: calls that changed the state of the random generator.
        measured: it was called here, and not only observed in samples.
        together: "0 1", results that share memory with each other, but with no argument.
    """

    calls: int = 0
    aliases: Counts = field(default_factory=dict)
    written: Counts = field(default_factory=dict)
    drawn: int = 0
    together: Counts = field(default_factory=dict)
    measured: bool = False

    def add(self, target: Any, given: Given) -> None:
        """Call an overload and count what happens; nothing if it raises."""
        schema = target._schema
        given = pytree.tree_map_only(torch.Tensor, _own, given)
        before = {name: _contents(value) for name, value in given.items()}
        memory = {name: _memory(value) for name, value in given.items()}
        generator = torch.get_rng_state()
        try:
            result = _call(target, given)
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001  Any refusal is one.
            return
        self.measured = True
        self.calls += 1
        self.drawn += not torch.equal(generator, torch.get_rng_state())
        shared = self.add_aliases(schema, result, memory)
        for argument in schema.arguments:
            if not memory.get(argument.name):
                continue
            if argument.alias_info is None or not argument.alias_info.is_write:
                after = _contents(given[argument.name])
                _count(self.written, argument.name, before[argument.name] != after)
        own = set().union(*(held.keys() for held in memory.values()))
        for one, other in itertools.combinations(range(len(shared)), 2):
            if shared[one] and shared[other]:
                _count(self.together, f"{one} {other}", bool(shared[one].keys() & shared[other].keys() - own))

    def add_aliases(self, schema: Any, result: Any, memory: Mapping[str, Memory]) -> list[Memory]:
        """Count which results share memory with arguments; return the memory of each result."""
        results = [result] if len(schema.returns) == 1 else list(result or ())
        shared = [_memory(one) for one in results]
        for name, held in memory.items():
            for number, found in enumerate(shared):
                if held and found:
                    _count(self.aliases, f"{number} {name}", bool(found.keys() & held.keys()))
        return shared


def _call(target: Any, given: Given) -> Any:
    """Call an overload; arguments that it has no names for go by position."""
    args = []
    rest = dict(given)
    for argument in target._schema.arguments:
        if argument.kwarg_only or argument.name not in rest:
            break
        args.append(rest.pop(argument.name))
    return target(*args, **rest)


def _count(counts: Counts, key: str, seen: bool) -> None:
    held = counts.setdefault(key, [0, 0])
    held[0] += seen
    held[1] += 1


def _memory(value: Any) -> Memory:
    """Return the tensors of a value and their storages by address; who keeps them knows that no address is reused."""
    found: Memory = {}
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found[leaf._cdata] = leaf
            for part in _parts(leaf):
                storage = part.untyped_storage()
                found[storage._cdata] = storage
    return found


def _parts(value: torch.Tensor) -> list[torch.Tensor]:
    """Return the strided tensors that a tensor consists of."""
    with contextlib.suppress(Exception):
        if value.layout is torch.sparse_coo:
            return [value._indices(), value._values()]
        if value.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [value.crow_indices(), value.col_indices(), value.values()]
        if value.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [value.ccol_indices(), value.row_indices(), value.values()]
        if value.is_nested:
            return [value.values()] if value.layout is torch.jagged else [torch.ops.aten.values(value)]
        value.untyped_storage()
        return [value]
    return []


def _contents(value: Any) -> list[Any]:
    """Return the bytes, sizes and strides of the tensors of a value.

    Versions say nothing: views share them with the tensor, and operators change the sizes of views that they create.
    """
    found: list[Any] = []
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found += [(_bytes(part), part.size(), part.stride(), part.storage_offset()) for part in _parts(leaf)]
    return found


def _bytes(value: torch.Tensor) -> bytes:
    storage = value.untyped_storage()
    whole = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),))
    return whole.numpy().tobytes()


# --- Calls of samples ----------------------------------------------------------------------------------------------


class Observer(samples.Recorder):
    """Records calls, and counts for each of them which results share memory with arguments."""

    def __init__(self) -> None:
        super().__init__({}, MAX_CALLS)
        self.evidence: dict[str, Evidence] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = (tuple(args), dict(kwargs or {}))
        self.keep(str(func), call)
        given = named(func._schema, call)
        memory = {name: _memory(value) for name, value in given.items()}
        result = func(*args, **call[1])
        evidence = self.evidence.setdefault(str(func), Evidence())
        evidence.calls += 1
        evidence.add_aliases(func._schema, result, _apart(memory))
        return result


def _apart(memory: Mapping[str, Memory]) -> dict[str, Memory]:
    """Return the memory of arguments without those that share it with another argument."""
    owners = Counter(key for held in memory.values() for key in held)
    return {name: held for name, held in memory.items() if all(owners[key] == 1 for key in held)}


def recorded(observer: Observer) -> Sequence[samples.Calls]:
    """Return the calls of torch's test databases, and those by hand; takes some five minutes.

    Args:
        observer: sees the calls of operators that decompose into others.
    """
    recorder = samples.Recorder({}, MAX_CALLS)
    return *by_hand_alone(), samples.record_composites(observer, MAX_OBSERVED), samples.record(recorder, MAX_SAMPLES)


def by_hand_alone() -> Sequence[samples.Calls]:
    """Return the calls by hand."""
    calls: samples.Calls = {name: [call] for name, call in by_hand.calls()}
    for equation in EQUATIONS:
        calls.setdefault("aten.einsum.default", []).append(((equation, [torch.rand(3, 3)]), {}))
    return (calls,)


# --- All calls of an overload --------------------------------------------------------------------------------------


def measure(name: str, calls: Sequence[samples.Calls], evidence: Evidence, *, as_recorded: bool = False) -> None:
    """Call an overload in as many ways as there are.

    Args:
        name: "aten.add.Tensor".
        calls: recorded calls of all operators.
        evidence: what is counted.
        as_recorded: with other numbers as the only variant, for overloads that end the process on wrong arguments.
    """
    target = samples.find(name)
    schema = target._schema
    recorded = [call for one in calls for call in one.get(name, ())][:MAX_BASES]
    sources = [recorded, *(samples.relatives(name, schema, one) for one in calls), samples.made(schema, name)]
    bases, end = 0, time.monotonic() + SECONDS
    for source in sources:
        for base in itertools.islice(source, 100):
            given, tried = named(schema, base), evidence.calls
            tries = (
                variants(schema, given, f"{name} {bases}") if not as_recorded else (given, _with_other_numbers(given))
            )
            for variant in tries:
                evidence.add(target, variant)
                if evidence.calls == tried or time.monotonic() > end:
                    break  # The base itself is not valid.
            bases += evidence.calls > tried
            if bases >= MAX_BASES or time.monotonic() > end:
                return
        if bases >= (1 if as_recorded else ENOUGH):
            return


def run(names: Sequence[str], calls: Sequence[samples.Calls]) -> Iterator[dict[str, Any]]:
    """Measure overloads in child processes; yield a row of plain data for each."""

    def row(name: str, as_recorded: bool) -> dict[str, Any]:
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        evidence = Evidence()
        # A kernel that never returns is not interrupted by Python's signal handlers: this one ends the process.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        in_time(lambda: measure(name, calls, evidence, as_recorded=as_recorded), 2 * SECONDS, None)
        return {"name": name, **vars(evidence)}

    def ended(name: str) -> dict[str, Any]:
        return {"name": name, "ended": True, **vars(Evidence())}

    for measured in in_children(names, partial(row, as_recorded=False), ended, batch=BATCH, seconds=1e9):
        if "ended" in measured:
            again = [measured["name"]]
            yield from in_children(again, partial(row, as_recorded=True), ended, batch=1, seconds=1e9)
        else:
            yield measured


# --- Evidence ------------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Evidence]:
    """Return what a file of evidence says of each overload, all of its lines together."""
    found: dict[str, Evidence] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(line)
        evidence = found.setdefault(row["name"], Evidence())
        evidence.calls += row["calls"]
        evidence.drawn += row["drawn"]
        evidence.measured |= row.get("measured", True)
        for what in ("aliases", "written", "together"):
            for key, (seen, calls) in row[what].items():
                held = getattr(evidence, what).setdefault(key, [0, 0])
                held[:] = held[0] + seen, held[1] + calls
    return found


def table(release: str, names: Sequence[str], rows: Mapping[str, Evidence]) -> str:
    """Return the table that `pt2kit.operators.aliasing` reads.

    Args:
        release: of torch that was measured ("2.13.0").
        names: all overloads of that release, sorted; others are of Python modules that samples imported.
        rows: evidence by overload.
    """
    lines = [line for name in names if name in rows for line in _lines(name, rows[name])]
    lines += [f"{name} - {parameter} written" for name, parameters in NOT_ON_CPU.items() for parameter in parameters]
    uncalled: dict[str, list[str]] = {}
    for name in names:
        if name not in rows or not rows[name].calls:
            base, _, overload = name.rpartition(".")
            uncalled.setdefault(base, []).append(overload)
    never = [" ".join(("?", base, *overloads)) for base, overloads in uncalled.items()]
    return "\n".join((release, *sorted(lines), *never)) + "\n"


def _lines(name: str, row: Evidence) -> Iterator[str]:
    """Yield the lines of one overload; what the schema says of written results needs none."""
    schema = samples.find(name)._schema
    annotations = {argument.name: argument.alias_info for argument in schema.arguments}
    for key, (seen, calls) in row.aliases.items():
        number, _, parameter = key.partition(" ")
        alias, own = schema.returns[int(number)].alias_info, annotations[parameter]
        is_argument = alias is not None and own is not None and alias.is_write and alias.before_set == own.before_set
        if seen and not is_argument:
            yield f"{name} {key} {'always' if seen == calls else 'sometimes'}"
    for parameter, (seen, _) in row.written.items():
        if seen:
            yield f"{name} - {parameter} written"


def main() -> int:
    """Measure, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="evidence, one JSON object per line")
    parser.add_argument("--only", default="", help="pattern: measure the operators that it fits, again")
    parser.add_argument("--quick", action="store_true", help="without the samples of torch's test databases")
    parser.add_argument("--table", action="store_true", help="write the table instead of measuring")
    options = parser.parse_args()
    rows = read(options.out)
    if options.table:
        release = torch.__version__.partition("+")[0]
        names = sorted(operators_of(".".join(release.split(".")[:2])))
        TARGET.write_text(table(release, names, rows), encoding="utf-8")
        return 0
    torch.set_num_threads(1)
    names = [name for name in operator_names() if re.search(options.only, name) and not name.startswith(NEVER_CALLED)]
    left = names if options.only else [name for name in names if name not in rows or not rows[name].measured]
    out = options.out.resolve()
    with tempfile.TemporaryDirectory() as folder, out.open("a") as log:
        os.chdir(folder)  # Some operators write files.
        observer = Observer()
        calls = by_hand_alone() if options.quick else recorded(observer)
        for name, evidence in observer.evidence.items():
            if re.search(options.only, name):
                print(json.dumps({"name": name, **vars(evidence), "measured": False}), file=log, flush=True)
        print(f"{len(left)} of {len(names)} overloads to measure", flush=True)
        for row in run(left, calls):
            print(json.dumps(row), file=log, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
