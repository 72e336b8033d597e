"""Shell completion: commands, and names from the file on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2

FILE = str(samples.sample("2.13.0", "dynamic_batch"))


def completed(*words: str) -> list[str]:
    """The completions of the last word, as bash gets them."""
    variables = {"_PT2_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return [line.partition(",")[2] for line in pt2(env=variables, fresh=True).out.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pt2", "exp"), ["explain"]),
        (("pt2", "explain", "T1"), ["T1", *(f"T1{digit}" for digit in range(6))]),
        (("pt2", "check", "--allow", "X2,V5"), ["X2,V5"]),
        (("pt2", "show", FILE, "--node", "re"), ["relu"]),
        (("pt2", "show", FILE, "--module", "a"), ["a"]),
        (("pt2", "weights", FILE, "b."), ["b.weight", "b.bias"]),
        (("pt2", "show", "--model", "m"), []),
        (("pt2", "show", FILE, "--model", "m"), ["model"]),
    ],
)
def test_names(words: tuple[str, ...], expected: list[str]) -> None:
    """Commands, rules, and the nodes, modules, weights and programs of the file that was named before."""
    assert completed(*words) == expected


def test_a_file_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    """Nothing is printed into the command line that is being written."""
    (tmp_path / "note.pt2").write_text("no program")
    assert completed("pt2", "show", str(tmp_path / "note.pt2"), "--node", "x") == []
