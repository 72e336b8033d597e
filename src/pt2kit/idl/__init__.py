"""Schema generators: field tables written as schemas in other languages, and the rules for changing the schema.

sources      the tables of every version, of the classes, of a file
yaml, thrift, proto, jsonschema, cpp, typescript
             one `emit(types) -> str` each
compat       what changed between two tables, and what that demands of the version number
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.idl.compat import EXCEPTIONS as EXCEPTIONS
    from pt2kit.idl.compat import RULES as RULES
    from pt2kit.idl.compat import Change as Change
    from pt2kit.idl.compat import Level as Level
    from pt2kit.idl.compat import Verdict as Verdict
    from pt2kit.idl.compat import changes as changes
    from pt2kit.idl.compat import history as history
    from pt2kit.idl.compat import verdict as verdict
    from pt2kit.idl.sources import FORMATS as FORMATS
    from pt2kit.idl.sources import current_table as current_table
    from pt2kit.idl.sources import emit as emit
    from pt2kit.idl.sources import read_table as read_table
    from pt2kit.idl.sources import table as table
    from pt2kit.idl.sources import versions as versions
    from pt2kit.schema.fieldtable import Table as Table
    from pt2kit.schema.fieldtable import frozen_table as frozen_table

__getattr__, __dir__, __all__ = front_door(__name__)
