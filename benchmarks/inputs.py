"""The sample inputs of a `.pt2` file, as torch has them: what the benchmarks call programs with."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any


def read(file: str | Path) -> Any:
    """Arguments and keyword arguments, from the file's own record. The benchmarks made the file, so it is unpickled."""
    import torch

    with zipfile.ZipFile(file) as archive:
        [name] = [name for name in archive.namelist() if "/data/sample_inputs/" in name]
        return torch.load(io.BytesIO(archive.read(name)), weights_only=False)
