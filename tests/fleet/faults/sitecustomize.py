"""Put on the path of processes that read: URLs whose files end, stop or fill the process that opens them.

fault://crash/…, fault://worker/… (the Dask worker), fault://sleep/… and fault://memory/…; fault://fault/… raises. Each
also leaves a line in the file that PT2KIT_FAULTS names, if it is set.
"""

from __future__ import annotations

import os
import signal
import time

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


fsspec.register_implementation("fault", Faults)
