"""Remote files: a `Source` that fetches only requested byte ranges of a URL (HTTP, fsspec); and writing to a URL.

The end of the file is fetched once when it is opened and kept, as an archive's directory and the small records that
torch writes last are there. fsspec is imported by the first URL only.

HTTP range requests have deadlines, and proof that all ranges are of one state of the file. fsspec supplies the session
(credentials, headers, proxies); requests are made here, because fsspec checks neither the `ETag` of an answer nor the
clock.
"""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from tempfile import NamedTemporaryFile
from typing import IO, Any, Final, cast
from urllib.parse import quote, urlsplit
from uuid import uuid4

from pt2kit.errors import ArchiveError, Pt2Error
from pt2kit.messages import printable
from pt2kit.zip.source import DEFAULT_LIMITS, KIB, MIB, Source, open_bytes, open_path, read_stream, stream_too_long

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

TAIL_BYTES: Final = 66 * KIB
"""Bytes of the end to fetch in the first request: room for the longest comment and, usually, the whole directory."""

_AT_ONCE: Final = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "hf"))
"""Object stores: an object is there when all of it was sent."""

_STATES: Final = (
    *("ETag", "etag", "e_tag", "checksum", "md5Hash", "md5", "Content-MD5", "content_md5", "Digest", "sha256"),
    *("xet_hash", "blob_id", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "mtime"),
    *("created",),
)
"""Names that file systems use for a checksum of a file, or the time of its last change, in the order of preference."""

Fetch = Callable[[int, int], bytes]
"""(start, end) -> the bytes of that range."""


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
        self._scheme, self._host = urlsplit(path).scheme, urlsplit(path).hostname

    def info(self) -> dict[str, Any]:
        """Ask for size and state of the file.

        Raises:
            ArchiveError: no answer in time (A1).
        """
        with self._in_time():
            found: dict[str, Any] = self._fs.info(self._path, timeout=2 * ANSWER_SECONDS)
            # Many servers state the length 0 in an answer without a body, whatever the file has.
            return {**found, "size": found.get("size") or None}

    def fetch(self, start: int, end: int, size: int) -> bytes:
        """Get the bytes of a range.

        Args:
            start, end: the range.
            size: of the whole file.

        Raises:
            ValueError: the server sends the whole file.
            ArchiveError: another state of the file than that of the first answer, or no answer in time (A1).
        """

        def check(answer: Any) -> None:
            if answer.status != 206:
                raise ValueError(f"expected a part of the file, got status {answer.status}")
            sent, _, total = answer.headers.get("Content-Range", "").partition("/")
            if total.strip() not in ("", "*", str(size)):
                raise self._changed(f"{size} bytes", f"{total.strip()} bytes")
            if sent and sent.replace("bytes", "").strip(" =") != f"{start}-{end - 1}":
                raise ValueError(f"expected the bytes {start}-{end - 1}, got {sent[:80]!a}")

        too_long = ValueError(f"expected {end - start} bytes of a range, got more")
        return self._run({"Range": f"bytes={start}-{end - 1}"}, check, end - start, too_long)

    def fetch_all(self, limit: int) -> bytes:
        """Get the whole file.

        Raises:
            LimitError: it is longer than `limit`, or than `MAX_UNKNOWN_BYTES` and the server does not state its length.
            ArchiveError: no answer in time, or one without the whole file (A1).
        """

        def check(answer: Any) -> None:
            if answer.status not in (200, 203):  # below 400, aiohttp returns bodies that are not the file
                raise ArchiveError(f"{self._shown}: expected the file, got status {answer.status}", rule="A1")

        return self._run({}, check, limit, stream_too_long(self._shown, limit))

    def _run(self, headers: dict[str, str], check: Callable[[Any], None], limit: int, too_long: Exception) -> bytes:
        """Return the body of an answer.

        Args:
            headers: of the request.
            check: refuses a wrong answer.
            limit: bytes of the body at most; a longer one is not read on, but raises `too_long`.
            too_long: that error.
        """
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
                check(answer)
                self._compare(answer.headers)
                body = self._body(answer, limit, too_long)
                return await asyncio.wait_for(body, ANSWER_SECONDS + limit / LEAST_SPEED)
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

    async def _body(self, answer: Any, limit: int, too_long: Exception) -> bytes:
        """Return the body of an answer; one that is longer than the limit is not read on, but raises an error."""
        parts: list[bytes] = []
        total = 0
        while part := await asyncio.wait_for(answer.content.read(_PIECE), STALL_SECONDS):
            parts.append(part)
            total += len(part)
            if total > limit:
                raise too_long
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
        """Log the first answer that comes from another host than the one that was asked, or unencrypted."""
        if answer.url.host != self._host:
            _LOG.warning("%s: the server redirects to another host, %s", self._shown, answer.url.host)
            self._host = answer.url.host
        if answer.url.scheme != self._scheme:
            if self._scheme == "https":
                _LOG.warning("%s: the server redirects to an unencrypted connection", self._shown)
            self._scheme = answer.url.scheme


