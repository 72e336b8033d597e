"""Options of the commands and the pages that describe them: all of them, and none that is gone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from pt2kit.cli.frame import load_command
from pt2kit.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
HELP = {"-h", "--help"}
_BLOCK = re.compile(r"^```(?:console|sh|text|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^  (-[\w-]+(?:(?:, | / )-[\w-]+)*)(?= |$)", re.MULTILINE)


def _command(name: str) -> click.Command:
    """The command of a name; `fleet check` is one, too."""
    first, *rest = name.split()
    command = load_command(first)
    for one in rest:
        command = command.get_command(click.Context(command), one)  # type: ignore[attr-defined]
    assert isinstance(command, click.Command), name
    return command


def _flags(command: click.Command) -> set[str]:
    """All spellings of all options of a command."""
    options = [one for one in command.params if isinstance(one, click.Option)]
    return HELP | {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


FLEET = [f"fleet {name}" for name in _command("fleet").list_commands(click.Context(_command("fleet")))]  # type: ignore[attr-defined]
ALL: Mapping[str, set[str]] = {name: _flags(_command(name)) for name in [*COMMANDS, *FLEET]}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_its_row(name: str) -> None:
    """Under "Options", the page of a command has a row for each spelling of each option, and no other."""
    section = (DOCS / "commands" / f"{name}.md").read_text(encoding="utf-8").split("## Options")[1]
    [shown] = re.findall(rf"^\$ pt2 {name} --help\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    rows = _ROW.findall(shown.split("\nOptions:\n")[1].split("\n\n")[0])
    assert {flag for row in rows for flag in re.split(", | / ", row)} == ALL[name]


def test_every_command_has_its_section() -> None:
    """The reference of the command line describes each command."""
    headings = re.findall(r"^## `pt2 (\w+)", (DOCS / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(COMMANDS) <= set(headings)


def test_the_page_of_fleets_has_their_options() -> None:
    """The page about fleets names each option of each of its commands as code."""
    text = (DOCS / "fleet.md").read_text(encoding="utf-8")
    named = {flag for code in re.findall(r"`([^`\n]+)`", text) for flag in re.findall(r"(?<![\w-])--?[\w-]+", code)}
    assert set().union(*(ALL[name] for name in FLEET)) - HELP - named == set()


def _lines(text: str) -> Iterator[str]:
    """The lines of `pt2` in the blocks of a page; a line that ends with a backslash goes on."""
    for block in _BLOCK.findall(text):
        for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines():
            if found := re.match(r"(?:\$ +)?(?:\w+=\S+ )*(pt2 .*)", line.strip()):
                yield found[1]


def _unknown(line: str) -> list[str]:
    """The flags in a line of `pt2` that its command does not have; two spaces, a pipe or `#` end the command."""
    words = shlex.split(re.split(r"  | [|>#]", line)[0])[1:]
    if words and words[0] == "--weights-root":
        words = words[2:]
    name = " ".join(words[:2]) if words[:1] == ["fleet"] else next(iter(words), "")
    flags = ALL.get(name, ALL["show"] | _flags(cli) | {"-V"})
    return [word for word in words if re.match(r"--?[a-zA-Z]", word) and word.partition("=")[0] not in flags]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_in_pages_have_their_options(page: Path) -> None:
    """No page shows an option that its command does not have."""
    for line in _lines(page.read_text(encoding="utf-8")):
        assert _unknown(line) == [], line


def test_a_wrong_option_is_found() -> None:
    """The reading of lines above: programs of other names are passed over, options of other commands are found."""
    text = "```sh\nNO_COLOR=1 pt2 check a.pt2 --strict --to b  # --not-read\ndocker run --rm pt2\n```\n"
    assert [_unknown(line) for line in _lines(text)] == [["--to"]]
    assert _unknown("pt2 fleet check a -o b --outt c") == ["--outt"]


def test_output_is_what_is_written() -> None:
    """Each `--output` is also `-o`, both name one thing to write, and no command uses them otherwise."""
    for name in ALL:
        for option in _command(name).params:
            if isinstance(option, click.Option) and {"-o", "--output"} & set(option.opts):
                assert {"-o", "--output"} <= set(option.opts), name
                assert not option.multiple, name
                assert not option.is_flag, name
