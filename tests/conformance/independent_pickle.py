"""torch.save files by docs/format/pickles.md: opcodes over a closed table of globals. Standard library only."""

from __future__ import annotations

import math
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from independent_zip import Refused, need, read_zip

STORAGES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "Untyped": "uint8",
}
WIDTHS = {
    **dict.fromkeys(("uint8", "int8", "bool"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("int32", "uint32", "float32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}


@dataclass
class Tensor:
    """A dense tensor over the bytes of a storage."""

    data: bytes
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    requires_grad: bool = False
    is_param: bool = True

    def contiguous(self) -> bytes:
        """The elements in row-major order."""
        width, starts = WIDTHS[self.dtype], [self.offset]
        for size, stride in zip(self.sizes, self.strides, strict=True):
            need(len(starts) * size * width <= max(1 << 30, len(self.data)), "P16", f"{self.sizes} to copy")
            starts = [start + index * stride for start in starts for index in range(size)]
        return b"".join(self.data[start * width : (start + 1) * width] for start in starts)


@dataclass
class Sparse:
    """A sparse COO tensor by its parts."""

    indices: Tensor
    values: Tensor
    sizes: tuple[int, ...]

    def dense(self) -> Tensor:
        """The tensor with its zeros; numbers of float32 or float64 only."""
        code = {"float32": "f", "float64": "d"}[self.values.dtype]
        width, (dims, nonzeros) = WIDTHS[self.values.dtype], self.indices.sizes
        need(dims == len(self.sizes) and self.values.sizes == (nonzeros,), "P17", "parts of a sparse tensor")
        places = struct.unpack(f"<{dims * nonzeros}q", self.indices.contiguous())
        values = struct.unpack(f"<{nonzeros}{code}", self.values.contiguous())
        found = [0.0] * math.prod(self.sizes)
        for number, value in enumerate(values):
            at = 0
            for dim, size in enumerate(self.sizes):
                index = places[dim * nonzeros + number]
                need(0 <= index < size, "P17", f"index {index} of {size}")
                at = at * size + index
            found[at] += value
        strides = tuple(math.prod(self.sizes[dim + 1 :]) for dim in range(dims))
        data = struct.pack(f"<{len(found)}{code}", *found)
        need(len(data) == len(found) * width, "P17", "a sparse tensor")
        return Tensor(data, self.values.dtype, self.sizes, strides, 0, self.values.requires_grad)


@dataclass
class Global:
    """A global by its path."""

    path: str


@dataclass
class NamedTuple:
    """A named tuple of a class that is not known."""

    values: tuple[Any, ...] = field(default=())


def check_geometry(sizes: Any, strides: Any, offset: Any, dtype: str, nbytes: int, where: str) -> None:
    """The rules P7 to P9 of docs/format/tensors.md."""
    numbers = [*sizes, *strides, offset]
    need(all(type(n) is int and 0 <= n < 1 << 63 for n in numbers), "P7", f"{where}: {numbers[:8]}")
    need(len(sizes) == len(strides) and len(sizes) <= 64, "P7", f"{where}: sizes and strides")
    width = WIDTHS[dtype]
    need(math.prod(size or 1 for size in sizes) * width < 1 << 63, "P8", f"{where}: {sizes}")
    if 0 not in sizes:
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        need((last + 1) * width <= nbytes, "P9", f"{where}: needs {(last + 1) * width} bytes of {nbytes}")


class Machine:
    """One pickle, interpreted."""

    def __init__(self, stream: bytes, records: dict[str, bytes], root: str) -> None:
        self.stream, self.records, self.root = stream, records, root
        self.at, self.stack, self.marks = 0, [], []  # type: ignore[var-annotated]
        self.memo: dict[int, Any] = {}
        self.called: set[str] = set()
        self.seen: set[str] = set()
        self.shaped: set[str] = set()

    def take(self, count: int) -> bytes:
        need(self.at + count <= len(self.stream), "", "a cut-off pickle")
        self.at += count
        return self.stream[self.at - count : self.at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def line(self) -> bytes:
        end = self.stream.find(b"\n", self.at)
        need(end >= 0, "", "a cut-off pickle")
        return self.take(end + 1 - self.at)[:-1]

    def pop(self) -> Any:
        need(len(self.stack) > (self.marks[-1] if self.marks else 0), "", "an empty stack")
        return self.stack.pop()

    def pop_mark(self) -> list[Any]:
        need(self.marks, "", "no mark")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def run(self) -> Any:
        """The value; refuses globals that no table has."""
        while (op := self.take(1)) != b".":
            need(op in OPS, "", f"opcode {op!r}")
            OPS[op](self)
        value = self.pop()
        need(not self.stack and not self.marks and self.at == len(self.stream), "", "values left over")
        tuples = {path for path in self.shaped - self.called if path.split(".")[0] not in sys.stdlib_module_names}
        refused = {path for path in self.seen if not known(path)} - tuples
        need(not refused, "P15", f"a pickle that refers to {sorted(refused)}")
        return value

    def find(self, module: str, name: str) -> None:
        module = {"__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor"}.get(module, module)
        self.seen.add(f"{module}.{name}")
        self.stack.append(Global(f"{module}.{name}"))

    def call(self, callee: Any, args: Any, shaped: bool = False) -> None:
        need(isinstance(callee, Global) and isinstance(args, tuple), "", "a call")
        path = callee.path
        if path in CALLS:
            try:
                self.stack.append(CALLS[path](*args))
            except (TypeError, ValueError, AttributeError) as error:
                raise Refused("", f"{path}: {error}") from None
            return
        (self.shaped if shaped and args else self.called).add(path)
        self.stack.append(NamedTuple(args))

    def build(self) -> None:
        self.pop()
        if isinstance(self.stack[-1], NamedTuple):
            self.called |= self.shaped

    def storage(self, found: Any) -> None:
        need(isinstance(found, tuple) and len(found) == 5 and found[0] == "storage", "P15", "a persistent id")
        _, cls, key, _, count = found
        name = cls.path.rpartition(".")[2].lstrip("_").removesuffix("Storage") if isinstance(cls, Global) else ""
        need(name in STORAGES, "", "a storage class")
        dtype, data = STORAGES[name], self.records.get(f"{self.root}/data/{key}")
        need(data is not None and count == len(data) // WIDTHS[dtype], "P9", f"storage {key}")
        self.stack.append((dtype, data))


def rebuild(storage: Any, offset: Any, size: Any, stride: Any, grad: Any = False, _: Any = None, *rest: Any) -> Tensor:
    """A dense tensor: `_rebuild_tensor_v2`."""
    dtype, data = storage
    check_geometry(size, stride, offset, dtype, len(data), "a pickled tensor")
    return Tensor(data, dtype, tuple(size), tuple(stride), offset, bool(grad))


def rebuild_v3(storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any) -> Tensor:
    """A dense tensor with an element type of its own."""
    return rebuild((dtype.path.removeprefix("torch."), storage[1]), offset, size, stride, grad, hooks)


def parameter(tensor: Tensor, requires_grad: bool, *_: Any) -> Tensor:
    """A parameter."""
    tensor.requires_grad = requires_grad
    return tensor


def sparse(layout: Any, parts: Any) -> Sparse:
    """A sparse tensor; only COO."""
    need(layout == "torch.sparse_coo", "", f"layout {layout}")
    return Sparse(parts[0], parts[1], tuple(parts[2]))


def from_type(function: Global, cls: Global, args: Any, state: Any) -> Any:
    """A tensor of a subclass without code."""
    need(
        cls.path in ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter"), "P15", f"class {cls.path}"
    )
    return CALLS[function.path](*args)


CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": rebuild,
    "torch._utils._rebuild_tensor_v2": rebuild,
    "torch._utils._rebuild_tensor_v3": rebuild_v3,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_parameter_with_state": parameter,
    "torch._utils._rebuild_sparse_tensor": sparse,
    "torch._tensor._rebuild_from_type_v2": from_type,
    "torch.Size": tuple,
    "torch.serialization._get_layout": str,
    "torch.device": lambda *args: args,
    "collections.OrderedDict": lambda *pairs: OrderedDict(*pairs),
    "builtins.set": set,
    "builtins.complex": complex,
}
NAMES = {
    "torch.nn.parameter.Parameter",
    "torch.Tensor",
    "torch._tensor.Tensor",
    "torch._dynamo.decorators._DimRange",
    *(f"torch.{dtype}" for dtype in WIDTHS),
    *(f"torch.{name}Storage" for name in STORAGES),
    *(f"torch.{where}{name}Storage" for where in ("storage.", "cuda.", "_") for name in STORAGES),
}


def known(path: str) -> bool:
    """Return whether a global is in the tables."""
    return path in CALLS or path in NAMES


def _push(make: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    return lambda m: m.stack.append(make(m))


def _tuple(count: int) -> Callable[[Machine], None]:
    return _push(lambda m: tuple(reversed([m.pop() for _ in range(count)])))


def _set_items(m: Machine, items: list[Any]) -> None:
    need(isinstance(m.stack[-1], dict) and len(items) % 2 == 0, "", "items of a dict")
    m.stack[-1].update(zip(items[::2], items[1::2], strict=True))


def _extend(m: Machine, items: list[Any]) -> None:
    need(isinstance(m.stack[-1], list), "", "items of a list")
    m.stack[-1].extend(items)


def _reduce(shaped: bool) -> Callable[[Machine], None]:
    def step(m: Machine) -> None:
        args = m.pop()
        m.call(m.pop(), args, shaped)

    return step


def _stack_global(m: Machine) -> None:
    name = m.pop()
    m.find(str(m.pop()), str(name))


def _put(index: Callable[[Machine], int]) -> Callable[[Machine], None]:
    return lambda m: m.memo.__setitem__(index(m), m.stack[-1])


def _get(index: Callable[[Machine], int]) -> Callable[[Machine], None]:
    def step(m: Machine) -> None:
        at = index(m)
        need(at in m.memo, "", "the memo")
        m.stack.append(m.memo[at])

    return step


OPS: dict[bytes, Callable[[Machine], None]] = {
    b"\x80": lambda m: need(m.number(1) <= 5, "", "the protocol"),
    b"\x95": lambda m: need(m.number(8) <= len(m.stream), "", "a frame"),
    b"(": lambda m: m.marks.append(len(m.stack)),
    b"0": lambda m: m.pop() and None,
    b"N": _push(lambda m: None),
    b"\x88": _push(lambda m: True),
    b"\x89": _push(lambda m: False),
    b"J": _push(lambda m: int.from_bytes(m.take(4), "little", signed=True)),
    b"K": _push(lambda m: m.number(1)),
    b"M": _push(lambda m: m.number(2)),
    b"\x8a": _push(lambda m: int.from_bytes(m.take(m.number(1)), "little", signed=True)),
    b"G": _push(lambda m: struct.unpack(">d", m.take(8))[0]),
    b"X": _push(lambda m: m.take(m.number(4)).decode()),
    b"\x8c": _push(lambda m: m.take(m.number(1)).decode()),
    b"B": _push(lambda m: m.take(m.number(4))),
    b"C": _push(lambda m: m.take(m.number(1))),
    b"q": _put(lambda m: m.number(1)),
    b"r": _put(lambda m: m.number(4)),
    b"\x94": _put(lambda m: len(m.memo)),
    b"h": _get(lambda m: m.number(1)),
    b"j": _get(lambda m: m.number(4)),
    b")": _push(lambda m: ()),
    b"\x85": _tuple(1),
    b"\x86": _tuple(2),
    b"\x87": _tuple(3),
    b"t": _push(lambda m: tuple(m.pop_mark())),
    b"]": _push(lambda m: []),
    b"l": _push(lambda m: m.pop_mark()),
    b"a": lambda m: _extend(m, [m.pop()]),
    b"e": lambda m: _extend(m, m.pop_mark()),
    b"}": _push(lambda m: {}),
    b"s": lambda m: _set_items(m, [m.pop(), m.pop()][::-1]),
    b"u": lambda m: _set_items(m, m.pop_mark()),
    b"c": lambda m: m.find(m.line().decode(), m.line().decode()),
    b"\x93": _stack_global,
    b"R": _reduce(shaped=False),
    b"\x81": _reduce(shaped=True),
    b"b": Machine.build,
    b"Q": lambda m: m.storage(m.pop()),
}


def read_payload(data: bytes) -> Any:
    """The value of a torch.save file."""
    need(data[:4] == b"PK\3\4", "P15", "not a torch.save zip")
    records = read_zip(data)
    roots = {name.partition("/")[0] for name in records}
    need(len(roots) == 1, "", "one root folder")
    root = roots.pop()
    code = any(name.startswith(f"{root}/code/") or name == f"{root}/constants.pkl" for name in records)
    need(not code and f"{root}/data.pkl" in records, "P15", "no plain torch.save file")
    need(records.get(f"{root}/byteorder", b"little") == b"little", "", "byteorder")
    return Machine(records[f"{root}/data.pkl"], records, root).run()
