"""No file of up to 1 MB costs more than 10 s of processor time or 1 GiB in a command that does not run its program.

Each command of `COMMANDS` meets attacks of `costly.py`, in a process that the operating system limits: to more
time than is promised, as the machine may be busy, and to a bit more memory, as libraries reserve some. A small file of
each attack meets a few of the commands; files of full size are slow. Whether cost grows faster than files is counted in
calls, which no other process changes.
"""

from __future__ import annotations

import io
import resource
import zipfile
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests import samples
from tests.calls import count_calls
from tests.cli.run import Result, pt2
from tests.hostile.costly import ATTACKS, build, cond, graph, pack, program_of, relu
from tests.signing.keys import OPENSSL, make_keys

import pt2kit
from pt2kit.errors import Pt2Error

SECONDS = 60
"""Limit of processor time; 10 s are promised."""
BYTES = 5 << 28
"""Limit of memory; 1 GiB is promised, and libraries reserve more than they use."""
SMALL = 32
"""How many times smaller than the largest the small files are."""
EVERY = 12
"""Each attack meets one in so many commands."""

COMMANDS = {
    "show": "show a.pt2",
    "graph": "show --graph a.pt2",
    "text": "show --text a.pt2",
    "json": "show --json a.pt2",
    "node": "show --node x a.pt2",
    "module": "show --module m a.pt2",
    "sizes": "show --sizes a.pt2",
    "cost": "show --cost a.pt2",
    "oldest": "show --oldest a.pt2",
    "records": "show --records a.pt2",
    "check": "check a.pt2",
    "digest": "digest --tensors a.pt2",
    "weights": "weights a.pt2",
    "diff": "diff a.pt2 other.pt2",
    "names": "diff --names --order a.pt2 other.pt2",
    "textconv": "diff --textconv a.pt2",
    "newer": "convert a.pt2 made.pt2 --target torch==2.15",
    "older": "convert a.pt2 made.pt2 --target torch==2.5",
    "oldest release": "convert a.pt2 made.pt2 --target torch==2.2 --allow persistent",
    "normalize": "convert a.pt2 made.pt2 --target torch==2.13 --normalize",
    "sanitize": "sanitize a.pt2 made.pt2 --strip traces --scrub-paths",
    "page": "view a.pt2 --html made.html",
    "passes": "edit a.pt2 made.pt2 --pass cse --pass dce",
    "dtype": "edit a.pt2 made.pt2 --to bfloat16",
    "rename": "edit a.pt2 made.pt2 --rename-input x=y",
    "dynamic": "edit a.pt2 made.pt2 --dynamic x.0=batch:1..64",
    "parse": "edit a.pt2 made.pt2 --program a.txt",
    "extract": "extract a.pt2 made.pt2 --to-value a0",
    "extract module": "extract a.pt2 made.pt2 --module m0",
    "compose": "compose a.pt2 a.pt2 made.pt2 --connect 0=x",
    "pack": "pack one=a.pt2 two=a.pt2 -o made.pt2",
    "unpack": "unpack a.pt2 folder",
    "extra": "extra a.pt2",
    "sign": "sign a.pt2 --key me.pem",
    "sign bytes": "sign a.pt2 --key me.pem --bytes",
    "verify": "verify a.pt2 --key me.pub",
    "fleet": "fleet check a.pt2 -o checked",
}
FIRST = {"parse": "show --text a.pt2", "verify": "sign a.pt2 --key me.pem"}
"""Commands to run before another one: their output is the text to parse, or a signature."""

PAIRS = [
    (attack, command)
    for row, attack in enumerate(ATTACKS)
    for column, command in enumerate(COMMANDS)
    if (row + column) % EVERY == 0
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys and another file."""
    made = tmp_path_factory.mktemp("cost")
    (made / "other.pt2").write_bytes(samples.sample("2.13.0", "mlp").read_bytes())
    if OPENSSL:
        make_keys(made)
    return made


def meet(folder: Path, command: str, *, fresh: bool | None) -> Result:
    """Run a command on `a.pt2`; it ends by itself, within the limits, with an exit code of ours.

    A fresh process shows the cost of imports, too; a copy of the test's costs less.
    """
    if command in ("sign", "sign bytes", "verify"):
        pytest.importorskip("model_signing", reason="pip install 'pt2kit[sign]' brings it")
        if not OPENSSL:
            pytest.skip("needs openssl to make keys")
    if command == "fleet":
        pytest.importorskip("dask", reason="pip install 'pt2kit[fleet]' brings it")
    if (before := FIRST.get(command)) is not None:
        done = pt2(*before.split(), cwd=folder)
        (folder / "a.txt").write_text(done.out)
    limits = {resource.RLIMIT_CPU: SECONDS, resource.RLIMIT_DATA: BYTES}
    done = pt2(*COMMANDS[command].split(), cwd=folder, fresh=fresh, limits={} if command == "fleet" else limits)
    assert done.code in (0, 1, 2), (done.code, done.err[-500:])
    assert "Traceback" not in done.err
    assert "more memory than there is" not in done.err
    return done


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("attack", "command"), PAIRS)
def test_small_files(folder: Path, attack: str, command: str) -> None:
    """A small file of each family, and each command."""
    (folder / "a.pt2").write_bytes(build(attack, max(1, ATTACKS[attack].full // SMALL)))
    meet(folder, command, fresh=None)


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("attack", ATTACKS)
def test_largest_files(folder: Path, attack: str) -> None:
    """The largest file of each family, in the commands that are used most."""
    data = build(attack, ATTACKS[attack].full)
    assert len(data) < 2**20
    (folder / "a.pt2").write_bytes(data)
    for command in ("check", "show", "digest"):
        meet(folder, command, fresh=True)


def calls_of_a_check(data: bytes) -> int:
    """Return how many functions of Python a check of a file calls."""

    def check() -> None:
        with suppress(Pt2Error):
            pt2kit.check(data)

    return count_calls(check)


def json_of(data: bytes) -> int:
    """Return how long the records of a file are, inflated."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(entry.file_size for entry in archive.infolist())


@pytest.mark.parametrize("attack", ATTACKS)
def test_calls_grow_no_faster_than_the_file(attack: str) -> None:
    """A file that is twice as long needs about twice as many calls."""
    full = ATTACKS[attack].full
    first, small, large = (build(attack, max(1, full // part)) for part in (4 * SMALL, 2 * SMALL, SMALL))
    calls_of_a_check(first)  # Modules are imported, tables made, and the specs of one file read once.
    growth = calls_of_a_check(large) / calls_of_a_check(small)
    assert growth <= 1.25 * max(json_of(large) / json_of(small), 2)


def levels(count: int) -> bytes:
    """Return the file of branches in branches, each with calls of its own besides."""
    root = graph(["x"], [relu("x", f"a{n}") for n in range(20)], ["a0"], {})
    for _ in range(count):
        calls = [relu("x", f"a{n}") for n in range(20)]
        root = graph(["x"], [*calls, cond("z", [root, graph(["x"], [], ["x"], {})])], ["z"], {})
    return pack(program_of(root))


def test_each_level_of_branches_is_read_once() -> None:
    """Twice as many levels need about twice as many calls in a comparison."""
    small, large = levels(8), levels(16)
    pt2kit.diff(small, small)  # Modules are imported.
    calls = [count_calls(partial(pt2kit.diff, file, file)) for file in (small, large)]
    assert calls[1] <= 2.5 * calls[0]
