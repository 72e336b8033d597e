"""Less metadata, and no machine paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.texts import texts

from pt2kit.node_metadata.redaction import METADATA_KEYS, PROVENANCE_KEYS, STACK_TRACE_KEYS, scrub_paths, strip_metadata


def frame(file):
    return f'File "{file}", line 3, in f\n    x'


PATHS = [
    ("/usr/lib/python3/dist-packages/numpy/core.py", "site-packages/numpy/core.py"),
    ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", "site-packages/torch/nn/modules/linear.py"),
    ("C:\\Python311\\Lib\\site-packages\\torch\\nn.py", "site-packages/torch/nn.py"),
    ("/usr/lib/python3.12/asyncio/base_events.py", "python/asyncio/base_events.py"),
    ("/home/alice/project/model.py", "~/project/model.py"),
    ("/Users/bob/model.py", "~/model.py"),
    ("/root/model.py", "~/model.py"),
    ("C:\\Users\\Bob Smith\\model.py", "~/model.py"),
    ("/home/alice", "~/"),
    ("file:///home/alice/x.py", "file://~/x.py"),
    ("/srv/jobs/17/model.py", ".../model.py"),
    ("D:\\work\\model.py", ".../model.py"),
    ("model.py", "model.py"),
    ("torch/fx/passes/runtime_assert.py", "torch/fx/passes/runtime_assert.py"),
    ("<eval_with_key>.12", "<eval_with_key>.12"),
    (
        "<eval_with_key>.12 from /opt/v/lib/python3.11/site-packages/torch/fx/proxy.py:15 in wrapped",
        "<eval_with_key>.12 from site-packages/torch/fx/proxy.py:15 in wrapped",
    ),
    ("<eval_with_key>.12 from /srv/model.py:15 in wrapped", "<eval_with_key>.12 from .../model.py:15 in wrapped"),
]


@pytest.mark.parametrize(("path", "neutral"), PATHS, ids=range(len(PATHS)))
def test_files_of_frames(path, neutral):
    """The file of a frame loses what is particular to the machine."""
    assert scrub_paths(frame(path)) == frame(neutral)
    assert scrub_paths(frame(neutral)) == frame(neutral)


def test_paths_elsewhere_in_a_text():
    """In source lines home folders and installations are neutral, other paths may be arguments and stay."""
    text = 'File "m.py", line 1, in f\n    open("/home/alice/a b.txt", "/data/x", file:///home/bob/c, 2/3)'
    assert scrub_paths(text) == 'File "m.py", line 1, in f\n    open("~/a b.txt", "/data/x", file://~/c, 2/3)'


def test_own_replacements_come_first():
    """A caller's own prefixes are replaced before the rules, the longest first."""
    text = frame("/srv/jobs/17/model.py")
    assert scrub_paths(text, {"/srv/": "S/", "/srv/jobs/17/": "src/", "": "x"}) == frame("src/model.py")


@pytest.mark.parametrize("text", [text for _, text in texts("stack_trace")])
def test_real_traces_lose_their_machine(text):
    """No path of the machine is left in a real trace, and everything else stays."""
    scrubbed = scrub_paths(text)
    assert "/opt/" not in scrubbed
    assert scrubbed.count("\n") == text.count("\n")
    assert scrub_paths(scrubbed) == scrubbed


chunks = st.sampled_from(
    [
        "/",
        "\\",
        "home",
        "/home/",
        "/Users/",
        "root",
        "C:",
        "site-packages",
        "/lib/python3.1/",
        'File "',
        '", line 1, in f',
        "~",
        ".../",
        "<",
        ">",
        " ",
        "\n",
        ":",
        "a",
        "\x1b",
    ]
)


@given(st.lists(st.one_of(chunks, st.text(max_size=3)), max_size=12).map("".join))
def test_scrubbing_twice_changes_nothing_more(text):
    """The neutral form is final, for any text."""
    once = scrub_paths(text)
    assert scrub_paths(once) == once


def test_strip():
    """Chosen keys go, the others stay in order; the metadata itself is untouched."""
    metadata = {"torch_fn": "a;b", "stack_trace": "x", "nn_module_stack": "a,b,c", "from_node": "[]"}
    assert strip_metadata(metadata) == {key: metadata[key] for key in ("torch_fn", "nn_module_stack", "from_node")}
    assert strip_metadata(metadata, PROVENANCE_KEYS) == {"nn_module_stack": "a,b,c"}
    assert strip_metadata(metadata, METADATA_KEYS) == {}
    assert STACK_TRACE_KEYS < PROVENANCE_KEYS < METADATA_KEYS
    assert len(metadata) == 4
