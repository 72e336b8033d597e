"""A whole file as lines for git: everything that it means, and nothing of how it is packed."""

from __future__ import annotations

import difflib
import random
import zipfile

import pytest
from tests.diffs.cases import pairs, with_program
from tests.digests.packing import packed, records, renumbered, shuffled_keys, with_json
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample

import pt2kit
from pt2kit.text.program import whole_lines

LATEST = CURRENT_LAYOUT[-3]


def lines(data: object) -> list[str]:
    """A file as text."""
    with pt2kit.open(data) as package:  # type: ignore[arg-type]
        return list(whole_lines(package))


@pytest.mark.parametrize("path", corpus(LATEST), ids=release_id)
def test_packing_makes_no_difference(path) -> None:
    """Root folder, compression, numbers of records, order of keys; every line prints."""
    found = records(path)
    rng = random.Random(0)
    other = with_json(found, ".json", lambda tree: shuffled_keys(tree, rng))
    other = renumbered(other) if path.stem != "multi_model_package" else other
    text = lines(path)
    assert lines(packed(other, root="other", method=zipfile.ZIP_DEFLATED)) == text
    assert all(line.isprintable() for line in text)


@pytest.mark.parametrize("name", pairs())
def test_what_differs_is_in_the_text(name: str) -> None:
    """Two files that differ in anything but node metadata and unknown keys have different texts."""
    old, new = pairs()[name]
    assert lines(old) != lines(new)


def test_one_change_is_one_line() -> None:
    """So that a diff of lines shows what changed, and no more."""
    old, new = map(lines, with_program("mlp", opset_version={"aten": 11, "new": 1}))
    changed = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
    assert changed == ["-   operator sets aten 10", "+   operator sets aten 11, new 1"]


def test_calls_of_modules_are_in_the_text() -> None:
    """Inputs and outputs, trees, and named tuples are shown."""
    text = "\n".join(lines(sample(LATEST, "preserve_module_sig")))
    assert "  call of (the program itself)\n    parameters x, y\n    in_spec [1, " in text
    assert "  call of mid\n    takes %x\n    takes %y\n    gives %add_1\n    gives %y\n    in_spec" in text
    assert "  named tuple " in "\n".join(lines(sample(LATEST, "namedtuple_io")))


def test_weights_are_named_by_their_digests() -> None:
    """Type and digest, sorted by name."""
    text = lines(sample(LATEST, "mlp"))
    with pt2kit.open(sample(LATEST, "mlp")) as package:
        found = pt2kit.digest(package).tensors
    rows = text[text.index("  weights") + 1 :][: len(found)]
    assert [row.split()[0] for row in rows] == [f"{name}:" for name in sorted(found)]
    assert [row.split()[-1] for row in rows] == [found[name] for name in sorted(found)]
