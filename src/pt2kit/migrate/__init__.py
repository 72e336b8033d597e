"""Programs of every release -> the current version, and back: the time machine, on plain trees and without torch."""

from pt2kit.migrate.check import check_tree
from pt2kit.migrate.ledger import HARMLESS, Beside, Note
from pt2kit.migrate.program import Lowered, Raised, lower_program, raise_program
from pt2kit.migrate.versions import Found, find_version

__all__ = [
    "Beside",
    "HARMLESS",
    "Found",
    "Lowered",
    "Note",
    "Raised",
    "check_tree",
    "find_version",
    "lower_program",
    "raise_program",
]
