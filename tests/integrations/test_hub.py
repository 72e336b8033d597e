"""`hf://` URLs go through huggingface_hub's file system; tried against an imitation of the hub, by ranges alone."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.cli.run import pt2

pytest.importorskip("huggingface_hub", reason="hf:// needs huggingface_hub: pip install huggingface_hub")

REPOSITORY, SHA = "someone/model", "0" * 40
SAMPLE = samples.sample("2.13.0", "dynamic_batch")


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the hub's interface that reading takes: the repository, its files, ranges of one."""

    data = b""
    sent: list[int]

    def _send(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), Content_Type="application/json")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._json([self._file()] if "/paths-info/" in self.path else [])

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith(f"/api/models/{REPOSITORY}/tree/"):
            self._json([self._file()])
        elif path.startswith(f"/api/models/{REPOSITORY}"):
            self._json(
                {"id": REPOSITORY, "modelId": REPOSITORY, "sha": SHA, "siblings": [], "tags": [], "private": False}
            )
        elif path.startswith(f"/{REPOSITORY}/resolve/") and path.endswith("/model.pt2"):
            self._ranges()
        else:
            self._send(404, b"{}", X_Error_Code="EntryNotFound")

    def _file(self) -> dict[str, Any]:
        return {"type": "file", "path": "model.pt2", "size": len(self.data), "oid": "1" * 40}

    def _ranges(self) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2]), len(self.data) - 1)) if asked else (0, len(self.data) - 1)
        body = self.data[first : last + 1]
        self.sent.append(len(body))
        span = f"bytes {first}-{last}/{len(self.data)}"
        self._send(206 if asked else 200, body, Content_Range=span, ETag='"x"', X_Repo_Commit=SHA)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of a hub with one repository that has one file."""
    handler = type("OneFile", (Hub,), {"data": SAMPLE.read_bytes(), "sent": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_file_of_the_hub_is_shown_and_checked(hub: str, tmp_path: Path) -> None:
    """The same as of the file itself, and nothing is cached on disk."""
    environment = {"HF_ENDPOINT": hub, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1", "no_proxy": "*"}
    url = f"hf://{REPOSITORY}/model.pt2"
    done = pt2("digest", url, "--only", "program", env=environment)
    assert done.out == pt2("digest", SAMPLE, "--only", "program").out, done.err
    done = pt2("show", url, env=environment)
    assert "forward(x: f32[s77, 8]) -> f32[s77, 4]" in done.out, done.err
    assert not list(tmp_path.rglob("*.pt2"))


def test_a_file_that_is_not_there(hub: str, tmp_path: Path) -> None:
    """One line, exit code 2."""
    environment = {"HF_ENDPOINT": hub, "HF_HOME": str(tmp_path), "no_proxy": "*"}
    done = pt2("show", f"hf://{REPOSITORY}/other.pt2", env=environment)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err


def test_files_of_the_hub_go_through_the_fleet(hub: str, tmp_path: Path) -> None:
    """A pattern over a repository finds its files, and each has its row."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pt2kit[fleet] is not installed")
    pytest.importorskip("distributed", reason="pt2kit[fleet] is not installed")
    environment = {"HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "home"), "no_proxy": "*"}
    out = tmp_path / "out"
    pattern = f"hf://{REPOSITORY}/*.pt2"
    done = pt2("fleet", "check", pattern, "--out", out, "--workers", "1", env=environment)
    assert done.code == 0, done.err
    (row,) = parquet.read_table(out / "files").to_pylist()
    assert (row["outcome"], row["size"]) == ("ok", SAMPLE.stat().st_size)
    assert row["url"].endswith(f"{REPOSITORY}/model.pt2")
