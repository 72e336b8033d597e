"""Convert a package to another version of the schema, or to another release of torch: upgrade and downgrade files.

    conversion.py     `convert`: plans everything, refuses the impossible, writes; reports changes and losses
    destinations.py   the name of a target -> version, layout, names of records
    models.py         one program with its payloads -> its records: raw records or torch.save files
    programs.py       a program -> its JSON text at another version
    containers.py     programs -> the containers of schema 8.6

The steps between versions are in `pt2kit.versions`, as are operator set versions; the types for describing custom
operators are here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.release.conversion import HARMLESS as HARMLESS
    from pt2kit.release.conversion import Report as Report
    from pt2kit.release.conversion import Side as Side
    from pt2kit.release.conversion import convert as convert
    from pt2kit.versions.conversion_log import Note as Note
    from pt2kit.versions.opset_changes import OperatorChange as OperatorChange
    from pt2kit.versions.opset_changes import Replacement as Replacement

__getattr__, __dir__, __all__ = front_door(__name__)
