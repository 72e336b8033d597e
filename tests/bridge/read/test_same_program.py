"""pt2kit.load returns the same program as torch.export.load, for every sample file that the installed torch reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from tests import samples
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.same import differences, torch_keeps_expressions

from pt2kit.bridge.load import load

pytestmark = pytest.mark.usefixtures("quiet")

# Details that torch's reader loses, and this one keeps.
FUNCTION = r"graph: _sym_sqrt: meta\['val'\]: .*Function\('OpaqueUnaryFn_sqrt'\)"  # a class that it does not know
HINTS = r"shape env: example values: "  # float hints become whole numbers
LISTS = r"graph: (code|nested_ints: args): .*\[\[1, 2\], \[3\]\].* is not .*\[\(1, 2\), \(3,\)\]"  # lists become tuples
# Older releases do not read all files of newer ones; from 2.13 on they read each other's.
INSTALLED = tuple(map(int, torch.__version__.split(".")[:2]))
READ = [
    release
    for release in samples.CURRENT_LAYOUT
    if INSTALLED >= (2, 13) or tuple(map(int, release.split(".")[:2])) <= INSTALLED
]
# file -> the id in docs/differences.md -> where it shows
EXPECTED = {
    "sym_float": {"L1": FUNCTION, **({"L2": HINTS} if torch_keeps_expressions() else {})},
    "custom_op_nested_ints": {"L3": LISTS},
}
# differences that no sample file shows, or that `same.py` leaves out; the tests that do are named
ELSEWHERE = {
    "L4": "test_values.py",
    "L5": "test_values.py::test_symbols",
    "L6": "test_zoo_passes.py::test_passes",
    "L7": "../test_fixed_point.py",
    "L8": "test_passes.py::test_constant_outputs",
    "L9": "test_passes.py::test_keywords_as_module_names",
    "L10": "../test_fixed_point.py",
    "L11": "test_containers.py::test_stand_ins",
    "L12": "test_containers.py::test_changed_fields",
    "L13": "test_payloads.py::test_no_sample_inputs",
    "L14": "test_module_inputs.py",
    "L15": "test_metadata.py::test_unreadable",
    "L16": "test_load.py::test_mapped",
    "L17": "../test_fixed_point.py::test_without_data",
    "L18": "test_metadata.py::test_origins_where_torch_reads_none",
    "L19": "../run/test_placeholders.py::test_runs_without_the_library",
    "L20": "test_hostile_names.py::test_hidden_names",
    "L21": "../test_one_verdict.py::test_symbol_without_range",
}
PAGE = Path(__file__).parents[3] / "docs" / "differences.md"


@pytest.mark.parametrize("path", samples.corpus(*READ), ids=samples.release_id)
def test_same(path: Path) -> None:
    """Graph, names, arguments, metadata, fake values, signature, payloads with their aliases, symbols and ranges."""
    found = differences(load(path), torch.export.load(path))
    expected = EXPECTED.get(path.stem, {}).values()
    unexpected = [text for text in found if not any(re.match(pattern, text, re.DOTALL) for pattern in expected)]
    assert not unexpected, unexpected[0]
    assert len(found) >= len(expected)


def test_the_page_lists_the_same_differences() -> None:
    """docs/differences.md and this file know the same ids, and the tests that are named exist."""
    listed = set(re.findall(r"^\| (L\d+) \|", PAGE.read_text(), re.MULTILINE))
    assert listed == {key for keys in EXPECTED.values() for key in keys} | set(ELSEWHERE) | {"L2"}  # not on every torch
    for place in ELSEWHERE.values():
        file, _, name = place.partition("::")
        assert f"def {name}" in (Path(__file__).parent / file).read_text()
