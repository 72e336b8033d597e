"""Programs of every release -> the current version, and back: the time machine, on plain trees and without torch.

    program.py      a stored program -> the current version (`raise_program`); that -> an older one (`lower_program`)
    layouts.py      where the parts of a program are in an archive of any release; torch.save payloads as data
    containers.py   `Program` and `Model` of schema 8.6
    opset.py        operator set versions (`convert_opset`)
    torch_save.py   descriptions of tensors -> torch.save files, which older layouts hold
    versions.py     which version a program is of; names of targets
    steps.py        all steps as one line; `draft_v1`, `v1_v2`, …, `minor`: the steps
    encoding.py     how each release spelled its JSON
    check.py        what does not fit a table; `predicates`: whether; `kept`, `narrowed`: the same after a step, quicker

Rules (the ids that errors carry; those of operator sets are in `opset`):
    M1  a tree fits the frozen table of its version
    M2  a tree is not nested deeper than the interpreter can walk
    M3  the target version can express the program, and nothing is lost that was not allowed by name
    M4  a version or target is one that a table describes
    M5  a record is a program: an object that says its schema version

The names load when they are first used (PEP 562): reading one old file does not import the writers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pt2kit.migrate.check import check_tree, misfits
    from pt2kit.migrate.containers import (
        Model,
        container_of,
        encode_model,
        map_devices,
        read_model,
        read_model_payload,
    )
    from pt2kit.migrate.draft_storage import ExternalBytes, read_folder
    from pt2kit.migrate.layouts import (
        Parts,
        extra_files,
        parts,
        read_bare_program,
        read_constants,
        read_program,
        read_state,
        read_weights,
    )
    from pt2kit.migrate.ledger import HARMLESS, Beside, Note
    from pt2kit.migrate.opset import Converted, OperatorChange, Replacement, convert_opset
    from pt2kit.migrate.program import Lowered, Raised, lower_program, oldest_version, raise_program
    from pt2kit.migrate.versions import Found, Target, find_version, parse_target

_HOMES = (
    ("check", ("check_tree", "misfits")),
    ("containers", ("Model", "container_of", "encode_model", "map_devices", "read_model", "read_model_payload")),
    ("draft_storage", ("ExternalBytes", "read_folder")),
    (
        "layouts",
        (
            "Parts",
            "extra_files",
            "parts",
            "read_bare_program",
            "read_constants",
            "read_program",
            "read_state",
            "read_weights",
        ),
    ),
    ("ledger", ("HARMLESS", "Beside", "Note")),
    ("opset", ("Converted", "OperatorChange", "Replacement", "convert_opset")),
    ("program", ("Lowered", "Raised", "lower_program", "oldest_version", "raise_program")),
    ("versions", ("Found", "Target", "find_version", "parse_target")),
)

__all__ = [
    "Beside", "Converted", "ExternalBytes", "Found", "HARMLESS", "Lowered", "Model", "Note", "OperatorChange",
    "Parts", "Raised", "Replacement", "Target", "check_tree", "container_of", "convert_opset", "encode_model",
    "extra_files", "find_version", "lower_program", "map_devices", "misfits", "oldest_version", "parse_target",
    "parts", "raise_program", "read_bare_program", "read_constants", "read_folder", "read_model",
    "read_model_payload", "read_program", "read_state", "read_weights",
]  # fmt: skip


def __getattr__(name: str) -> object:
    for home, names in _HOMES:
        if name in names:
            from importlib import import_module

            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
