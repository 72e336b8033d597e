"""Sanitizing of packages: write a file with the same meaning and without pickles and code; stock torch loads it.

    options.py    what a caller may give up, by name
    plan.py       a package -> all records of the new file, or all obstacles
    samples.py    sample inputs -> raw records and an index of them
    payloads.py   weights and constants -> raw records and their configs
    programs.py   a program -> what of it is code; less metadata, no machine paths
    records.py    the records of an archive -> what each is, and which of them nothing needs
    texts.py      an extra file -> whether it is text
    writing.py    a plan -> a file, compared with the package before it takes its place
    verify.py     two packages -> their digests, and proof that they mean the same

Obstacles carry the rules Z1 to Z6 of `pt2kit.rules`, or the X rules of `checks`; `docs/sanitize.md` has
all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.sanitizing.options import DROPS as DROPS
    from pt2kit.sanitizing.options import STRIPS as STRIPS
    from pt2kit.sanitizing.options import Options as Options
    from pt2kit.sanitizing.plan import Plan as Plan
    from pt2kit.sanitizing.plan import make_plan as make_plan
    from pt2kit.sanitizing.writing import Sanitized as Sanitized
    from pt2kit.sanitizing.writing import execute as execute
    from pt2kit.sanitizing.writing import sanitize as sanitize

__getattr__, __dir__, __all__ = front_door(
    __name__,
    {
        "options": "DROPS Options STRIPS",
        "plan": "Plan make_plan",
        "writing": "Sanitized execute sanitize",
    },
)
