"""Weights in files next to the archive: everything follows them, nothing leaves the folder, changes are found."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from tests.narrow import numbers
from tests.package.outside import archive_of, listed, relisted
from tests.samples import CURRENT_LAYOUT, corpus, release_id, sample

import pt2kit
from pt2kit.errors import ArchiveError, GraphError, IntegrityError, PayloadError, Pt2Error, UnsupportedError
from pt2kit.package import external
from pt2kit.package.external_list import RECORD
from pt2kit.zip import adjacent, source

WHOLE = sample("2.13.0", "shared_weights")
NAME = "w.safetensors"


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A file whose weights are next to it."""
    with pt2kit.open(WHOLE) as package:
        pt2kit.write(package, tmp_path / "m.pt2", external=NAME)
    return tmp_path / "m.pt2"


@pytest.mark.parametrize("path", corpus(*CURRENT_LAYOUT), ids=release_id)
def test_every_file_means_the_same_without_its_weights(path: Path, tmp_path: Path) -> None:
    """Apart, in shards, and whole again: digest, differences and errors are those of the file; no weight is in it."""
    with pt2kit.open(path) as package:
        digest = pt2kit.digest(package)
        errors = [str(problem) for problem in pt2kit.check(package).errors]
        pt2kit.write(package, tmp_path / "apart.pt2", external=NAME)
        pt2kit.write(package, tmp_path / "shards.pt2", external="s.safetensors", shard_bytes=200)
        for name in ("apart.pt2", "shards.pt2"):
            with pt2kit.open(tmp_path / name) as found:
                inside = {found.relative(record) for record in archive_of(tmp_path / name)}
                assert not inside & set(found.external)
                assert pt2kit.digest(found) == digest
                assert pt2kit.diff(package, found).same
                assert [str(problem) for problem in pt2kit.check(found, payloads=True).errors] == errors
                pt2kit.write(found, tmp_path / "whole.pt2")
            with pt2kit.open(tmp_path / "whole.pt2") as again:
                assert not again.external
                assert {again.relative(name): row.size for name, row in again.records.items()} == {
                    package.relative(name): row.size
                    for name, row in package.records.items()
                    if not name.endswith(".data/serialization_id") or name in again.records
                }
                assert pt2kit.digest(again) == digest


def test_other_programs_read_the_file(apart: Path) -> None:
    """The file of weights is one that the safetensors library reads, under the weights' own names and shapes."""
    found = load_file(apart.parent / NAME)
    with pt2kit.open(WHOLE) as package:
        for name, numbers in found.items():
            if not name.endswith(".storage"):
                assert (numbers == package.weights()[name].numpy()).all()
        assert {name for name in found if not name.endswith(".storage")} <= set(package.weights())


def test_offsets_are_those_in_the_files(apart: Path) -> None:
    """The offset of a record is one in the file that holds its bytes."""
    with pt2kit.open(apart) as package:
        for name in package.records:
            where = apart.parent / NAME if package.relative(name) in package.external else apart
            begin = package.archive.data_offset(name)
            content = bytes(package.archive.read(name))
            if package.records[name].is_stored:
                assert where.read_bytes()[begin : begin + len(content)] == content, name


