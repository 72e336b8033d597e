"""Python objects that are no plain tensors -> pickles: tensor subclasses, script objects, opaque objects.

These are the records that torch runs code for when it reads them; `pt2kit` reads them only for classes it was told to
trust. They are written because the format has no other place for such objects.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from pt2kit.bridge.torch_names import FakeScriptObject, pickled_script, script_class
from pt2kit.errors import UnsupportedError


def pickle_tensor(tensor: torch.Tensor, protocol: int) -> bytes:
    """A tensor as a torch.save file.

    Raises:
        UnsupportedError: it cannot be pickled.
    """
    buffer = io.BytesIO()
    try:
        torch.save(tensor, buffer, pickle_protocol=protocol)
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, NotImplementedError) as error:
        kind = type(tensor).__name__
        raise UnsupportedError(f"expected a tensor that can be pickled, got {kind}: {error}") from error
    return buffer.getvalue()


def pickle_script(value: Any) -> bytes:
    """A script object as torchbind pickles it.

    Raises:
        UnsupportedError: its class does not define how.
    """
    try:
        return pickled_script(value)
    except RuntimeError as error:
        kind = script_class(value)
        raise UnsupportedError(f"expected a script class that can be pickled (def_pickle), got {kind}") from error


def pickle_opaque(value: Any, protocol: int) -> bytes:
    """An opaque object as Python pickles it.

    Raises:
        UnsupportedError: it cannot be pickled.
    """
    real = value.real_obj if isinstance(value, FakeScriptObject) else value
    try:
        return pickle.dumps(real, protocol=protocol)
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise UnsupportedError(f"expected an object that can be pickled, got {type(real).__name__}: {error}") from error
