"""HTTP servers that stall, change the file, send what was not asked for, or redirect to another host."""

from __future__ import annotations

import gzip
import io
import logging
import re
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.zip import remote
from pt2kit.zip.reader import open_archive
from pt2kit.zip.remote import TAIL_BYTES, HttpFile, file_system
from pt2kit.zip.source import Limits


def content(fill: bytes) -> bytes:
    """An archive whose first record is not in the end that is kept."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("m/first", fill * 3 * TAIL_BYTES)
        archive.writestr("m/last", b"z" * 100)
    return out.getvalue()


DATA = content(b"a")
Answer = Callable[[BaseHTTPRequestHandler, "slice | None", int], Any]
"""(handler, the range that was asked for, number of the GET request) -> sends an answer."""


def part(handler: BaseHTTPRequestHandler, wanted: slice | None, data: bytes = DATA, **headers: Any) -> bytes:
    """Send the head of an answer with a part of the data, and return the body."""
    body = data if wanted is None else data[wanted]
    handler.send_response(200 if wanted is None else 206)
    handler.send_header("Accept-Ranges", "bytes")
    handler.send_header("Content-Length", str(len(body)))
    if wanted is not None:
        handler.send_header("Content-Range", f"bytes {wanted.start}-{wanted.stop - 1}/{len(data)}")
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    return body


@contextmanager
def serving(answer: Answer, head: dict[str, str] | None = None) -> Iterator[str]:
    """The URL of a file on a server that answers so."""
    requests = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            """Keep the test output clean."""

        def do_HEAD(self) -> None:
            time.sleep(2 * float((head or {}).get("wait", 0)))
            self.send_response(200)
            for name, value in {"Content-Length": str(len(DATA)), "Accept-Ranges": "bytes", **(head or {})}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()

        def do_GET(self) -> None:
            nonlocal requests
            requests += 1
            match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            answer(self, slice(int(match[1]), int(match[2]) + 1) if match else None, requests)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *args: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/m.pt2"
    finally:
        server.shutdown()
        server.server_close()


def read_first(url: str, **options: Any) -> bytes:
    """The first record of the file, which takes a request of its own."""
    with open_archive(url, **options) as archive:
        return bytes(archive.read("m/first"))


@pytest.mark.parametrize("headers", [{"ETag": '"1"'}, {"Last_Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {}])
def test_one_state(headers: dict[str, str]) -> None:
    """Answers with one ETag, one time of change, or neither, are of one file."""
    with serving(lambda handler, wanted, number: handler.wfile.write(part(handler, wanted, DATA, **headers))) as url:
        assert read_first(url) == b"a" * 3 * TAIL_BYTES


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        ({"ETag": '"1"'}, {"ETag": '"2"'}, "the ETag"),
        ({"ETag": '"1"', "Last_Modified": "x"}, {"ETag": '"2"', "Last_Modified": "x"}, "the ETag"),
        ({"Last_Modified": "Mon, 01"}, {"Last_Modified": "Tue, 02"}, "the time of change"),
        ({}, {"size": "1"}, r"\d+ bytes"),
    ],
)
def test_the_file_changes_between_requests(first: dict[str, str], later: dict[str, str], expected: str) -> None:
    """Two states of a file are never mixed, though each range has the length that was asked for."""
    other = content(b"b")

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        headers = dict(first if number == 1 else later)
        data = DATA if number == 1 else other + b"x" * int(headers.pop("size", 0))
        handler.wfile.write(part(handler, wanted, data, **headers))

    with (
        serving(answer) as url,
        pytest.raises(ArchiveError, match=f"expected {expected}.*the file changed on the server"),
    ):
        read_first(url)


# Each of these answers well in the end, so that a client that waits for it raises no error.


def stall_in_the_head(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
    time.sleep(5)
    handler.wfile.write(part(handler, wanted))


def stall_in_the_body(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
    body = part(handler, wanted)
    handler.wfile.write(body[:10])
    time.sleep(5)
    handler.wfile.write(body[10:])


def drip(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
    body = part(handler, wanted)
    for place in range(100):
        handler.wfile.write(body[place : place + 1])
        time.sleep(0.05)
    handler.wfile.write(body[100:])


@pytest.mark.parametrize("answer", [stall_in_the_head, stall_in_the_body, drip])
def test_deadlines(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer, stops in the middle, or sends a byte now and then is given up."""
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(remote, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(remote, "LEAST_SPEED", 10**6)
    with serving(answer) as url, pytest.raises(ArchiveError, match="expected an answer within"):
        read_first(url)


def test_a_body_without_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read up to a limit of its own, which the caller can raise."""
    monkeypatch.setattr("pt2kit.zip.remote.MAX_UNKNOWN_BYTES", 1000)

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(DATA)
        handler.close_connection = True

    with serving(answer, {"Content-Length": "", "Accept-Ranges": ""}) as url:
        with pytest.warns(RuntimeWarning, match="read whole"), pytest.raises(LimitError, match="at most 1000 bytes"):
            read_first(url)
        with pytest.warns(RuntimeWarning, match="read whole"):
            assert len(read_first(url, limits=Limits(max_stream_bytes=10**7))) == 3 * TAIL_BYTES


def test_a_compressed_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """It states the length of something else, so the limit of bodies without a length holds for it."""

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        handler.wfile.write(part(handler, None, gzip.compress(DATA), Content_Encoding="gzip"))

    with serving(answer, {"Content-Length": "1000"}) as url:
        with pytest.warns(RuntimeWarning, match="read whole"):
            assert len(read_first(url)) == 3 * TAIL_BYTES
        monkeypatch.setattr("pt2kit.zip.remote.MAX_UNKNOWN_BYTES", 2000)
        with pytest.warns(RuntimeWarning, match="read whole"), pytest.raises(LimitError, match="at most 2000 bytes"):
            read_first(url)


def test_a_length_of_0() -> None:
    """Servers state it in answers without a body, whatever the file has: the length counts as unknown."""
    with (
        serving(
            lambda handler, wanted, number: handler.wfile.write(part(handler, wanted)), {"Content-Length": "0"}
        ) as url,
        pytest.warns(RuntimeWarning, match="does not tell the size"),
    ):
        assert read_first(url) == b"a" * 3 * TAIL_BYTES


def test_a_message_quotes_a_line_of_an_answer() -> None:
    """Errors of aiohttp show bytes that the server sent, over several lines and without a limit."""

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        handler.wfile.write(DATA)
        handler.close_connection = True

    with serving(answer) as url, pytest.raises(ArchiveError, match=r"expected to read it, got: .*\[A1\]") as caught:
        read_first(url)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("how", ["longer", "elsewhere"])
def test_other_bytes_than_those_asked_for(how: str) -> None:
    """A range that is longer, or begins elsewhere, is not taken for the one that was asked for: all is read."""

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        if wanted is None:
            handler.wfile.write(part(handler, None))
            return
        handler.send_response(206)
        body = DATA[wanted] + b"x" * 10**5 * (how == "longer")
        start = wanted.start + (how == "elsewhere")
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(DATA)}")
        handler.end_headers()
        handler.wfile.write(body)

    with serving(answer) as url, pytest.warns(RuntimeWarning, match="read whole"):
        assert read_first(url) == b"a" * 3 * TAIL_BYTES


@pytest.mark.parametrize("start", [0, 2 * TAIL_BYTES])
def test_a_range_is_read_to_its_end(start: int) -> None:
    """No byte beyond the length of the range is kept, wherever the range begins."""

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        assert wanted is not None
        handler.send_response(206)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(DATA[wanted] + b"x")
        handler.close_connection = True

    with serving(answer) as url:
        fs, path = file_system(url, None)
        with pytest.raises(ValueError, match="expected 100 bytes of a range, got more"):
            HttpFile(fs, path, "m.pt2").fetch(start, start + 100, len(DATA))


def test_a_server_that_does_not_state_the_size_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request for the size has a deadline as the others have, and the same message."""
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.3)
    with (
        serving(stall_in_the_head, {"wait": "1"}) as url,
        pytest.raises(ArchiveError, match="expected an answer within"),
    ):
        read_first(url)


