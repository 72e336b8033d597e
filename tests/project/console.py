"""Console blocks of the documents -> what their commands print now.

A block is a fence marked `console`. Of its lines those that begin with `$ pt2 ` are commands, and what follows up to
the next one is their output; `$ echo $?` is the exit code of the command before. In `docs/commands/`, `docs/how-to/`
and the tutorial, commands run in a folder with the files that the table of `docs/commands/index.md` names, in the order
of the page, so that they can use what the ones before wrote; elsewhere in the root of the repository. A line `…` stands
for lines that were left out. In the README and `docs/compatibility.md`, blocks without output are for reading and are
not run.

    PYTHONPATH=. python -m tests.project.console      writes the outputs into the pages
"""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cli.run import Result, pt2

from pt2kit.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    DOCS / "compatibility.md",
    DOCS / "tutorial.md",
    *sorted((DOCS / "commands").glob("*.md")),
    *sorted((DOCS / "how-to").glob("*.md")),
)
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1"}
CUT = "…"
NEW_PAGE = """# `pt2 {name}`

{text}

## Options

```console
$ pt2 {name} --help
```

[Command-line reference](../cli.md): JSON keys, exit codes, several files.
"""
_BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)


def sample_files() -> dict[str, Path]:
    """The names that the pages use for sample files, and the files."""
    rows = re.findall(r"^\| `([\w.-]+)` \| `(tests/[\w./-]+)` \|", (DOCS / "commands" / "index.md").read_text(), re.M)
    return {name: ROOT / path for name, path in rows}


def as_it_is_now(page: Path) -> str:
    """The text of a page with the outputs that its commands have now."""
    text = page.read_text(encoding="utf-8")
    if page in (ROOT / "README.md", DOCS / "compatibility.md"):
        return _BLOCK.sub(lambda block: _run(block[1], ROOT, always=False), text)
    with tempfile.TemporaryDirectory() as folder:
        for name, path in sample_files().items():
            shutil.copy(path, Path(folder) / name)
        return _BLOCK.sub(lambda block: _run(block[1], Path(folder), always=True), text)


def _run(block: str, folder: Path, *, always: bool) -> str:
    """Return a block with its actual outputs; one without outputs is unchanged unless `always`."""
    lines = list(_commands(block))
    if not all(command.startswith(("pt2 ", "echo $?")) for command, _ in lines):
        return block
    if not always and not any(output for _, output in lines):
        return block
    done = Result(0, "", "")
    written = []
    for command, shown in lines:
        if command == "echo $?":
            written.append(f"$ {command}\n{done.code}\n")
            continue
        done = pt2(*shlex.split(command)[1:], cwd=folder, env=ENVIRONMENT)
        output = "".join(f"{line}\n" for line in (done.out + done.err).splitlines())
        written.append(f"$ {command}\n{_cut(output, shown)}")
    return "".join(written)


def _commands(block: str) -> Iterator[tuple[str, str]]:
    """(command, the output that stands below it), in order; a command that ends with a backslash goes on."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def _cut(output: str, shown: str) -> str:
    """The output, cut where what is shown has a line `…`: as many lines as stand above it, and below it."""
    lines, shown_lines = output.splitlines(), shown.splitlines()
    if CUT not in shown_lines:
        return output
    above = shown_lines.index(CUT)
    below = len(shown_lines) - above - 1
    return "\n".join([*lines[:above], CUT, *lines[len(lines) - below :]]) + "\n"


def with_all_commands(index: str) -> str:
    """The page about the commands, with its table and its table of contents as the command line has them."""
    rows = "".join(f"| [`pt2 {name}`]({name}.md) | {text} |\n" for name, text in COMMANDS.items())
    index = re.sub(r"(\| command \| what it does \|\n\|---\|---\|\n)(?:\|.*\n)*", lambda found: found[1] + rows, index)
    return re.sub(r"(:hidden:\n\n)[\w\n]*(?=```)", lambda found: found[1] + "\n".join([*COMMANDS, ""]), index)


def main() -> None:
    """Write what the commands print now into the pages; a command without a page gets one to begin with."""
    index = DOCS / "commands" / "index.md"
    index.write_text(with_all_commands(index.read_text(encoding="utf-8")), encoding="utf-8")
    for name, text in COMMANDS.items():
        page = DOCS / "commands" / f"{name}.md"
        if not page.exists():
            page.write_text(NEW_PAGE.format(name=name, text=text), encoding="utf-8")
    for page in sorted({*PAGES, *(DOCS / "commands").glob("*.md")}):
        page.write_text(as_it_is_now(page), encoding="utf-8")


if __name__ == "__main__":
    main()
