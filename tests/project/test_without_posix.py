"""Nothing needs POSIX: the subpackages without torch do their work in a Python that has what Python has on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.samples import DATA

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # some plugins take POSIX for granted
}
FILES = ("zip/test_source.py", "zip/test_writer.py", "zip/test_reader.py", "zip/test_target.py")
SUBPACKAGES = ("package", "tensors", "digests", "diffs", "editing", "sanitizing", "text")
COSTLY = [pytest.mark.slow, pytest.mark.whole, pytest.mark.timeout(1800)]
ABOUT_POSIX = (
    "tests/zip/test_source.py::test_replaced_file_stays_readable",  # replacing what is open, which is refused there
    "tests/zip/test_target.py::test_readers_keep_the_old_file",
    "tests/package/test_external.py::test_a_file_takes_its_own_place",
    "tests/package/test_write.py::test_over_the_file_itself",
    "tests/sanitizing/test_writing.py::test_in_place",
    "tests/sanitizing/test_cli.py::test_exit_codes",  # starts the command as POSIX does
    "tests/cli/test_fleet.py",  # Dask, and what signs, take POSIX for granted where the system is called Linux
    "tests/package/test_external.py::test_others_follow",  # removes what an editor or package still has open
    "tests/zip/test_target.py::test_pipes_and_devices_are_written_to",
    "tests/package/test_external.py::test_no_pipe_is_waited_for",
    "tests/package/test_legacy_programs.py::test_todays_files_need_no_migration",  # starts Python as POSIX does
    "tests/cli/test_shortcuts.py::test_a_long_graph_is_paged",  # terminals and pagers are started as POSIX does
    "tests/cli/test_shortcuts.py::test_every_output_has_the_same_option[view-out.svg]",  # so is the browser
)
SAMPLE = DATA / "corpus" / "2.13.0" / "dynamic_batch.pt2"


@pytest.mark.parametrize(
    "subpackages", [FILES, pytest.param(SUBPACKAGES, marks=COSTLY), pytest.param(["cli"], marks=COSTLY)], ids=" ".join
)
def test_subpackages_without_posix(subpackages: Sequence[str]) -> None:
    """The tests of subpackages pass as they do here, but those that are about POSIX itself."""
    taken_out = ["-p", "tests.project.without_posix"]
    environment = ENVIRONMENT
    if subpackages == ["cli"]:  # its tests start the command, which is what has no POSIX then
        taken_out, environment = [], {**ENVIRONMENT, "PT2KIT_TEST_MODULE": "tests.project.without_posix"}
    plugins = (
        arg for name in ("pytest_timeout", "_hypothesis_pytestplugin", "no:cacheprovider") for arg in ("-p", name)
    )
    command = [sys.executable, "-m", "pytest", *taken_out, *plugins]
    done = subprocess.run(
        [
            *command,
            "-q",
            "-m",
            "not slow",
            "--cases=4",
            *(f"tests/{name}" for name in subpackages),
            *(f"--deselect={name}" for name in ABOUT_POSIX),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python without POSIX; `FILE` is a copy of a sample file in the folder it runs in."""
    (folder / "model.pt2").write_bytes(SAMPLE.read_bytes())
    text = "import tests.project.without_posix\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )


COMMANDS = (
    "show model.pt2",
    "check model.pt2 --payloads",
    "weights model.pt2 --to weights.npz",
    "weights model.pt2 --to weights.npz",
    "sanitize model.pt2 clean.pt2",
    "convert model.pt2 old.pt2 --target torch==2.5",
    "edit model.pt2 changed.pt2 --cast bf16",
    "diff model.pt2 clean.pt2 --no-metadata",
    "pack a=model.pt2 b=clean.pt2 -o both.pt2",
    "unpack both.pt2 apart",
    "digest both.pt2 --model a",
    "view model.pt2 --html page.html",
)


def test_commands_without_posix(tmp_path: Path) -> None:
    """The commands do their work, and what they write can be read here."""
    done = python(
        f"""
        import sys
        from pt2kit.cli.main import main
        for line in {COMMANDS!r}:
            sys.argv = ["pt2", *line.split()]
            try:
                main()
            except SystemExit as end:
                print(line, "->", end.code)
        assert "torch" not in sys.modules
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    codes = {
        line.rpartition(" -> ")[0]: line.rpartition(" -> ")[2] for line in done.stdout.splitlines() if " -> " in line
    }
    assert {line: codes.get(line) for line in COMMANDS} == {
        line: "1" if line.startswith("diff") else "0" for line in COMMANDS
    }, done.stderr


def test_replacing_a_mapped_file_without_posix(tmp_path: Path) -> None:
    """A mapped file is unchanged, nothing is left next to it, and the error says what to do."""
    done = python(
        """
        import os
        import pt2kit
        from pathlib import Path
        before = Path("model.pt2").read_bytes()
        package = pt2kit.open("model.pt2")
        view = package.weights()["a.weight"].numpy()
        try:
            pt2kit.sanitize(package, "model.pt2")
        except OSError as error:
            print(error)
        assert Path("model.pt2").read_bytes() == before
        assert os.listdir(".") == ["model.pt2"], os.listdir(".")
        print(view.sum() != 0)
        del view
        package.close()
        pt2kit.sanitize("model.pt2", "clean.pt2")
        package = pt2kit.open("clean.pt2")
        package.close()
        pt2kit.sanitize("model.pt2", "clean.pt2")
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    message, still_there = done.stdout.splitlines()
    assert (
        "model.pt2: expected a file that can be replaced, got one that is open, here or in another process" in message
    )
    assert "close what reads it, or write to another name" in message
    assert still_there == "True"