def test_shards_have_an_index(tmp_path: Path) -> None:
    """Shards are named as Hugging Face names them; the index says where each tensor is, and can be read by itself."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        pt2kit.write(package, tmp_path / "m.pt2", external="m.safetensors", shard_bytes=600)
        index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
        count = len(set(index["weight_map"].values()))
        assert count > 1
        assert set(index["weight_map"].values()) == {
            f"m-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)
        }
        assert index["metadata"]["total_size"] == sum(view.nbytes for view in package.weights().values())
        views = pt2kit.tensors.read_safetensors(tmp_path / "m.safetensors.index.json")
        assert numbers(views) == numbers(package.weights())


def test_nothing_is_opened_before_a_weight_is_read(apart: Path) -> None:
    """The package opens, lists its weights and shows its program while the file of weights is gone."""
    (apart.parent / NAME).unlink()
    with pt2kit.open(apart) as package:
        assert package.programs["model"].graph_module.graph.nodes
        assert [view.describe() for view in package.weights().values()]
        with pytest.raises(
            ArchiveError, match=r"url: expected the file 'w\.safetensors' next to the archive, got none"
        ):
            next(iter(package.weights().values())).numpy()


def test_check_says_so(apart: Path) -> None:
    """A note names the file and what reads it; a missing file is one error, however many weights are in it."""
    [note] = [problem for problem in pt2kit.check(apart) if problem.rule == "B7"]
    assert note.kind == "note"
    assert NAME in note.message
    assert "pt2 convert" in note.message
    assert pt2kit.check(apart).ok
    (apart.parent / NAME).unlink()
    assert [problem.rule for problem in pt2kit.check(apart, payloads=True).errors] == ["B3"]


def test_conversion_makes_it_whole(apart: Path, tmp_path: Path) -> None:
    """The report has a note, and the new file needs nothing next to it."""
    report = pt2kit.convert(apart, tmp_path / "new.pt2", target="torch==2.13")
    assert any("from next to the file" in note.message for note in report.notes)
    (apart.parent / NAME).unlink()
    assert pt2kit.digest(tmp_path / "new.pt2") == pt2kit.digest(WHOLE)


@pytest.mark.parametrize("what", ["sanitize", "edit", "pack", "extract"])
def test_others_follow(apart: Path, tmp_path: Path, what: str) -> None:
    """Cleaning, editing, packing and extracting take the weights from where they are; what they write is whole."""
    out = tmp_path / "out.pt2"
    if what == "sanitize":
        pt2kit.sanitize(apart, out)
    elif what == "edit":
        with pt2kit.edit(apart) as editor:
            editor.rename_input(editor.user_inputs[0].name, "renamed")
        editor.write(out)
    elif what == "pack":
        pt2kit.write(pt2kit.pack({"one": apart, "two": WHOLE}), out)
    else:
        pt2kit.write(pt2kit.extract(apart), out)
    (apart.parent / NAME).unlink()
    with pt2kit.open(out) as package, pt2kit.open(WHOLE) as whole:
        model = package.layout.models[0]
        wanted = {name: data for name, data in numbers(whole.weights()).items() if name in package.weights(model)}
        assert numbers(package.weights(model)) == wanted


def test_a_file_takes_its_own_place(apart: Path) -> None:
    """Written over itself, with the weights under the same name, the file means what it meant."""
    before = pt2kit.digest(WHOLE)
    with pt2kit.open(apart) as package:
        pt2kit.write(package, apart, external=NAME)
    assert pt2kit.digest(apart) == before


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """Names that leave the folder, targets without one, older layouts: refused before anything is written."""
    import io

    with pt2kit.open(WHOLE) as package:
        for name in ("../w.safetensors", "/w.safetensors", "w.bin", "a\\w.safetensors", ".safetensors/"):
            with pytest.raises(UnsupportedError, match="external: expected a file next to the archive"):
                pt2kit.write(package, tmp_path / "m.pt2", external=name)
        with pytest.raises(UnsupportedError, match="external: expected a path or URL to write to"):
            pt2kit.write(package, io.BytesIO(), external=NAME)
        with pytest.raises(UnsupportedError, match="skeleton: expected it without external"):
            pt2kit.write(package, tmp_path / "m.pt2", external=NAME, skeleton=True)
    for release in ("2.4.1", "2.8.0"):
        path = next(iter(corpus(release)), None)
        if path is not None:
            with (
                pt2kit.open(path) as package,
                pytest.raises(UnsupportedError, match="expected weights as records of their own, got the layout"),
            ):
                pt2kit.write(package, tmp_path / "m.pt2", external=NAME)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_everything_as_it_was(apart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the archive cannot be written, the old file of weights is kept: both are replaced at the end."""
    before = {path.name: path.read_bytes() for path in apart.parent.iterdir()}
    with pt2kit.open(sample("2.13.0", "mlp")) as other:
        monkeypatch.setattr("pt2kit.package.write._write_records", _failing)
        with pytest.raises(OSError, match="disk full"):
            pt2kit.write(other, apart, external=NAME)
    assert {path.name: path.read_bytes() for path in apart.parent.iterdir()} == before


def _failing(*_: Any) -> None:
    raise OSError("disk full")


