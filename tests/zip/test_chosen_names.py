"""Names that a file chooses: nothing is replaced or hidden without being asked for, and nothing is written before all
names were looked at."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.run import pt2
from tests.samples import sample

import pt2kit
from pt2kit.errors import ArchiveError
from pt2kit.zip.chosen_names import oddness, paths_below, renamed

MLP = sample("2.13.0", "mlp")
ODD = [
    ".bashrc",
    "a/.ssh/authorized_keys",
    "-rf",
    "--force",
    "a/-x",
    "con",
    "CON.txt",
    "nul.tar.gz",
    "a/Lpt1",
    "com¹",
    "conin$",
    "aux .txt",
    "a\nb",
    "a\x1b[31mb",
    "a\u202eb",
    "a:stream",
    "what?",
    "trailing.",
    "trailing ",
    " leading",
    "~",
    "a/~root",
    "x" * 256,
    "..",
    "a/../b",
    "/a",
    "a\\b",
    "",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names(name: str, tmp_path: Path) -> None:
    """Each is refused, with what is wrong and what to do; with rename=True it becomes a plain name in the folder."""
    with pytest.raises(ArchiveError, match=r"expected plain names of files, got .*--rename"):
        paths_below(tmp_path, ["fine.txt", name])
    [_, path] = paths_below(tmp_path, ["fine.txt", name], rename=True).values()
    assert oddness(path.relative_to(tmp_path).as_posix()) is None


@pytest.mark.parametrize(
    "name",
    ["labels.txt", "a/b/c.json", "Konsole", "confusion.csv", "nullable", "größe.txt", "日本.txt", "a-b", "com10"],
)
def test_plain_names(name: str, tmp_path: Path) -> None:
    """Ordinary names stay what they are."""
    assert paths_below(tmp_path, [name]) == {name: tmp_path / name}
    assert renamed(name) == name


@given(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=6))
def test_any_names(names: list[str]) -> None:
    """Renamed names differ from each other and are plain."""
    try:
        paths = paths_below("folder", names, rename=True)
    except ArchiveError as error:
        assert "folder of" in str(error)
        return
    found = [path.as_posix().removeprefix("folder/") for path in paths.values()]
    assert len({name.casefold() for name in found}) == len(names)
    assert [oddness(name) for name in found] == [None] * len(names)


def test_names_that_meet(tmp_path: Path) -> None:
    """Two names for one file, and a file that is a folder of another one."""
    with pytest.raises(ArchiveError, match="names of files that differ"):
        paths_below(tmp_path, ["a.txt", "A.TXT"])
    with pytest.raises(ArchiveError, match="which is a folder of"):
        paths_below(tmp_path, ["a", "a/b"])
    assert len(set(paths_below(tmp_path, ["_a", ".a", "?a"], rename=True).values())) == 3


def test_links(tmp_path: Path) -> None:
    """A link in the folder that leads out of it is not followed; one with the name of a file is an existing file."""
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "out").symlink_to(outside)
    (folder / "dead").symlink_to(outside / "nothing")
    with pytest.raises(ArchiveError, match="which a link leads out of it"):
        paths_below(folder, ["out/a.txt"], force=True)
    with pytest.raises(ArchiveError, match="do not exist yet"):
        paths_below(folder, ["dead"])
    with pytest.raises(ArchiveError, match="which a link leads out of it"):
        paths_below(folder, ["dead"], force=True)


def with_extra(path: Path, **extra: bytes) -> Path:
    """A model with extra files of these names, "dot" for ".", written as torch would write it."""
    buffer = io.BytesIO(MLP.read_bytes())
    with zipfile.ZipFile(buffer, "a") as archive:
        root = archive.namelist()[0].partition("/")[0]
        for name, data in extra.items():
            archive.writestr(f"{root}/extra/{name.replace('dot', '.')}", data)
    path.write_bytes(buffer.getvalue())
    return path


def test_the_input_is_not_replaced(tmp_path: Path) -> None:
    """`pt2 extra in.pt2 --to .` with an extra file in.pt2: refused before anything is written; --force replaces it."""
    path = with_extra(tmp_path / "indotpt2".replace("dot", "."), a=b"1", indotpt2=b"gone")
    before = path.read_bytes()
    found = pt2("extra", path, "--to", tmp_path)
    assert found.code == 2
    assert "expected files that do not exist yet" in found.err
    assert "--force" in found.err
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == (before, ["in.pt2"])
    assert pt2("extra", path, "--to", tmp_path, "--force").code == 0
    assert (tmp_path / "a").read_bytes() == b"1"
    assert path.read_bytes() == b"gone"


def test_hidden_files(tmp_path: Path) -> None:
    """`--to ~` does not write a .bashrc; with --rename it writes _bashrc."""
    path = with_extra(tmp_path / "m.pt2", dotbashrc=b"rm -rf /")
    home = tmp_path / "home"
    found = pt2("extra", path, "--to", home)
    assert (found.code, home.exists()) == (2, False)
    assert "'.bashrc', which is hidden" in found.err
    assert pt2("extra", path, "--to", home, "--rename").code == 0
    assert [file.name for file in home.iterdir()] == ["_bashrc"]


def test_unpack(tmp_path: Path) -> None:
    """All names of programs are looked at before the first file is written."""
    package = pt2kit.pack({"a": MLP, "con": MLP, "z": MLP})
    folder = tmp_path / "apart"
    with pytest.raises(ArchiveError, match=r"'con\.pt2', which is a device on Windows"):
        pt2kit.unpack(package, folder)
    assert not folder.exists()
    assert {path.name for path in pt2kit.unpack(package, folder, rename=True).values()} == {
        "a.pt2",
        "_con.pt2",
        "z.pt2",
    }
    (folder / "a.pt2").unlink()
    with pytest.raises(ArchiveError, match="do not exist yet"):
        pt2kit.unpack(package, folder, rename=True)
    assert not (folder / "a.pt2").exists()
    pt2kit.unpack(package, folder, rename=True, force=True)
    assert (folder / "a.pt2").exists()


@pytest.mark.parametrize("command", [("view", "{}"), ("diff", "{}", "{}")])
def test_a_page_over_a_model(command: tuple[str, ...], tmp_path: Path) -> None:
    """--html onto a .pt2, or any archive, needs --force; onto another page it does not."""
    path, other = tmp_path / "in.pt2", tmp_path / "renamed.bin"
    for file in (path, other):
        file.write_bytes(MLP.read_bytes())
    words = [word.format(path) for word in command]
    for target in (path, other):
        found = pt2(*words, "--html", target)
        assert (found.code, target.read_bytes()) == (2, MLP.read_bytes())
        assert "expected the name of a page" in found.err
    for _ in range(2):
        assert pt2(*words, "--html", tmp_path / "page.html").code == 0
    assert pt2(*words, "--html", other, "--force").code == 0
    assert b"<html" in other.read_bytes()[:2000].lower()
