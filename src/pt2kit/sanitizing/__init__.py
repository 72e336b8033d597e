"""Sanitizing of packages: write a file with the same meaning and without pickles and code; stock torch loads it.

    options.py   what a caller may remove, by name; file types of extra files
    plan.py      a package -> all records of the new file, or all obstacles; the kind of each record
    programs.py  a program -> the same without code, metadata and machine paths; sample inputs -> raw records
    writing.py   a plan -> a file, proven to mean the same before it takes the place of another

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

__getattr__, __dir__, __all__ = front_door(__name__)
