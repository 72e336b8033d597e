"""Answers -> a page on this machine: loopback only, a port and a token nobody can guess, nothing of the disk.

    /TOKEN/              the page
    /TOKEN/answer/NAME   an answer

Whoever does not know the token gets nothing; nor does a page of another site that asks in the user's name (`Host`,
`Origin` and `Sec-Fetch-Site` say so).
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from pt2kit.viewing.answers import Answers
from pt2kit.viewing.page import built_page, policy

LOOPBACK: Final = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves one page and its answers until it is closed.

    Args:
        answers: about the files to show.
        port: 0 for any free one.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True

    def __init__(self, answers: Answers, port: int = 0) -> None:
        self.answers = answers
        self.token = secrets.token_urlsafe(24)
        self.page = built_page().encode()
        self.policy = policy(self.page.decode(), connect="'self'") + "; frame-ancestors 'none'"
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser on this machine may call this server."""
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle is no trouble."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "pt2"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request, or say no."""
        if not self._is_from_here():
            self._send(HTTPStatus.FORBIDDEN, b"forbidden", "text/plain")
            return
        token, _, rest = self.path.removeprefix("/").partition("?")[0].partition("/")
        if not secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            self._send(HTTPStatus.FORBIDDEN, b"forbidden: open the address that pt2 view printed", "text/plain")
        elif rest == "":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif rest.startswith("answer/"):
            self._answer(rest.removeprefix("answer/"))
        else:
            self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")

    def _answer(self, request: str) -> None:
        try:
            body = self.server.answers.answer(request)
        except KeyError:
            self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")
            return
        self._send(HTTPStatus.OK, body, "application/json")

    def _is_from_here(self) -> bool:
        """Whether a page of this server asks, or the address bar, and not another site under a name of its own."""
        headers, hosts = self.headers, self.server.hosts
        origin = headers.get("Origin")
        return (
            headers.get("Host") in hosts
            and (origin is None or origin in tuple(f"http://{host}" for host in hosts))
            and headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        )

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for key, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", self.server.policy),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
