"""Files next to a program that was not in an archive: read safely, never outside the program's folder."""

from __future__ import annotations

from pathlib import Path

from pt2kit.errors import PayloadError
from pt2kit.versions.conversion_log import ReadExternal


def read_folder(folder: str | Path) -> ReadExternal:
    """Return a reader of files in one folder; it refuses to leave it.

    Args:
        folder: the program's folder.
    """
    root = Path(folder)

    def read(location: str, offset: int, length: int) -> bytes:
        path = path_below(root, location, repr(location))
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise PayloadError(f"{location!r}: expected a readable file, got {error.strerror}") from None

    return read


def path_below(folder: Path, location: str, place: str) -> Path:
    """Return the path of a file that a program names.

    Args:
        folder: the program's folder.
        location: the path that the program names, with forward slashes.
        place: the location of the name, for messages.

    Raises:
        PayloadError: no relative path, or one that leads out of the folder, by dots or by a link.
    """
    path = folder / check_location(location, place)
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that go in a circle
        inside = False
    if not inside:
        raise PayloadError(f"{place}: expected a file below {folder.name!r}, got a link that leads out of it")
    return path


def check_location(text: str, place: str) -> str:
    """Return a path in the form that a program may name: relative, with forward slashes, never leading upwards.

    Raises:
        PayloadError: any other.
    """
    parts = text.split("/")
    if not text or "\\" in text or "\0" in text or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        raise PayloadError(
            f"{place}: location: expected a relative path inside the program's folder, got {text[:80]!r}"
        )
    return text
