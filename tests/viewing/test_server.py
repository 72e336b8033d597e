"""The server: this machine alone, a token, and nothing of the disk."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest
from tests import samples

from pt2kit.errors import UnsupportedError
from pt2kit.viewing.answers import Answers
from pt2kit.viewing.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that shows one file."""
    answers = Answers(samples.sample("2.13.0", "mlp"))
    with Server(answers) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join(10)
        answers.close()


def get(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """One request, with headers of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for key, value in headers.items():
            connection.putheader(key.replace("_", "-"), value)
        connection.endheaders()
        reply = connection.getresponse()
        return reply.status, reply.read(), {key.lower(): value for key, value in reply.getheaders()}
    finally:
        connection.close()


def test_listens_on_the_loopback_alone(server: Server) -> None:
    """Nobody else on the network reaches it, and its port and token are new each time."""
    assert server.server_address[0] == "127.0.0.1"
    assert server.server_port != 0
    assert len(server.token) >= 32
    with Server(server.answers) as other:
        assert (other.token, other.server_port) != (server.token, server.server_port)


def test_serves_the_page_and_answers(server: Server) -> None:
    """With the token: the page with its policy, and answers as JSON."""
    status, body, headers = get(server, f"/{server.token}/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"pt2 view" in body
    allowed = headers["content-security-policy"]
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed
    assert "frame-ancestors 'none'" in allowed
    status, body, headers = get(server, f"/{server.token}/answer/index")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert b'"programs":["model"]' in body


@pytest.mark.parametrize(
    "path", ["/", "/answer/index", "/wrong/", "/wrong/answer/index", "", "//", "/%00/", "/%C3%A4/"]
)
def test_without_the_token_there_is_nothing(server: Server, path: str) -> None:
    """Who does not know the token gets no page and no answer."""
    status, body, _ = get(server, path or "/")
    assert status == 403
    assert b"pt2 view" not in body or body.startswith(b"forbidden")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_other_sites_get_nothing(server: Server, headers: dict[str, str]) -> None:
    """A page of another site, under whatever name, is refused even with the token."""
    status, body, _ = get(server, f"/{server.token}/answer/index", **headers)
    assert status == 403
    assert body.startswith(b"forbidden: ")
    assert b"program" not in body


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1:1", "127.0.0.1", "[::1]:8080"])
def test_a_tunnel_to_another_port(server: Server, host: str) -> None:
    """Through `ssh -L` the page is asked for under another port, which its own requests name as their origin."""
    assert get(server, f"/{server.token}/", Host=host)[0] == 200
    assert get(server, f"/{server.token}/answer/index", Host=host, Origin=f"http://{host}")[0] == 200
    assert get(server, f"/{server.token}/answer/index", Host=host, Origin="http://localhost:1")[0] == 403


def test_a_link_on_another_site(server: Server) -> None:
    """A click on a link opens the page in a tab; the same site gets no answers, and no frame."""
    click = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert get(server, f"/{server.token}/", **click)[0] == 200
    assert get(server, "/wrong/", **click)[0] == 403
    assert get(server, f"/{server.token}/answer/index", **click)[0] == 403
    assert get(server, f"/{server.token}/", **{**click, "Sec_Fetch_Dest": "iframe"})[0] == 403


def test_head(server: Server) -> None:
    """HEAD has the headers of GET and no body."""
    status, body, headers = get(server, f"/{server.token}/", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(server.page)


def test_a_port_in_use(server: Server) -> None:
    """The error names the port and what to do."""
    with pytest.raises(UnsupportedError, match=rf"--port {server.server_port}: expected a port that is free"):
        Server(server.answers, server.server_port)


@pytest.mark.parametrize(
    "rest",
    [
        "answer/nope",
        "answer/program/7",
        "answer/program/-1",
        "answer/program/0/0",
        "answer/details/0/x",
        "answer/tensor/0/99",
        "answer/tensor/0/0/9999999999999",
        "answer/../../etc/passwd",
        "../../etc/passwd",
        "index.html",
        "answer/program/%D9%A3",
    ],
)
def test_nothing_else_is_served(server: Server, rest: str) -> None:
    """Any path a page does not request is not found."""
    status, body, _ = get(server, f"/{server.token}/{rest}")
    assert (status, body) == (404, b"not found")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_questions(server: Server, method: str) -> None:
    """Nothing but GET and HEAD is answered."""
    assert get(server, f"/{server.token}/", method)[0] == 501
