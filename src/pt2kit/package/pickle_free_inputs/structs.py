"""Descriptions with named parts (tensors, arrays, named tuples) <-> objects with those keys: one row for each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from msgspec import structs

from pt2kit.package.pickle_free_inputs.table import Kind, Place, Writer
from pt2kit.pickles import numpy_reducers, tensor_kind_reducers, tensor_reducers
from pt2kit.pickles import values as data
from pt2kit.pickles.argument_checks import check_bool, check_count
from pt2kit.pickles.budget import MAX_NAME
from pt2kit.pickles.torch_names import ITEM_SIZES

_TENSOR_KINDS: Final = ("tensor", "parameter", "buffer")


class _Form(NamedTuple):
    """How one part is written, and how it is read where it stands under a name.

    Args:
        parts: what entries of the table the part refers to.
        attribute: what the description calls it, where that is not its key.
    """

    write: Callable[[Any, Writer], Any]
    read: Callable[[Any, Place, str], Any]
    parts: Callable[[Any], Sequence[Any]] = lambda value: ()
    attribute: str = ""


def _storage(body: Any, at: Place, name: str) -> data.PickledStorage:
    number = check_count(at.budget, f"{at.path}.{name}", body)
    if number >= len(at.reader.storages):
        raise at.at(name).error(f"one of {len(at.reader.storages)} storages", number)
    return at.reader.storages[number]


def _element_type(body: Any, at: Place, name: str) -> str:
    if at.text(body) not in ITEM_SIZES:
        raise at.at(name).error("an element type", body)
    return str(body)


def _tensor_kind(body: Any, at: Place, name: str) -> str:
    if body not in _TENSOR_KINDS:
        raise at.at(name).error(f"one of {', '.join(_TENSOR_KINDS)}", body)
    return str(body)


def _itself(value: Any, to: Writer) -> Any:
    return value


_ANY: Final = _Form(_itself, lambda body, at, name: body)  # whoever makes the description checks it
_TEXT: Final = _Form(_itself, lambda body, at, name: at.text(body))
_FLAG: Final = _Form(_itself, lambda body, at, name: check_bool(at.budget, f"{at.path}.{name}", body))
_DTYPE: Final = _Form(_itself, _element_type, attribute="dtype_name")
_NUMBERS: Final = _Form(lambda value, to: list(value), lambda body, at, name: tuple(at.list(body)))
_BYTES: Final = _Form(lambda value, to: value.hex(), lambda body, at, name: at.bytes(body), attribute="data")
_STORAGE: Final = _Form(lambda value, to: to.storage(value), _storage)
_VALUE: Final = _Form(lambda value, to: to.inline(value), lambda body, at, name: at.value(body), lambda value: [value])
_VALUES: Final = _Form(lambda value, to: to.inlines(value), lambda body, at, name: at.values(body), list)
_PAIRS: Final = _Form(
    lambda value, to: to.items(value),
    lambda body, at, name: at.at(name).items(body, {}),
    lambda value: list(value.values()),
)
_FLAGS: Final = {"kind": _Form(_itself, _tensor_kind), "attributes": _PAIRS, "requires_grad": _FLAG}
"""What every kind of tensor has."""


def _read(forms: Mapping[str, _Form], body: Any, at: Place) -> dict[str, Any]:
    return {key: form.read(at.field(body, key), at, key) for key, form in forms.items()}


def _kind(make: Callable[..., Any], is_entry: bool = True, /, **forms: _Form) -> Kind:
    """A kind whose values have the given parts; `make` gets a place and the parts, and checks them together."""

    def write(value: Any, to: Writer) -> Any:
        return {key: form.write(getattr(value, form.attribute or key), to) for key, form in forms.items()}

    def parts(value: Any) -> list[Any]:
        return [inner for key, form in forms.items() for inner in form.parts(getattr(value, form.attribute or key))]

    return Kind(write, lambda body, at: make(at, **_read(forms, body, at)), parts, is_entry)


def _tensor(make: Callable[..., Any], /, **forms: _Form) -> Kind:
    """A kind of tensors: what is its own is checked first, then what all have."""

    def read(body: Any, at: Place) -> Any:
        tensor = make(at, **_read(forms, body, at))
        flags = _read(_FLAGS, body, at)
        marked = tensor_reducers.with_state(at.budget, at.path, tensor, flags["attributes"])
        return structs.replace(marked, kind=flags["kind"], requires_grad=flags["requires_grad"])

    order = ("requires_grad", "kind", "attributes")
    return replace(_kind(make, **forms, **{key: _FLAGS[key] for key in order}), read=read)


def _dense(at: Place, *, storage: Any, dtype: str, storage_offset: Any, sizes: Any, strides: Any, **lazy: bool) -> Any:
    tensor = tensor_reducers.dense(at.budget, at.path, storage, storage_offset, sizes, strides, dtype)
    return structs.replace(tensor, **lazy)


def _sparse(at: Place, *, layout: str, indices: Any, values: Any, sizes: Any, is_coalesced: Any) -> Any:
    parts = (*indices, values, sizes, *(() if is_coalesced is None else (is_coalesced,)))
    return tensor_kind_reducers.rebuild_sparse_tensor(at.budget, at.path, (data.Layout(layout), parts))


def _quantized(at: Place, *, values: Any, qscheme: str, scale: Any, zero_point: Any, axis: Any) -> Any:
    if not isinstance(values, data.PickledTensor):
        raise at.at("values").error("a tensor", values)
    numbers = [list(item) if isinstance(item, tuple) else item for item in (scale, zero_point)]
    params = (data.QScheme(qscheme), *numbers, *(() if axis is None else (axis,)))
    args = (values.storage, values.storage_offset, values.sizes, values.strides, params, False, None)
    made = tensor_kind_reducers.rebuild_qtensor(at.budget, at.path, args)
    if made.values.dtype_name != values.dtype_name:
        raise at.at("values").error(f"a tensor of {made.values.dtype_name}", values.dtype_name)
    return structs.replace(made, values=values)


def _nested(at: Place, *, buffer: Any, sizes: Any, strides: Any, storage_offsets: Any) -> Any:
    return tensor_kind_reducers.rebuild_nested_tensor(at.budget, at.path, (buffer, sizes, strides, storage_offsets))


def _meta(at: Place, *, dtype: str, sizes: Any, strides: Any) -> Any:
    args = (data.DType(dtype), sizes, strides, False)
    return tensor_kind_reducers.rebuild_meta_tensor(at.budget, at.path, args)


def _device_tensor(at: Place, *, dtype: str, device: Any, **held: Any) -> Any:
    args = (held["data"], data.DType(dtype), device, False)
    return tensor_kind_reducers.rebuild_device_tensor(at.budget, at.path, args)


def _named_tuple(at: Place, *, class_name: str, values: Any) -> data.NamedTuple:
    if not 0 < len(class_name) <= MAX_NAME:
        raise at.at("class_name").error(f"a name of at most {MAX_NAME} characters", class_name)
    return data.NamedTuple(class_name, values)


def numpy_dtype(text: Any, at: Place) -> data.NumpyDType:
    """A numpy type with its byte order: "<f4".

    Raises:
        PayloadError: none, or one of objects.
    """
    code = at.text(text)
    made = numpy_reducers.make_dtype(at.budget, at.path, (code[1:],))
    if code[:1] not in ("|" if made.name[0] == "|" else "<>") or not code:
        raise at.error("a byte order and a type code such as '<f4'", text)
    return data.NumpyDType(code)


def _numpy_array(at: Place, *, dtype: str, shape: Any, fortran_order: bool, **held: Any) -> Any:
    order = "F" if fortran_order else "C"
    args = (held["bytes"], numpy_dtype(dtype, at), shape, order)
    return numpy_reducers.from_buffer(at.budget, at.path, args)


def _numpy_scalar(at: Place, *, dtype: str, **held: Any) -> Any:
    return numpy_reducers.make_scalar(at.budget, at.path, (numpy_dtype(dtype, at), held["bytes"]))


STRUCTS: Final[Mapping[str, tuple[type, Kind]]] = {
    "tensor": (
        data.PickledTensor,
        _tensor(
            _dense,
            storage=_STORAGE,
            dtype=_DTYPE,
            sizes=_NUMBERS,
            strides=_NUMBERS,
            storage_offset=_ANY,
            conj=_FLAG,
            neg=_FLAG,
        ),
    ),
    "sparse_tensor": (
        data.SparseTensor,
        _tensor(_sparse, layout=_TEXT, indices=_VALUES, values=_VALUE, sizes=_NUMBERS, is_coalesced=_ANY),
    ),
    "quantized_tensor": (
        data.QuantizedTensor,
        _tensor(_quantized, values=_VALUE, qscheme=_TEXT, scale=_VALUE, zero_point=_VALUE, axis=_ANY),
    ),
    "nested_tensor": (
        data.NestedTensor,
        _tensor(_nested, buffer=_VALUE, sizes=_VALUE, strides=_VALUE, storage_offsets=_VALUE),
    ),
    "meta_tensor": (data.MetaTensor, _tensor(_meta, dtype=_DTYPE, sizes=_NUMBERS, strides=_NUMBERS)),
    "device_tensor": (
        data.DeviceTensor,
        _tensor(_device_tensor, data=_VALUE, dtype=_TEXT._replace(attribute="dtype_name"), device=_ANY),
    ),
    "numpy_array": (
        data.NumpyArray,
        _kind(_numpy_array, dtype=_TEXT, shape=_NUMBERS, fortran_order=_FLAG, bytes=_BYTES),
    ),
    "numpy_scalar": (data.NumpyScalar, _kind(_numpy_scalar, False, dtype=_TEXT, bytes=_BYTES)),
    "named_tuple": (data.NamedTuple, _kind(_named_tuple, class_name=_TEXT, values=_VALUES)),
}
"""Key -> the type of the descriptions, and their kind."""