ELSEWHERE = {
    "../secret.safetensors": "has the component '..'",
    "sub/../../secret.safetensors": "has the component '..'",
    "%2e%2e/secret.safetensors": "has the component '..'",
    "..%2fsecret.safetensors": "has the component '..'",
    "/etc/secret.safetensors": "is absolute",
    "%2fetc/secret.safetensors": "is absolute",
    "C:/secret.safetensors": "another host, or of another scheme",
    "C:secret.safetensors": "another host, or of another scheme",
    "..\\secret.safetensors": "holds a backslash",
    "a%5c..%5csecret.safetensors": "holds a backslash",
    "file:///etc/secret.safetensors": "another host, or of another scheme",
    "https://example.com/secret.safetensors": "another host, or of another scheme",
    "//example.com/secret.safetensors": "another host, or of another scheme",
    "s3://bucket/secret.safetensors": "another host, or of another scheme",
    "simplecache::https://example.com/x": "another host, or of another scheme",
    "w.safetensors?download=1": "has a query or a fragment",
    "w.safetensors#x": "has a query or a fragment",
    "w%00.safetensors": "holds a control character",
    "w%0a.safetensors": "holds a control character",
    "": "is empty",
    "./w.safetensors": "has the component '.'",
    "a//w.safetensors": "has the component ''",
    "http://[::1/w": "another host, or of another scheme",
}


@pytest.mark.parametrize("url", ELSEWHERE, ids=repr)
def test_no_url_leaves_the_folder(apart: Path, url: str) -> None:
    """A URL of no file in the archive's folder is refused, with the argument that may let it pass."""
    secret = apart.parent.parent / "secret.safetensors"
    shutil.copy(apart.parent / NAME, secret)
    relisted(apart, url=url)
    with pytest.raises(UnsupportedError, match="URL relative to the archive's folder") as caught:
        pt2kit.digest(apart)
    assert ELSEWHERE[url] in str(caught.value)
    assert caught.value.rule == "B2"
    if "is absolute" in str(caught.value) or "'..'" in str(caught.value) or "another host" in str(caught.value):
        assert "pass weights_root=" in str(caught.value)
    assert [problem.rule for problem in pt2kit.check(apart).errors] == ["B2"]


@pytest.mark.parametrize("through", ["file", "folder"])
def test_no_link_leaves_the_folder(apart: Path, through: str) -> None:
    """A link to a file or folder elsewhere is not followed; one within the folder is."""
    outside = apart.parent.parent / "outside"
    outside.mkdir(exist_ok=True)
    (apart.parent / NAME).rename(outside / NAME)
    if through == "file":
        (apart.parent / NAME).symlink_to(outside / NAME)
    else:
        (apart.parent / "sub").symlink_to(outside)
        relisted(apart, url=f"sub/{NAME}")
    with pytest.raises(UnsupportedError, match=r"expected a file in the folder .* a link or path to one outside"):
        pt2kit.digest(apart)
    with pt2kit.open(apart, weights_root=apart.parent.parent) as package:
        assert pt2kit.digest(package) == pt2kit.digest(WHOLE)
    (outside / NAME).rename(apart.parent / "real.safetensors")
    for old in ("sub", NAME):
        (apart.parent / old).unlink(missing_ok=True)
    (apart.parent / "link.safetensors").symlink_to("real.safetensors")
    relisted(apart, url="link.safetensors")
    assert pt2kit.digest(apart) == pt2kit.digest(WHOLE)


@pytest.mark.parametrize("scheme", ["", "file://", "local://", "FILE://"])
@pytest.mark.parametrize("through", ["file", "folder"])
def test_links_out_of_a_root_that_is_a_url(apart: Path, scheme: str, through: str) -> None:
    """A root that is written as a URL of this machine is looked at as the path is: no link leads out of it."""
    root, outside = apart.parent / "root", apart.parent / "outside"
    outside.mkdir()
    root.mkdir()
    (apart.parent / NAME).rename(outside / NAME)
    if through == "file":
        (root / "w.safetensors").symlink_to(outside / NAME)
        url = "w.safetensors"
    else:
        (root / "sub").symlink_to(outside)
        url = f"sub/{NAME}"
    for named in (url, f"file://{root}/{url}", f"{root}/{url}"):
        relisted(apart, url=named)
        with (
            pt2kit.open(apart.read_bytes(), weights_root=f"{scheme}{root}") as package,
            pytest.raises(UnsupportedError, match=r"expected a file in the folder .* one outside it"),
        ):
            pt2kit.digest(package)
    for link in root.iterdir():
        link.unlink()
    (outside / NAME).rename(root / "w.safetensors")
    for named in ("w.safetensors", f"file://{root}/w.safetensors"):
        relisted(apart, url=named)
        with pt2kit.open(apart.read_bytes(), weights_root=f"{scheme}{root}") as package:
            assert pt2kit.digest(package) == pt2kit.digest(WHOLE)


