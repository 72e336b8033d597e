"""Standard output and standard error: colors and hyperlinks on a terminal, plain text in a pipe, or JSON; help.

Colors and hyperlinks are for terminals that show them. A closed pipe (`pt2 check … | head -1`) ends the printing, and
does not affect the exit code. A group of subcommands prints its help without importing them.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TextIO

import click

_LABEL: Final = re.compile(r"  (?=.{12} )[a-z][a-z ]{12}(?=\S)")
_WARNING: Final = re.compile(r"  (?:X\d+ |unknown keys |problems  )")
_PARTS: Final = re.compile(
    r"(?P<value>%(?:\w+|\"(?:[^\"\\]|\\.)*\"))"
    r"|(?P<type>\b[fiucb][a-z0-9]+\[[^\]]*\])"
    r"|(?P<custom>\(custom\))"
    r"|(?P<comment>  # .*$)"
)
_STYLES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "value": {"fg": "green"},
        "type": {"fg": "blue"},
        "custom": {"fg": "magenta"},
        "comment": {"dim": True},
    }
)


_RULE: Final = re.compile(r"(?<=^  )[A-Z]\d{1,2}(?= )")
_UNUSUAL: Final = re.compile(r"[^ -~\n]")
"""Characters of JSON that may not print; all of them are in strings, where JSON escapes them itself or need not."""
_TERMINALS_WITH_LINKS: Final = frozenset(("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"))

MAX_MESSAGE: Final = 4000
NARROWEST: Final = 20


def wants_colour(stream: TextIO | None) -> bool:
    """Return whether a stream gets colors: a terminal that shows them, or any by FORCE_COLOR; none by NO_COLOR.

    Source: https://no-color.org and https://force-color.org.
    """
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def colour(line: str) -> str:
    """Return a line with the styles of its parts; the caller has escaped what does not print."""
    if line and not line.startswith(" "):
        return click.style(line, bold=True)
    if _WARNING.match(line):
        return click.style(linked(line), fg="yellow")
    label = _LABEL.match(line)
    start = label.end() if label else 0
    return (click.style(label[0], fg="cyan") if label else "") + _PARTS.sub(_styled, line[start:])


def linked(line: str) -> str:
    """Return a line whose rule id, if it begins with one, is a hyperlink to the page of the rule."""
    base = _pages()
    if not base:
        return line
    return _RULE.sub(lambda found: f"\x1b]8;;{base}/{found[0]}.md\x1b\\{found[0]}\x1b]8;;\x1b\\", line, count=1)


def _pages() -> str:
    """Return the URL of the folder of rule pages; "" if there is none, or the terminal shows no hyperlinks.

    PT2_DOCS names the documentation; in a checkout it is `docs/`. FORCE_HYPERLINK=1 or 0 decides for any terminal.
    """
    asked, environment = os.environ.get("FORCE_HYPERLINK", ""), os.environ
    is_known = (
        environment.get("TERM_PROGRAM") in _TERMINALS_WITH_LINKS
        or environment.get("TERM", "").startswith(("xterm-kitty", "alacritty", "foot"))
        or "WT_SESSION" in environment
        or (environment.get("VTE_VERSION", "").isdecimal() and int(environment["VTE_VERSION"]) >= 5000)
    )
    if not (is_known if not asked else asked != "0"):
        return ""
    if docs := environment.get("PT2_DOCS"):
        return f"{docs.rstrip('/')}/rules"
    folder = Path(__file__).parents[3] / "docs" / "rules"
    return folder.as_uri() if folder.is_dir() else ""


def _styled(match: re.Match[str]) -> str:
    return click.style(match[0], **_STYLES[str(match.lastgroup)])


def width() -> int | None:
    """Return the width of lines, in columns: that of the terminal, or COLUMNS; None if neither is known."""
    stated = os.environ.get("COLUMNS", "")
    if sys.stdout is None or not (sys.stdout.isatty() or stated.isdecimal()):
        return None
    return max(NARROWEST, shutil.get_terminal_size().columns)


def print_lines(lines: Iterable[str], style: Callable[[str], str] = colour, *, fitted: bool = True) -> None:
    """Print lines until the pipe is closed. Control characters are escaped.

    Args:
        lines: what to print; those that are too long for the terminal are broken between words.
        style: line -> the same with colors, for terminals that have them.
        fitted: whether lines may be broken; text that is to be read back may not.
    """
    for line in _safe_lines(lines, style, fitted=fitted):
        if not _write(f"{line}\n"):
            return


def _safe_lines(lines: Iterable[str], style: Callable[[str], str], *, fitted: bool) -> Iterator[str]:
    """Yield lines as a terminal gets them: without control characters, broken to its width, with colors."""
    from pt2kit.messages import printable
    from pt2kit.text.format import fit

    colored, columns = wants_colour(sys.stdout), width() if fitted else None
    for line in lines:
        safe = line if line.isprintable() else printable(line, len(line))
        for part in (safe,) if columns is None else fit(safe, columns):
            yield style(part) if colored else part


def print_paged(lines: Iterable[str], *, fitted: bool = True) -> None:
    """Print lines; on a terminal that they do not fit, with the pager of PT2_PAGER or PAGER ("" or "cat": none)."""
    pager = os.environ.get("PT2_PAGER", os.environ.get("PAGER", "less"))
    is_terminal = sys.stdout is not None and sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()
    if not is_terminal or pager in ("", "cat") or os.environ.get("TERM") in (None, "dumb"):
        print_lines(lines, fitted=fitted)
        return
    rest = iter(lines)
    first = list(islice(rest, shutil.get_terminal_size().lines))
    if len(first) < shutil.get_terminal_size().lines:
        print_lines(first, fitted=fitted)
        return
    os.environ["PAGER"] = pager
    click.echo_via_pager(f"{line}\n" for line in _safe_lines(chain(first, rest), colour, fitted=fitted))


def print_json(value: Any) -> None:
    """Print a value as indented JSON, in UTF-8 whatever the terminal's encoding is.

    Characters that do not print are escaped: texts of a file could hold codes that a terminal obeys, or that reverse
    the direction of the line.
    """
    from pt2kit import codec
    from pt2kit.errors import SchemaError

    try:
        text = codec.encode_indented(value).decode()
    except SchemaError:  # The name of a file is not UTF-8; its surrogates are escaped below.
        tree = json.loads(json.dumps(codec.to_tree(value)), parse_constant=lambda _: None)  # NaN is null above, too
        text = json.dumps(tree, indent=2, ensure_ascii=False)
    print_bytes(_UNUSUAL.sub(_escaped, text).encode() + b"\n")


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return char if char.isprintable() else json.dumps(char)[1:-1].replace("\x7f", "\\u007f")


def print_bytes(data: bytes | memoryview) -> None:
    """Print bytes unchanged; as text if standard output accepts nothing else."""
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        _write(bytes(data).decode(errors="backslashreplace"))
        return
    try:
        sys.stdout.flush()
        binary.write(data)
    except BrokenPipeError:
        drop_output()


def end_by_signal(number: int, frame: object) -> NoReturn:
    """End the process with the code that shells report, by an exception: the files being written are removed."""
    sys.exit(128 + number)


def print_error(message: str, mark: str = "error:") -> None:
    """Print one line on standard error, colored if that is a terminal with colors."""
    from pt2kit.messages import printable

    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):  # earlier output comes first, if it can be written
        if sys.stdout is not None:
            sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        text = folded(f"{mark} {printable(message, MAX_MESSAGE)}")
        if wants_colour(sys.stderr):
            shown = click.style(mark, fg="red" if mark == "error:" else "cyan", bold=True)
            text = text.replace(mark, shown, 1)
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(f"{text}\n".encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()


def folded(text: str) -> str:
    """Return an error of one line, broken to the width of standard error if that is a terminal."""
    from pt2kit.text.format import fit

    if sys.stderr is None or not sys.stderr.isatty():
        return text
    return "\n".join(fit(text, max(NARROWEST, shutil.get_terminal_size().columns)))


def error_text(error: Exception) -> str:
    """Return the text of an error; of an OSError the file and the reason, without its number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    files = [os.fsdecode(name) or "''" for name in (error.filename, error.filename2) if isinstance(name, (str, bytes))]
    return f"{' -> '.join(files)}: {error.strerror}" if files else error.strerror


