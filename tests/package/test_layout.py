"""Which layout a set of records is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import samples
from tests.zip.zip_forge import Entry, forge

from pt2kit.errors import ArchiveError, Pt2Error, UnsupportedError, VersionError
from pt2kit.package.layouts.base import Parts
from pt2kit.package.layouts.container import Container
from pt2kit.package.layouts.detection import detect
from pt2kit.package.layouts.record_archive import RecordArchive
from pt2kit.package.open import Package
from pt2kit.zip.reader import open_archive

HEADER = {
    "archive_format": b"pt2",
    "archive_version": b"0",
    "byteorder": b"little",
    ".data/version": b"6\n",
    ".data/serialization_id": b"1" * 40,
}
PROGRAM = {
    "models/model.json": b"{}",
    "data/weights/model_weights_config.json": b"{}",
    "data/constants/model_constants_config.json": b"{}",
}
PROGRAM_28 = {"models/model.json": b"{}", "data/weights/model.pt": b"", "data/constants/model.pt": b""}
PLAIN = {"serialized_exported_program.json": b"{}", "serialized_state_dict.pt": b"", "version": b"5.1"}

RELEASES = {
    "2.1": ("plain-zip", "torch 2.1"),
    "2.2": ("plain-zip", "torch 2.2"),
    "2.3": ("plain-zip", "torch 2.3"),
    **dict.fromkeys(["2.4", "2.5", "2.6", "2.7"], ("plain-zip", "torch 2.4 to 2.7")),
    "2.8": ("archive-2.8", "torch 2.8"),
}


def build(records: dict[str, bytes], root: str = "m/") -> bytes:
    """An archive of these records."""
    return forge(*(Entry((root + name).encode(), data) for name, data in records.items()))


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_real_files(path: Path) -> None:
    """Every file of a real release is recognised as what that release writes."""
    release = path.parent.name.rpartition(".")[0]
    expected = RELEASES.get(release, ("archive", "torch 2.9 and later"))
    with open_archive(path) as archive:
        layout = detect(archive)
        assert (layout.kind, layout.releases) == expected
        assert layout.models == (("model", "second") if path.stem == "multi_model_package" else ("model",))
        for model in layout.models:
            place = layout.parts(model)
            assert {*place.all} <= archive.records.keys()
            assert (place.configs if layout.has_configs else place.pickles) == tuple(
                record for record in (place.weights, place.constants) if record
            )
            assert layout.program_record(model) == place.program
            assert layout.sample_inputs_record(model) == place.sample_inputs
        assert list(layout.extra_files()) == (["note.txt", "dir/info.json"] if path.stem == "extra_files" else [])
        if layout.kind == "plain-zip":
            assert layout.root == ""
        else:
            assert layout.record("archive_format") in archive.records


# name: (records, error, rule, text)
REFUSED: dict[str, tuple[dict[str, bytes], str, type[Pt2Error], str, str]] = {
    "nothing": ({}, "m/", ArchiveError, "A19", "got no records"),
    "no root": (HEADER | PROGRAM, "", ArchiveError, "A19", "got records at the top: archive_format, archive_version"),
    "two roots": ({"a/archive_format": b"pt2", "b/x": b""}, "", ArchiveError, "A19", "got 2 folders: a, b"),
    "no format": (
        {**PROGRAM, "archive_version": b"0"},
        "m/",
        ArchiveError,
        "A20",
        "a record m/archive_format, got none",
    ),
    "no version": ({**PROGRAM, "archive_format": b"pt2"}, "m/", ArchiveError, "A21", "m/archive_version, got none"),
    "deeper": (HEADER | PROGRAM, "a/b/", ArchiveError, "A19", "a/archive_format, got a/b/archive_format"),
    "format": ({**HEADER, **PROGRAM, "archive_format": b"pt3"}, "m/", ArchiveError, "A20", "b'pt2', got b'pt3'"),
    "format and newline": (
        {**HEADER, **PROGRAM, "archive_format": b"pt2\n"},
        "m/",
        ArchiveError,
        "A20",
        "got b'pt2\\n'",
    ),
    "long format": (
        {**HEADER, **PROGRAM, "archive_format": b"pt2" * 99},
        "m/",
        ArchiveError,
        "A20",
        "64 bytes, got 297",
    ),
    "version": ({**HEADER, **PROGRAM, "archive_version": b"1"}, "m/", VersionError, "A21", "expected b'0', got b'1'"),
    "version text": ({**HEADER, **PROGRAM, "archive_version": b"zero"}, "m/", VersionError, "A21", "got b'zero'"),
    "data version": ({**HEADER, **PROGRAM, ".data/version": b"11"}, "m/", VersionError, "A22", "1 to 10, got b'11'"),
    "data version 0": ({**HEADER, **PROGRAM, ".data/version": b"0\n"}, "m/", VersionError, "A22", "got b'0\\n'"),
    "data version text": ({**HEADER, **PROGRAM, ".data/version": b"abc"}, "m/", VersionError, "A22", "got b'abc'"),
    "short version": ({**HEADER, **PROGRAM, "version": b"99"}, "m/", VersionError, "A22", "version: expected a number"),
    "big-endian": ({**HEADER, **PROGRAM, "byteorder": b"big"}, "m/", VersionError, "A23", "got 'big'"),
    "byteorder": ({**HEADER, **PROGRAM, "byteorder": b"middle"}, "m/", ArchiveError, "A23", "got b'middle'"),
    "samples in capitals": (
        {**HEADER, **PROGRAM, "data/sample_inputs/MODEL.pt": b""},
        "m/",
        ArchiveError,
        "A7",
        "expected m/data/sample_inputs/model.pt, got m/data/sample_inputs/MODEL.pt: torch's reader, which ignores case",
    ),
    "a folder in capitals": ({**HEADER, **PROGRAM, "DATA/sample_inputs/model.pt": b""}, "m/", ArchiveError, "A7", ""),
    "a header in capitals": ({**HEADER, **PROGRAM, "Version": b"3"}, "m/", ArchiveError, "A7", "got m/Version"),
    "no program": (HEADER, "m/", ArchiveError, "A24", "got neither among 5 records"),
    "not json": ({**HEADER, **PROGRAM, "models/b.txt1": b""}, "m/", ArchiveError, "A24", "got m/models/b.txt1"),
    "no name": ({**HEADER, **PROGRAM, "models/.json": b""}, "m/", ArchiveError, "A24", "got m/models/.json"),
    "polyglot": (
        {"m/" + name: data for name, data in (HEADER | PROGRAM).items()} | PLAIN,
        "",
        ArchiveError,
        "A26",
        "(serialized_exported_program.json, serialized_state_dict.pt, version) and others (m/archive_format",
    ),
    "plain without program": (
        {"version": b"1"},
        "",
        ArchiveError,
        "A19",
        "expected a record serialized_exported_program",
    ),
    "plain without version": (
        {"serialized_exported_program.json": b"{}"},
        "",
        ArchiveError,
        "A19",
        "expected a record version",
    ),
    "plain version": ({**PLAIN, "version": b"v5"}, "", VersionError, "A19", "such as '5.1', got b'v5'"),
    "plain version of an archive": (
        {**PLAIN, "version": b"8.20"},
        "",
        VersionError,
        "A19",
        "version: expected at most 8.8 in a plain zip, got 8.20",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """An archive that is no known layout, or several, is refused with the record that decides."""
    records, root, kind, rule, text = REFUSED[case]
    with pytest.raises(Pt2Error) as caught, open_archive(build(records, root), name="x.pt2") as archive:
        detect(archive)
    assert type(caught.value) is kind
    assert caught.value.rule == rule
    assert text in str(caught.value)
    assert str(caught.value).startswith("x.pt2: ")


# name: (records, root, kind, models)
ACCEPTED: dict[str, tuple[dict[str, bytes], str, str, tuple[str, ...]]] = {
    "as written": (HEADER | PROGRAM, "m/", "archive", ("model",)),
    "bare minimum": ({**PROGRAM, "archive_format": b"pt2", "archive_version": b"0"}, "m/", "archive", ("model",)),
    "2.8": (HEADER | PROGRAM_28, "m/", "archive-2.8", ("model",)),
    "compiled code only": ({**HEADER, "data/aotinductor/m/x.so": b""}, "m/", "archive", ()),
    "unknown records": ({**HEADER, **PROGRAM, "data/new/x": b"", "y": b""}, "m/", "archive", ("model",)),
    "short version": ({**HEADER, **PROGRAM, "version": b"3\n"}, "m/", "archive", ("model",)),
    "a folder in a model's name": ({**HEADER, "models/a/b.json": b""}, "m/", "archive", ("a/b",)),
    "root like a plain record": (HEADER | PROGRAM, "extra_files/", "archive", ("model",)),
    "root called version": (HEADER | PROGRAM, "version/", "archive", ("model",)),
    "extra file called like the format": (
        {**HEADER, **PROGRAM, "extra/archive_format": b"", "extra/models/x": b""},
        "m/",
        "archive",
        ("model",),
    ),
    "plain": (PLAIN, "", "plain-zip", ("model",)),
    "plain with extra files": ({**PLAIN, "extra_files/a/b": b""}, "", "plain-zip", ("model",)),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(case: str) -> None:
    """Layouts that a release writes, and additions of newer ones, are recognized."""
    records, root, kind, models = ACCEPTED[case]
    with open_archive(build(records, root)) as archive:
        layout = detect(archive)
    assert (layout.kind, layout.root, layout.models) == (kind, root, models)


def _parts(records: dict[str, bytes], model: str = "model") -> Parts:
    with open_archive(build(HEADER | records), name="x.pt2") as archive:
        return detect(archive).parts(model)


def test_programs_of_several_layouts() -> None:
    """Programs packed by different releases may lie in one archive."""
    mixed = {**PROGRAM, "models/b.json": b"", "data/weights/b.pt": b"", "data/constants/b.pt": b""}
    assert _parts(mixed).configs == (
        "m/data/weights/model_weights_config.json",
        "m/data/constants/model_constants_config.json",
    )
    assert _parts(mixed, "b") == Parts(
        "m/models/b.json",
        "m/data/weights/b.pt",
        "m/data/constants/b.pt",
        pickles=("m/data/weights/b.pt", "m/data/constants/b.pt"),
    )


def test_payload_missing() -> None:
    """A program whose weights or constants nothing describes is refused by the name of the missing record."""
    with pytest.raises(
        ArchiveError, match=r"^x\.pt2: models/model\.json: .*model_weights_config\.json, got none \[A25\]"
    ):
        _parts({"models/model.json": b""})
    with pytest.raises(ArchiveError, match=r"data/constants/model_constants_config\.json, got none"):
        _parts({"models/model.json": b"", "data/weights/model_weights_config.json": b""})
    with pytest.raises(ArchiveError, match=r"data/weights/model\.pt, got none"):
        _parts({"models/model.json": b"", "data/constants/model.pt": b""})


def test_payload_twice() -> None:
    """A program with both kinds of records has two meanings."""
    with pytest.raises(UnsupportedError, match=r"got both: .*data/constants/model\.pt \[A25\]$"):
        _parts({**PROGRAM, "data/constants/model.pt": b""})


def test_a_plain_zip_without_weights() -> None:
    """It is incomplete; the error names the missing record."""
    with (
        open_archive(build({"serialized_exported_program.json": b"{}", "version": b"5.1"}, "")) as archive,
        pytest.raises(ArchiveError, match=r"serialized_state_dict\.pt.* \[A25\]"),
    ):
        detect(archive).parts("model")


def test_methods_of_a_container() -> None:
    """They are in the record of their model."""
    with open_archive(build(HEADER | PROGRAM)) as archive:
        layout = Container(archive, "m/", ("model", "model.go"), "", {"model.go": ("model", "go")})
        assert layout.parts("model.go") == Parts("m/models/model.json")


@pytest.mark.parametrize(
    ("models", "asked", "chosen"),
    [
        (("a",), None, "a"),
        (("a", "model"), None, "model"),
        (("a", "b"), None, None),
        (("a", "b"), "b", "b"),
        (("a", "b"), "c", None),
        (("a",), "", None),
        ((), None, None),
        ((), "model", None),
    ],
)
def test_the_program_that_is_meant(models: tuple[str, ...], asked: str | None, chosen: str | None) -> None:
    """A name means the program that has it; none means the only one, or "model"."""
    with open_archive(build(HEADER | PROGRAM)) as archive:
        package = Package(RecordArchive(archive, "m/", models, ""))
        if chosen is not None:
            assert package.choose(asked) == chosen
            return
        there = ", ".join(map(repr, models))
        wanted = f"expected a program, one of {there}, got {repr(asked) if asked is not None else 'none'}"
        with pytest.raises(ArchiveError, match=wanted if models else "an archive without one"):
            package.choose(asked)
