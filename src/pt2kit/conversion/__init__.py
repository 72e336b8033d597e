"""A package -> a file as another version of the schema, or another release of torch, writes it: the time machine.

    packages.py       `convert`: plans everything, refuses what cannot be, writes
    targets.py        the name of a target -> version, layout, names of records
    models.py         one program with its payloads -> its records
    programs.py       a program -> its JSON text at another version
    records.py        tensors -> raw records and configs
    descriptions.py   tensors -> what torch.save files are written from
    containers.py     programs -> the containers of schema 8.6
    rest.py           extra files, compiled code and other records
    plan.py           records of a new file as data
    report.py         what changed and what was lost

The steps between versions are in `pt2kit.migrate`, as are operator set versions; what a user needs of those to describe
operators of his own is here too.
"""

from pt2kit.conversion.packages import HARMLESS, convert
from pt2kit.conversion.report import Report, Side
from pt2kit.migrate.ledger import Note
from pt2kit.migrate.opset import OperatorChange, Replacement

__all__ = ["HARMLESS", "Note", "OperatorChange", "Replacement", "Report", "Side", "convert"]
