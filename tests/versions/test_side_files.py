"""A program's files are found in its folder, and nothing outside of it."""

from __future__ import annotations

import pytest

from pt2kit.errors import PayloadError
from pt2kit.versions.conversion_log import check_location, read_folder

BYTES = bytes(range(12))


def test_folders_are_not_left(tmp_path):
    """Neither by a link nor by a name; a missing file is an error of ours."""
    (tmp_path / "outside").write_bytes(b"secret")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "w.bin").write_bytes(b"\0" * 4 + BYTES)
    (folder / "link").symlink_to(tmp_path / "outside")
    reader = read_folder(folder)
    assert reader("w.bin", 4, 12) == BYTES
    with pytest.raises(
        PayloadError, match=r"^'link': expected a file below 'program', got a link that leads out of it"
    ):
        reader("link", 0, 6)
    with pytest.raises(PayloadError, match=r"^'none': expected a readable file, got No such file"):
        reader("none", 0, 6)


@pytest.mark.parametrize("text", ["", "/etc/passwd", "../w.bin", "a/../b", "a//b", "./a", "a\\b", "c:/a", "a\0"])
def test_other_paths_are_refused(text):
    """Absolute ones, those with dots, those of another system."""
    with pytest.raises(PayloadError, match=r"^x: location: expected a relative path inside the program's folder, got"):
        check_location(text, "x")
    assert check_location("weights/w.bin", "x") == "weights/w.bin"
