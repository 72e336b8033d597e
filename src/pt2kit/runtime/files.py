"""Inputs and outputs of a program as files (.npy, .npz, .safetensors), and short descriptions of outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from pt2kit.errors import InputError, UnsupportedError
from pt2kit.messages import printable
from pt2kit.runtime.arrays import SCALAR_TYPE, DType
from pt2kit.tensors.output import new_file
from pt2kit.tensors.safetensors_header import arrange, code_of, header_bytes
from pt2kit.tensors.safetensors_reader import read_safetensors
from pt2kit.treespec.values import Node

SAFETENSORS: Final = ".safetensors"


def read_array(path: str) -> Any:
    """Return the array in a .npy file. Pickled objects are refused.

    Raises:
        InputError: no such file, or no array of numbers.
    """
    with _refusing(path):
        return np.load(path, allow_pickle=False)


def read_arrays(path: str) -> dict[str, Any]:
    """Return the arrays in an .npz or .safetensors file by name. Pickled objects are refused.

    Raises:
        InputError: no such file, or no arrays of numbers.
        PayloadError: no safetensors file.
    """
    if path.endswith(SAFETENSORS):
        return {name: view.numpy() for name, view in read_safetensors(path).items()}
    with _refusing(path), np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_outputs(path: str) -> list[Any]:
    """Return recorded outputs as a list: output_0, output_1, … of an .npz or .safetensors file, or of a folder.

    Raises:
        InputError: no such files.
        PayloadError: no safetensors file.
    """
    folder = Path(path)
    if folder.is_dir():
        found = {file.stem: read_array(str(file)) for file in folder.glob("output_*.npy")}
    else:
        found = read_arrays(path)
    names = [f"output_{number}" for number in range(len(found))]
    if not found or set(names) != set(found):
        raise InputError(
            f"{printable(path, 300)}: expected output_0, output_1, …, got {', '.join(sorted(found)[:20]) or 'none'}"
        )
    return [found[name] for name in names]


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, EOFError, AttributeError, TypeError) as error:
        raise InputError(f"{printable(path, 300)}: expected a NumPy file, got {printable(str(error), 300)}") from error


def typed(value: Any, dtype: DType | None) -> Any:
    """Return a value read from a file in the element type that an input has.

    Types that NumPy lacks (bfloat16, 8-bit floats) are stored as bits: unsigned integers of the same size.
    """
    if dtype is None or value is None:
        return value
    if not isinstance(value, np.ndarray):
        return np.asarray(value, dtype)
    is_bits = value.dtype.kind in "uV" and value.dtype.itemsize == dtype.itemsize
    return value.view(dtype) if is_bits and is_foreign(dtype) else value


def is_foreign(dtype: DType) -> bool:
    """Return whether NumPy's own files cannot name an element type."""
    return dtype.type.__module__ != "numpy"


def output_leaves(tree: Any) -> list[Any]:
    """Return the values in the containers of an output, in order."""
    parts = tree.children if isinstance(tree, Node) else tree
    if isinstance(parts, Mapping):
        parts = tuple(parts.values())
    if isinstance(parts, Sequence) and not isinstance(parts, str):
        return [leaf for part in parts for leaf in output_leaves(part)]
    return [parts]


def write_outputs(outputs: Sequence[Any], target: str) -> list[str]:
    """Write each output to output_0.npy, output_1.npy, … in a folder, or all to one .safetensors file.

    Returns:
        The path of each output.

    Raises:
        OSError: a file cannot be written.
        UnsupportedError: an element type that safetensors does not have.
    """
    if target.endswith(SAFETENSORS):
        _write_safetensors({f"output_{n}": np.asarray(value) for n, value in enumerate(outputs)}, target)
        return [target] * len(outputs)
    return _write_npy(outputs, Path(target))


def _write_safetensors(arrays: Mapping[str, Any], path: str) -> None:
    codes = {}
    for name, array in arrays.items():
        code = code_of(SCALAR_TYPE[array.dtype]) if array.dtype in SCALAR_TYPE else None
        if code is None:
            raise UnsupportedError(f"{name}: expected an element type of safetensors, got {array.dtype}")
        codes[name] = code
    order = arrange({name: (codes[name], array.shape, array.nbytes) for name, array in arrays.items()})
    with new_file(path) as file:
        file.write(header_bytes((name, codes[name], arrays[name].shape, arrays[name].nbytes) for name in order))
        for name in order:
            file.write(np.ascontiguousarray(arrays[name]).tobytes())


def _write_npy(outputs: Sequence[Any], target: Path) -> list[str]:
    target.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, value in enumerate(outputs):
        array = np.asarray("" if value is None else value)
        if is_foreign(array.dtype):
            array = array.view(f"u{array.dtype.itemsize}")
        path = target / f"output_{number}.npy"
        np.save(path, array, allow_pickle=False)
        paths.append(str(path))
    return paths


def output_row(value: Any) -> dict[str, Any]:
    """Return what a script wants to know of an output: element type and sizes, or the value of a number."""
    if not isinstance(value, np.ndarray):
        return {"value": value}
    return {"dtype": value.dtype.name, "sizes": list(value.shape)}


def describe_output(value: Any) -> str:
    """Return element type, sizes and range of an output in one line."""
    if not isinstance(value, np.ndarray):
        return printable(repr(value), 200)
    shown = f"{value.dtype.name}{list(value.shape)}"
    if not value.size or value.dtype.kind == "c":
        return shown
    wide = value.astype(np.float64)
    return f"{shown}  min {wide.min():.6g}  mean {wide.mean():.6g}  max {wide.max():.6g}"
