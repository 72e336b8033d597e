"""Every part of the schema occurs in a file that tests read: a real one, or one made for the rest."""

from __future__ import annotations

from typing import Any

import pytest
from tests import everything, samples
from tests.cover import features
from tests.coverage import all_parts, parts_in

import pt2kit
from pt2kit import codec, schema
from pt2kit.package import record_names as names

OBJECTS = everything.objects()


def _real_parts() -> set[str]:
    found: set[str] = set()
    for path in samples.corpus(*samples.CURRENT_LAYOUT):
        with pt2kit.open(path) as package:
            for model, program in package.programs.items():
                found |= parts_in(program)
                for record in (names.weights_config(model), names.constants_config(model)):
                    data = package.archive.read(package.layout.record(record))
                    found |= parts_in(codec.decode(data, schema.PayloadConfig, record).value)
    return found


def test_every_part_occurs() -> None:
    """Each field, each arm of a union and each member of an enum occurs in a sample file or in a synthetic one."""
    synthetic: set[str] = set()
    for value in OBJECTS.values():
        synthetic |= parts_in(value)
    assert all_parts() - synthetic - _real_parts() == set()
    assert synthetic <= all_parts()


def test_real_files_have_what_programs_are_made_of() -> None:
    """Few parts are in synthetic files alone: most of the schema occurs in files that torch wrote."""
    assert len(_real_parts()) > 0.7 * len(all_parts())


@pytest.mark.parametrize("name", OBJECTS)
def test_synthetic_files(name: str) -> None:
    """A synthetic file is what its builder makes, and reading and writing it gives the same bytes."""
    data = (everything.FOLDER / f"{name}.json").read_bytes()
    value: Any = OBJECTS[name]
    assert data == codec.encode_indented(value) + b"\n", "run `python -m tests.everything`"
    decoded = codec.decode(data, type(value), name)
    assert decoded.unknown == ()
    assert decoded.value == value
    compact = codec.encode(decoded.value)
    assert codec.encode(codec.decode(compact, type(value), name).value) == compact


def test_no_synthetic_file_is_left_over() -> None:
    """Every file has its builder."""
    assert {path.stem for path in everything.FOLDER.iterdir()} == set(OBJECTS)


def test_the_synthetic_program_can_be_printed() -> None:
    """Text is made of a program in which every kind of thing occurs."""
    from pt2kit.text.program import program_lines

    lines = list(program_lines(OBJECTS["ExportedProgram"]))
    assert all(line.isprintable() for line in lines)


@pytest.mark.slow
def test_the_cover_is_complete() -> None:
    """The sample files that every run reads hold each operator, part of the schema and layout of all of them."""
    listed = set(samples.COVER_LIST.read_text().split())
    files = {samples.release_id(path): path for path in samples.corpus()}
    assert listed <= set(files)
    held = set().union(*(features(files[name]) for name in listed))
    assert set().union(*map(features, files.values())) == held, "run `python -m tests.cover`"
