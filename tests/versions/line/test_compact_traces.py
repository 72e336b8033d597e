"""The two versions with the number 5.3 say the same of a program."""

from __future__ import annotations

import pytest
from tests.versions.programs import golden, round_trip

from pt2kit.errors import SchemaError
from pt2kit.versions.check import check_tree
from pt2kit.versions.conversion_log import ConversionLog
from pt2kit.versions.line.v5_1_v5_3 import compact_traces, expand_traces

TRACE = '  File "model.py", line 3, in forward\n    return x + 1\n'


def test_references_are_expanded_and_compacted():
    """Both ways, in subgraphs too, and the same tree comes back."""
    new, _ = round_trip("5.3-traces", expand_traces, compact_traces, "5.3")
    nodes = new["graph_module"]["graph"]["nodes"]
    assert [node["metadata"]["stack_trace"] for node in nodes] == ["no trace", TRACE, "no trace", "no trace"]


def test_a_released_program_gets_tables():
    """One per graph; a graph without traces gets an empty one, a node without metadata stays so."""
    tree = golden("5.3")
    tree["graph_module"]["graph"]["nodes"][0]["metadata"] = {}
    new = compact_traces(tree, ConversionLog("x"))
    check_tree(new, "5.3-traces", "x")
    graph = new["graph_module"]["graph"]
    assert graph["co_fileinfo_ordered_list"] == [
        {"file_name": "model.py", "line_info_map": {"3": {"name": "forward", "line": "return x + 1"}}}
    ]
    assert graph["nodes"][0]["metadata"] == {}
    assert graph["nodes"][1]["metadata"]["stack_trace"] == "0:3;"
    branch = graph["nodes"][2]["inputs"][1]["arg"]["as_graph"]["graph"]
    assert branch["co_fileinfo_ordered_list"] == []


def test_a_reference_to_nothing_is_refused():
    """With the place of the nodes."""
    tree = golden("5.3-traces")
    tree["graph_module"]["graph"]["nodes"][0]["metadata"]["stack_trace"] = "7:1"
    with pytest.raises(
        SchemaError, match=r"^x: \$\.graph_module\.graph\.nodes\[0\]: expected a file index below 1, got 7"
    ):
        expand_traces(tree, ConversionLog("x"))
