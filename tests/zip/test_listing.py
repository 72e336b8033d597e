"""Files, folders, patterns and URLs as people give them -> files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pt2kit.errors import ArchiveError
from pt2kit.zip.listing import is_many, list_files, pair_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with files of several kinds; the process stands in it."""
    for name in ("b.pt2", "a.pt2", "sub/c.pt2", "sub/deep/d.pt2", "note.txt", ".hidden/e.pt2", "odd[1].pt2"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("targets", "files"),
    [
        (["a.pt2"], ["a.pt2"]),
        (["note.txt", "missing.pt2", "-"], ["note.txt", "missing.pt2", "-"]),
        (["."], ["./a.pt2", "./b.pt2", "./odd[1].pt2", "./sub/c.pt2", "./sub/deep/d.pt2"]),
        (["sub", "a.pt2", "sub/c.pt2"], ["sub/c.pt2", "sub/deep/d.pt2", "a.pt2"]),
        (["*.pt2"], ["a.pt2", "b.pt2", "odd[1].pt2"]),
        (["s?b"], ["sub/c.pt2", "sub/deep/d.pt2"]),
        (["sub/**/*.pt2"], ["sub/c.pt2", "sub/deep/d.pt2"]),
        (["odd[1].pt2"], ["odd[1].pt2"]),
        (["https://host/a.pt2?x=*y"], ["https://host/a.pt2?x=*y"]),
    ],
)
def test_files_are_listed(folder: Path, targets: list[str], files: list[str]) -> None:
    """Folders go down, patterns match, the rest stands for itself; each file once, in a stable order."""
    assert list_files(targets) == files


@pytest.mark.parametrize(
    ("target", "text"),
    [("empty", "empty: expected a folder with files named *.pt2, got none"), ("*.onnx", "expected a pattern that")],
)
def test_nothing_to_list(folder: Path, target: str, text: str) -> None:
    """A folder or a pattern that means nothing is an error."""
    (folder / "empty").mkdir()
    with pytest.raises(ArchiveError) as caught:
        list_files([target])
    assert text in str(caught.value)


def test_remote_folders_and_patterns() -> None:
    """Files that fsspec can list are listed by URL."""
    import fsspec

    files = fsspec.filesystem("memory")
    for name in ("a.pt2", "sub/b.pt2", "c.txt"):
        files.pipe(f"/listing/{name}", b"")
    assert list_files(["memory://listing/"]) == ["memory:///listing/a.pt2", "memory:///listing/sub/b.pt2"]
    assert list_files(["memory://listing/*.pt2"]) == ["memory:///listing/a.pt2"]
    assert not is_many("memory://listing/a.pt2")
    files.rm("/listing", recursive=True)


def test_results_keep_their_places(folder: Path) -> None:
    """Files below a folder keep their folders; single files and matches go into the target."""
    assert pair_files(["sub", "a.pt2"], "out") == {
        "sub/c.pt2": "out/c.pt2",
        "sub/deep/d.pt2": "out/deep/d.pt2",
        "a.pt2": "out/a.pt2",
    }
    assert pair_files(["a.pt2"], "s3://bucket/out/") == {"a.pt2": "s3://bucket/out/a.pt2"}
    assert pair_files(["a.pt2"], "s3://") == {"a.pt2": "s3://a.pt2"}
    (folder / "other").mkdir()
    (folder / "other/a.pt2").touch()
    with pytest.raises(ArchiveError, match=r"expected one file for it, got a\.pt2 and other/a\.pt2"):
        pair_files(["a.pt2", "other"], "out")
