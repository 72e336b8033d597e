"""`pt2 weights`: list tensors, their statistics, and extract them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests import samples
from tests.cli.run import in_terminal, pt2
from tests.packages import rewritten, tree_of
from tests.text.golden import FOLDER

import pt2kit
from pt2kit.package import record_names as names

MLP = samples.sample("2.13.0", "mlp")
CONSTANTS = samples.sample("2.13.0", "constants")
SHARED = samples.sample("2.13.0", "shared_weights")


def _numbers(path: Path, *, constants: bool = False) -> dict[str, np.ndarray]:
    with pt2kit.open(path) as package:
        views = {**package.weights(), **(package.constants() if constants else {})}
        return {name: np.array(view.numpy(upcast=True)) for name, view in views.items()}


@pytest.mark.parametrize("name", ["odd_names", "shared_weights", "strided_weights"])
def test_list(name: str) -> None:
    """Without an option: every weight with type, bytes, kind and record."""
    found = pt2("weights", samples.sample("2.13.0", name))
    assert (found.code, found.err) == (0, "")
    assert found.out == (FOLDER / f"{name}.weights.txt").read_text(encoding="utf-8")


def test_constants() -> None:
    """Constants are listed when asked for."""
    assert pt2("weights", CONSTANTS).out == "0 tensors, 0 B\n"
    assert pt2("weights", CONSTANTS, "--constants").out == (FOLDER / "constants.weights.txt").read_text()


def test_names() -> None:
    """Names choose; they may hold wildcards, and characters that are wildcards in a pattern."""
    found = json.loads(pt2("weights", SHARED, "*.weight", "tail", "--json").out)
    assert [row["name"] for row in found] == ["emb.weight", "out.weight", "tail"]


def test_statistics() -> None:
    """`--stats` reads the tensors and says what their values are like."""
    expected = _numbers(MLP)
    rows = json.loads(pt2("weights", MLP, "--stats", "--json").out)
    for row in rows:
        array = expected[row["name"]].astype(np.float64)
        found = row["statistics"]
        assert found["numel"] == array.size
        assert found["min"] == array.min()
        assert found["max"] == array.max()
        np.testing.assert_allclose((found["mean"], found["std"]), (array.mean(), array.std()), rtol=1e-6)
    lines = pt2("weights", MLP, "--stats").out.splitlines()
    assert lines[1].split() == ["min", "max", "mean", "std"]
    assert len(lines) == len(rows) + 2


def test_all_element_types() -> None:
    """Statistics exist for every element type, those that numpy lacks included."""
    for name in ("dtypes", "float8", "uint16_dtype", "complex_scalar", "strided_weights"):
        found = pt2("weights", samples.sample("2.13.0", name), "--stats", "--constants", "--json")
        assert found.code == 0, found.err


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_extract(tmp_path: Path, suffix: str) -> None:
    """`--to` writes the tensors under their names, numbers and shapes as in the file."""
    target = tmp_path / f"out{suffix}"
    found = pt2("weights", SHARED, "--to", target)
    assert (found.code, found.out, found.err) == (0, "", f"{target}: 5 tensors\n")
    written = load_file(target) if suffix == ".safetensors" else dict(np.load(target))
    expected = _numbers(SHARED)
    assert written.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(written[name], array)


def test_extract_one(tmp_path: Path) -> None:
    """A `.npy` file holds one tensor; several are refused, and nothing is written."""
    target = tmp_path / "w.npy"
    assert pt2("weights", SHARED, "mat_t", "--to", target).err == f"{target}: 1 tensor\n"
    np.testing.assert_array_equal(np.load(target), _numbers(SHARED)["mat_t"])
    other = tmp_path / "other.npy"
    found = pt2("weights", SHARED, "--to", other)
    assert (found.code, found.err) == (2, f"error: {other}: expected one tensor for a .npy file, got 5; name it\n")
    assert not other.exists()


def test_extract_constants(tmp_path: Path) -> None:
    """Constants go along when asked for."""
    target = tmp_path / "out.npz"
    pt2("weights", CONSTANTS, "--constants", "--to", target)
    assert dict(np.load(target)).keys() == _numbers(CONSTANTS, constants=True).keys()


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["nope"], "expected a tensor 'nope', got none of that name; constants are listed with --constants"),
        (["nope", "--constants"], "expected a tensor 'nope', got none of that name\n"),
        (["emb.weigth"], "; did you mean emb.weight?"),
        (["--model", "x"], "expected a program, one of 'model', got 'x'"),
    ],
)
def test_what_is_not_there(args: list[str], text: str) -> None:
    """A name that is not in the file ends with 2 and one line; a name like it is offered."""
    found = pt2("weights", SHARED, *args)
    assert (found.code, found.out) == (2, "")
    assert text in found.err


def _with_pickle(tmp_path: Path) -> Path:
    with pt2kit.open(CONSTANTS) as package:
        config: Any = tree_of(package.archive.read(package.layout.record(names.constants_config("model"))))
    config["config"]["odd"] = {
        "path_name": "opaque_obj_0",
        "is_param": False,
        "use_pickle": False,
        "tensor_meta": None,
    }
    records = {names.constants_config("model"): json.dumps(config).encode(), names.opaque_object(0): b"x"}
    path = tmp_path / "odd.pt2"
    path.write_bytes(rewritten(CONSTANTS, records))
    return path


def test_pickles(tmp_path: Path) -> None:
    """A pickle among the constants is listed, has no statistics, and is not extracted."""
    path = _with_pickle(tmp_path)
    assert "odd              a Python object   1 B  opaque" in pt2("weights", path, "--constants").out
    assert pt2("weights", path, "--constants", "--stats").out.endswith("not read\n")
    found = pt2("weights", path, "--constants", "--to", tmp_path / "x.npz")
    assert found.code == 2
    assert "expected tensors, got pickles, which take code to rebuild: odd; name the tensors" in found.err
    assert pt2("weights", path, "c", "--constants", "--to", tmp_path / "x.npz").code == 0


def test_a_target_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder that does not exist ends with 2 and one line."""
    found = pt2("weights", MLP, "--to", tmp_path / "no" / "x.npz")
    assert (found.code, found.err.count("\n")) == (2, 1)


def test_progress(tmp_path: Path) -> None:
    """A short task shows no bar; a pipe never gets one."""
    found = in_terminal("weights", MLP, "--to", tmp_path / "x.npz")
    assert found.code == 0
    assert found.out.rstrip().endswith("x.npz: 4 tensors")
    assert pt2("weights", MLP, "--to", tmp_path / "y.npz").err == f"{tmp_path / 'y.npz'}: 4 tensors\n"


def test_a_bar_does_not_take_the_output(tmp_path: Path) -> None:
    """With the bar on a terminal, what is printed still goes to standard output."""
    out = in_terminal("weights", MLP, "--stats").out
    assert out.count("f32[16, 8]") == 1
