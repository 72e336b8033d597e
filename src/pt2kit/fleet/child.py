"""`python -m pt2kit.fleet.child`: read items from one pipe, write rows to another, until the parent process ends.

The process that reads files is apart from Dask's worker, so that a file that ends it, takes too long or too much memory
costs one process and no more: the worker goes on with the next file.
"""

from __future__ import annotations

import os
import queue
import struct
import sys
import threading
from typing import BinaryIO, Final

import msgspec

from pt2kit.fleet.reading import Item, Job, Rows, read_file

LENGTH: Final = struct.Struct("<Q")


def send(file: BinaryIO, data: bytes) -> None:
    """Write one message."""
    file.write(LENGTH.pack(len(data)) + data)
    file.flush()


def receive(file: BinaryIO) -> bytes | None:
    """Read one message; None where the other end is gone."""
    head = file.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = file.read(length)
    return data if len(data) == length else None


def main() -> None:
    """Serve a worker."""
    # Output of libraries must not end up among the messages.
    messages = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    first = receive(sys.stdin.buffer)
    if first is None:
        return
    job = msgspec.msgpack.decode(first, type=Job)
    send(messages, b"ready")
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    decoder, encoder = msgspec.msgpack.Decoder(Item), msgspec.msgpack.Encoder()
    while True:
        item = decoder.decode(requests.get())
        try:
            answer = encoder.encode(read_file(job, item))
        except MemoryError:
            answer = encoder.encode(Rows({"outcome": "memory"}))
        send(messages, answer)


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    """Take requests while others are worked on: that is how the end of the worker is noticed at once."""
    while (data := receive(sys.stdin.buffer)) is not None:
        requests.put(data)
    os._exit(0)


if __name__ == "__main__":
    main()
