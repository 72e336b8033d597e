"""Which records belong to a program, in every layout."""

from __future__ import annotations

import pytest
from tests import samples
from tests.packages import rewritten

from pt2kit.errors import ArchiveError
from pt2kit.package import record_names as names
from pt2kit.package.json_file import JsonFileArchive
from pt2kit.package.layout import Layout, verify_header
from pt2kit.package.parts import (
    Parts,
    extra_files,
    has_payload_records,
    parts,
    program_record,
    sample_inputs_record,
)
from pt2kit.zip.limits import Limits
from pt2kit.zip.opening import open_source
from pt2kit.zip.reader import open_archive


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_real_files(path) -> None:
    """Every record that a program is said to have is there."""
    with open_archive(path) as archive:
        layout = verify_header(archive)
        for model in layout.models:
            place = parts(archive, layout, model)
            assert {place.program, place.weights} <= archive.records.keys()
            assert place.stored_as == ("records" if layout.kind == "archive" else "torch.save")
            assert program_record(archive, layout, model) == place.program
            assert sample_inputs_record(archive, layout, model) == place.sample_inputs
            assert has_payload_records(archive, layout, model) == (layout.kind != "plain-zip")
        found = extra_files(archive, layout)
        assert list(found) == (["note.txt", "dir/info.json"] if path.stem == "extra_files" else [])


def test_a_plain_zip_without_weights() -> None:
    """It is incomplete, which is told by the record that is missing."""
    data = rewritten(samples.sample("2.7.1", "mlp"), {names.PLAIN_STATE_DICT: None})
    with open_archive(data) as archive, pytest.raises(ArchiveError, match=r"serialized_state_dict\.pt.* \[A25\]"):
        parts(archive, verify_header(archive), "model")


def test_a_bare_file() -> None:
    """The program is everything there is."""
    layout = Layout("json", "", "", ("model",))
    with JsonFileArchive(open_source(b"{}"), Limits()) as archive:
        assert parts(archive, layout, "model") == Parts("program.json", "program")
        assert sample_inputs_record(archive, layout, "model") is None
        assert extra_files(archive, layout) == {}


def test_methods_of_a_container() -> None:
    """They are in the record of their model."""
    with open_archive(samples.sample("2.13.0", "mlp")) as archive:
        found = verify_header(archive)
        layout = Layout(found.kind, "", found.root, ("model", "model.go"), {"model.go": ("model", "go")})
        assert parts(archive, layout, "model.go") == Parts(layout.record("models/model.json"), "program")
