"""Absolute paths lose what is particular to a machine, wherever they stand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node_metadata.texts import texts

from pt2kit.node_metadata.frames import lenient, parse_from_node
from pt2kit.node_metadata.modules import parse_module_stack
from pt2kit.node_metadata.redaction import METADATA_KEYS, hide_paths

CASES = [
    ('File "/srv/al ice/secret/x.py", line 3, in f\n    y', 'File ".../x.py", line 3, in f\n    y'),
    ('File "/x.py", line 3, in f', 'File ".../x.py", line 3, in f'),
    (
        'File "/opt/venv/lib/python3.11/site-packages/torch/nn/a.py", line 3, in f',
        'File "site-packages/torch/nn/a.py", line 3, in f',
    ),
    (
        'File "/usr/lib/python3/dist-packages/numpy/core.py", line 3, in f',
        'File "site-packages/numpy/core.py", line 3, in f',
    ),
    (
        'File "C:\\Python311\\Lib\\site-packages\\torch\\nn.py", line 3, in f',
        'File "site-packages/torch/nn.py", line 3, in f',
    ),
    ('File "<eval_with_key>.12", line 3, in f', 'File "<eval_with_key>.12", line 3, in f'),
    ('File "/usr/lib/python3.12/asyncio/b.py", line 3, in f', 'File "python/asyncio/b.py", line 3, in f'),
    (
        'File "<eval_with_key>.1 from /a/b.py:15 in w", line 3, in f',
        'File "<eval_with_key>.1 from .../b.py:15 in w", line 3, in f',
    ),
    ('open("/home/alice/data/x.bin")', 'open(".../x.bin")'),
    ("C:\\Users\\Alice\\x.py and D:/jobs/7/y.py", ".../x.py and .../y.py"),
    ("/home/alice", "~"),
    ("/Users/bob/", "~"),
    ("file:///home/alice/x.py", "file:.../x.py"),
    ("https://example.org/a/b", "https://example.org/a/b"),
    ('"git+ssh://example.org/a/b"', '"git+ssh://example.org/a/b"'),
    ("/home/alice://x/y", "~:.../y"),
    ("/x//file/:///x//f", ".../file:.../f"),
    ("a / b, a/b, 2/3, x //y, /", "a / b, a/b, 2/3, x //y, /"),
    ("torch/fx/passes/x.py ./a/b ../c/d ~/e/f", "torch/fx/passes/x.py ./a/b ../c/d ~/e/f"),
    ("L__self___fc,L['self'].fc,/srv/a/b.Linear", "L__self___fc,L['self'].fc,.../b.Linear"),
    ("PATH=/usr/a:/usr/b", "PATH=.../a:.../b"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "hidden"), CASES, ids=range(len(CASES)))
def test_paths(text: str, hidden: str) -> None:
    """Absolute paths keep their last part, or what is below an installation; everything else stays."""
    assert hide_paths(text) == hidden
    assert hide_paths(hidden) == hidden


def test_json_stays_json() -> None:
    """In JSON each string is rewritten for itself, also JSON inside JSON; nothing else changes."""
    inner = json.dumps({"deep": "/srv/alice/z.py", "n": 1.50})
    value = [{"name": 'File "/srv/alice/x.py", line 1', "inner": inner, "n": [1e5, None, "é/\t"]}]
    found = hide_paths(json.dumps(value))
    tree = json.loads(found)
    assert tree[0]["name"] == 'File ".../x.py", line 1'
    assert json.loads(tree[0]["inner"]) == {"deep": ".../z.py", "n": 1.5}
    assert tree[0]["n"] == value[0]["n"]
    assert hide_paths(found) == found


def test_what_only_looks_like_json() -> None:
    """Text that is no JSON after all is rewritten as text, however deep its brackets are."""
    assert hide_paths('["/srv/alice/x.py"') == '[".../x.py"'
    assert hide_paths("[" * 100_000 + '"/srv/alice/x.py"').endswith('".../x.py"')


@pytest.mark.parametrize("key", sorted(METADATA_KEYS))
def test_real_metadata(key: str) -> None:
    """Real texts have no absolute path left, and can be read as before."""
    for _, text in texts(key):
        found = hide_paths(text)
        assert hide_paths(found) == found
        for parse in (parse_module_stack, parse_from_node):
            assert (lenient(parse, found) is None) == (lenient(parse, text) is None)


@given(st.text(alphabet='/\\ab:. "\n[]{},', max_size=60))
def test_any_text(text: str) -> None:
    """Any text has an answer, and doing it twice changes nothing more."""
    found = hide_paths(text)
    assert hide_paths(found) == found


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('["\\Usr\\a", "\\f:/x/y"]', '[".../a", "\\f:.../y"]'),
        ('{"\\q\\b": "\\u002fsrv/al/x.py"}', '{".../b": ".../x.py"}'),
        ('["[\\"\\\\q\\\\b\\"]/srv/x"]', '["[\\".../b\\"].../x"]'),
    ],
    ids=["an escape", "a key", "inside"],
)
def test_what_becomes_json_by_being_hidden(text: str, hidden: str) -> None:
    """If only a path kept a text from being JSON, its strings are rewritten too, at once."""
    assert json.loads(hidden)
    assert hide_paths(text) == hidden
    assert hide_paths(hidden) == hidden


BROKEN = [
    "/",
    "\\",
    "\\u",
    "\\u002f",
    "\\f",
    "\\/",
    "C:",
    ":",
    '"',
    '\\"',
    "[",
    "]",
    "{",
    "}",
    ",",
    "a",
    "b.py",
    "/home/",
    "\ufffd",
]


@given(
    st.recursive(
        st.lists(st.sampled_from(BROKEN), max_size=12).map("".join),
        lambda inner: (
            inner.map(lambda text: json.dumps([text]))
            | inner.map(lambda text: f'["{text}"]')
            | st.tuples(inner, inner).map(lambda pair: f'{{"{pair[0]}": {json.dumps(pair[1])}}}')
        ),
        max_leaves=4,
    )
)
def test_json_that_is_broken(text: str) -> None:
    """A second time changes nothing more, also in a text that becomes JSON by being rewritten."""
    hidden = hide_paths(text)
    assert hide_paths(hidden) == hidden


PIECES = [
    "/",
    "\\",
    "site-packages",
    "dist-packages",
    "lib",
    "python3.11",
    "home",
    "root",
    "C:",
    "a",
    "b.py",
    ".",
    "...",
]


@given(
    st.lists(
        st.sampled_from([*PIECES, "~", ":", "//", '"', 'File "', '", line 3', " ", "file:", "[", "]"]), max_size=14
    )
)
def test_paths_of_all_kinds(pieces: list[str]) -> None:
    """Folders inside folders of the same kind do not become shorter each time."""
    text = "".join(pieces)
    assert hide_paths(hide_paths(text)) == hide_paths(text)


def test_an_installation_inside_another() -> None:
    """The innermost one counts, at once."""
    assert hide_paths("/a/site-packages/site-packages/x.py") == "site-packages/x.py"
    assert hide_paths("/a/site-packages/lib/python3.11/x.py") == "python/x.py"
