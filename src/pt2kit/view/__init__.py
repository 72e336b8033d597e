"""A package -> a page that shows it: the picture of its programs, folded by modules, and what is known of every part.

    columns.py    what is drawn, as columns of numbers;  draw.py: a program as such columns
    modules.py    the modules that nodes stand in;  repeats.py: equal ones in a row, put together
    compared.py   two programs in one picture
    details.py facts.py findings.py samples.py    a node, a program, what is wrong, the numbers of a tensor
    answers.py    requests of a page -> these, as JSON
    page.py       the built page, with its policy;  server.py: on this machine;  notebook.py: in a notebook

The page itself is in `viewer/`, in TypeScript; it knows nothing of the format.

The room is what it is called, too: `pt2kit.view(package)` is `pt2kit.view.view(package)`.
"""

from __future__ import annotations

import sys
from types import ModuleType

from pt2kit.package.open import Package
from pt2kit.view.answers import Answers
from pt2kit.view.notebook import View, view
from pt2kit.view.page import alone
from pt2kit.view.server import Server
from pt2kit.zip.opening import FileLike

__all__ = ["Answers", "Server", "View", "alone", "view"]


class _Room(ModuleType):
    """A module that can be called: importing anything of it makes `pt2kit.view` mean the module."""

    def __call__(
        self,
        file: FileLike | Package,
        old: FileLike | Package | None = None,
        *,
        tensors: bool = False,
        height: int = 640,
    ) -> View:
        """Show a file in a notebook; see `notebook.view`."""
        return view(file, old, tensors=tensors, height=height)


sys.modules[__name__].__class__ = _Room
