"""The whole manifest of hostile files, read without torch: each is refused, or read, as a safe reader does.

What torch-free reading cannot decide stands in `LEFT`, with the reason; such a file is read like a harmless one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.hostile.reading import read_everything
from tests.narrow import dense

import pt2kit
from pt2kit import errors
from pt2kit.errors import Pt2Error

CASES = {case["name"]: case for case in samples.hostile()}
BENIGN = samples.DATA / "hostile" / "benign.pt2"
MEMORY = 1 << 30

_CALLS = (
    "what an operator does, and which exist, is known to torch's dispatcher alone; the file is data until it is called"
)
_ARGUMENTS = (
    "which arguments and results an operator has, and what shapes they have, is known to its schema in torch alone"
)
_SOURCE = "a name is only pasted into source when torch generates some; `pt2 show` and `graph.problems` report it"
LEFT = {
    "fx_hop_kwarg_name": _SOURCE,
    "fx_subgraph_name": _SOURCE,
    "fx_string_arg_quote": _SOURCE,
    "op_torch_os_mkdir": _CALLS,
    "op_torch_hub_load": _CALLS,
    "op_operator_dunder": _CALLS,
    "op_lazy_namespace": _CALLS,
    "op_hop_wrap_operator": _CALLS,
    "op_predispatch_autograd_apply": _CALLS,
    "op_from_file_create": _CALLS,
    "op_sparse_unsafe": _CALLS,
    "op_reinterpret_oob_crash": _CALLS,
    "op_empty_uninit": _CALLS,
    "op_full_membomb": _CALLS,
    "op_expand_bomb": _CALLS,
    "op_extension_unknown": _CALLS,
    "op_triton_wrapper": _CALLS,
    "op_unknown": _CALLS,
    "op_empty_target": _CALLS,
    "op_target_is_module": _CALLS,
    "g_missing_arg": _ARGUMENTS,
    "g_unknown_arg": _ARGUMENTS,
    "g_wrong_arg_type": _ARGUMENTS,
    "g_wrong_output_count": _ARGUMENTS,
    "g_matmul_mismatch": _ARGUMENTS,
}
OTHER_NAMES = {
    "w_extra_entry": {"model: ghost"},
    "g_param_dunder_name": {"model: __class__"},
    "g_param_forward_name": {"model: forward"},
}
"""Cases that are read and hold a weight of a name that the benign file does not have: names are data here."""


@pytest.fixture(scope="module", autouse=True)
def markers() -> Iterator[None]:
    """The folder where payloads that run leave their marks, if it can be made."""
    folder = Path(CASES["pickle_sample_inputs"]["marker"]).parent
    missing = [path for path in (folder, folder.parent) if not path.exists()]
    with suppress(OSError):
        folder.mkdir(parents=True)
    yield
    for path in missing:
        with suppress(OSError):
            path.rmdir()


@pytest.fixture(scope="module")
def benign() -> dict[str, bytes]:
    """The weights that every case starts from."""
    return read_everything(BENIGN)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, benign: dict[str, bytes]) -> None:
    """A case is refused with an error that the manifest allows, or read with the weights of the benign file."""
    case = CASES[name]
    outcome: Any
    try:
        outcome = read_everything(case["path"])
    except Pt2Error as error:
        outcome = error
    reader = case["safe_reader"]
    action = "load_same" if name in LEFT else reader["action"]
    if isinstance(outcome, Pt2Error):
        assert action != "load_same", outcome
        assert isinstance(outcome, tuple(getattr(errors, kind) for kind in reader["error_kinds"]) or Pt2Error)
        assert str(outcome).isprintable()
        assert len(str(outcome)) < 1500
    else:
        assert action != "refuse", "expected a refusal"
        if action != "refuse_or_load":
            assert sorted(outcome.values() if name in OTHER_NAMES else outcome.items())
            _assert_same(outcome, benign, OTHER_NAMES.get(name, set()))
    assert not Path(case["marker"] or "/nonexistent").exists(), "the payload ran"
    assert {"this", "mailcap"}.isdisjoint(sys.modules), "the payload was imported"


def _assert_same(found: dict[str, bytes], benign: dict[str, bytes], others: set[str]) -> None:
    """The benign weights are there under their names, but for those that have one of the other names."""
    assert set(found) - set(benign) == others
    missing = set(benign) - set(found)
    assert {found[name] for name in others} >= {benign[name] for name in missing}
    assert {name: found[name] for name in benign if name in found} == {
        name: data for name, data in benign.items() if name not in missing
    }


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["category"] == "resource"])
def test_resources(name: str) -> None:
    """A file that takes much memory or time ends in a process of 1 GiB as it does without that limit."""
    code = f"import tests.hostile.reading as reading; reading.main({str(CASES[name]['path'])!r})"
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert found.returncode == 0, found.stderr
    outcome = found.stdout.split()[0]
    reader = CASES[name]["safe_reader"]
    assert outcome in ("read", *reader["error_kinds"])
    if reader["action"] == "refuse" and name not in LEFT:
        assert outcome != "read"


@pytest.mark.parametrize("name", ["pickle_sample_inputs", "pickle_sample_inputs_raw"])
def test_hostile_sample_inputs(name: str) -> None:
    """Sample inputs that call something are refused when they are asked for, by the name of what they call."""
    with pt2kit.open(CASES[name]["path"]) as package, pytest.raises(errors.UnsupportedError, match=r"io\.open"):
        package.sample_inputs()


def test_hostile_programs_beside_a_harmless_one(benign: dict[str, bytes]) -> None:
    """Only the program that is asked for is read."""
    with pt2kit.open(CASES["model_two_programs_second_hostile"]["path"]) as package:
        found = {f"model: {name}": bytes(view.buffer()) for name, view in dense(package.weights("model")).items()}
    assert found == benign


def test_the_list_of_what_is_left_is_exact() -> None:
    """Every entry is a case that a safe reader refuses; none is about zip, JSON, records, tensors or pickles."""
    for name in LEFT:
        assert CASES[name]["safe_reader"]["action"] == "refuse"
        assert CASES[name]["category"] in {
            *("code-string", "name-resolution", "dangerous-op", "resource", "corrupt", "graph"),
        }
