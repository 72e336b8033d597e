"""Random scripts of edits end in a sound program, or in an error that names the edit."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.editing.scripts import run_script
from tests.packages import errors
from tests.samples import corpus

import pt2kit
from pt2kit.errors import GraphError, Pt2Error

FILES = [path for path in corpus("2.13.0") if path.stat().st_size < 60_000]


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_scripts_end_in_a_sound_program(dice: Random) -> None:
    """Whatever was refused names its edit; what comes out has no errors, and what went in is as it was."""
    path = dice.choice(FILES)
    with pt2kit.open(path) as package:
        model = package.layout.models[0]
        before = pt2kit.digest(package, model)
        editor = pt2kit.edit(package, model)
        for text in run_script(editor, dice, dice.randint(1, 12)):
            assert "expected" in text or "no operator" in text
        try:
            result = editor.finish()
        except Pt2Error as error:
            assert "expected" in str(error)
        else:
            assert errors(result) == []
            pt2kit.digest(result, model)
        assert pt2kit.digest(package, model) == before


@pytest.mark.parametrize("path", FILES[:3], ids=lambda path: Path(path).stem)
def test_a_block_that_raises_gives_no_result(path: Path) -> None:
    """An error inside the block leaves the editor without a result."""
    editor = pt2kit.edit(path, pt2kit.open(path).layout.models[0])
    with pytest.raises(RuntimeError, match="mine"), editor:
        raise RuntimeError("mine")
    with pytest.raises(GraphError, match=r"expected one that was left, by its `with` block or finish\(\)"):
        _ = editor.result
