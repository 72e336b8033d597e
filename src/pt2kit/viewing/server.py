"""HTTP server of the page on this machine: loopback only, a secret token in the address, nothing of the disk.

    /TOKEN/              the page
    /TOKEN/answer/NAME   an answer

Nothing is served without the token. With it, the page opens under any loopback name and port, so that a tunnel
(`ssh -L`) and a link on another site work; answers are for that page alone (`Host`, `Origin`, `Sec-Fetch-Site`).
"""

from __future__ import annotations

import re
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from pt2kit.errors import UnsupportedError
from pt2kit.viewing.answers import Answers
from pt2kit.viewing.page import built_page, policy

LOOPBACK: Final = "127.0.0.1"
HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?")
"""Names under which a browser may ask: no name that somebody else's DNS can give to this machine."""

WRONG_HOST: Final = b"forbidden: open this page as http://127.0.0.1 or http://localhost, at the port of your tunnel"
WRONG_SITE: Final = b"forbidden: only the page of pt2 view itself gets answers"
WRONG_TOKEN: Final = b"forbidden: open the address that pt2 view printed; each start has a new one"


class Server(ThreadingHTTPServer):
    """Serves one page and its answers until it is closed.

    Args:
        answers: about the files to show.
        port: 0 for any free one.

    Raises:
        UnsupportedError: the port is in use, or not allowed.
    """

    daemon_threads = True

    def __init__(self, answers: Answers, port: int = 0) -> None:
        self.answers = answers
        self.token = secrets.token_urlsafe(24)
        self.page = built_page().encode()
        self.policy = policy(self.page.decode(), connect="'self'") + "; frame-ancestors 'none'"
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            reason = error.strerror or error
            raise UnsupportedError(
                f"--port {port}: expected a port that is free, got {reason}: choose another one, or leave --port out"
            ) from error

    @property
    def url(self) -> str:
        """Return the URL to open in a browser."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that close the connection early."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "pt2"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Answer a request, or refuse it."""
        token, _, rest = self.path.removeprefix("/").partition("?")[0].partition("/")
        problem = self._problem(is_page=rest == "")
        if problem:
            self._send(HTTPStatus.FORBIDDEN, problem, "text/plain")
        elif not secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            self._send(HTTPStatus.FORBIDDEN, WRONG_TOKEN, "text/plain")
        elif rest == "":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif rest.startswith("answer/"):
            self._answer(rest.removeprefix("answer/"))
        else:
            self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")

    def do_HEAD(self) -> None:
        """Answer like GET, without the body."""
        self.do_GET()

    def _answer(self, request: str) -> None:
        try:
            body = self.server.answers.answer(request)
        except KeyError:
            self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")
            return
        self._send(HTTPStatus.OK, body, "application/json")

    def _problem(self, is_page: bool) -> bytes:
        """Return why a request is refused: another host name, or a page of another site; b"" if it is not.

        A link on another site may open the page, as a whole and in a tab of its own.
        """
        headers = self.headers
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if not HOST.fullmatch(host):
            return WRONG_HOST
        navigation = headers.get("Sec-Fetch-Mode") == "navigate" and headers.get("Sec-Fetch-Dest") == "document"
        own = headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin") and origin in (None, f"http://{host}")
        return b"" if own or (is_page and navigation and origin is None) else WRONG_SITE

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
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
