"""Text of the types of a graph's values: `f32[s77, 8]`, `SymInt(2*s77)`."""

from __future__ import annotations

from pt2kit import symbols
from pt2kit.errors import Pt2Error
from pt2kit.messages import printable
from pt2kit.schema import (
    CustomObjArgument,
    Device,
    ExportedProgram,
    Graph,
    Layout,
    ScalarType,
    SymBool,
    SymFloat,
    SymInt,
    TensorMeta,
)
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.treespec.callsig import show_name


class ValueTexts:
    """Describes the values of one program; each distinct expression is parsed once.

    Args:
        program: whose values are described.
    """

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self._expressions: dict[str, str] = {}

    def expression(self, text: str) -> str:
        """Return a symbolic expression, in any stored dialect, as people write it; unchanged if it does not parse."""
        known = self._expressions.get(text)
        if known is None:
            try:
                known = symbols.to_str(symbols.parse(text))
            except Pt2Error:
                known = f"<{printable(text)}>"
            self._expressions[text] = known
        return known

    def size(self, value: SymInt) -> str:
        """Return one size, stride or offset."""
        match value:
            case SymInt(as_int=int(number)):
                return str(number)
            case _:
                return self.expression(value.value.expr_str)

    def meta(self, meta: TensorMeta) -> str:
        """Return the type of a tensor: dtype and sizes, and anything unusual (device, layout)."""
        text = f"{dtype_text(meta.dtype)}[{', '.join(map(self.size, meta.sizes))}]"
        if meta.layout is not Layout.Strided:
            text += f" {meta.layout.name}"
        return text if meta.device.type == "cpu" else f"{text} on {device_text(meta.device)}"

    def symbolic(self, value: SymInt | SymFloat | SymBool) -> str:
        """Return a symbolic number and its expression: `SymInt(2*s77)`."""
        inner = value.value
        known = str(inner) if isinstance(inner, int | float) else self.expression(inner.expr_str)
        return f"{type(value).__name__}({known})"

    def named(self, graph: Graph, name: str) -> str:
        """Return the type of a value of a graph, by its name; "" if the graph has none."""
        if (meta := graph.tensor_values.get(name)) is not None:
            return self.meta(meta)
        for values in (graph.sym_int_values, graph.sym_float_values, graph.sym_bool_values):
            if (value := values.get(name)) is not None:
                return self.symbolic(value)
        custom = graph.custom_obj_values.get(name)
        return custom_object_text(custom) if custom is not None else ""

    def ranges(self) -> tuple[tuple[str, str], ...]:
        """Return (symbol, range) for each dynamic symbol, in the file's order: ("s77", "2 … 1,024")."""
        constraints = self.program.range_constraints
        return tuple(
            (self.expression(name), bounds_text(row.min_val, row.max_val)) for name, row in constraints.items()
        )


def dtype_text(dtype: ScalarType) -> str:
    """Return the short name of an element type: `f32`."""
    return DTYPES[dtype].short if dtype in DTYPES else dtype.name.lower()


def bounds_text(low: int | None, high: int | None) -> str:
    """Return the text of an inclusive range; an unbounded end is named as such."""
    if low is None:
        return "any" if high is None else f"at most {high:,}"
    if high is None:
        return f"at least {low:,}"
    return f"{low:,} … {high:,}" if low != high else f"{low:,}"


def device_text(device: Device) -> str:
    """Return a device as torch writes it: `cuda:0`."""
    name = show_name(device.type)
    return name if device.index is None else f"{name}:{device.index}"


def custom_object_text(custom: CustomObjArgument) -> str:
    """Return the class of a custom object."""
    return f"object {printable(custom.class_fqn)}"
