"""HTTP range requests with deadlines, and with proof that all ranges are of one state of the file.

fsspec supplies the session (credentials, headers, proxies); requests are made here, because fsspec checks neither
the `ETag` of an answer nor the clock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from pt2kit.errors import ArchiveError, LimitError
from pt2kit.zip.limits import MIB

ANSWER_SECONDS: Final = 60.0
"""Limit of seconds until an answer of a server begins."""

STALL_SECONDS: Final = 60.0
"""Limit of seconds that a body may pause."""

LEAST_SPEED: Final = 64 << 10
"""Bytes per second below which an answer is given up, after `ANSWER_SECONDS`."""

MAX_UNKNOWN_BYTES: Final = 256 * MIB
"""Bytes of a body whose length the server does not state, unless the caller allows more."""

_PIECE: Final = 256 << 10
_LOG: Final = logging.getLogger(__name__)


class _TooLongError(Exception):
    """A body is longer than it may be."""


class HttpFile:
    """One file on an HTTP server.

    Args:
        fs: fsspec's file system.
        path: the URL.
        shown: what messages call it.
    """

    def __init__(self, fs: Any, path: str, shown: str) -> None:
        self._fs = fs
        self._path = path
        self._shown = shown
        self._state: tuple[str, str] | None = None
        self._host = urlsplit(path).hostname

    def info(self) -> dict[str, Any]:
        """Ask for size and state of the file.

        Raises:
            ArchiveError: no answer in time (A1).
        """
        with self._in_time():
            found: dict[str, Any] = self._fs.info(self._path, timeout=2 * ANSWER_SECONDS)
            return found

    def fetch(self, start: int, end: int, size: int) -> bytes:
        """Get the bytes of a range.

        Args:
            start, end: the range.
            size: of the whole file.

        Raises:
            ValueError: the server sends the whole file.
            ArchiveError: another state of the file than that of the first answer, or no answer in time (A1).
        """

        async def read(answer: Any) -> bytes:
            if answer.status != 206:
                raise ValueError(f"expected a part of the file, got status {answer.status}")
            sent, _, total = answer.headers.get("Content-Range", "").partition("/")
            if total.strip() not in ("", "*", str(size)):
                raise self._changed(f"{size} bytes", f"{total.strip()} bytes")
            if sent and sent.replace("bytes", "").strip(" =") != f"{start}-{end - 1}":
                raise ValueError(f"expected the bytes {start}-{end - 1}, got {sent[:80]!a}")
            self._compare(answer.headers)
            try:
                return await self._body(answer, end - start)
            except _TooLongError:
                raise ValueError(f"expected {end - start} bytes of a range, got more") from None

        return self._run({"Range": f"bytes={start}-{end - 1}"}, read, end - start)

    def fetch_all(self, limit: int) -> bytes:
        """Get the whole file.

        Raises:
            LimitError: it is longer than `limit`, or than `MAX_UNKNOWN_BYTES` and the server does not state its length.
            ArchiveError: no answer in time (A1).
        """

        async def read(answer: Any) -> bytes:
            self._compare(answer.headers)
            try:
                return await self._body(answer, limit)
            except _TooLongError:
                raise LimitError(
                    f"{self._shown}: expected at most {limit} bytes from a stream that cannot be read in parts, got "
                    "more; save it to a file first, or raise Limits.max_stream_bytes",
                    rule="A18",
                ) from None

        return self._run({}, read, limit)

    def _run(self, headers: dict[str, str], read: Callable[[Any], Awaitable[bytes]], length: int) -> bytes:
        from fsspec.asyn import sync

        async def request() -> bytes:
            session = await self._fs.set_session()
            options = {name: value for name, value in self._fs.kwargs.items() if name != "headers"}
            # A compressed answer to a range would be a range of something else.
            sent = {**self._fs.kwargs.get("headers", {}), "Accept-Encoding": "identity", **headers}
            opened = session.get(self._fs.encode_url(self._path), headers=sent, **options)
            answer = await asyncio.wait_for(opened.__aenter__(), ANSWER_SECONDS)
            try:
                self._fs._raise_not_found_for_status(answer, self._path)
                self._report(answer)
                return await asyncio.wait_for(read(answer), ANSWER_SECONDS + length / LEAST_SPEED)
            finally:
                await opened.__aexit__(None, None, None)

        with self._in_time():
            found: bytes = sync(self._fs.loop, request)
            return found

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Convert a deadline that passes to an error that says what to do."""
        try:
            yield
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise ArchiveError(
                f"{self._shown}: expected an answer within {ANSWER_SECONDS:g} seconds, without pauses of "
                f"{STALL_SECONDS:g}, and at least {LEAST_SPEED >> 10} KiB per second, got none: the server is down or "
                "too slow; download the file by other means",
                rule="A1",
            ) from error

    async def _body(self, answer: Any, limit: int) -> bytes:
        """Return the body of an answer; one that is longer than the limit is not read on."""
        parts: list[bytes] = []
        total = 0
        while part := await asyncio.wait_for(answer.content.read(_PIECE), STALL_SECONDS):
            parts.append(part)
            total += len(part)
            if total > limit:
                raise _TooLongError
        return b"".join(parts)

    def _compare(self, headers: Any) -> None:
        """Refuse an answer that is of another state of the file than the first one."""
        etag, changed = headers.get("ETag", ""), headers.get("Last-Modified", "")
        if self._state is None:
            self._state = etag, changed
            return
        first_etag, first_changed = self._state
        if etag and first_etag:
            if etag != first_etag:
                raise self._changed(f"the ETag {first_etag[:80]!a}", f"{etag[:80]!a}")
        elif changed and first_changed and changed != first_changed:
            raise self._changed(f"the time of change {first_changed[:80]!a}", f"{changed[:80]!a}")

    def _changed(self, expected: str, got: str) -> ArchiveError:
        return ArchiveError(
            f"{self._shown}: expected {expected}, as in the first answer, got {got}: the file changed on the server "
            "while it was read; open it again",
            rule="A1",
        )

    def _report(self, answer: Any) -> None:
        """Log the first answer that comes from another host than the one that was asked."""
        if answer.url.host != self._host:
            _LOG.warning("%s: the server redirects to another host, %s", self._shown, answer.url.host)
            self._host = answer.url.host
