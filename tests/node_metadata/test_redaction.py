"""Less metadata."""

from __future__ import annotations

from pt2kit.node_metadata.redaction import METADATA_KEYS, PROVENANCE_KEYS, STACK_TRACE_KEYS, strip_metadata


def test_strip():
    """Chosen keys go, the others stay in order; the metadata itself is untouched."""
    metadata = {"torch_fn": "a;b", "stack_trace": "x", "nn_module_stack": "a,b,c", "from_node": "[]"}
    assert strip_metadata(metadata) == {key: metadata[key] for key in ("torch_fn", "nn_module_stack", "from_node")}
    assert strip_metadata(metadata, PROVENANCE_KEYS) == {"nn_module_stack": "a,b,c"}
    assert strip_metadata(metadata, METADATA_KEYS) == {}
    assert STACK_TRACE_KEYS < PROVENANCE_KEYS < METADATA_KEYS
    assert len(metadata) == 4