class RemoteSource(Source):
    """A remote file, read one byte range per request.

    Args:
        name: what messages call it.
        size: in bytes.
        fetch: gets a range.
        state: a text of the server that changes with the file (`state_of`).
    """

    def __init__(self, name: str, size: int, fetch: Fetch, state: str = "") -> None:
        super().__init__(name)
        self.size = size
        self.state = state
        self._fetch = fetch
        self._tail_offset = max(0, size - TAIL_BYTES)
        self._tail = self._request(self._tail_offset, size - self._tail_offset)

    def _range(self, offset: int, length: int) -> memoryview:
        """Fetch `length` bytes from `offset` on in one request; in none if the end that is kept has them."""
        if offset >= self._tail_offset:
            start = offset - self._tail_offset
            return self._tail[start : start + length]
        return self._request(offset, length)

    def _request(self, offset: int, length: int) -> memoryview:
        if length == 0:
            return memoryview(b"")
        data = guarded(self.name, lambda: self._fetch(offset, offset + length))
        if len(data) != length:
            raise ArchiveError(
                f"{self.name}: expected {length} bytes at offset {offset}, got {len(data)}: "
                "the server must answer requests for byte ranges, and the file must not change; download it instead",
                rule="A1",
            )
        return memoryview(data).toreadonly()


def open_url(
    url: str,
    *,
    storage_options: Mapping[str, Any] | None = None,
    max_stream_bytes: int = DEFAULT_LIMITS.max_stream_bytes,
) -> Source:
    """Open a URL of any protocol that fsspec supports; `file://` is mapped like a path.

    From a server that serves no byte ranges, or does not tell the size, the file is read whole, with a warning.

    Raises:
        FileNotFoundError: there is no such file.
        ArchiveError: the protocol is unknown or its package missing, or the server cannot be reached (A1).
        LimitError: a file that has to be read whole is longer than `max_stream_bytes` (A18).
    """
    shown = public_url(url)
    fs, path = guarded(shown, lambda: file_system(url, storage_options))
    return _open_on(fs, path, shown, max_stream_bytes)


