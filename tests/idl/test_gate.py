"""A change of the schema's classes comes with its number, its line in the log, its frozen table and its golden file."""

from __future__ import annotations

import copy

import pytest
from tests.idl.gate import golden_files, problems

from pt2kit import schema
from pt2kit.schema.fieldtable import UNNUMBERED, frozen_tables
from pt2kit.schema.versions import Version

# The cases start from the state of 8.20, whatever came after.
LOG = tuple(version for version in schema.LOG if version.pair <= (8, 20))
NAMES = [*UNNUMBERED, *(version.number for version in LOG)]
FROZEN = {name: plain for name, plain in frozen_tables().items() if name in NAMES}
GOLDEN = {name: files for name, files in golden_files().items() if name in NAMES}


def test_the_schema_is_in_order():
    """The gate itself: nothing is missing here. If this fails, docs/changing-the-schema.md says what to do."""
    assert problems(schema.field_table(), schema.LOG, frozen_tables(), golden_files()) == []


def _added(types):
    types["Argument"]["fields"]["as_bytes"] = {"type": "str", "id": 310}


def _removed(types):
    del types["Node"]["fields"]["name"]


def _state(change, number=None, *, freeze=False, golden=None):
    """Return the result of a pull request: (classes, log, frozen tables, golden files)."""
    types = copy.deepcopy(FROZEN["8.20"])
    change(types)
    log = (*LOG, Version(number, (), "test")) if number else LOG
    frozen = {**FROZEN, number: types} if freeze else FROZEN
    return types, log, frozen, GOLDEN if golden is None else {**GOLDEN, number: golden}


def _golden(**arm):
    """A golden file with one argument, as the only input of a graph in an extern kernel's node."""
    node = {"target": "t", "inputs": [{"name": "", "arg": arm}], "outputs": [], "metadata": {}}
    return [("ExternKernelNode", {"name": "n", "node": node})]


GOOD = _golden(as_bytes="AAEC")
CASES = {
    "only the classes": (
        _state(_added),
        ["the classes are not the frozen 8.20: Argument.as_bytes: an arm is added: str [C7]. This demands 8.21"],
    ),
    "a field goes": (_state(_removed), ["This demands 9.1 or more; see docs/changing-the-schema.md"]),
    "logged but not frozen": (
        _state(_added, "8.21", golden=GOOD),
        ["8.21: logged, but no history/8.21.yaml", "the classes are not the frozen 8.20"],
    ),
    "frozen but not logged": (
        (_state(_added)[0], LOG, {**FROZEN, "8.21": _state(_added)[0]}, GOLDEN),
        ["8.21: frozen, but not logged", "the classes are not the frozen 8.20"],
    ),
    "without a golden file": (
        _state(_added, "8.21", freeze=True),
        ["8.21: no golden file in tests/golden/8.21/"],
    ),
    "with a golden file that does not use it": (
        _state(_added, "8.21", freeze=True, golden=_golden(as_int=1)),
        ["8.21: Argument.as_bytes is new, but no file in tests/golden/8.21/ uses it"],
    ),
    "with a golden file of another shape": (
        _state(_added, "8.21", freeze=True, golden=[("ExternKernelNode", [])]),
        ["8.21: ExternKernelNode.json: not a value of this version", "8.21: Argument.as_bytes is new"],
    ),
    "too small a number": (
        _state(_removed, "8.21", freeze=True, golden=[]),
        ["8.20 -> 8.21: expected 9.1, for Node.name: the field is removed [C6]"],
    ),
    "too large a number": (
        _state(_added, "9.1", freeze=True, golden=GOOD),
        ["8.20 -> 9.1: expected 8.21, for Argument.as_bytes: an arm is added: str [C7]"],
    ),
    "a number for nothing": (
        _state(lambda types: None, "8.21", freeze=True, golden=[]),
        ["8.20 -> 8.21: expected 8.20, for no changes"],
    ),
    "complete": (_state(_added, "8.21", freeze=True, golden=GOOD), []),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_change_forgets_is_said(case):
    """Each thing that is missing, and what to do; nothing where all is there."""
    state, expected = CASES[case]
    found = problems(*state)
    assert len(found) == len(expected), found
    for problem, text in zip(found, expected, strict=True):
        assert text in problem


def test_a_wire_id_is_for_good():
    """An id of a field that went away some versions ago stays its own, within the major."""
    first, second = copy.deepcopy(FROZEN["8.20"]), copy.deepcopy(FROZEN["8.20"])
    del first["Node"]["fields"]["name"]
    second["Node"]["fields"]["label"] = {"type": "str | None", "id": 60, "default": "None"}
    del second["Node"]["fields"]["name"]
    log = (*LOG, Version("8.21", (), ""), Version("8.22", (), ""))
    golden = {**GOLDEN, "8.21": [], "8.22": _golden(as_int=1)}
    golden["8.22"][0][1]["node"]["label"] = "x"
    found = problems(second, log, {**FROZEN, "8.21": first, "8.22": second}, golden)
    assert "8.22: Node.label: expected a new wire id, got 60, which was that of name" in found


def test_a_golden_file_of_every_version_is_there():
    """Of releases the samples count; development versions have theirs in tests/golden/."""
    assert set(golden_files()) >= {version.number for version in schema.LOG}
    assert [root for root, _ in GOLDEN["8.6"]] == ["ExportedProgram"]
