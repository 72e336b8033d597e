"""The records of sample inputs that were moved out of their pickle: parts of a name <-> record name."""

from __future__ import annotations

import re
from typing import Final

from pt2kit.package import record_names as names

_FOLDER: Final = f"{names.EXTRA}pt2kit/sample_inputs/"
_PATH_NAME: Final = re.compile(r"tensor_(?:0|[1-9][0-9]{0,8})")


def index_record(model: str) -> str:
    """The record of a program's index: "model" -> "extra/pt2kit/sample_inputs/model.json"."""
    return f"{_FOLDER}{model}.json"


def index_model(record: str) -> str | None:
    """The program's name, if `record` is such an index."""
    model = record.removeprefix(_FOLDER).removesuffix(".json")
    return model if model and index_record(model) == record else None


def storage_record(number: int) -> str:
    """The record of storage number `number` of an archive: 0 -> "data/sample_inputs/tensor_0"."""
    return f"{names.SAMPLE_INPUTS}tensor_{number}"


def is_storage_record(record: str) -> bool:
    """Whether a record is one of those."""
    return record.startswith(names.SAMPLE_INPUTS) and is_path_name(record[len(names.SAMPLE_INPUTS) :])


def is_path_name(text: str) -> bool:
    """Whether a text is the last part of the name of such a record."""
    return bool(_PATH_NAME.fullmatch(text))