def open_beside(url: str, path: str, *, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Open the file at a relative path from the folder of a URL: on the same host, by the same protocol.

    Args:
        url: of a file in the folder.
        path: without a component "..", not quoted.
        storage_options: passed to fsspec.

    Raises: as `open_url`.
    """
    shown = public_url(url)
    fs, home = guarded(shown, lambda: file_system(url, storage_options))
    query = ""
    if "http" in protocols(fs):
        home, sign, query = home.partition("?")
        path, query = quote(path), sign + query
    folder = home.rpartition("/")[0]
    return _open_on(fs, f"{folder}/{path}{query}" if folder else path, path, DEFAULT_LIMITS.max_stream_bytes)


def _open_on(fs: Any, path: str, shown: str, max_stream_bytes: int) -> Source:
    """Open a path of a file system."""
    if _is_local(fs):
        return open_path(path)
    http = guarded(shown, lambda: HttpFile(fs, path, shown)) if "http" in protocols(fs) else None
    info = guarded(shown, (lambda: fs.info(path)) if http is None else http.info)
    size = info.get("size")
    if info.get("type") == "directory":
        raise ArchiveError(f"{shown}: expected a file, got a folder", rule="A1")
    limit = max_stream_bytes
    if http is not None and limit == DEFAULT_LIMITS.max_stream_bytes:  # A compressed body is longer than it states.
        limit = min(limit, max(size or 0, MAX_UNKNOWN_BYTES))
    if not isinstance(size, int):
        return _read_whole(fs, path, shown, "the server does not tell the size of the file", limit, http)
    if http is not None:
        if info.get("partial") is False:
            return _read_whole(fs, path, shown, "the server serves no byte ranges", limit, http)
        try:
            return RemoteSource(shown, size, lambda start, end: http.fetch(start, end, size), state_of(info))
        except ArchiveError as error:
            if not isinstance(error.__cause__, ValueError):  # fsspec's error for an answer that is no range
                raise
        return _read_whole(fs, path, shown, "the server sends the whole file where a range is asked for", limit, http)
    return RemoteSource(shown, size, lambda start, end: fs.cat_file(path, start=start, end=end), state_of(info))


def state_of(info: Mapping[str, Any]) -> str:
    """Return a text that changes when a remote file does: its etag, another checksum, or its time; "" if unknown."""
    for key in _STATES:
        value = info.get(key)
        if value is not None and value != "":
            return str(value.isoformat() if hasattr(value, "isoformat") else value).strip('"')
    return ""


def _read_whole(fs: Any, path: str, shown: str, why: str, limit: int, http: HttpFile | None) -> Source:
    """Return a remote file in memory, if it cannot be read in parts."""
    warnings.warn(f"{shown}: {why}, so it is read whole, into memory", RuntimeWarning, stacklevel=2)
    if http is not None:
        return open_bytes(guarded(shown, lambda: http.fetch_all(limit)), name=shown)
    with guarded(shown, lambda: fs.open(path, "rb", block_size=0)) as file:
        return open_bytes(guarded(shown, lambda: read_stream(file, shown, limit)), name=shown)


def list_urls(url: str, suffix: str) -> list[str]:
    """Return the files of a remote folder ("s3://bucket/models/") and below, or those that match a pattern, by name.

    Raises:
        ArchiveError: the protocol is unknown or its package missing, or the folder cannot be listed (A1).
    """
    shown = public_url(url)
    fs, path = guarded(shown, lambda: file_system(url, None))
    paths = guarded(shown, lambda: fs.find(path) if url.endswith("/") else fs.glob(path))
    return [fs.unstrip_protocol(one) for one in sorted(paths) if one.endswith(suffix)]


_USER: Final = re.compile(r"(?<=://)[^/?#\s]*@")
_URLS: Final = re.compile(r"\w+://[^\s'\"<>]+")


def public_url(url: str) -> str:
    """Return the URL without user, password and query, which may hold secrets and do not belong in messages."""
    return re.split("[?#]", _USER.sub("", url), maxsplit=1)[0]


def file_system(url: str, storage_options: Mapping[str, Any] | None) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and its name for the path. Call it inside `guarded`."""
    from fsspec.core import url_to_fs

    fs, path = url_to_fs(url, **(storage_options or {}))
    return fs, path


def _is_local(fs: Any) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    return type(fs) is LocalFileSystem


def protocols(fs: Any) -> tuple[str, ...]:
    """Return the names of a file system of fsspec."""
    protocol = fs.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def guarded(name: str, call: Callable[[], Any]) -> Any:
    """Call fsspec, and turn any error of its back ends into one of ours with its cause."""
    try:
        return call()
    except FileNotFoundError as exc:
        if _is_missing(exc.__cause__):
            raise FileNotFoundError(f"{name}: no such file") from None  # fsspec's own text has the query in it.
        raise ArchiveError(f"{name}: expected to read it, got: {_detail(exc.__cause__ or exc)}", rule="A1") from exc
    except Pt2Error:
        raise
    except Exception as exc:
        hint = "; install pt2kit[http]" if isinstance(exc, ImportError) and "aiohttp" in str(exc) else ""
        raise ArchiveError(f"{name}: expected to read it, got: {_detail(exc)}{hint}", rule="A1") from exc


def _detail(error: BaseException) -> str:
    """Return the text of an error of a back end, with URLs as `public_url` returns them."""
    text = str(error)
    if getattr(error, "message", text) == "":  # aiohttp's TooManyRedirects has no text of its own.
        status = getattr(error, "status", 0)
        text = f"status {status}" if status else ""
    text = _URLS.sub(lambda found: public_url(found[0]), " ".join(text.split()))  # aiohttp quotes what it received.
    return printable(text) or type(error).__name__


def _is_missing(cause: BaseException | None) -> bool:
    """Return whether fsspec's "not found", its error for every failure over HTTP, is that, judged by its cause."""
    if cause is None or isinstance(cause, LookupError) or getattr(cause, "status", None) == 404:
        return True
    answer = getattr(cause, "response", None)  # botocore's
    return isinstance(answer, Mapping) and answer.get("Error", {}).get("Code") in ("404", "NoSuchKey", "NoSuchBucket")


@contextmanager
def create_url(url: str, *, sibling: str = "", storage_options: Mapping[str, Any] | None = None) -> Iterator[IO[bytes]]:
    """Yield a file object that writes to a URL of any protocol that fsspec supports; published if the block succeeds.

    Args:
        url: where to write.
        sibling: a relative path from the folder of the URL, to write there instead.
        storage_options: passed to fsspec.

    Raises:
        ArchiveError: the protocol is unknown or its package missing, or the target cannot be written (A1).
    """
    shown = public_url(url)
    fs, path = guarded(shown, lambda: file_system(url, storage_options))
    if sibling:
        folder = path.rpartition("/")[0]
        path, shown = f"{folder}/{sibling}" if folder else sibling, sibling
    # Spooled first: many back ends cannot seek, and an incomplete file must not remain after an error.
    with NamedTemporaryFile(prefix="pt2kit-") as spool:
        yield cast("IO[bytes]", spool)
        spool.flush()
        try:
            put_whole(fs, spool.name, path)
        except Exception as error:
            raise ArchiveError(f"{shown}: expected to write it, got: {_detail(error)}", rule="A1") from error


def put_whole(fs: Any, local: str, path: str) -> None:
    """Copy a local file to a remote path, where it appears whole or not at all."""
    if _AT_ONCE & set(protocols(fs)):
        fs.put_file(local, path)
        return
    begun = f"{path}.{uuid4().hex[:8]}.tmp"
    try:
        with suppress(Exception):  # Backends without folders need not make them.
            fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        fs.put_file(local, begun)
        fs.mv(begun, path)
    except BaseException:
        with suppress(Exception):
            fs.rm_file(begun)
        raise
