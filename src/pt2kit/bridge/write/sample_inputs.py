"""The inputs a program was exported with -> a torch.save file, which is how the format keeps them."""

from __future__ import annotations

import io
import pickle
import re
from types import SimpleNamespace
from typing import Any

import torch

from pt2kit import codec
from pt2kit.bridge.placeholder_types import pickled_name, stand_in_name
from pt2kit.bridge.torch_export_names import reconstruct_fake_tensor
from pt2kit.bridge.torch_names import FakeTensor, child_specs, pytree
from pt2kit.bridge.write.values import Values
from pt2kit.errors import Pt2Error, UnsupportedError, at

# Python's pickler in Python gives the same bytes as the one in C, which only writes names that it can import.
_PURE_PICKLER: Any = vars(pickle)["_Pickler"]
_CLASS = re.compile(r"\w+(\.\w+)+")


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
        module = _pickle_module(values, _has_stand_ins(inputs))
        torch.save(inputs, buffer, pickle_module=module, pickle_protocol=protocol)
    except Pt2Error as error:
        raise at("sample inputs", error) from error
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, RecursionError) as error:
        raise UnsupportedError(f"sample inputs: expected values that can be pickled: {error}") from error
    return buffer.getbuffer()


def _pickle_module(values: Values, stand_ins: bool) -> Any:
    """Python's pickle, with torch's form for fake tensors.

    torch puts that form into the process-wide table of `copyreg` while it saves; a pickler of our own lets two threads
    save at once.
    """

    def reduce_fake(self: Any, value: Any) -> Any:
        if not isinstance(value, FakeTensor):
            return NotImplemented
        meta = codec.encode(values.tensor_meta(value))
        return reconstruct_fake_tensor, (meta, isinstance(value, torch.nn.Parameter))

    own: dict[str, Any] = {"reducer_override": reduce_fake}
    if stand_ins:
        made = type("Pickler", (_PURE_PICKLER,), {**own, "save_global": _save_global})
    else:
        made = type("Pickler", (pickle.Pickler,), own)
    return SimpleNamespace(**{**vars(pickle), "Pickler": made})


def _save_global(self: Any, obj: Any, name: str | None = None) -> None:
    """Write a class or function; a stand-in class as the class that it stands in for."""
    stored = pickled_name(obj)
    if stored is None:
        _PURE_PICKLER.save_global(self, obj, name)
        return
    if not _CLASS.fullmatch(stored):
        raise UnsupportedError(f"expected named tuples whose class can be named in a pickle, got {stored[:80]!a}")
    module, _, last = stored.rpartition(".")
    if self.proto >= 4:
        self.save(module)
        self.save(last)
        self.write(pickle.STACK_GLOBAL)
    else:
        self.write(pickle.GLOBAL + f"{module}\n{last}\n".encode())
    self.memoize(obj)


def _has_stand_ins(inputs: Any) -> bool:
    """Whether named tuples of stand-in classes are among the inputs."""
    todo = [pytree.tree_structure(inputs)]
    while todo:
        spec = todo.pop()
        todo.extend(child_specs(spec))
        if stand_in_name(spec.context) is not None:
            return True
    return False
