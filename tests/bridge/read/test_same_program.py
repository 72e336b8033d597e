"""What pt2kit.load gives is what torch.export.load gives, for every sample file of the installed torch."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests import samples
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.same import differences

from pt2kit.bridge.load import load

# What torch's reader loses, and this one does not.
FUNCTION = r"graph: _sym_sqrt: meta\['val'\]: .*Function\('OpaqueUnaryFn_sqrt'\)"  # a class that it does not know
HINTS = r"shape env: backed_var_to_val: "  # float hints become whole numbers
LISTS = r"graph: (code|nested_ints: args): .*\[\[1, 2\], \[3\]\].* is not .*\[\(1, 2\), \(3,\)\]"  # lists become tuples
EXPECTED = {"sym_float": (FUNCTION, HINTS), "custom_op_nested_ints": (LISTS,)}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("path", samples.corpus("2.13.0"), ids=samples.release_id)
def test_same(path: Path) -> None:
    """Graph, names, arguments, metadata, fake values, signature, payloads with their aliases, symbols and ranges."""
    found = differences(load(path), torch.export.load(path))
    expected = EXPECTED.get(path.stem, ())
    unexpected = [text for text in found if not any(re.match(pattern, text, re.DOTALL) for pattern in expected)]
    assert not unexpected, unexpected[0]
    assert len(found) >= len(expected)


@pytest.mark.parametrize(
    "path",
    samples.corpus(*(release for release in samples.CURRENT_LAYOUT if release != "2.13.0")),
    ids=samples.release_id,
)
def test_same_for_other_releases(path: Path) -> None:
    """Files of every release of today's layout."""
    test_same(path)
