"""Names that torch replaces, and the file's names next to them."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

from torch import fx

from pt2kit.bridge.callables import StoredName, stored_name


def test_a_name_that_remembers():
    """It is the live name, and remembers the file's through copies."""
    name = StoredName("assert_unused", "assert_1")
    for made in (name, copy.deepcopy(name), pickle.loads(pickle.dumps(name))):
        assert made == "assert_unused"
        assert made.stored == "assert_1"


def test_what_is_written():
    """The file's name, unless another node has it now."""
    graph = fx.Graph()
    node = graph.call_function(abs, (1,), name="live")
    assert stored_name(node) == "live"
    node.name = StoredName("live", "stored")
    assert stored_name(node) == "stored"
    graph.call_function(abs, (2,), name="stored")
    assert stored_name(node) == "live"
    assert type(stored_name(SimpleNamespace(name="a"))) is str
