"""`pt2 view` in headless Chromium: first picture, everything unfolded, layout, frames, memory; and other viewers.

Run by hand (`make browser` first): `python -m benchmarks.viewing [--others] [--only transformer]`. Prints a table and
the load it ran under.
`--others` shows a file in Netron and Model Explorer where these are installed (`netron`, `ai-edge-model-explorer`),
and waits up to 300 s for a picture of theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks import pictures, programs

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-precise-memory-info"),
)
SETTLED = 'html:not([data-state="loading"])'
PATIENCE_S = 300
FRAMES = """
new Promise(done => {
  const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
  let frames = 0, start = performance.now();
  const step = () => {
    const t = performance.now() - start;
    if (t > 3000) { done(frames / (t / 1000)); return; }
    frames++;
    const at = { clientX: box.x + 300, clientY: box.y + 300, bubbles: true, cancelable: true };
    const turn = { deltaY: Math.sin(t / 300) * 40, shiftKey: frames % 40 < 20, ctrlKey: frames % 40 >= 20 };
    canvas.dispatchEvent(new WheelEvent('wheel', { ...turn, ...at }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})
"""


@contextmanager
def served(path: Path) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its address and process id."""
    command = [sys.executable, "-m", "pt2kit", "view", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            yield run.stdout.readline().strip(), run.pid
        finally:
            run.terminate()


def resident_mb(pid: int) -> float:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def view(browser: Any, name: str, path: Path) -> None:
    """One file in `pt2 view`."""
    with served(path) as (url, pid):
        page = browser.new_page(viewport={"width": 1300, "height": 850})
        start = time.perf_counter()
        page.goto(url)
        page.wait_for_selector(SETTLED, state="attached", timeout=PATIENCE_S * 1000)
        first = time.perf_counter() - start
        layout = float(page.evaluate("document.documentElement.dataset.layoutMs")) / 1000
        before_check = resident_mb(pid)
        start = time.perf_counter()
        page.click("#unfold")
        page.wait_for_selector('html[data-state="ready"]', state="attached", timeout=PATIENCE_S * 1000)
        everything = time.perf_counter() - start
        unfolded = float(page.evaluate("document.documentElement.dataset.layoutMs")) / 1000
        page.wait_for_timeout(800)
        frames = page.evaluate(FRAMES)
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        print(
            f"{name:24} first picture {first:6.2f} s (layout {layout:.2f})   all unfolded {everything:6.2f} s "
            f"(layout {unfolded:.2f})   {frames:5.1f} frames/s   page {heap:4.0f} MB   server {before_check:4.0f} MB, "
            f"{resident_mb(pid):.0f} with findings",
            flush=True,
        )
        page.close()


@dataclass(frozen=True)
class Viewer:
    """Another viewer: how it is started, what to ask it for, and what its page has when a picture is there.

    Args:
        command: starts its server.
        address: of the page.
        drawn: a selector. Asked for through a locator, which needs no `eval` in the page: Netron takes that away.
        count: how many of these there are then, at least.
    """

    command: tuple[str, ...]
    address: str
    drawn: str
    count: int


def viewers(path: Path, port: int, nodes: int) -> dict[str, Viewer]:
    """Netron draws a picture for each node; Model Explorer one canvas, at first with all modules folded."""
    models = quote(json.dumps({"models": [{"url": str(path.resolve())}]}))
    return {
        "netron": Viewer(
            ("netron", "--port", str(port), str(path)),
            f"http://127.0.0.1:{port}/",
            "body.default g.node",  # its body has other classes while it works
            nodes // 2,
        ),
        "model-explorer": Viewer(
            ("model-explorer", "--no_open_in_browser", "--skip_health_check", f"--port={port}", str(path)),
            f"http://127.0.0.1:{port}/?data={models}",
            "canvas.main",
            1,
        ),
    }


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Until something listens on a port; 30 seconds at most."""
    for _ in range(60):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)


def other(browser: Any, name: str, viewer: str, path: Path, nodes: int) -> None:
    """One file in another viewer, which serves it itself."""
    port = free_port()
    asked = viewers(path, port, nodes)[viewer]
    executable = shutil.which(asked.command[0], path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if executable is None:
        print(f"{name:24} {viewer}: not installed")
        return
    quiet = subprocess.DEVNULL
    environment = {**os.environ, "BROWSER": "true"}
    with subprocess.Popen([executable, *asked.command[1:]], stdout=quiet, stderr=quiet, env=environment) as run:
        page = browser.new_page(viewport={"width": 1300, "height": 850})
        try:
            wait_for(port)
            start = time.perf_counter()
            page.goto(asked.address)
            while time.perf_counter() - start < PATIENCE_S:
                button = page.query_selector("#message-button, button.message-button")
                if button is not None and button.is_visible():
                    button.click()  # its warning that this will take long
                if page.locator(asked.drawn).count() >= asked.count:
                    print(f"{name:24} {viewer}: {time.perf_counter() - start:.1f} s", flush=True)
                    return
                page.wait_for_timeout(500)
            print(f"{name:24} {viewer}: no picture in {PATIENCE_S} s", flush=True)
        finally:
            page.close()
            run.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", action="store_true", help="also Netron and Model Explorer")
    parser.add_argument("--only", default="", help="files whose name begins so")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    executable = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        files = {"transformer, 2,396": programs.path("transformer_33")}
        for count in (1000, 5000, 20000, 50000):
            files[f"flat, {count:,}"] = pictures.written("flat", count, Path(folder, f"flat_{count}.json"))
        files["layers, 100,800"] = pictures.written("layers", 4200, Path(folder, "layers.json"))
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        browser.new_page().close()  # A browser's own first page is not what is measured.
        for name, path in files.items():
            if not name.startswith(asked.only):
                continue
            view(browser, name, path)
        if asked.others:
            for viewer in ("netron", "model-explorer"):
                other(browser, "transformer, 2,396", viewer, files["transformer, 2,396"], 2396)
        browser.close()


if __name__ == "__main__":
    main()
