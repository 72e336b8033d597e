"""Differences between the files of torch and pt2kit for one program, in readable text."""

from __future__ import annotations

import io
import json
import math
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from tests.packages import bytes_of
from torch.export import ExportedProgram

from pt2kit.bridge.save import save

RECORDS = (
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/constants/model_constants_config.json",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two trees differ.

    Args:
        place: the record and the path in its JSON.
        torch, ours: what is there, shortened.
    """

    place: str
    torch: str
    ours: str

    def __str__(self) -> str:
        return f"{self.place}\n    torch  {self.torch}\n    pt2kit {self.ours}"


def torch_file(program: ExportedProgram) -> bytes:
    """Return what torch.export.save writes."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, buffer)
    return buffer.getvalue()


def our_file(program: ExportedProgram, **options: Any) -> bytes:
    """Return what pt2kit.save writes."""
    return bytes_of(save, program, **options)


def tree(file: bytes, record: str) -> Any:
    """The JSON of one record."""
    return json.loads(content(file, record))


def content(file: bytes, record: str) -> bytes:
    """The bytes of one record."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return archive.read(f"archive/{record}")


def names(file: bytes) -> list[str]:
    """The names of all records."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return [name.removeprefix("archive/") for name in archive.namelist()]


def find_differences(theirs: Any, ours: Any, place: str) -> Iterator[Difference]:
    """Every place where two JSON trees differ, in order; the order of keys counts."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if list(theirs) != list(ours):
            yield Difference(f"{place}: keys", _short(list(theirs)), _short(list(ours)))
        for key in theirs:
            if key in ours:
                yield from find_differences(theirs[key], ours[key], f"{place}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            yield Difference(f"{place}: length", str(len(theirs)), str(len(ours)))
        for index, (a, b) in enumerate(zip(theirs, ours, strict=False)):
            yield from find_differences(a, b, f"{place}[{index}]")
    elif not _equal(theirs, ours):
        yield Difference(place, _short(theirs), _short(ours))


def addressless(value: Any) -> Any:
    """A JSON tree without the addresses of the exporting process in texts of node metadata (T10)."""
    if isinstance(value, dict):
        return {key: addressless(item) for key, item in value.items()}
    if isinstance(value, list):
        return [addressless(item) for item in value]
    if not isinstance(value, str):
        return value
    value = re.sub(r"<eval_with_key>\.\d+", "<eval_with_key>.0", value)
    text = re.sub(r'"graph_id": \d+', '"graph_id": 0', value)
    return re.sub(r"(?<![^;])\d{9,}(?=[@,])", "0", re.sub(r" at 0x[0-9a-f]+>", ">", text))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return type(a) is type(b) and a == b


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}…"
