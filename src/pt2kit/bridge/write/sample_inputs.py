"""The inputs a program was exported with -> a torch.save file, which is how the format keeps them."""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any

import torch
from torch._export.serde.serialize import _reconstruct_fake_tensor
from torch._subclasses.fake_tensor import FakeTensor

from pt2kit import codec
from pt2kit.bridge.write.places import at
from pt2kit.bridge.write.values import Values
from pt2kit.errors import Pt2Error, UnsupportedError


def write_sample_inputs(inputs: Any, values: Values, protocol: int) -> memoryview:
    """The record of a program's `(args, kwargs)`; empty where it has none.

    Args:
        inputs: as the live program holds them.
        values: makes the metas of fake tensors, which are written without bytes.
        protocol: of the pickle.

    Raises:
        UnsupportedError: something in them cannot be pickled.

    Source: `serialize_torch_artifact` in torch/_export/serde/serialize.py, 2.13.
    """
    if inputs is None:
        return memoryview(b"")
    buffer = io.BytesIO()
    try:
        torch.save(inputs, buffer, pickle_module=_pickle_module(values), pickle_protocol=protocol)
    except Pt2Error as error:
        raise at("sample inputs", error) from error
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, RecursionError) as error:
        raise UnsupportedError(f"sample inputs: expected values that can be pickled: {error}") from error
    return buffer.getbuffer()


def _pickle_module(values: Values) -> Any:
    """Python's pickle, with torch's form for fake tensors.

    torch puts that form into the process-wide table of `copyreg` while it saves; a pickler of our own lets two threads
    save at once.
    """

    class Pickler(pickle.Pickler):
        def reducer_override(self, value: Any) -> Any:
            if not isinstance(value, FakeTensor):
                return NotImplemented
            meta = codec.encode(values.tensor_meta(value))
            return _reconstruct_fake_tensor, (meta, isinstance(value, torch.nn.Parameter))

    return SimpleNamespace(**{**vars(pickle), "Pickler": Pickler})
