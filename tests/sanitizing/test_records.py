"""Records next to the programs: what goes over, what is refused, what may be dropped by name."""

from __future__ import annotations

import pytest
from tests import samples
from tests.packages import edited, rewritten
from tests.sanitizing.files import sanitized

import pt2kit
from pt2kit.errors import UnsupportedError
from pt2kit.package import record_names as names

MLP = samples.sample("2.13.0", "mlp")
COMPILED = {names.aotinductor("m", "m.so"): b"\x7fELF", "data/executorch/m.pte": b"ET"}


def records(data: bytes) -> set[str]:
    """The names of the records below the root folder."""
    with pt2kit.open(data) as package:
        return {package.relative(record) for record in package.records}


def test_compiled_code() -> None:
    """Compiled code is refused, each record by its name; dropped by name it is gone, and the report lists it."""
    data = rewritten(MLP, COMPILED)
    with pytest.raises(UnsupportedError, match=r"data/aotinductor/m/m\.so: .*X8(.|\n)*data/executorch/m\.pte: .*X8"):
        sanitized(data)
    clean, done = sanitized(data, drop=["compiled"])
    assert done.dropped == tuple(COMPILED)
    assert records(clean) & set(COMPILED) == set()


@pytest.mark.parametrize(
    "name",
    [
        "data/weights/weight_9",
        "data/constants/custom_obj_0",
        "data/constants/opaque_obj_3",
        "data/sample_inputs/other.pt",
        "data/sample_inputs/tensor_5",
        "data/weights/model.pt.bak",
        "scripts/run.py",
        "data/weights/ghost_weights_config.json",
    ],
)
def test_records_that_nothing_refers_to(name: str) -> None:
    """A record that belongs to nothing is refused by its name, or dropped with all of its kind."""
    data = rewritten(MLP, {name: b"whatever"})
    with pytest.raises(UnsupportedError, match=rf"{name}: expected a record that something refers to.*'unused'.*Z1"):
        sanitized(data)
    clean, done = sanitized(data, drop=["unused"])
    assert done.dropped == (name,)
    assert clean == sanitized(MLP)[0]


def test_many_unused_records() -> None:
    """The list of what is refused is bounded."""
    data = rewritten(MLP, {f"junk/{number}": b"" for number in range(100)})
    with pytest.raises(UnsupportedError, match="80 more records: ") as caught:
        sanitized(data)
    assert len(str(caught.value)) < 10_000


def test_extra_files() -> None:
    """Text goes over as it is; a pickle is refused by its name, and goes by its name or with all extra files."""
    data = rewritten(MLP, {"extra/a.txt": b"text", "extra/b.pkl": b"\x80\x04N.", "extra/c.bin": b"\xff"})
    with pytest.raises(UnsupportedError) as caught:
        sanitized(data)
    assert "extra/b.pkl: expected text, got a pickle; drop 'extra/b.pkl' to leave it out [Z2]" in str(caught.value)
    assert "extra/c.bin: expected text, got no text: byte 0 is not UTF-8" in str(caught.value)
    assert "extra/a.txt" not in str(caught.value)
    clean, done = sanitized(data, drop=["extra/b.pkl", "extra/c.bin"])
    assert done.dropped == ("extra/b.pkl", "extra/c.bin")
    with pt2kit.open(clean) as package:
        assert {name: bytes(content) for name, content in package.extra_files.items()} == {"a.txt": b"text"}
    assert sanitized(data, drop=["extra"])[1].dropped == ("extra/a.txt", "extra/b.pkl", "extra/c.bin")


def test_an_extra_file_that_is_not_there() -> None:
    """Dropping a file that is not there is refused: it may be misspelt."""
    with pytest.raises(UnsupportedError, match=r"expected an extra file of .* \(none\), got extra/nope"):
        sanitized(MLP, drop=["extra/nope"])


def test_unknown_keys() -> None:
    """Keys that this build does not know may be anything, so they are refused with their places."""
    with pytest.raises(
        UnsupportedError, match=r"models/model\.json: expected keys that this build knows.*\$\.new_key.*Z3"
    ):
        sanitized(edited(MLP, lambda tree: tree.update(new_key="__import__('os')")))
    config = names.weights_config("model")
    with pytest.raises(UnsupportedError, match="Z3"):
        sanitized(edited(MLP, lambda tree: tree.update(new_key=1), config))


def test_headers_are_todays() -> None:
    """The id by which torch tells files apart is left out, and the rest of the header is as torch writes it."""
    found = records(sanitized(MLP)[0])
    assert names.SERIALIZATION_ID not in found
    assert {names.ARCHIVE_FORMAT, names.ARCHIVE_VERSION, names.BYTEORDER, names.DATA_VERSION} <= found


def test_an_archive_without_programs() -> None:
    """Compiled code alone is nothing that could be sanitized."""
    with pt2kit.open(MLP) as package:
        gone = {package.relative(record): None for record in package.records if "model" in package.relative(record)}
    with pytest.raises(UnsupportedError, match="expected a program, got an archive without one"):
        sanitized(rewritten(MLP, {**gone, **COMPILED}), drop=["compiled"])