def drop_output() -> None:
    """Discard the buffered output, which cannot be written any more."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> bool:
    """Write a text; return whether the pipe is still open."""
    try:
        if sys.stdout is not None:
            sys.stdout.write(text)
    except BrokenPipeError:
        drop_output()
        return False
    return sys.stdout is not None


def help_texts(run: Callable[..., Any]) -> dict[str, Any]:
    """Return the help text of a command and what follows its options, of the docstring of its function.

    `Examples:` and what comes after it follows the options. The lines of examples and exit codes are kept, other
    paragraphs filled.
    """
    sections = re.compile(r"^(?=Examples:|Exit codes:)", re.MULTILINE)
    help_text, *others = sections.split(inspect.cleandoc(run.__doc__ or ""))
    return {"help": help_text.strip(), "epilog": "".join(f"\b\n{section}" for section in others)}


class Help(click.HelpFormatter):
    """Format help so that its examples fit the terminal as well."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        """Use the columns of a narrow terminal, too; by itself, click fills at least 50."""
        columns = max(NARROWEST, shutil.get_terminal_size().columns)
        super().__init__(indent_increment, width or min(columns, max_width or 80) - 2, max_width)

    def getvalue(self) -> str:
        """Return the help text."""
        from pt2kit.text.format import fit

        columns = min(self.width + 2, max(NARROWEST, shutil.get_terminal_size().columns))
        return "".join(f"{part}\n" for line in super().getvalue().splitlines() for part in fit(line, columns))


class HelpContext(click.Context):
    """The context of a subcommand."""

    formatter_class = Help


class LazyGroup(click.Group):
    """A command with subcommands whose modules are imported when they are called; its help imports none."""

    helps: Mapping[str, str]
    """Subcommand -> its line in the help."""

    def load(self, name: str) -> click.Command:
        """Return a subcommand of `helps`."""
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the subcommands in the order of the help."""
        return list(self.helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command object of a subcommand."""
        if cmd_name not in self.helps:
            return None
        command = self.load(cmd_name)
        command.context_class = HelpContext
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands with a line each."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))
