"""The habits of other command lines work: suggestions, `pt2 FILE`, `help`, `-V`, `-o` for every output, a pager."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import samples
from tests.cli.run import in_terminal, pt2

import pt2kit
from pt2kit.cli.main import COMMANDS

MODEL = samples.sample("2.13.0", "dynamic_batch")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file in a folder of its own."""
    return Path(shutil.copy(MODEL, tmp_path / "model.pt2"))


def test_a_mistyped_command_gets_a_suggestion() -> None:
    """Exit code 2, one line, and the command that is close."""
    found = pt2("chekc", "model.pt2")
    assert (found.code, found.out) == (2, "")
    assert "expected a command or a file, got 'chekc'; did you mean check" in found.err


def test_a_name_without_its_ending_gets_a_suggestion(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pt2 model` next to model.pt2 names that file."""
    monkeypatch.chdir(model.parent)
    assert "expected a command or a file, got 'model'; did you mean model.pt2?" in pt2("model").err


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("schema", "operators", "aten.relu"), "there is aten.relu.default, aten.relu.out"),
        (("schema", "operators", "aten.reluu"), "did you mean aten.relu"),
        (
            ("run", "model.pt2", "--input", "x=gone.npy"),
            "none or a .npy file, got gone.npy, and no such file",
        ),
        (("run", "model.pt2", "--input", "x=note.npy"), "note.npy: expected a NumPy file, got another kind of file"),
    ],
)
def test_names_that_do_not_exist(
    args: tuple[str, ...], text: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator without its overload, a file that is not there, and a file of another kind."""
    monkeypatch.chdir(model.parent)
    Path("note.npy").write_text("hello\n")
    found = pt2(*args)
    assert found.code == 2
    assert text in found.err


def test_a_file_alone_is_shown(model: Path) -> None:
    """`pt2 FILE` is `pt2 show FILE`, with its options; a command wins over a file of its name."""
    assert pt2(model).out == pt2("show", model).out
    assert pt2(model, "--records").out == pt2("show", model, "--records").out
    missing = pt2("nope.pt2")
    assert (missing.code, missing.err) == (2, "error: nope.pt2: No such file or directory\n")
    shutil.copy(model, model.parent / "check")
    assert "Missing argument 'FILE...'" in pt2("check", cwd=model.parent).err


def test_help_and_version() -> None:
    """`help` alone, with a command, and with what is none; `-V` is `--version`."""
    assert pt2("help").out == pt2("--help").out
    assert pt2("help", "check").out == pt2("check", "--help").out
    assert pt2("help", "explian").err.count("did you mean explain") == 1
    assert pt2("-V").out == pt2("--version").out


def test_help_texts_are_short_imperatives() -> None:
    """One line each, of at most 70 characters, that begins with a verb."""
    for name, text in COMMANDS.items():
        assert len(text) <= 70, name
        assert text[0].isupper(), name
        assert text.endswith("."), name
        assert text.split()[0] not in ("What", "Whether", "A", "The"), name


NEEDS_A_BROWSER = pytest.mark.skipif(shutil.which("chromium") is None, reason="figures are drawn by Chromium")


@pytest.mark.parametrize(
    ("args", "written"),
    [
        (["convert", "model.pt2", "--target", "torch==2.5"], "out.pt2"),
        (["sanitize", "model.pt2"], "out.pt2"),
        (["edit", "model.pt2", "--rename-input", "x=y"], "out.pt2"),
        (["extract", "model.pt2", "--module", "a"], "out.pt2"),
        (["compose", "model.pt2", "model.pt2", "--connect", "0=x", "--prefix", "a", "--prefix", "b"], "out.pt2"),
        (["weights", "model.pt2"], "out.safetensors"),
        (["pack", "model.pt2"], "out.pt2"),
        (["unpack", "model.pt2"], "out"),
        (["view", "model.pt2"], "out.html"),
        pytest.param(["view", "model.pt2"], "out.svg", marks=NEEDS_A_BROWSER),
        (["diff", "model.pt2", "model.pt2"], "out.html"),
        (["run", "model.pt2", "--random"], "out"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_every_output_has_the_same_option(model: Path, args: list[str], written: str) -> None:
    """`-o` names what is written."""
    found = pt2(*args, "-o", written, cwd=model.parent)
    if args[0] == "compose":  # its two programs do not fit, which is said before anything is written
        assert (found.code, (model.parent / written).exists()) == (2, False)
        assert "--output" not in found.err
        return
    assert found.code == 0, found.err
    assert (model.parent / written).exists()


def test_an_output_is_named_once(model: Path) -> None:
    """None and two are wrong usage."""
    assert "expected OUT, or --output OUT, got neither" in pt2("edit", model).err
    assert "expected OUT or --output, got both" in pt2("edit", model, "a.pt2", "-o", "b.pt2").err
    found = pt2("weights", model, "-o", "x.pt2")
    assert "to write a .pt2 with other weights, pass --from SOURCE" in found.err


def test_a_long_graph_is_paged(tmp_path: Path) -> None:
    """On a terminal that it does not fit, the graph goes to the pager; "cat" and short ones do not."""
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n")
    pager.chmod(0o755)
    paged = tmp_path / "paged"
    in_terminal("show", MODEL, "--graph", env={"PT2_PAGER": str(pager), "LINES": "60"})
    assert not paged.exists()
    in_terminal("show", MODEL, "--graph", env={"PT2_PAGER": "cat", "LINES": "5"})
    assert not paged.exists()
    in_terminal("show", MODEL, "--graph", env={"PT2_PAGER": str(pager), "LINES": "5"})
    assert paged.read_text(encoding="utf-8").rstrip("\n") == pt2("show", MODEL, "--graph").out.rstrip("\n")


def test_messages_name_what_was_expected_and_got(model: Path, tmp_path: Path) -> None:
    """In the user's words, with what to do."""
    (tmp_path / "note.txt").write_text("some notes\n")
    text = pt2("check", "note.txt", cwd=tmp_path)
    assert (text.code, text.out) == (1, "note.txt: expected a .pt2 file, got a text file [A2]\n")
    assert "expected s77 from 2 to 64, got 400" in pt2("edit", model, "-o", "x.pt2", "--specialize", "s77=400").err
    assert (
        "expected a symbol of the program (s77 from 2 to 64), got 's7'"
        in pt2("edit", model, "x.pt2", "--specialize", "s7=4").err
    )
    operator = pt2("edit", model, "x.pt2", "--operator", "aten::relu=aten::gelo").err
    assert "no operator aten.gelo in torch" in operator
    assert "did you mean aten.gelu" in operator
    with pytest.raises(AttributeError) as caught:
        _ = pt2kit.lod
    assert str(caught.value) == "module 'pt2kit' has no attribute 'lod'; did you mean load?"
    assert caught.value.obj is None  # or Python adds the same suggestion again