def test_redirects_in_a_circle() -> None:
    """The message names the reason, for which aiohttp has no text."""

    def circle(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        handler.send_response(302)
        handler.send_header("Location", handler.path)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with serving(circle) as url, pytest.raises(ArchiveError, match="got: TooManyRedirects"):
        read_first(url)


def test_redirects_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A redirect to another host is logged, once; one to the same host is not."""
    with serving(lambda handler, wanted, number: handler.wfile.write(part(handler, wanted))) as there:

        def redirect(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
            handler.send_response(302)
            handler.send_header("Location", there.replace("127.0.0.1", "localhost"))
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        with serving(redirect) as url, caplog.at_level(logging.WARNING, "pt2kit"):
            assert read_first(url) == b"a" * 3 * TAIL_BYTES
    assert [record.message for record in caplog.records] == [f"{url}: the server redirects to another host, localhost"]


def test_a_redirect_from_https_to_http_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """An unencrypted answer to an encrypted request is logged, once; the other way round is not."""
    with caplog.at_level(logging.WARNING, "pt2kit"):
        for asked, answered in (("https", "http"), ("http", "https")):
            file = HttpFile(None, f"{asked}://example.org/m.pt2", "m.pt2")
            for _ in range(2):
                file._report(SimpleNamespace(url=SimpleNamespace(scheme=answered, host="example.org")))
    assert [record.message for record in caplog.records] == ["m.pt2: the server redirects to an unencrypted connection"]


@pytest.mark.parametrize("status", [206, 302])
def test_answers_without_the_file(status: int) -> None:
    """A redirect without a target, or a part that was not asked for, is not taken for the whole file."""

    def answer(handler: BaseHTTPRequestHandler, wanted: slice | None, number: int) -> None:
        handler.send_response(200 if wanted else status)
        handler.send_header("Content-Length", "3")
        handler.end_headers()
        handler.wfile.write(b"abc")

    with (
        serving(answer) as url,
        pytest.warns(RuntimeWarning, match="read whole"),
        pytest.raises(ArchiveError, match=f"expected the file, got status {status}"),
    ):
        read_first(url)
