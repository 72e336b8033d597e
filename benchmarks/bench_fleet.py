"""Many files on a Dask cluster of this machine: what a second worker gains, what a file costs more, and memory.

Needs pt2kit[fleet]. Ten thousand files are hard links to the sample files of one release; a hundred thousand are links
to a file that is no program, as reading them is not what is measured there.
"""

from __future__ import annotations

import functools
import os
import pickle
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import measure
from benchmarks.harness import Bench, Limit, Measured, Settings, TimesBetter

ROOT = Path(__file__).parents[1]
SAMPLES = sorted((ROOT / "tests" / "data" / "corpus" / "2.13.0").glob("*.pt2"))
TIMEOUT_S = 3600
MOST_LINKS = 50_000

PLAIN = """
import sys, pt2kit
for name in open(sys.argv[1]).read().split():
    pt2kit.check(name)
"""


def run(*arguments: str) -> measure.Spent:
    """Run Python with some arguments; `pt2 fleet check` ends with 1 if it finds problems."""
    return measure.spawn([sys.executable, *arguments], timeout_s=TIMEOUT_S, allowed=(0, 1))


def links(folder: Path, count: int, sources: list[Path]) -> Path:
    """A text file that names links to some files."""
    names = []
    for number in range(count):
        if number % MOST_LINKS == 0:
            linked = [Path(shutil.copyfile(source, f"{source}-{number}")) for source in sources]
        path = folder / f"{number // 1000:03}" / f"m{number:06}.pt2"
        path.parent.mkdir(exist_ok=True)
        os.link(linked[number % len(linked)], path)
        names.append(str(path))
    listed = folder / "names.txt"
    listed.write_text("\n".join(names))
    return listed


@functools.cache
def fleet(count: int, workers: int, *, programs: bool = True) -> measure.Spent:
    """`pt2 fleet check` of so many files; with no workers, the plain call in one process."""
    with tempfile.TemporaryDirectory(dir=ROOT / "benchmarks" / ".cache") as name:
        folder = Path(name)
        originals = SAMPLES if programs else [ROOT / "pyproject.toml"]
        sources = [Path(shutil.copyfile(path, folder / f"source-{path.name}")) for path in originals]
        listed = links(folder, count, sources)
        if not workers:
            return run("-c", PLAIN, str(listed))
        out = str(folder / "out")
        return run("-m", "pt2kit", "fleet", "check", str(listed), "--out", out, "--workers", str(workers))


def _count(settings: Settings) -> int:
    return 1_000 if settings.quick else 10_000


def two_workers(settings: Settings) -> Measured:
    """One worker against two, on the clock, without what starting costs."""
    count = _count(settings)
    seconds = [fleet(count, workers).wall_s - fleet(20, workers).wall_s for workers in (2, 1)]
    note = f"{count:,} files; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return Measured(seconds[0], seconds[1], note=note)


def overhead(settings: Settings) -> Measured:
    """CPU time per file above the plain call, of all processes together, without what starting costs."""
    count = _count(settings)
    per_file = [(fleet(count, w).cpu_s - fleet(20, w).cpu_s) / (count - 20) for w in (1, 0)]
    return Measured(per_file[0] - per_file[1], note=f"{per_file[0] * 1e3:.2f} ms against {per_file[1] * 1e3:.2f} ms")


def memory(settings: Settings) -> Measured:
    """Peak memory of the largest process with many URLs, and with a thousand."""
    count = 10_000 if settings.quick else 100_000
    ours, few = fleet(count, 2, programs=False), fleet(1_000, 2, programs=False)
    note = f"{count:,} URLs against 1,000; {(ours.cpu_s - few.cpu_s) / (count - 1_000) * 1e3:.2f} ms of CPU per URL"
    return Measured(ours.peak_bytes, few.peak_bytes, unit="B", note=note)


def command_cost(settings: Settings) -> Measured:
    """CPU time per file of what the command alone does: hand out, take the rows of a batch apart, write parts."""
    from pt2kit.fleet import dataset
    from pt2kit.fleet.dataset import make_folder
    from pt2kit.fleet.listing import Found
    from pt2kit.fleet.reading import Item, Job, checked_options, read_file
    from pt2kit.fleet.running import Batches, Progress
    from pt2kit.fleet.targets import Seen

    job = Job("check", checked_options("check", {}), "", {})
    rows = [read_file(job, Item(os.fsencode(path))) for path in SAMPLES]
    kept = {"files": [one.files for one in rows if one.files]}
    kept |= {table: [row for one in rows for row in getattr(one, table)] for table in ("problems", "operators")}
    tables = {table: pickle.dumps(dataset.make_table(table, kept[table])) for table in dataset.TABLES}
    rounds = _count(settings) // len(SAMPLES)
    names = (Found(f"/models/m{number:08}.pt2", "", 1, "1") for number in range(rounds * len(SAMPLES)))

    def work() -> None:
        batches = Batches(names, Seen(), False, Progress())
        while items := batches.take():
            pickle.dumps(items)
            batches.learn(len(items), len(items) * 0.005)
        found = {table: [pickle.loads(data) for _ in range(rounds)] for table, data in tables.items()}
        with tempfile.TemporaryDirectory() as folder:
            joined = {table: pa.concat_tables(parts).combine_chunks() for table, parts in found.items()}
            dataset.write_part(make_folder(folder), "part", joined)

    import pyarrow as pa

    return Measured(measure.timed(work, time.process_time) / (rounds * len(SAMPLES)))


BENCHES = (
    Bench("fleet_two_workers", "pt2 fleet check, 10,000 files: one worker : two", TimesBetter(1.7), two_workers),
    Bench("fleet_overhead", "the same: CPU time per file above pt2kit.check", Limit(0.005, "s"), overhead),
    Bench("fleet_command", "CPU time of the command alone, per file", None, command_cost),
    Bench("fleet_memory", "100,000 URLs: peak memory of a process", Limit(400e6, "B"), memory),
)
