"""Archives behind a URL are read by byte ranges, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.zip.range_server import RangeServer, serve
from tests.zip.zip_forge import Entry, forge

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.package.layouts.detection import detect
from pt2kit.zip.reader import Archive, open_archive
from pt2kit.zip.remote import TAIL_BYTES, RemoteSource, open_url, public_url
from pt2kit.zip.source import Limits, MemorySource
from pt2kit.zip.writer import ArchiveWriter

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

WEIGHT = 64 << 20
SMALL = "mlp.pt2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a real small archive and a generated one of 200 MB."""
    folder = tmp_path_factory.mktemp("served")
    (folder / SMALL).write_bytes(samples.sample("2.13.0", "mlp").read_bytes())
    block = bytes(1 << 20)
    with ArchiveWriter(folder / "large.pt2", root="large") as writer:
        writer.write("models/model.json", b"{}" * 50_000, deflate=True)
        for index in range(3):
            blocks = (block for _ in range(WEIGHT >> 20))
            writer.write(f"data/weights/weight_{index}", blocks, size=WEIGHT)
        for index in range(3, 700):
            writer.write(f"data/weights/weight_{index}", b"%06d" % index)
        for name, content in (("archive_format", b"pt2"), ("archive_version", b"0"), ("byteorder", b"little")):
            writer.write(name, content)
    return folder


@pytest.fixture
def server(folder: Path) -> Iterator[RangeServer]:
    """The folder, served by ranges."""
    with serve(folder) as running:
        yield running


def test_opening_transfers_the_directory_only(server: RangeServer, folder: Path) -> None:
    """Opening and recognising 200 MB over HTTP transfers less than one percent of it, in a handful of requests."""
    size = (folder / "large.pt2").stat().st_size
    with open_archive(server.url("large.pt2")) as archive:
        layout = detect(archive)
        assert (layout.kind, layout.root, len(archive.records)) == ("archive", "large/", 704)
    assert size > 200_000_000
    assert server.sent < size / 100
    assert server.sent <= 3 * TAIL_BYTES
    assert len(server.requests) <= 4


def test_a_record_costs_itself(server: RangeServer) -> None:
    """Reading one record transfers it, its header and no other record, in one request."""
    with open_archive(server.url("large.pt2")) as archive:
        server.reset()
        assert bytes(archive.read("large/data/weights/weight_345")) == b"000345"
        assert len(server.requests) == 1
        assert server.sent < 200
        server.reset()
        assert len(archive.read("large/models/model.json")) == 100_000
        assert len(server.requests) == 1
        assert server.sent < 1000
        server.reset()
        view = archive.read("large/data/weights/weight_1")
        assert view.nbytes == WEIGHT
        assert len(server.requests) == 1
        assert WEIGHT <= server.sent < WEIGHT + 200


def test_offset_costs_a_header(server: RangeServer) -> None:
    """The offset of a remote record's data costs one request of its header."""
    with open_archive(server.url("large.pt2")) as archive:
        server.reset()
        offset = archive.data_offset("large/data/weights/weight_2")
        assert offset % 64 == 0
        assert archive.data_offset("large/data/weights/weight_2") == offset
        assert len(server.requests) == 1
        assert server.sent < 400


def test_small_file_is_one_range(server: RangeServer) -> None:
    """A file smaller than the end that is fetched at once is fetched once, whatever is read of it."""
    with open_archive(server.url(SMALL)) as archive, open_archive(samples.sample("2.13.0", "mlp")) as local:
        assert dict(archive.records) == dict(local.records)
        for name in archive.records:
            assert archive.read(name) == local.read(name)
            assert archive.data_offset(name) == local.data_offset(name)
    assert [method for method, _ in server.requests] == ["HEAD", "GET"]


def test_headers_are_passed_on(server: RangeServer) -> None:
    """Options for the file system reach the server, and no compressed range is asked for."""
    with open_archive(server.url(SMALL), storage_options={"headers": {"X-Token": "secret"}}):
        pass
    for seen in server.headers_seen:
        assert seen["X-Token"] == "secret"
        assert seen["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("served", "text"),
    [
        ({"ranges": "no"}, "the server sends the whole file where a range is asked for"),
        # fsspec heeds what such a server says of itself since 2024; before, it finds out by asking.
        ({"ranges": "none"}, "the server (serves no byte ranges|sends the whole file where a range is asked for)"),
        ({"size_known": False}, "the server does not tell the size of the file"),
    ],
)
def test_what_cannot_be_read_in_parts_is_read_whole(folder: Path, served: dict[str, Any], text: str) -> None:
    """A server without byte ranges, or of a file of unknown length: a warning says that the file is read whole."""
    name = "medium.pt2"
    with ArchiveWriter(folder / name) as writer:
        writer.write("a", bytes(4 * TAIL_BYTES))
    with serve(folder, **served) as server:
        with pytest.warns(RuntimeWarning, match=f"{name}: {text}, so it is read whole"):
            archive = open_archive(server.url(name))
        with archive, open_archive(folder / name) as local:
            assert [bytes(archive.read(name)) for name in archive.records] == [
                bytes(local.read(name)) for name in local.records
            ]
        with (
            pytest.warns(RuntimeWarning, match="read whole"),
            pytest.raises(LimitError, match=r"expected at most 1000 bytes from a stream.*\[A18\]$"),
        ):
            open_archive(server.url(name), limits=Limits(max_stream_bytes=1000))


