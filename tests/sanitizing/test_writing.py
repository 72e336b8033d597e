"""The place of the new file, which is verified before it is there."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.packages import rewritten
from tests.sanitizing.files import sanitized

import pt2kit
from pt2kit.digests.compute import digest_parts
from pt2kit.digests.result import PARTS
from pt2kit.errors import Pt2Error, UnsupportedError
from pt2kit.sanitizing import writing

MLP = samples.sample("2.13.0", "mlp")


def test_sources_and_targets(tmp_path: Path) -> None:
    """A path, bytes, a file object or an open package; to a path or a file object."""
    wanted, _ = sanitized(MLP)
    target = tmp_path / "clean.pt2"
    pt2kit.sanitize(str(MLP), str(target))
    assert target.read_bytes() == wanted
    with pt2kit.open(MLP) as package, open(target, "wb") as file:
        pt2kit.sanitize(package, file)
        assert package.programs  # still open
    assert target.read_bytes() == wanted
    assert os.listdir(tmp_path) == ["clean.pt2"]


def test_in_place(tmp_path: Path) -> None:
    """The target may be the file itself."""
    path = tmp_path / "m.pt2"
    path.write_bytes(MLP.read_bytes())
    pt2kit.sanitize(path, path)
    assert path.read_bytes() == sanitized(MLP)[0]


def test_refused_files_leave_the_target(tmp_path: Path) -> None:
    """A refused file writes nothing, and the target is unchanged."""
    target = tmp_path / "clean.pt2"
    target.write_bytes(b"before")
    bad = rewritten(MLP, {"data/aotinductor/m/m.so": b"\x7fELF"})
    with pytest.raises(UnsupportedError, match="expected data alone, got 1 other thing"):
        pt2kit.sanitize(bad, target)
    assert target.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["clean.pt2"]


@pytest.mark.parametrize("part", [part for part in PARTS if part != "metadata"])
def test_another_meaning_is_refused(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a digest came out otherwise, the file would not be written; the message has both."""
    count = 0

    def lie(*args: Any, **options: Any) -> dict[str, Any]:
        nonlocal count
        count += 1
        found = digest_parts(*args, **options)
        return found if count == 1 else {**found, part: "sha256:other"}

    monkeypatch.setattr(writing, "digest_parts", lie)
    with pytest.raises(UnsupportedError, match=f"model: expected the same digests as before: {part}: expected sha256"):
        pt2kit.sanitize(MLP, tmp_path / "clean.pt2", strip=["traces"])
    assert os.listdir(tmp_path) == []


def test_other_sample_inputs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If sample inputs came back otherwise, the file would not be written."""
    monkeypatch.setattr(writing, "read_samples", lambda *args: None)
    with pytest.raises(UnsupportedError, match="expected the sample inputs as they were"):
        sanitized(MLP)


def test_damaged_files(tmp_path: Path) -> None:
    """A damaged weight ends with its own error, and no file."""
    data = bytearray(MLP.read_bytes())
    with pt2kit.open(MLP) as package:
        offset = package.archive.data_offset(package.layout.record("data/weights/weight_0"))
    data[offset] ^= 1
    with pytest.raises(Pt2Error, match="CRC"):
        pt2kit.sanitize(bytes(data), tmp_path / "clean.pt2")
    assert os.listdir(tmp_path) == []


def test_many_obstacles() -> None:
    """All obstacles are listed, up to fifty."""
    data = rewritten(MLP, {f"extra/{number}.bin": b"\xff" for number in range(60)})
    with pytest.raises(UnsupportedError, match=r"got 60 other things:(.|\n)*… and 10 more"):
        sanitized(data)


def test_report() -> None:
    """The report is data that JSON can hold."""
    _, done = sanitized(samples.sample("2.13.0", "multi_model_package"))
    tree = done.to_tree()
    assert set(tree) == {"models", "moved", "unpickled", "dropped", "raised", "kept"}
    assert tree["moved"] == ["model", "second"]
    assert set(tree["models"]["model"]["digests"]) == set(PARTS)


def test_progress() -> None:
    """Bytes of tensors are counted up to the end, each time they are read."""
    told: list[tuple[int, int]] = []
    pt2kit.sanitize(MLP, io.BytesIO(), progress=lambda done, total: told.append((done, total)))
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1] > 0
