"""A statement names everything that a package means, whatever its names are; a difference names what differs."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import samples
from tests.packages import rewritten

import pt2kit
from pt2kit.editing import passes
from pt2kit.errors import SignatureError, UnsupportedError
from pt2kit.signing.statement import described, differences, left_out, resource, split, statement


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_names_of_resources_give_their_parts_back(parts: list[str]) -> None:
    """Any names, empty ones and those of dots among them; and a path does not read them as something else."""
    name = resource(*parts)
    assert split(name) == tuple(parts)
    assert Path(name).as_posix() == name
    assert not Path(name).is_absolute()
    assert ".." not in Path(name).parts


@pytest.mark.parametrize("name", ["shared_weights", "constants", "multi_model_package", "extra_files", "odd_names"])
def test_a_package_differs_from_itself_in_nothing(name: str) -> None:
    """All that is stated of a package is there, and named in a way that can be read."""
    with pt2kit.open(samples.sample("2.13.0", name)) as package:
        stated = statement(package)
        for model in package.layout.models:
            named = {
                split(one)[3]
                for one in stated
                if split(one)[:3] == ("models", model, "weights") and one.count("/") == 3
            }
            assert named == set(package.weights(model))
        assert all(len(one) == 64 for one in stated.values())
        assert not list(differences(stated, statement(package)))
        assert not left_out(stated, stated)


def test_a_changed_weight_is_named_and_nothing_else() -> None:
    """The whole of which it is a part differs with it, and is not named again."""
    path = samples.sample("2.13.0", "dynamic_batch")
    with pt2kit.edit(path) as editor:
        numbers = editor.weights["b.bias"].numpy().copy()
        numbers[2] += 1
        editor.set_weight("b.bias", numbers)
    with pt2kit.open(path) as package:
        [found] = differences(statement(package), statement(editor.result))
    assert found.what == "weight 'b.bias' of 'model'"
    assert str(found).startswith("weight 'b.bias' of 'model': expected sha256:6b4f")


def test_a_changed_graph_is_named_as_the_graph() -> None:
    """A program that computes something else differs in its graph."""
    path = samples.sample("2.13.0", "dynamic_batch")
    with pt2kit.edit(path) as editor:
        passes.rename_operators(editor, {"aten::relu": "aten::gelu"})
    with pt2kit.open(path) as package:
        found = {one.what for one in differences(statement(package), statement(editor.result))}
    assert found == {"graph of 'model'"}


CODE = "x=open('f')"
OFFSET = f'"storage_offset": {{"as_expr": {{"expr_str": "{CODE}", "hint": null}}}}'
RANGE = f'"range_constraints": {{"{CODE}": {{"min_val": 1, "max_val": 2}}'
HIDDEN = {
    "the name of an input": lambda text: text.replace('"p_a_weight"', f'"{CODE}"'),
    "an offset": lambda text: text.replace('"storage_offset": {"as_int": 0}', OFFSET, 1),
    "a symbol with a range": lambda text: text.replace('"range_constraints": {', f"{RANGE}, ", 1),
}
"""Code that torch would run, in places that no digest covers, as values have no names in a normal form."""


@pytest.mark.parametrize("place", HIDDEN)
def test_code_where_no_digest_covers_it(place: str) -> None:
    """It can neither be signed, nor be put into a file that was signed."""
    path = samples.sample("2.13.0", "dynamic_batch")
    with zipfile.ZipFile(path) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("models/model.json"))).decode()
    changed = HIDDEN[place](json.dumps(json.loads(text)))
    assert CODE in changed
    with (
        pt2kit.open(rewritten(path, {"models/model.json": changed.encode()})) as package,
        pytest.raises(SignatureError, match="expected no code where no digest covers it: torch "),
    ):
        statement(package)


def test_calls_in_a_pickle_of_constants() -> None:
    """A call that the pickle of a signed file did not have is a record more, whatever its tensors are."""
    path, record = samples.sample("2.8.0", "dynamic_batch"), "data/constants/model.pt"
    with pt2kit.open(path) as package:
        signed = statement(package)
        content = bytes(package.archive.read(package.layout.record(record)))
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as given, zipfile.ZipFile(changed, "w") as taken:
        for entry in given.infolist():
            data = given.read(entry)
            is_pickle = entry.filename.endswith("data.pkl")
            taken.writestr(entry, data[:2] + b"cos\ngetpid\n)R0" + data[2:] if is_pickle else data)
    with pt2kit.open(rewritten(path, {record: changed.getvalue()})) as package:
        [found] = differences(signed, statement(package))
        assert found.what == f"record '{record}'"


def test_records_may_go_but_not_come_or_change(tmp_path: Path) -> None:
    """A file next to the programs that was not signed is a difference; one that was signed may be left out."""
    with pt2kit.open(samples.sample("2.13.0", "extra_files")) as package:
        signed = statement(package)
        extra = [name for name in signed if split(name)[1].startswith("extra/")]
    assert extra
    without = {name: one for name, one in signed.items() if name not in extra}
    assert not list(differences(signed, without))
    assert left_out(signed, without) == tuple(described(split(name)) for name in sorted(extra))
    assert {one.what for one in differences(without, signed)} == {described(split(name)) for name in extra}
    changed = {**signed, extra[0]: "0" * 64}
    [found] = differences(signed, changed)
    assert found.what == described(split(extra[0]))


def test_an_archive_without_a_program_has_nothing_to_sign(tmp_path: Path) -> None:
    """Compiled code alone: the message says that its bytes can be signed."""
    path = tmp_path / "compiled.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", "little")):
            archive.writestr(f"m/{name}", text)
        archive.writestr("m/data/aotinductor/model/x.so", b"\x7fELF")
    with (
        pt2kit.open(path) as package,
        pytest.raises(UnsupportedError, match=r"expected a program to sign, got an archive without one; .*--bytes"),
    ):
        statement(package)


@pytest.mark.parametrize(
    "record", ["data/weights/weight_99", "data/constants/custom_obj_7", "data/weights/x.pt", "new"]
)
def test_every_record_counts(record: str, tmp_path: Path) -> None:
    """A record that no program uses is part of what is verified, whatever its name looks like."""
    path = samples.sample("2.13.0", "mlp")
    changed = tmp_path / "changed.pt2"
    changed.write_bytes(rewritten(path, {record: b"more"}))
    with pt2kit.open(path) as package, pt2kit.open(changed) as other:
        signed, found = statement(package), statement(other)
    assert [one.what for one in differences(signed, found)] == [f"record '{record}'"]
