"""A plugin of pytest that takes out of Python what it does not have on Windows, before anything is imported.

Loaded by `-p tests.project.without_posix`; `python -m tests.project.without_posix ARGS` is the command `pt2` that way.
It is an imitation: what Python offers there is taken from its documentation (the availability notes of `os`, `mmap`,
`signal`), and a mapped file cannot be replaced or removed, as on Windows. Text files are written as here, and paths
stay those of this system.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import signal
import sys
import tempfile
import weakref
from typing import Any

import numpy as np  # asks for the release of Linux's kernel when it is imported here

OS = """
    WNOHANG chown chroot copy_file_range ctermid eventfd fchdir fchmod fchown fdatasync fork forkpty fpathconf
    fstatvfs getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getresuid getsid getuid
    getxattr initgroups killpg lchown listxattr lockf major makedev memfd_create minor mkfifo mknod nice openpty
    pathconf pipe2 posix_fadvise posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv pwrite pwritev
    readv register_at_fork removexattr sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid
    setgid setgroups setpgid setpriority setsid setuid setxattr splice statvfs sync sysconf tcgetpgrp tcsetpgrp
    ttyname uname unshare wait3 wait4 writev O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_LARGEFILE O_NDELAY
    O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_RSYNC O_SYNC O_TMPFILE
"""
SIGNALS = "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2"
MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")


class Mapping(mmap.mmap):
    """`mmap.mmap` with the arguments and methods that it has on Windows; what is mapped is remembered."""

    def __new__(
        cls, fileno: int, length: int, tagname: None = None, access: int = mmap.ACCESS_WRITE, offset: int = 0
    ) -> Mapping:
        mapping = super().__new__(cls, fileno, length, access=access, offset=offset)
        if fileno >= 0:
            found = os.fstat(fileno)
            mapping.__dict__["file"] = (found.st_dev, found.st_ino)
            MAPPED.append(weakref.ref(mapping))
        return mapping

    def __getattribute__(self, name: str) -> Any:
        if name == "madvise":
            raise AttributeError(name)
        return super().__getattribute__(name)


MAPPED: list[weakref.ref[Mapping]] = []
_replace, _unlink = os.replace, os.unlink


def _refuse_mapped(path: Any) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    mappings = [mapping for reference in MAPPED if (mapping := reference()) is not None]
    if any(mapping.file == (found.st_dev, found.st_ino) and not mapping.closed for mapping in mappings):
        raise PermissionError(errno.EACCES, "The process cannot access the file", str(path))


def replace(src: Any, dst: Any, **options: Any) -> None:
    """`os.replace` that leaves a mapped file alone."""
    _refuse_mapped(dst)
    _replace(src, dst, **options)


def unlink(path: Any, **options: Any) -> None:
    """`os.unlink` that leaves a mapped file alone."""
    _refuse_mapped(path)
    _unlink(path, **options)


assert np


def take_out() -> None:
    """Make this process one without POSIX."""
    for names, module in ((OS, os), (SIGNALS, signal)):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    for name in [name for name in dir(mmap) if name.startswith(("MAP_", "PROT_", "MADV_"))]:
        delattr(mmap, name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    tempfile._O_TMPFILE_WORKS = False  # type: ignore[attr-defined] # it looked when it was imported
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # and so did this, twice
    shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]
    os.O_BINARY = 0  # type: ignore[attr-defined]
    mmap.mmap = Mapping  # type: ignore[misc, assignment]
    os.replace, os.unlink, os.remove = replace, unlink, unlink


def pytest_configure() -> None:
    """Report no users to pytest, which would look at the system's name to find out."""
    import _pytest.tmpdir

    _pytest.tmpdir.get_user_id = lambda: None  # type: ignore[attr-defined]


take_out()

if __name__ == "__main__":
    from pt2kit.cli.main import main

    main()
