"""A command line -> the same command run, and its CPU seconds and peak memory as a JSON line on stderr.

A process of its own on purpose: Linux counts the memory of the process that starts a program into that program's peak,
so a small process has to start what is measured. Imports nothing that costs memory.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run `sys.argv[1:]`; the result is the command's own exit status."""
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
    _, status, usage = os.wait4(child, 0)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    sys.stderr.write(f'\n{{"cpu_s": {usage.ru_utime + usage.ru_stime}, "peak_bytes": {peak}}}\n')
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
