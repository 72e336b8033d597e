"""`pt2 run`: inputs from files and at random, outputs as files, limits, exit codes."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from tests import samples
from tests.cli.run import pt2

from pt2kit.cli.common import Refusal
from pt2kit.cli.run import limited

FILE = samples.sample("2.13.0", "dynamic_batch")


def test_run_lists_inputs():
    """Without inputs, they are listed."""
    done = pt2("run", FILE)
    assert (done.code, done.out) == (0, "input x: float32[s77, 8]\n")
    assert json.loads(pt2("run", FILE, "--json").out) == {"inputs": [{"name": "x", "type": "float32[s77, 8]"}]}


def test_run_reads_and_writes_files(tmp_path):
    """Arrays of .npy and .npz files go in, .npy files come out; both ways give the same."""
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "all.npz", x=x)
    first = pt2("run", FILE, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "a")
    second = pt2("run", FILE, "--input", tmp_path / "all.npz", "--output", tmp_path / "b", "--json")
    assert (first.code, second.code) == (0, 0)
    [row] = json.loads(second.out)["outputs"]
    assert (row["dtype"], row["sizes"], row["file"]) == ("float32", [3, 4], str(tmp_path / "b" / "output_0.npy"))
    assert np.array_equal(np.load(tmp_path / "a" / "output_0.npy"), np.load(tmp_path / "b" / "output_0.npy"))


def test_constants_need_no_files(tmp_path):
    """Numbers that a program was exported with are its own."""
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    file = samples.sample("2.13.0", "scalar_inputs")
    assert pt2("run", file, "--input", f"x={tmp_path / 'x.npy'}").code == 0


def test_random_inputs_follow_the_seed(tmp_path):
    outputs = []
    for number, seed in enumerate((0, 0, 1)):
        assert pt2("run", FILE, "--random", "--seed", str(seed), "--output", tmp_path / str(number)).code == 0
        outputs.append(np.load(tmp_path / str(number) / "output_0.npy"))
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def test_wrong_inputs_are_refused(tmp_path):
    """1 if the program does not accept them, 2 if they cannot be read."""
    np.save(tmp_path / "x.npy", np.zeros((3, 7), np.float32))
    (tmp_path / "text.npy").write_text("no array")
    done = pt2("run", FILE, "--input", f"x={tmp_path / 'x.npy'}")
    assert (done.code, "size of dimension 1: expected 8" in done.err) == (1, True)
    done = pt2("run", FILE, "--input", f"y={tmp_path / 'x.npy'}")
    assert (done.code, "expected one of x, got y" in done.err) == (2, True)
    done = pt2("run", FILE, "--input", f"x={tmp_path / 'text.npy'}")
    assert (done.code, "expected a NumPy file" in done.err) == (2, True)
    np.savez(tmp_path / "all.npz", x=np.zeros(3))
    done = pt2("run", FILE, "--input", f"x={tmp_path / 'all.npz'}")
    assert (done.code, "expected a NumPy file, got an archive of several arrays" in done.err) == (2, True)
    done = pt2("run", FILE, "--random", "--max-memory", "lots")
    assert (done.code, "expected a size such as 500M or 4G" in done.err) == (2, True)
    for option, value in (("--seed", "-1"), ("--timeout", "-1")):
        done = pt2("run", FILE, "--random", option, value)
        assert (done.code, f"Invalid value for '{option}'" in done.err) == (2, True)


@pytest.mark.parametrize("error", [MemoryError(), ImportError("x.so: failed to map segment from shared object")])
def test_too_little_memory(error):
    """A limit that Python and NumPy exceed by themselves ends in an error about the option, for libraries, too."""
    said = r"--max-memory: .* 1,099,511,627,776 bytes, got: (no more|x.so)"
    with pytest.raises(Refusal, match=said), limited(60, 1 << 40):
        raise error
    with pytest.raises(ModuleNotFoundError, match="jax"), limited(60, 1 << 40):
        raise ModuleNotFoundError("jax")


@pytest.mark.parametrize(
    ("name", "given", "code", "message"),
    [
        ("while_loop_hop", "i=1e30", 1, "input i: expected int64, got float64"),
        ("while_loop_hop", "i=2.5", 1, "input i: expected int64, got float64"),
        ("while_loop_hop", "i=99999999999999999999", 1, "input i: expected int64, got object"),
        ("while_loop_hop", "i=hi", 2, "--input i: expected a number, true, false, none or a .npy file, got hi, and no"),
        ("scalar_inputs", "st=hi", 1, "input st: expected 'abc', as it was exported, got 'hi'"),
    ],
)
def test_values_that_no_input_holds(name, given, code, message):
    """Numbers are not rounded or cut to fit an integer type; the input is named."""
    done = pt2("run", samples.sample("2.13.0", name), "--random", "--input", given)
    assert (done.code, message in done.err) == (code, True)


@pytest.mark.parametrize(("name", "given"), [("while_loop_hop", "i=3"), ("scalar_inputs", "st=abc")])
def test_values_as_written(name, given):
    assert pt2("run", samples.sample("2.13.0", name), "--random", "--input", given).code == 0


def test_there_may_be_no_end():
    assert pt2("run", FILE, "--random", "--timeout", "inf").code == 0


def test_the_timer_is_later_than_the_timeout(monkeypatch):
    """The process is ended only after the program has had all of its time."""
    waits = []

    class Timer:
        daemon = False

        def __init__(self, seconds, stop):
            waits.append(seconds)

        def start(self):
            pass

        def cancel(self):
            pass

    monkeypatch.setattr(threading, "Timer", Timer)
    with limited(3, 1 << 40):
        pass
    assert 3 < waits[0] < 6