def test_missing_remote_file(server: RangeServer) -> None:
    """Not found stays recognisable, and shows no secrets either."""
    with pytest.raises(FileNotFoundError, match=r"/nothing\.pt2: no such file$"):
        open_archive(server.url("nothing.pt2?token=secret"))


def test_unreachable_server(folder: Path) -> None:
    """A server that does not answer is an error of ours that names the URL without its secrets."""
    with serve(folder) as server:
        url = server.url(SMALL)
    with serve(folder), pytest.raises(ArchiveError, match=r"/mlp\.pt2: expected to read it, got: .*\[A1\]$") as caught:
        open_archive(url + "?token=secret")
    assert "secret" not in str(caught.value)


def test_damaged_remote_archive(server: RangeServer, folder: Path) -> None:
    """A remote record's header is compared with the directory when the record is first read."""
    bad = forge(Entry(b"m/a", bytes(100_000)), Entry(b"m/b", b"x" * 100_000, local_name=b"m/c"), Entry(b"m/c", b""))
    (folder / "bad.pt2").write_bytes(bad)
    with open_archive(server.url("bad.pt2")) as archive:
        assert archive.read("m/a").nbytes == 100_000
        with pytest.raises(ArchiveError, match=r"bad\.pt2: m/b: local header at .*: expected name b'm/b'.*\[A13\]"):
            archive.read("m/b")
        with pytest.raises(ArchiveError, match=r"\[A13\]"):
            archive.data_offset("m/b")


def test_long_header(server: RangeServer, folder: Path) -> None:
    """A header longer than the guess is fetched in a second request."""
    extra = b"UT" + (3000).to_bytes(2, "little") + bytes(3000)
    data = forge(Entry(b"m/a", bytes(100_000), local_extra=extra), Entry(b"m/b", bytes(100_000)))
    (folder / "long.pt2").write_bytes(data)
    with open_archive(server.url("long.pt2")) as archive:
        server.reset()
        assert archive.data_offset("m/a") == 30 + 3 + len(extra)
        assert len(server.requests) == 2
        assert server.sent < 5000


def _answered(data: bytes, start: int, end: int) -> bytes:
    return data


def test_changed_file() -> None:
    """Fewer or more bytes than asked for are refused: the file changed, or the server does not do ranges."""
    for answer in (b"", b"x" * 99, b"x" * 1000):
        with pytest.raises(ArchiveError, match=rf"expected 100 bytes at offset 0, got {len(answer)}: .*\[A1\]"):
            RemoteSource("here", 100, partial(_answered, answer))


def test_closed() -> None:
    """A closed remote archive reads no more."""
    source = RemoteSource("here", 10, lambda start, end: bytes(end - start))
    assert source.read(2, 3) == bytes(3)
    source.close()
    source.close()
    with pytest.raises(ArchiveError, match="closed"):
        source.read(2, 3)


def _read_all(archive: Archive) -> dict[str, bytes]:
    return {name: bytes(archive.read(name)) for name in archive.records}


def test_other_protocols(tmp_path: Path) -> None:
    """URLs that fsspec can read open: memory:// by ranges, file:// mapped like a path."""
    content = samples.sample("2.13.0", "mlp").read_bytes()
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/models/mlp.pt2", content)
    path = tmp_path / "mlp.pt2"
    path.write_bytes(content)
    try:
        with open_archive("memory://models/mlp.pt2") as remote, open_archive(content) as local:
            assert not remote.source.is_local
            assert _read_all(remote) == _read_all(local)
        with open_archive(path.as_uri()) as mapped:
            assert isinstance(mapped.source, MemorySource)
        with open_archive(f"simplecache::{path.as_uri()}", storage_options={"simplecache": {}}) as cached:
            assert list(cached.records) == list(mapped.records)
        with pytest.raises(FileNotFoundError, match=r"^memory://models/none\.pt2: no such file$"):
            open_archive("memory://models/none.pt2")
        with pytest.raises(ArchiveError, match="got a folder"):
            open_url("memory://models")
    finally:
        memory.rm("/models", recursive=True)


def test_unknown_protocol() -> None:
    """A protocol that nobody knows is an error of ours."""
    with pytest.raises(ArchiveError, match=r"^nonsense://x/y\.pt2: expected to read it, got: .*nonsense.*\[A1\]"):
        open_archive("nonsense://x/y.pt2")


def test_public_url() -> None:
    """Messages show no user, password or query."""
    assert public_url("https://user:pass@host:1/a/b.pt2?sig=1#x") == "https://host:1/a/b.pt2"
    assert public_url("s3://bucket/key.pt2") == "s3://bucket/key.pt2"
    assert public_url("zip://a.pt2::https://user:p@ss@host/b.zip?sig=1") == "zip://a.pt2::https://host/b.zip"


@pytest.mark.parametrize("status", [302, 400, 403, 503])
def test_errors_of_servers(server: RangeServer, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of the back end has the URL in it, which is shown without its secrets."""
    monkeypatch.setattr(server, "refusal", status)
    url = server.url(SMALL)
    with pytest.raises(ArchiveError) as caught:
        open_archive(f"{url.replace('//', '//user:secret@')}?token=secret")
    assert str(caught.value).startswith(f"{url}: expected ")
    assert str(status) in str(caught.value) or status == 302
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://[x", "http://[::1]x/y?token=secret"])
def test_malformed_urls(url: str) -> None:
    """A text that is no URL is refused as any other that cannot be read."""
    with pytest.raises((ArchiveError, FileNotFoundError)) as caught:
        open_archive(url)
    assert "secret" not in str(caught.value)
