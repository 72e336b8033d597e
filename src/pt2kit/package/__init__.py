"""A `.pt2` file -> `Package`: its programs, payloads and records, each read when it is asked for; and back to a file.

The seam of the house: archive -> codec -> version -> objects of the current schema. Nothing above reads bytes.

    opened.py     `Package` and `open_package`
    programs.py   the record of a program -> `StoredProgram`, of the current schema version
    payloads.py   the records of weights and constants -> views by name
    older*.py     both for programs up to torch 2.8 and those of no release; imported for those alone
    samples.py    the stored sample inputs -> plain containers with views in them
    moved_*.py    sample inputs without a pickle: an index and raw records <-> what a pickle would have held
    writing.py    a package, with some programs replaced -> a new file
    lazy.py       names known at once, values computed when asked for
"""

from pt2kit.archive.opening import FileLike
from pt2kit.package.lazy import Lazy
from pt2kit.package.opened import Package, open_package
from pt2kit.package.payloads import Payload, StoredPayloads
from pt2kit.package.programs import StoredModel, StoredProgram
from pt2kit.package.writing import write_package

__all__ = [
    "FileLike",
    "Lazy",
    "Package",
    "Payload",
    "StoredModel",
    "StoredPayloads",
    "StoredProgram",
    "open_package",
    "write_package",
]