def test_a_link_that_is_put_there_while_the_file_is_opened(apart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that is open is compared with the folder, not only the path that was looked at before."""
    outside = apart.parent.parent / "outside.safetensors"
    outside.write_bytes((apart.parent / NAME).read_bytes())
    before: Any = source.open_path

    def late(path: str, **options: Any) -> Any:
        os.unlink(path)
        os.symlink(outside, path)
        return before(path, **options)

    monkeypatch.setattr(adjacent, "open_path", late)
    with pytest.raises(UnsupportedError, match="a link or path to one outside"):
        pt2kit.digest(apart)

    def and_back(path: str, **options: Any) -> Any:
        return before(outside, **options)

    (apart.parent / NAME).unlink()
    (apart.parent / NAME).write_bytes(outside.read_bytes())
    monkeypatch.setattr(adjacent, "open_path", and_back)
    with pytest.raises(UnsupportedError, match="which was replaced while it was opened"):
        pt2kit.digest(apart)


def test_weights_root_lets_files_lie_elsewhere(apart: Path) -> None:
    """With a root, `..` and absolute paths may lead anywhere below it, nowhere else; bytes have weights there, too."""
    root = apart.parent.parent
    shared = root / "shared"
    shared.mkdir(exist_ok=True)
    (apart.parent / NAME).rename(shared / NAME)
    for url in (f"../shared/{NAME}", str(shared / NAME)):
        relisted(apart, url=url)
        with pt2kit.open(apart, weights_root=root) as package:
            assert pt2kit.digest(package) == pt2kit.digest(WHOLE)
        with (
            pt2kit.open(apart, weights_root=apart.parent) as package,
            pytest.raises(UnsupportedError, match=r"expected a file in the folder .* a path to one outside it"),
        ):
            pt2kit.digest(package)
    relisted(apart, url=NAME)
    with pt2kit.open(apart.read_bytes(), weights_root=shared) as package:
        assert pt2kit.digest(package) == pt2kit.digest(WHOLE)
    with (
        pt2kit.open(apart.read_bytes()) as package,
        pytest.raises(UnsupportedError, match=r"got one without, .* pass weights_root= with the folder"),
    ):
        pt2kit.digest(package)


def test_no_pipe_is_waited_for(apart: Path) -> None:
    """Special files are refused without opening them."""
    (apart.parent / NAME).unlink()
    os.mkfifo(apart.parent / NAME)
    with pytest.raises(ArchiveError, match="which is none"):
        pt2kit.digest(apart)
    (apart.parent / NAME).unlink()
    (apart.parent / NAME).mkdir()
    with pytest.raises(ArchiveError, match=r"expected a file, got 'w\.safetensors'"):
        pt2kit.digest(apart)


def test_changed_bytes(apart: Path) -> None:
    """One bit of a weight: reading it is refused with both sums; check finds it where it reads payloads."""
    path = apart.parent / NAME
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=r"SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}: the file was changed") as caught:
        pt2kit.digest(apart)
    assert caught.value.rule == "B6"
    assert pt2kit.check(apart).ok
    assert {problem.rule for problem in pt2kit.check(apart, payloads=True).errors} == {"B6"}


@pytest.mark.parametrize("cut", [1, 64, 10_000_000])
def test_truncated_file(apart: Path, cut: int) -> None:
    """A file that was cut short is one clear error, wherever the cut is."""
    path = apart.parent / NAME
    data = path.read_bytes()
    path.write_bytes(data[: max(len(data) - cut, 0)])
    with pytest.raises(PayloadError, match=r"cut short|expected a safetensors header within") as caught:
        pt2kit.digest(apart)
    assert caught.value.rule == "B4"
    assert [problem.rule for problem in pt2kit.check(apart).errors] == ["B4"]


@pytest.mark.parametrize(
    ("field", "value", "rule", "text"),
    [
        ("tensor", "nobody", "B5", "expected a tensor of that name in the file"),
        ("dtype", "I32", "B5", r"expected I32 .*, as the archive says, got F32"),
        ("sha256", "0" * 64, "B6", "the file was changed"),
        ("sha256", "zz", "B1", "64 hexadecimal digits"),
        ("dtype", "F4", "B1", "an element type of safetensors"),
        ("shape", [-1], "B1", "expected sizes of a tensor"),
        ("shape", [2**62, 2**62], "B1", "expected sizes of a tensor"),
        ("shape", [True], "B1", "expected sizes of a tensor"),
        ("shape", "16", "B1", "expected url, tensor, dtype, shape and sha256"),
        ("url", None, "B1", "expected url, tensor, dtype, shape and sha256"),
        ("more", 1, "B1", "expected five keys"),
    ],
)
def test_lists_that_do_not_fit(apart: Path, field: str, value: Any, rule: str, text: str) -> None:
    """A list that contradicts the file, or has impossible values, is refused."""
    relisted(apart, **{field: value})
    with pytest.raises(Pt2Error, match=text) as caught:
        pt2kit.digest(apart)
    assert caught.value.rule == rule
    assert rule in {problem.rule for problem in pt2kit.check(apart, payloads=True).errors}


def test_another_shape(apart: Path) -> None:
    """A tensor whose shape in the file is another one than the archive states."""
    row = next(iter(listed(apart)["records"].values()))
    size = 1
    for one in row["shape"]:
        size *= one
    relisted(apart, only=row["tensor"], shape=[1, size])
    with pytest.raises(PayloadError, match=r"expected F32 \[1, .*\], as the archive says, got F32"):
        pt2kit.digest(apart)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda tree: tree | {"format": "other"}, "expected an object of 'format'"),
        (lambda tree: tree | {"records": []}, "expected an object of 'format'"),
        (lambda tree: tree | {"more": 1}, "expected an object of 'format'"),
        (lambda tree: [tree], "expected an object of 'format'"),
        (
            lambda tree: tree | {"records": {"models/model.json": next(iter(tree["records"].values()))}},
            "expected the record of a weight or tensor constant",
        ),
        (
            lambda tree: tree | {"records": {"data/constants/custom_obj_0": next(iter(tree["records"].values()))}},
            "expected the record of a weight or tensor constant",
        ),
    ],
)
def test_lists_of_another_form(apart: Path, change: Any, text: str) -> None:
    """A list that is none keeps the archive from opening; no other record can come from outside."""
    archive_of(apart, {RECORD: json.dumps(change(listed(apart))).encode()})
    with pytest.raises(PayloadError, match=text):
        pt2kit.open(apart)
    assert [problem.rule for problem in pt2kit.check(apart).errors] == ["B1"]


def test_a_payload_is_in_one_place(apart: Path) -> None:
    """A record that is in the archive and in the list is refused: readers could take either."""
    record = next(iter(listed(apart)["records"]))
    archive_of(apart, {record: b"1234"})
    with pytest.raises(PayloadError, match="expected a payload in the archive or next to it, got one in both"):
        pt2kit.open(apart)


def test_too_many_files(apart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many files an archive may name is bounded."""
    monkeypatch.setattr(external, "MAX_FILES", 0)
    with pytest.raises(Pt2Error, match="expected at most 0 files"):
        pt2kit.open(apart)


def test_remote_archives_have_their_weights_beside_them(apart: Path) -> None:
    """An archive behind a URL reads the weights from the same folder there, by ranges; it is written there, too."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with pt2kit.open(WHOLE) as package:
        pt2kit.write(package, "memory://models/a b/m.pt2", external="w 1.safetensors")
    assert memory.exists("/models/a b/w 1.safetensors")
    with pt2kit.open("memory://models/a b/m.pt2") as package:
        assert pt2kit.digest(package) == pt2kit.digest(WHOLE)
    memory.copy("/models/a b/m.pt2", "/other/m.pt2")
    with (
        pt2kit.open("memory://other/m.pt2") as package,
        pytest.raises(ArchiveError, match=r"expected the file 'w%201\.safetensors' next to the archive"),
    ):
        pt2kit.digest(package)
    with (
        pt2kit.open("memory://other/m.pt2", weights_root="memory://models") as package,
        pytest.raises(UnsupportedError, match="expected a file below memory://models/"),
    ):
        pt2kit.digest(package)
    memory.rm("/models", recursive=True)
    memory.rm("/other", recursive=True)


def test_http(apart: Path) -> None:
    """Over HTTP the weights come from next to the archive, by ranges."""
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    from tests.zip.range_server import serve

    with serve(apart.parent) as server, pt2kit.open(server.url("m.pt2")) as package:
        assert pt2kit.digest(package) == pt2kit.digest(WHOLE)


def test_headers_that_lie() -> None:
    """Overlapping, gapped, oversized and negative entries of a header are refused."""
    from pt2kit.tensors.safetensors_header import read_header
    from pt2kit.zip.source import open_bytes

    def header(tree: Any, data: bytes = b"", length: int | None = None) -> bytes:
        text = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + data

    row = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    cases = [
        (b"", "expected a safetensors header within"),
        (b"1234567", "expected a safetensors header within"),
        (header({}, length=2**63), "expected a safetensors header within"),
        (header(b"{]"), "got no JSON"),
        (header(b"[]"), "expected a safetensors header, got a list"),
        (header({"a": 1}), "expected dtype, shape and data_offsets"),
        (header({"a": {**row, "shape": [-4]}}, bytes(4)), "expected dtype, shape and data_offsets"),
        (header({"a": {**row, "shape": [5]}}, bytes(4)), "expected the bytes of U8"),
        (header({"a": {**row, "data_offsets": [4, 0]}}, bytes(4)), "expected the bytes of U8"),
        (header({"a": row, "b": row}, bytes(4)), "expected its bytes from"),
        (header({"a": {**row, "data_offsets": [1, 5]}}, bytes(5)), "expected its bytes from"),
        (header({"a": row}, bytes(3)), "it was cut short"),
        (header({"a": row}, bytes(5)), "as its header says, got"),
        (header(b'{"a": 1, "a": 2}'), "got no JSON"),
    ]
    for data, text in cases:
        with pytest.raises(PayloadError, match=text):
            read_header(open_bytes(data))
    assert list(read_header(open_bytes(header({"a": row, "__metadata__": {"x": "y"}}, bytes(4))))) == ["a"]


def test_skeleton(tmp_path: Path) -> None:
    """Without numbers a program opens, checks and shows, with notes; put in again, it is what it was."""
    with pt2kit.open(WHOLE) as package:
        pt2kit.write(package, tmp_path / "s.pt2", skeleton=True)
        pt2kit.write(package, tmp_path / "m.pt2", external=NAME)
    with pt2kit.open(tmp_path / "s.pt2") as skeleton:
        report = pt2kit.check(skeleton)
        assert report.ok
        assert [problem.rule for problem in report if problem.rule == "P9"]
        assert {problem.kind for problem in report if problem.rule == "P9"} == {"note"}
        assert all(view.describe().endswith("meta") for view in skeleton.weights().values())
        assert pt2kit.digest(skeleton).graph == pt2kit.digest(WHOLE).graph
        with pt2kit.edit(skeleton) as editor:
            editor.load_weights(tmp_path / "m.pt2")
        assert not pt2kit.check(editor.result).errors
        with pt2kit.open(WHOLE) as whole:
            assert numbers(editor.result.weights()) == numbers(whole.weights())


def test_a_skeleton_is_filled_whole(tmp_path: Path) -> None:
    """Numbers for some weights alone are refused, naming the others; tied weights need them once."""
    with pt2kit.open(WHOLE) as package:
        pt2kit.write(package, tmp_path / "s.pt2", skeleton=True)
        numbers = {name: view.numpy() for name, view in package.weights().items()}
    first = next(iter(numbers))
    with pt2kit.open(tmp_path / "s.pt2") as skeleton:
        editor = pt2kit.edit(skeleton)
        editor.load_weights({first: numbers[first]}, strict=False)
        if len({view.record for view in skeleton.weights().values()}) > 1:
            with pytest.raises(
                GraphError, match="weights: expected numbers for all of a program that was saved without"
            ):
                editor.finish()
        with pytest.raises(GraphError, match="expected numbers like those there"):
            editor.set_weight(first, numbers[first].astype("float64"))
