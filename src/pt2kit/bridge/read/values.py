"""Build fake tensors from `TensorMeta`: a node's `meta["val"]`, which describes a tensor without its data.

Every value gets a fake tensor and a storage of its own, as if each had been created separately: copies of a shared
template for each distinct (dtype, sizes, strides, offset, device, requires_grad). Going through the dispatcher for
each would cost 350 microseconds with symbolic sizes; from a template it is ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from pt2kit import codec, schema
from pt2kit.bridge.operators import DTYPES, LAYOUTS
from pt2kit.bridge.read.shapes import Shapes
from pt2kit.bridge.read.tensors import BLOCKS, Devices, check_number, check_tensor
from pt2kit.bridge.torch_export_names import fake_over, make_fake
from pt2kit.bridge.torch_names import wrap
from pt2kit.errors import GraphError, UnsupportedError

_META: Final = torch.device("meta")


@dataclass(frozen=True, slots=True)
class _Template:
    """Template for the fake tensors of one kind.

    Args:
        elem: the meta tensor under them.
        device: the device that they report.
        requires_grad: whether autograd follows them.
        attributes: the Python attributes of a fake tensor that its own constructor made.
        nbytes: the size of their storage.
    """

    elem: torch.Tensor
    device: torch.device
    requires_grad: bool
    attributes: dict[str, Any]
    nbytes: int | torch.SymInt


class Values:
    """Makes the fake tensors of one program.

    Args:
        shapes: its symbols.
        devices: where its tensors go.
    """

    def __init__(self, shapes: Shapes, devices: Devices) -> None:
        self._shapes = shapes
        self._devices = devices
        self._templates: dict[bytes, _Template] = {}
        # Of one file, equal descriptions are one object (`codec/decoder.py`). It is held, so its id stays its own.
        self._known: dict[int, tuple[schema.TensorMeta, _Template]] = {}

    def value(self, meta: schema.TensorMeta | schema.SymInt | schema.SymFloat | schema.SymBool, where: str) -> Any:
        """Return what a description is of: a new fake tensor, or a symbolic or plain number.

        Raises:
            Pt2Error: as `tensor`; a number that cannot be read.
        """
        return self.tensor(meta, where) if isinstance(meta, schema.TensorMeta) else self._shapes.number(meta, where)

    def tensor(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """Return a new fake tensor.

        Args:
            meta: the graph's description of the value.
            where: the place to name in errors.

        Raises:
            GraphError: numbers that no tensor has.
            UnsupportedError: a layout or device that cannot be faked.
            LimitError: more bytes than any device has.
            ExpressionError: a size that cannot be read.
        """
        known = self._known.get(id(meta))
        if known is not None:
            return _from_template(known[1])
        if meta.layout is not schema.Layout.Strided:
            return self._sparse(meta, where)
        key = codec.encode(meta)
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = self._template(meta, where)
        self._known[id(meta)] = meta, template
        return _from_template(template)

    def _template(self, meta: schema.TensorMeta, where: str) -> _Template:
        check_tensor(meta, where)
        dtype = DTYPES[meta.dtype]
        sizes = self._numbers(meta.sizes, f"{where}: sizes")
        strides = self._numbers(meta.strides, f"{where}: strides")
        offset = self._shapes.offset(meta.storage_offset, f"{where}: storage_offset")
        check_number(offset, f"{where}: storage_offset")
        device = self._devices.find(meta.device, where)
        try:
            symbolic = [number for number in (*sizes, *strides) if isinstance(number, torch.SymInt)]
            if symbolic and all(number.node.expr.is_positive for number in symbolic):
                nbytes = self._shapes.spanned_bytes(sizes, strides, offset, dtype.itemsize)
                elem = _with_offset(sizes, strides, offset, dtype, nbytes)
            else:
                # Of a size that may be zero or less torch notes guards here, as it does when it loads the program.
                elem = torch.empty_strided(sizes, strides, dtype=dtype, device=_META)
                nbytes = elem.untyped_storage().nbytes()
                if type(offset) is not int or offset:
                    nbytes = nbytes + offset * dtype.itemsize
                    elem = _with_offset(sizes, strides, offset, dtype, nbytes)
            made = make_fake(self._shapes.mode, elem, device)
        except (RuntimeError, AssertionError, ValueError, OverflowError) as error:
            raise GraphError(f"{where}: expected a tensor that torch can describe, got: {error}") from error
        return _Template(elem, device, meta.requires_grad, dict(made.__dict__), nbytes)

    def _sparse(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """Return a fake sparse tensor without elements: the file does not state how many it has."""
        check_tensor(meta, where)
        sizes = self._numbers(meta.sizes, f"{where}: sizes")
        device = self._devices.find(meta.device, where)
        try:
            if meta.layout in BLOCKS:
                made = make_fake(self._shapes.mode, _blocks(sizes, DTYPES[meta.dtype], LAYOUTS[meta.layout]), device)
                return made.requires_grad_(meta.requires_grad)
            with self._shapes.mode:
                return torch.empty(
                    sizes,
                    dtype=DTYPES[meta.dtype],
                    layout=LAYOUTS[meta.layout],
                    device=device,
                    requires_grad=meta.requires_grad,
                )
        except (RuntimeError, AssertionError, ValueError) as error:
            raise UnsupportedError(f"{where}: expected a tensor that torch can describe, got: {error}") from error

    def _numbers(self, values: Sequence[schema.SymInt], where: str) -> list[Any]:
        numbers = [self._shapes.number(value, where) for value in values]
        for number in numbers:
            check_number(number, where)
        return numbers


def _blocks(sizes: Sequence[Any], dtype: torch.dtype, layout: torch.layout) -> torch.Tensor:
    """Return a meta tensor without any of its sparse blocks, of one element each: no file states how large they are."""
    *batch, rows, columns = sizes
    number = rows if layout is torch.sparse_bsr else columns
    return torch.sparse_compressed_tensor(
        torch.empty((*batch, number + 1), dtype=torch.int64, device=_META),
        torch.empty((*batch, 0), dtype=torch.int64, device=_META),
        torch.empty((*batch, 0, 1, 1), dtype=dtype, device=_META),
        sizes,
        layout=layout,
        check_invariants=False,
    )


def _from_template(template: _Template) -> torch.Tensor:
    """Return a fake tensor like the template's, over a storage of its own.

    The template's meta tensor gets a new storage of the same size, which the subclass that is made over it shares. Its
    Python attributes are those that the constructor of FakeTensor set on the first of its kind.
    """
    if type(template.nbytes) is int:
        fresh = torch.empty(template.nbytes, dtype=torch.uint8, device=_META)
    else:
        fresh = wrap(_Bare, [0], [1], 0, dtype=torch.uint8, device=_META, storage_size=template.nbytes)
    return fake_over(template.elem, fresh, template.device, template.requires_grad, template.attributes)


class _Bare(torch.Tensor):  # type: ignore[misc]
    """A tensor whose storage size is passed and not computed; it exists only under a template, or for its storage."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("a template is never computed with")


def _with_offset(sizes: list[Any], strides: list[Any], offset: Any, dtype: torch.dtype, nbytes: Any) -> torch.Tensor:
    """Return a meta tensor that begins inside its storage.

    torch's own operators would add guards for symbolic sizes.
    """
    return wrap(_Bare, sizes, strides, offset, dtype=dtype, device=_META, storage_size=nbytes)
