"""A small HTTP server on loopback that serves one folder by byte ranges and counts what it sends."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class RangeServer(ThreadingHTTPServer):
    """Serves `folder`; `ranges` is "yes", "no" (ignored in silence) or "none" (declined in a header).

    With a `refusal`, a status, every answer is that; a redirect leads to the same address.
    """

    daemon_threads = True

    def __init__(self, folder: Path, ranges: str = "yes", size_known: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.ranges = ranges
        self.size_known = size_known
        self.refusal = 0
        self.sent = 0
        self.requests: list[tuple[str, str | None]] = []
        self.headers_seen: list[dict[str, str]] = []
        self.lock = threading.Lock()

    def url(self, name: str) -> str:
        """The address of a file."""
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"

    def reset(self) -> None:
        """Forget what was counted."""
        with self.lock:
            self.sent = 0
            self.requests.clear()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up early are no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RangeServer

    def log_message(self, *args: object) -> None:
        """Keep the test output clean."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        server = self.server
        wanted = self.headers.get("Range")
        with server.lock:
            server.requests.append((self.command, wanted))
            server.headers_seen.append(dict(self.headers.items()))
        path = server.folder / self.path.lstrip("/").partition("?")[0]
        if server.refusal or not path.is_file():
            self.send_response(server.refusal or 404)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start, end, size = 0, path.stat().st_size, path.stat().st_size
        found = _RANGE.fullmatch(wanted or "")
        partial = server.ranges == "yes" and found is not None
        if partial and found is not None:
            start, end = int(found[1]), min(int(found[2]) + 1, size)
        self.send_response(206 if partial else 200)
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if server.ranges == "none":
            self.send_header("Accept-Ranges", "none")
        if server.size_known:
            self.send_header("Content-Length", str(end - start))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if body:
            self._send(path, start, end)

    def _send(self, path: Path, start: int, end: int) -> None:
        with path.open("rb") as file:
            file.seek(start)
            while start < end and (part := file.read(min(1 << 16, end - start))):
                with (
                    self.server.lock
                ):  # before: a client may have the part, and reset the count, before `write` returns
                    self.server.sent += len(part)
                self.wfile.write(part)
                start += len(part)


@contextmanager
def serve(folder: Path, ranges: str = "yes", size_known: bool = True) -> Iterator[RangeServer]:
    """Run a server; at the end, close it and the connections that fsspec keeps open for later."""
    server = RangeServer(folder, ranges, size_known)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        close_sessions()
        server.shutdown()
        thread.join()
        server.server_close()


def close_sessions() -> None:
    """Close the sessions of fsspec's HTTP file systems, which live as long as the process otherwise."""
    from fsspec.asyn import sync
    from fsspec.implementations.http import HTTPFileSystem

    for fs in list(HTTPFileSystem._cache.values()):
        if fs._session is not None:
            sync(fs.loop, fs._session.close)
    HTTPFileSystem.clear_instance_cache()
