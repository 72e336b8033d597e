"""Put on the path of processes that read: URLs whose files end, stop, fill or delay the process that opens them.

fault://crash/…, fault://worker/… (the Dask worker), fault://sleep/… and fault://memory/…; fault://fault/… raises. Each
also leaves a line in the file that PT2KIT_FAULTS names, if it is set. slow:///path is that file, opened after as many
seconds as PT2KIT_SLOW says.
"""

from __future__ import annotations

import os
import signal
import time
from typing import BinaryIO

import fsspec
from fsspec.spec import AbstractFileSystem


class Faults(AbstractFileSystem):
    """A file system without files."""

    protocol = "fault"
    cachable = False

    def info(self, path: str, **kwargs: object) -> dict[str, object]:
        """Do what the path says."""
        kind = self._strip_protocol(path).strip("/").split("/")[0]
        if place := os.environ.get("PT2KIT_FAULTS"):
            with open(place, "a", encoding="utf-8") as file:
                file.write(f"{kind}\n")
        if kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif kind == "worker":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        elif kind == "sleep":
            time.sleep(600)
        elif kind == "memory":
            held = [bytearray(b"x" * (50 << 20))]
            while True:
                held.append(bytearray(held[0]))
                time.sleep(0.05)
        elif kind == "fault":
            raise RuntimeError("a fault of the file system")
        raise FileNotFoundError(path)


class Slow(AbstractFileSystem):
    """The files of this machine on a slow disk, which costs time and no work."""

    protocol = "slow"
    cachable = False

    def info(self, path: str, **kwargs: object) -> dict[str, object]:
        """Describe a file, after some time."""
        time.sleep(float(os.environ.get("PT2KIT_SLOW", "0")))
        found = os.stat(path := self._strip_protocol(path))
        return {"name": path, "size": found.st_size, "type": "file", "mtime": found.st_mtime_ns}

    def _open(self, path: str, mode: str = "rb", **kwargs: object) -> BinaryIO:
        return open(path, "rb")


fsspec.register_implementation("fault", Faults)
fsspec.register_implementation("slow", Slow)
