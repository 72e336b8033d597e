"""Names of records: validation, and safe paths for unpacking, which replaces nothing and remains below a folder.

Names become paths when an archive is unpacked, and keys when a record is looked up; both must mean one thing to every
reader. Texts that cannot be names of records are reported with what is wrong with them. The meanings of names in a
`.pt2` are in `package/record_names.py`.

An archive can call an extra file `.bashrc`, `-rf`, `con.txt` or like the archive itself. All names are checked before
the first file is written: unpacking hides nothing, existing files are replaced with `force` only, and odd names are
refused, or changed with `rename`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from pt2kit.errors import ArchiveError
from pt2kit.messages import PRINTED, listed, quote

PLAIN_NAME: Final = re.compile(r"\.?[\w-][\w.-]*(?:/\.?[\w-][\w.-]*)*", re.ASCII)
"""Most names there are: components of letters, digits and the like, with at most one dot in front."""

_SHOWN: Final = 10
_LONGEST: Final = 255
# Windows treats these as devices in any folder and with any ending, also with superscript digits.
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?=$|[ .:])", re.IGNORECASE)
_BEGINNINGS: Final = {".": "is hidden", "-": "begins with a dash", "~": "begins with a tilde, which shells expand"}
_FORBIDDEN: Final = re.compile(r'[<>:"|?*]')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def name_problem(name: str) -> str | None:
    """Return a description of what makes `name` unfit for a record, or None if nothing does (rule A6)."""
    if PLAIN_NAME.fullmatch(name):
        return None
    if not name:
        return "is empty"
    if "\0" in name:
        return "holds a NUL character"
    if "\\" in name:
        return "holds a backslash"
    if _SURROGATE.search(name):
        return "holds a surrogate, which UTF-8 has no bytes for"
    if name[0] == "/":
        return "is absolute"
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return f"has the component {part!r}"
        if len(part) > 1 and part[1] == ":" and part[0].isascii() and part[0].isalpha():
            return f"has the drive letter {part[:2]!r}"
    return None


def decode_name(raw: bytes, where: str) -> str:
    """Decode a record's name from the bytes of a header and check it; a folder's name keeps its closing slash.

    Raises:
        ArchiveError: the bytes are not UTF-8, or the name is unfit (A6).
    """
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ArchiveError(f"{where}: expected a record name in UTF-8, got {quote(raw, PRINTED)}", rule="A6") from exc
    _check_name(name[:-1] if len(name) > 1 and name.endswith("/") else name, name, where)
    return name


def encode_name(name: str, where: str) -> bytes:
    """Encode a record's name for a header, checked as a reader would check it.

    Raises:
        ArchiveError: the name is unfit or cannot be written as UTF-8 (A6).
    """
    _check_name(name, name, where)
    return name.encode("utf-8")


def _check_name(name: str, written: str, where: str) -> None:
    if problem := name_problem(name):
        raise ArchiveError(
            f"{where}: expected a relative record name, got {quote(written, PRINTED)}, which {problem}", rule="A6"
        )


def collision_key(name: str) -> str:
    """Return one text for all names that some file system would treat as equal: case and composition are ignored."""
    name = name.rstrip("/")
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def show_name(name: str) -> str:
    """Return a record's name for messages: quoted and escaped if it has unprintable characters, cut if it is long."""
    return name if len(name) <= PRINTED and name.isprintable() else quote(name, PRINTED)


def paths_below(
    folder: str | os.PathLike[str], names: Iterable[str], *, force: bool = False, rename: bool = False
) -> dict[str, Path]:
    """Return where files go whose names come from an archive; nothing is created.

    Args:
        folder: the root of the paths.
        names: relative, with "/" between folders.
        force: allow existing files to be replaced.
        rename: change odd names; else they are refused.

    Returns:
        name -> path.

    Raises:
        ArchiveError: a name that is odd or leads out of the folder, two names for one file, or one that exists already.
    """
    names = list(names)
    odd = {name: problem for name in names if (problem := oddness(name))}
    if odd and not rename:
        shown = listed([f"{quote(name)}, which {problem}" for name, problem in odd.items()], _SHOWN)
        raise ArchiveError(f"expected plain names of files, got {shown}; pass --rename (rename=True) to change them")
    root = Path(folder)
    paths: dict[str, Path] = {}
    taken: dict[str, str] = {}
    for name in names:
        plain = _free(renamed(name), taken) if rename else name
        key = collision_key(plain)
        if key in taken:
            raise ArchiveError(f"expected names of files that differ, got {quote(taken[key])} and {quote(name)}")
        taken[key] = name
        paths[name] = root.joinpath(*plain.split("/"))
    _check_folders(taken)
    _check_existing(root, paths, force)
    return paths


def oddness(name: str) -> str | None:
    """Return a description of what makes a name dangerous as the path of a file, or None if nothing does."""
    if problem := name_problem(name):
        return problem
    for part in name.split("/"):
        if part[0] in _BEGINNINGS:
            return _BEGINNINGS[part[0]]
        if not part.isprintable():
            return "has control characters"
        if _DEVICE.match(part):
            return "is a device on Windows"
        if _FORBIDDEN.search(part) or part[-1] in ". " or part[0] == " ":
            return "has characters that not every system allows in a name"
        if len(part.encode("utf-8", "surrogatepass")) > _LONGEST:
            return f"is longer than {_LONGEST} bytes"
    return None


def renamed(name: str) -> str:
    """Return a plain name that is close to an odd one; a plain one is unchanged."""
    return "/".join(_plain(part) for part in name.replace("\\", "/").split("/") if part) or "_"


def _plain(part: str) -> str:
    plain = _FORBIDDEN.sub("_", "".join(letter if letter.isprintable() else "_" for letter in part))
    if plain[0] in ". ":
        plain = "_" + plain.lstrip(". ")
    if plain[0] in "-~" or _DEVICE.match(plain):
        plain = "_" + plain
    while len(plain.encode("utf-8", "replace")) > _LONGEST - 8:
        plain = plain[:-1]
    return plain if plain[-1] not in ". " else plain.rstrip(". ") + "_"


def _free(name: str, taken: dict[str, str]) -> str:
    """Return the name, with a number if it is taken."""
    stem, ending = os.path.splitext(name)
    number, free = 1, name
    while collision_key(free) in taken:
        number += 1
        free = f"{stem}_{number}{ending}"
    return free


def _check_folders(taken: dict[str, str]) -> None:
    """Refuse names of which one is a folder of another."""
    for key, name in taken.items():
        for parent in map(str, PurePosixPath(key).parents):
            if parent in taken:
                raise ArchiveError(
                    f"expected names of files, got {quote(taken[parent])}, which is a folder of {quote(name)} as well"
                )


def _check_existing(root: Path, paths: dict[str, Path], force: bool) -> None:
    real_root = os.path.realpath(root)
    there = []
    for name, path in paths.items():
        # Through a link in the folder, a name leads wherever the link does; a file may be a link itself.
        followed = path if force else path.parent
        if os.path.commonpath((real_root, os.path.realpath(followed))) != real_root:
            raise ArchiveError(f"expected names of files below {root}, got {quote(name)}, which a link leads out of it")
        if path.is_dir():
            raise ArchiveError(f"expected names of files, got {quote(name)}, which is a folder in {root}")
        if os.path.lexists(path):
            there.append(str(path))
    if there and not force:
        raise ArchiveError(
            f"expected files that do not exist yet, got {listed(there, _SHOWN)}; pass --force (force=True) to replace "
            "them"
        )
