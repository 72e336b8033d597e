"""`pt2 sign` and `pt2 verify`: what they print, and their exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import pt2
from tests.signing.keys import Keys, make_keys, needs_signing

pytest.importorskip("model_signing", reason="pip install 'pt2kit[sign]' brings it")
pytestmark = needs_signing


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Keys of the one who signs."""
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file `model.pt2`."""
    shutil.copy(samples.sample("2.13.0", "dynamic_batch"), tmp_path / "model.pt2")
    return tmp_path


def test_sign_and_verify(folder: Path, keys: Keys) -> None:
    """One line each, and 0."""
    done = pt2("sign", "model.pt2", "--key", keys.private, cwd=folder)
    assert (done.code, done.out) == (0, "model.pt2.sig: signs what the file means\n"), done.err
    done = pt2("verify", "model.pt2", "--key", keys.public, cwd=folder)
    assert (done.code, done.out) == (0, "model.pt2: what the file means: as signed\n"), done.err


def test_a_changed_weight(folder: Path, keys: Keys) -> None:
    """Named, with 1; and as JSON."""
    pt2("sign", "model.pt2", "--key", keys.private, cwd=folder)
    pt2("edit", "model.pt2", "changed.pt2", "--cast", "bf16", cwd=folder)
    asked: list[str | Path] = ["verify", "changed.pt2", "--signature", "model.pt2.sig", "--key", keys.public]
    done = pt2(*asked, cwd=folder)
    assert done.code == 1
    assert "  ~ weight 'a.weight' of 'model': expected sha256:a92e" in done.out
    tree = json.loads(pt2(*asked, "--json", cwd=folder).out)
    assert tree["verified"] is False
    assert {row["what"] for row in tree["differences"]} >= {"weight 'a.weight' of 'model'", "graph of 'model'"}


def test_errors_end_with_their_codes(folder: Path, keys: Keys, tmp_path: Path) -> None:
    """1 for another key and a broken signature, 2 for a missing one and nobody to trust."""
    assert pt2("verify", "model.pt2", "--key", keys.public, cwd=folder).code == 2
    pt2("sign", "model.pt2", "--key", keys.private, cwd=folder)
    other = make_keys(tmp_path / "other", "other")
    done = pt2("verify", "model.pt2", "--key", other.public, cwd=folder)
    assert done.code == 1
    assert done.err == "error: model.pt2.sig: expected a signature by the key given, got one by another key\n"
    done = pt2("verify", "model.pt2", cwd=folder)
    assert done.code == 2
    assert "expected one trust anchor" in done.err
    (folder / "model.pt2.sig").write_text("{}")
    assert pt2("verify", "model.pt2", "--key", keys.public, cwd=folder).code == 1
    assert json.loads(pt2("verify", "model.pt2", "--key", keys.public, "--json", cwd=folder).out)["verified"] is False
