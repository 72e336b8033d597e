"""Targets are found one by one, and what cannot be worked on is refused before any work starts."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from pt2kit.errors import ArchiveError, UnsupportedError
from pt2kit.fleet.dataset import make_folder
from pt2kit.fleet.running import _texts
from pt2kit.fleet.targets import Targets, check_outside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files on several levels."""
    for name in ("a.pt2", "x/b.pt2", "x/y/c.pt2", "x/notes.txt"):
        path = tmp_path / "models" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "models"


def found(*targets: str | Path) -> dict[str, str]:
    """Relative path -> the last name of the URL."""
    return {one.relative: one.url.rpartition("/")[2] for one in Targets([str(t) for t in targets]).start()}


def test_patterns_folders_and_files(folder: Path) -> None:
    """One target gives paths below it, with size and state; a folder stands for its .pt2 files."""
    below = {"a.pt2": "a.pt2", "x/b.pt2": "b.pt2", "x/y/c.pt2": "c.pt2"}
    assert found(folder) == below
    assert found(folder / "**" / "*.pt2") == below
    assert found(folder / "*" / "*") == {"x/b.pt2": "b.pt2", "x/notes.txt": "notes.txt"}
    assert found(folder / "x" / "b.pt2") == {"b.pt2": "b.pt2"}
    [one] = Targets([str(folder / "a.pt2")]).start()
    assert (one.size, one.state) == (5, str((folder / "a.pt2").stat().st_mtime_ns))


def test_several_targets_keep_files_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several targets, each file keeps its whole path, so that none takes the place of another."""
    monkeypatch.chdir(folder)
    assert set(found("x/*.pt2", "*.pt2")) == {"x/b.pt2", "a.pt2"}
    monkeypatch.chdir(folder / "x")
    outside = str(folder / "a.pt2").lstrip("/")
    assert set(found("*.pt2", folder / "a.pt2")) == {"b.pt2", outside}


def test_lists(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text file names targets, one per line, with comments; so does standard input. A list in a list is a file."""
    names = tmp_path / "names"
    names.write_text(f"# all\n\n{folder}/*.pt2\n  {folder}/x/b.pt2\n{names}\n{folder}/none/*.pt2\n")
    urls = [one.url for one in Targets([str(names)]).start()]
    assert urls == [f"{folder}/a.pt2", f"{folder}/x/b.pt2", str(names), f"{folder}/none/*.pt2"]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{folder}/a.pt2\n"))
    assert {one.url for one in Targets(["-"]).start()} == {f"{folder}/a.pt2"}


def test_file_urls_are_paths(folder: Path, tmp_path: Path) -> None:
    """A `file://` URL is the path in it: as a target, as a list of targets, in a list, and of a folder."""
    names = tmp_path / "names"
    names.write_text(f"file://{folder}/*.pt2\n")
    given = _texts([f"file://{names}", f"FILE://{folder}/x"])
    urls = [one.url for one in Targets(given).start()]
    assert sorted(urls) == [f"{folder}/a.pt2", f"{folder}/x/b.pt2", f"{folder}/x/y/c.pt2"]
    assert make_folder(f"file://{folder}") == make_folder(folder)
    spaced = folder / "a b.pt2"
    spaced.write_bytes(b"")
    assert _texts([spaced.as_uri()]) == [str(spaced)]


def test_a_program_is_no_list(tmp_path: Path) -> None:
    """A file with an archive or JSON is worked on, whatever its name."""
    for name, data in (("zip", b"PK\3\4"), ("json", b' {"a": 1}'), ("bytes", b"\0abc"), ("text.pt2", b"hello")):
        (tmp_path / name).write_bytes(data)
        assert found(tmp_path / name) == {name: name}


def test_nothing_is_kept_of_a_stream() -> None:
    """Targets that come one by one are asked for as they are needed."""
    asked = []

    def names():
        for number in range(1000):
            asked.append(number)
            yield f"/nowhere/{number}.pt2"

    stream = Targets(names()).start()
    assert [next(stream).url for _ in range(3)] == [f"/nowhere/{number}.pt2" for number in range(3)]
    assert len(asked) <= 4


def test_a_folder_that_cannot_be_listed_has_a_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder below a target that gives an error is reported with it, and the others go on."""
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("/x"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    listed = {one.url: one.error for one in Targets([str(folder / "**" / "*.pt2")]).start()}
    assert listed == {
        f"{folder}/a.pt2": "",
        f"{folder}/x": "expected to list the folder, got: Permission denied",
    }


def test_links(folder: Path) -> None:
    """Links to files are files, links in circles end, and a link that leads nowhere is a file that cannot be read."""
    (folder / "x" / "up").symlink_to(folder)
    (folder / "link.pt2").symlink_to(folder / "a.pt2")
    (folder / "broken.pt2").symlink_to(folder / "nothing")
    assert set(found(folder)) == {"a.pt2", "x/b.pt2", "x/y/c.pt2", "link.pt2", "broken.pt2"}
    assert set(found(folder / "x" / "*" / "*.pt2")) == {"up/a.pt2", "up/link.pt2", "up/broken.pt2", "y/c.pt2"}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{folder}/*.onnx", "expected files that match, got none"),
        ("{folder}/x/y/z/**", "No such file or directory"),
        ("{folder}/nothing.pt2", "No such file or directory"),
        ("{folder}/empty", "expected files that match, got none"),
        ("nosuch://bucket/**", "expected to read it, got: Protocol not known"),
        ("nosuch://bucket/a.pt2", "are the address, the network and the credentials right?"),
        ("{folder}/unreachable", "are the address, the network and the credentials right?"),
        ("http://127.0.0.1:9/a.pt2", "are the address, the network and the credentials right?"),
    ],
)
def test_refused_at_the_start(folder: Path, target: str, message: str) -> None:
    """A target that matches nothing, is missing, or cannot be listed is an error before any work starts."""
    (folder / "empty").write_text("# nothing\n")
    (folder / "unreachable").write_text("nosuch://bucket/a.pt2\n")
    with pytest.raises((OSError, ArchiveError, UnsupportedError)) as caught:
        Targets([target.format(folder=folder)]).start()
    assert message in str(caught.value)


def test_no_targets() -> None:
    """Nothing to work on is said so."""
    with pytest.raises(UnsupportedError, match="targets: expected a file, a pattern or a list, got nothing"):
        Targets([]).start()
    with pytest.raises(UnsupportedError, match="targets: expected files that match, got none"):
        Targets(iter(())).start()


INSIDE = (
    ("models/**/*.pt2", "models/out", True),
    ("models/**/*.pt2", "models", True),
    ("models/", "models/deep/out", True),
    ("models/*/*.pt2", "models/out", True),
    ("models/t*/*.pt2", "models/out", False),
    ("models/*.pt2", "models/out", False),
    ("models/**/*.pt2", "out", False),
    ("models/**/*.pt2", "models2", False),
    ("models/a.pt2", "models/a.pt2", True),
    ("models/a.pt2", "models/out", False),
    ("s3://b/**", "s3://b/out", True),
    ("s3://b/x/**", "s3://b/out", False),
    ("s3://b/**", "s3://c/out", False),
)


@pytest.mark.parametrize(("target", "out", "refused"), INSIDE)
def test_results_among_the_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, out: str, refused: bool
) -> None:
    """A folder for results in which targets would be looked for is refused; one next to them is not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    if refused:
        with pytest.raises(UnsupportedError, match=r"out: expected a folder (outside of the targets|for the results)"):
            check_outside([target], out)
    else:
        check_outside([target], out)
