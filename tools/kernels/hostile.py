"""A valid call -> calls that differ from it in one argument, which lies, each with a label that says how."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import torch
from tools.kernels import packed
from tools.kernels.samples import Call, copy, copy_tensor

T = TypeVar("T")
NamedLie: TypeAlias = "tuple[str, str, str, Callable[[], Any]]"
"""Name of the argument, kind and detail of the lie, how to make it."""
WHOLE: Final = (
    *(-1, -2, 0, 1, 7, 100, 10_000, -10_000, 2**24, -(2**24), 2**31 - 1, 2**31, -(2**31), 2**33, 2**40, -(2**40)),
    *(2**62, 2**63 - 1, -(2**63)),
)
NUMBERS: Final = (float("nan"), float("inf"), float("-inf"), 0.0, -1.0, 1.5, 1e6, -1e6, 1e30, -1e30, 1e-30)
DTYPES: Final = (
    *(torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8, torch.complex64, torch.bfloat16, torch.float16),
)
BYTES: Final = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}
QUANTIZED: Final = tuple(BYTES)
QUANTIZERS: Final = (
    *((0.1, 2**31 - 1), (0.1, -(2**31)), (0.1, 2**40), (0.1, -7), (0.1, 1000), (0.0, 0), (float("nan"), 0)),
    *((float("inf"), 3), (-1.0, 0), (1e-38, 255), (1e38, 0)),
)
"""Scales and zero points of quantized tensors."""
SETTINGS: Final = ("flag", "text", "number", "missing")
SMALL: Final = ("-1", "0", "1", "7", "all 0", "all 1", "all -1")
"""Numbers that are tried together with each hostile tensor: modes, counts, reductions."""
TELLING: Final = (
    *("all -2", "all 10000", "last -10000", "last 10000", "all -2**63", "all 0.0", "all nan", "[0]", "dimension 0 0"),
    *("dimension 0 1", "dimension 0 longer by 1", "dimension 1 longer by 1", "one dimension less"),
)
"""Hostile values and shapes that are tried together with each setting."""
WORDS: Final = ("", "sum", "mean", "max", "min", "prod", "trunc", "floor", "nearest", "x" * 300)


class Case(NamedTuple):
    """One hostile call.

    Args:
        argument: the name of the argument that lies; "" where several do.
        kind: "values", "shape", "strides", "dtype", "layout", "number", "list", "flag", "text", "missing".
        detail: what it was changed to, for people.
        make: makes the call, with tensors of its own.
    """

    argument: str
    kind: str
    detail: str
    make: Callable[[], Call]


def cases(schema: Any, base: Call, seed: str) -> Iterator[Case]:
    """Iterate the hostile calls of an operator.

    Args:
        schema: its `torch.FunctionSchema`.
        base: a valid call, which is not changed.
        seed: says which random pairs of lies are tried last.
    """
    names = [argument.name for argument in schema.arguments]
    single: list[NamedLie] = []
    for name, argument in zip(names, schema.arguments, strict=True):
        value = _given(base, name, names)
        for kind, detail, lie in _lies(value, str(argument.real_type)):
            single.append((name, kind, detail, lie))
            yield Case(name, kind, detail, partial(_replaced, base, names, {name: lie}))
    yield from _with_settings(base, names, single)
    chance = random.Random(seed)
    for _ in range(min(40, len(single))):
        first, second = chance.choice(single), chance.choice(single)
        if first[0] != second[0]:
            yield _pair(base, names, first, second)


def _with_settings(base: Call, names: list[str], single: Sequence[NamedLie]) -> Iterator[Case]:
    """Pairs of a flag, a word, a small number or a missing argument, and a hostile tensor: each with each."""
    settings = [lie for lie in single if lie[1] in SETTINGS and (lie[1] != "number" or lie[2] in SMALL)]
    tensors = [lie for lie in single if (lie[1] in ("values", "shape") and lie[2] in TELLING) or lie[1] == "strides"]
    for first, second in itertools.product(settings, tensors):
        if first[0] != second[0]:
            yield _pair(base, names, first, second)


def _pair(base: Call, names: list[str], first: NamedLie, second: NamedLie) -> Case:
    detail = f"{first[0]} {first[1]} {first[2]}, {second[0]} {second[1]} {second[2]}"
    return Case("", "pair", detail, partial(_replaced, base, names, {first[0]: first[3], second[0]: second[3]}))


def _given(base: Call, name: str, names: list[str]) -> Any:
    position = names.index(name)
    return base[0][position] if position < len(base[0]) else base[1].get(name)


def _replaced(base: Call, names: list[str], lies: dict[str, Callable[[], Any]]) -> Call:
    args, kwargs = copy(base)
    changed = list(args)
    for name, lie in lies.items():
        position = names.index(name)
        if position < len(changed):
            changed[position] = lie()
        else:
            kwargs[name] = lie()
    return tuple(changed), kwargs


Lie = tuple[str, str, Callable[[], Any]]


def _lies(value: Any, kind: str) -> Iterator[Lie]:
    """Yield substitutes for a value: kind of the lie, its detail, how to make it."""
    if "Tensor" in kind:
        yield from _list_lies(value) if "List" in kind else _tensor_lies(value)
        if kind.startswith("Optional") and value is not None:
            yield "missing", "none", lambda: None
        return
    base = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    if base.startswith("List["):
        yield from _numbers_lies(value, base)
    elif base in ("int", "SymInt", "number", "Scalar"):
        for number in _dtype_numbers(value) if isinstance(value, torch.dtype) else WHOLE:
            yield "number", _shown(number), partial(_same, number)
        if base in ("number", "Scalar"):
            yield from (("number", str(number), partial(_same, number)) for number in NUMBERS)
    elif base in ("float", "SymFloat"):
        yield from (("number", str(number), partial(_same, number)) for number in NUMBERS)
    elif base == "bool":
        yield "flag", str(not value), lambda: not value
    elif base == "str":
        yield from (("text", word[:8], partial(_same, word)) for word in WORDS)
    elif "torch.classes" in base:
        yield from (("object", name, partial(_same, other)) for name, other in packed.objects(base).items())
    elif base == "Device":
        yield "device", "meta", lambda: torch.device("meta")


def _same(value: T) -> T:
    return value


def _dtype_numbers(value: torch.dtype) -> tuple[Any, ...]:
    return tuple(dtype for dtype in DTYPES if dtype is not value)


def _shown(number: Any) -> str:
    if isinstance(number, int) and abs(number) >= 2**24:
        bits = abs(number).bit_length()
        return f"{'-' if number < 0 else ''}2**{bits if abs(number) == 2**bits - 1 else bits - 1}"
    return str(number)


def _numbers_lies(value: Any, base: str) -> Iterator[Lie]:
    held = list(value) if isinstance(value, (list, tuple)) else [1]
    yield "list", "empty", list
    yield "list", "longer", lambda: [*held, *(held[-1:] or [1])]
    yield "list", "much longer", lambda: (held or [1]) * 40
    if len(held) > 1:
        yield "list", "shorter", lambda: held[:-1]
    if "bool" in base:
        yield "list", "inverted", lambda: [not item for item in held]
        return
    numbers: tuple[Any, ...] = NUMBERS if "float" in base else WHOLE
    for number in numbers:
        yield "number", f"all {_shown(number)}", partial(_same, [number] * len(held))
        if len(held) > 1:
            yield "number", f"last {_shown(number)}", partial(_same, [*held[:-1], number])


def _list_lies(value: Any) -> Iterator[Lie]:
    held = [item for item in value if isinstance(item, torch.Tensor)] if isinstance(value, (list, tuple)) else []
    yield "list", "empty", list
    if not held:
        yield "list", "one", lambda: [torch.ones(3, 4)]
        return
    for position in {0, len(held) - 1}:
        for kind, detail, lie in _tensor_lies(held[position]):
            yield kind, f"[{position}] {detail}", partial(_with_lie, held, position, lie)
    yield "list", "shorter", lambda: [copy_tensor(item) for item in held[:-1]]
    yield "list", "longer", lambda: [copy_tensor(item) for item in (*held, held[-1])]


def _with_lie(held: list[torch.Tensor], position: int, lie: Callable[[], Any]) -> list[Any]:
    return [lie() if number == position else copy_tensor(item) for number, item in enumerate(held)]


def _tensor_lies(value: Any) -> Iterator[Lie]:
    if not isinstance(value, torch.Tensor):
        yield "shape", "a tensor where none was", lambda: torch.ones(3)
        yield "values", "a tensor of large numbers where none was", lambda: torch.full((2, 2), 2**40)
        return
    if value.is_quantized:
        yield from _quantized_lies(value)
        return
    if value.layout is torch.sparse_coo:
        yield from _coordinate_lies(value)
        return
    if value.is_nested:
        yield from _nested_lies()
        return
    if value.layout is not torch.strided or value.device.type != "cpu":
        return
    yield from _value_lies(value)
    yield from _shape_lies(value)
    yield from _stride_lies(value)
    for dtype in DTYPES:
        if dtype is not value.dtype:
            yield "dtype", str(dtype)[6:], partial(value.detach().to, dtype)
    yield "layout", "meta", lambda: value.detach().to("meta")
    yield "layout", "sparse", lambda: value.detach().to_sparse()
    if value.dim() == 2:
        yield "layout", "sparse_csr", lambda: value.detach().to_sparse_csr()
    if value.dtype is torch.float32:
        yield "layout", "mkldnn", lambda: value.detach().to_mkldnn()
        yield "layout", "quantized", lambda: torch.quantize_per_tensor(value.detach(), 0.1, 0, torch.quint8)
        yield "layout", "nested", lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)])


def _quantized_lies(value: torch.Tensor) -> Iterator[Lie]:
    """Yield quantized tensors of other sizes, types, schemes, scales and zero points."""
    plain = value.detach().dequantize()
    dtype = value.dtype if value.dtype in QUANTIZED else torch.quint8
    for kind, detail, lie in (*_shape_lies(plain), *_stride_lies(plain)):
        if not detail.startswith("2**40"):
            yield kind, detail, partial(_quantized, lie, dtype)
    for other in QUANTIZED:
        yield "dtype", f"{other}"[6:], partial(_quantized, lambda: plain, other)
    for scale, zero in QUANTIZERS:
        yield "values", f"scale {scale}, zero {_shown(zero)}", partial(_quantized, lambda: plain, dtype, scale, zero)
    for axis, size in enumerate(value.shape):
        zeros = torch.zeros(size, dtype=torch.int64)
        scales = torch.ones(size)
        yield (
            "layout",
            f"per channel {axis}",
            partial(torch.quantize_per_channel, plain, scales, zeros, axis, torch.qint8),
        )
        yield (
            "layout",
            f"per channel {axis}, float",
            partial(torch.quantize_per_channel, plain, scales, zeros * 1.0, axis, torch.quint8),
        )
    yield "layout", "float", lambda: plain
    yield "layout", "whole", lambda: plain.to(torch.int8)


def _quantized(lie: Callable[[], Any], dtype: torch.dtype, scale: float = 0.1, zero: int = 0) -> Any:
    numbers = torch.empty(0, dtype=BYTES[dtype])
    return torch._make_per_tensor_quantized_tensor(lie().to(numbers.dtype), scale, zero)


def _coordinate_lies(value: torch.Tensor) -> Iterator[Lie]:
    """Yield sparse tensors of other sizes, types, layouts and dense dimensions, coalesced or not."""
    sizes, numbers = tuple(value.shape), torch.ones(2, dtype=value.dtype)
    for name, shape in (
        ("empty", sizes),
        ("smaller", tuple(max(size - 1, 0) for size in sizes)),
        ("larger", tuple(size * 40 for size in sizes)),
        ("one dimension less", sizes[1:]),
        ("one dimension more", (2, *sizes)),
        ("huge", (2**40, *sizes[1:])),
    ):
        places = torch.tensor([[max(size - 1, 0)] * 2 for size in shape], dtype=torch.int64).reshape(len(shape), 2)
        places = places[:, :0] if name == "empty" or 0 in shape else places
        yield "shape", name, partial(torch.sparse_coo_tensor, places, numbers[: places.shape[1]], shape)
    places = torch.zeros(len(sizes), 2, dtype=torch.int64)
    yield "values", "uncoalesced", partial(torch.sparse_coo_tensor, places, numbers, sizes)
    yield (
        "values",
        "uncoalesced, said to be coalesced",
        lambda: torch.sparse_coo_tensor(places.clone() + 1, numbers, sizes)._coalesced_(True),
    )
    dense = torch.ones(2, *sizes[1:], dtype=value.dtype)
    yield "shape", "hybrid", partial(torch.sparse_coo_tensor, torch.tensor([[0, 1]]), dense, sizes)
    for dtype in DTYPES:
        yield "dtype", str(dtype)[6:], partial(value.detach().to, dtype)
    yield "layout", "strided", lambda: value.detach().to_dense()
    if value.dim() == 2:
        yield "layout", "sparse_csr", lambda: value.detach().to_sparse_csr()


def _nested(sizes: Sequence[tuple[int, ...]]) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(size) for size in sizes])


def _nested_lies() -> Iterator[Lie]:
    """Yield nested tensors of other sizes."""
    for detail, parts in (
        ("none", []),
        ("one", [(2, 4)]),
        ("longer", [(2, 4), (30, 4)]),
        ("empty", [(0, 4), (0, 4)]),
        ("other", [(2, 3), (3, 5)]),
        ("one dimension", [(4,), (3,)]),
        ("scalars", [(), ()]),
        ("three dimensions", [(2, 4, 3), (3, 4, 3)]),
    ):
        yield "shape", detail, partial(_nested, parts)
    yield "layout", "strided", lambda: torch.ones(2, 3, 4)


def _value_lies(value: torch.Tensor) -> Iterator[Lie]:
    if not value.numel():
        return
    if value.is_floating_point():
        for number in NUMBERS:
            yield "values", f"all {number}", partial(torch.full_like, value, number)
        return
    if value.dtype not in (torch.int64, torch.int32, torch.uint8, torch.int16, torch.int8):
        return
    limits = torch.iinfo(value.dtype)
    for number in WHOLE:
        if limits.min <= number <= limits.max:
            yield "values", f"all {_shown(number)}", partial(torch.full_like, value, number)
            if value.numel() > 1:
                yield "values", f"last {_shown(number)}", partial(_with_last, value, number)
    yield "values", "reversed", lambda: copy_tensor(value).flatten().flip(0).reshape(value.shape)


def _with_last(value: torch.Tensor, number: int) -> torch.Tensor:
    made = value.detach().clone(memory_format=torch.contiguous_format)
    made.view(-1)[-1] = number
    return made


def _shape_lies(value: torch.Tensor) -> Iterator[Lie]:
    sizes = tuple(value.shape)
    shapes: dict[str, tuple[int, ...]] = {
        "[0]": (0,),
        "[]": (),
        "[1]": (1,),
        "one dimension more": (1, *sizes),
        "one at the end": (*sizes, 1),
        "nine dimensions": (1,) * 9,
    }
    if sizes:
        shapes["one dimension less"] = sizes[1:]
    for axis, size in enumerate(sizes):
        for detail, other in (("0", 0), ("1", 1), ("longer by 1", size + 1), ("40 times", size * 40)):
            shapes[f"dimension {axis} {detail}"] = (*sizes[:axis], other, *sizes[axis + 1 :])
    for name, shape in shapes.items():
        if shape != sizes and prod(shape) <= 1 << 20:
            yield "shape", name, partial(torch.ones, shape, dtype=value.dtype)
    yield (
        "shape",
        "2**40 with stride 0",
        lambda: torch.ones((1,) * max(len(sizes), 1), dtype=value.dtype).expand(
            2**40, *((1,) * (max(len(sizes), 1) - 1))
        ),
    )
    yield "shape", "0 by 2**62", lambda: torch.ones((0, 2**62), dtype=value.dtype)


def _stride_lies(value: torch.Tensor) -> Iterator[Lie]:
    if value.dim() >= 2:
        yield "strides", "transposed", lambda: copy_tensor(value).transpose(0, -1).contiguous().transpose(0, -1)
    if value.dim() and value.numel():
        yield "strides", "every second", lambda: torch.ones((*value.shape, 2), dtype=value.dtype)[..., 0]
        yield "strides", "0", lambda: torch.ones((1,) * value.dim(), dtype=value.dtype).expand(value.shape)
        yield (
            "strides",
            "offset",
            lambda: torch.cat([torch.ones((1,), dtype=value.dtype), value.detach().reshape(-1)])[1:].view(value.shape),
        )
