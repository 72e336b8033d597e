"""A folder -> a web server on loopback that knows byte ranges and counts every body byte it sends."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CHUNK = 1 << 16


class RangeServer(ThreadingHTTPServer):
    """Serves the files of one folder; `sent` and `requests` count what it did (held under `lock`)."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.lock = threading.Lock()
        self.sent = 0
        self.requests = 0

    def url(self, name: str) -> str:
        """The address of a file in the folder."""
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RangeServer

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the table is what is printed."""

    def _answer(self, *, body: bool) -> None:
        with self.server.lock:
            self.server.requests += 1
        file = self.server.folder / self.path.lstrip("/")
        if "/" in self.path[1:] or not file.is_file():
            self.send_error(404)
            return
        size = file.stat().st_size
        start, stop = _range(self.headers.get("Range", ""), size)
        if start >= stop:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        partial = (start, stop) != (0, size)
        self.send_response(206 if partial else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(stop - start))
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if body:
            self._send(file, start, stop)

    def _send(self, file: Path, start: int, stop: int) -> None:
        with file.open("rb") as source:
            source.seek(start)
            while start < stop:
                chunk = source.read(min(CHUNK, stop - start))
                try:
                    self.wfile.write(chunk)
                except ConnectionError:
                    return  # the reader has seen enough
                with self.server.lock:
                    self.server.sent += len(chunk)
                start += len(chunk)


def _range(header: str, size: int) -> tuple[int, int]:
    """The bytes [start, stop) that a Range header asks for; all of them without a single plain range."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header)
    if not match or match[0] == "bytes=-":
        return 0, size
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(int(last) + 1, size) if last else size


@contextmanager
def serving(folder: Path) -> Iterator[RangeServer]:
    """A server for the folder, running in a thread until the block ends."""
    with RangeServer(folder) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
