"""Synthetic objects in which every part of schema 8.20 occurs, for what no sample file has.

`python -m tests.everything` writes them to `golden/8.20/`. They are JSON of the schema; no torch would load them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import UnsetType

from pt2kit import codec, schema
from pt2kit.schema import (
    Argument,
    ArgumentKind,
    ConstantValue,
    CustomObjArgument,
    Device,
    ExportedProgram,
    Graph,
    GraphArgument,
    GraphModule,
    GraphSignature,
    InputSpec,
    InputToConstantInputSpec,
    Layout,
    MemoryFormat,
    ModuleCallEntry,
    ModuleCallSignature,
    NamedArgument,
    NamedTupleDef,
    Node,
    OutputSpec,
    PayloadConfig,
    PayloadMeta,
    RangeConstraint,
    ScalarType,
    SchemaVersion,
    SymBool,
    SymExpr,
    SymExprHint,
    SymFloat,
    SymInt,
    TensorArgument,
    TensorMeta,
)

FOLDER = Path(__file__).parent / "golden" / "8.20"
HINTS = [SymExprHint(as_int=4), SymExprHint(as_bool=True), SymExprHint(as_float=0.5)]
SIZES = [SymInt(as_int=3), *(SymInt(as_expr=SymExpr("s0", hint)) for hint in HINTS)]
INNER = Graph([Argument(as_tensor=TensorArgument("x"))], [], [], {}, {}, {})
LEAVES: dict[Any, Any] = {str: "text", int: 3, float: "-Infinity", bool: True, Graph: INNER}


def arms(union: Any) -> list[Any]:
    """One object for each arm of a union."""
    return [union(**{name: filled(annotation, name)}) for name, annotation in get_type_hints(union).items()]


def filled(annotation: Any, name: str = "") -> Any:
    """Some value of a type; a list of unions holds each of their arms."""
    given = [arg for arg in get_args(annotation) if arg not in (UnsetType, type(None))]
    if annotation in LEAVES:
        return LEAVES[annotation]
    if get_origin(annotation) is list:
        [inner] = given
        return arms(inner) if _is_union(inner) else [filled(inner, name)]
    if get_origin(annotation) is dict:
        return {"key": Argument(as_int=1)} if given[-1] is Argument else {"key": filled(given[-1], name)}
    if given:
        return filled(float if set(get_args(schema.Float)) <= set(given) else given[0], name)
    if issubclass(annotation, (ScalarType, Layout, MemoryFormat, ArgumentKind)):
        return list(annotation)[-1]
    if annotation is Argument:
        return Argument(as_tensor=TensorArgument("x"))
    if _is_union(annotation):
        return arms(annotation)[-1]
    return annotation(**{key: filled(held, key) for key, held in get_type_hints(annotation).items()})


def _is_union(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, schema.Union)


def metas() -> dict[str, TensorMeta]:
    """Tensors of every element type and of every layout."""
    found = {f"dtype_{dtype.name}": (dtype, Layout.Strided) for dtype in ScalarType}
    found |= {f"layout_{layout.name}": (ScalarType.FLOAT, layout) for layout in Layout}
    return {
        name: TensorMeta(dtype, SIZES, True, Device("cuda", 1), SIZES, SIZES[0], layout)
        for name, (dtype, layout) in found.items()
    }


def arguments() -> list[NamedArgument]:
    """Arguments of every kind, with every arm and every member of an enum in them."""
    found = [*arms(Argument), Argument(as_graph=GraphArgument("sub", INNER))]
    found += [Argument(as_memory_format=member) for member in MemoryFormat]
    found += [Argument(as_string_to_argument={arm.type: arm for arm in arms(Argument)})]
    kinds = list(ArgumentKind)
    return [NamedArgument(arm.type, arm, kinds[number % len(kinds)]) for number, arm in enumerate(found)]


def program() -> ExportedProgram:
    """A program in which every part of the schema that can stand in one does."""
    values = arms(Argument)
    graph = Graph(
        inputs=values,
        outputs=values,
        nodes=[Node("torch.ops.ns.op.default", arguments(), values, {"key": "text"}, True, "name")],
        tensor_values=metas(),
        sym_int_values={f"i{number}": value for number, value in enumerate(SIZES)},
        sym_bool_values={arm.type: arm for arm in arms(SymBool)},
        is_single_tensor_return=True,
        custom_obj_values={"o": CustomObjArgument("o", "__torch__.C")},
        sym_float_values={arm.type: arm for arm in arms(SymFloat)},
    )
    call = ModuleCallSignature(values, values, "in", "out", ["x"])
    return ExportedProgram(
        graph_module=GraphModule(
            graph,
            GraphSignature([*arms(InputSpec), *map(_constant_input, arms(ConstantValue))], arms(OutputSpec)),
            [ModuleCallEntry("", call), ModuleCallEntry("a.b", None)],
            {"custom": "text"},
            {"NT": NamedTupleDef(["a", "b"])},
        ),
        opset_version={"aten": 10},
        range_constraints={"s0": RangeConstraint(2, 2**70), "s1": RangeConstraint(None, None)},
        schema_version=SchemaVersion(8, 20),
        verifiers=["TRAINING"],
        torch_version="2.13.0",
        guards_code=["L['x'].size()[0] >= 2"],
    )


def _constant_input(value: ConstantValue) -> InputSpec:
    return InputSpec(constant_input=InputToConstantInputSpec("c", value))


def objects() -> dict[str, Any]:
    """Name of the file -> what it holds."""
    payloads = {
        name: PayloadMeta(f"weight_{number}", bool(number % 2), not number, meta if number else None)
        for number, (name, meta) in enumerate(metas().items())
    }
    return {
        "ExportedProgram": program(),
        "PayloadConfig": PayloadConfig(payloads),
        "AOTInductorModelPickleData": filled(schema.AOTInductorModelPickleData),
        "ExternKernelNodes": filled(schema.ExternKernelNodes),
    }


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, value in objects().items():
        (FOLDER / f"{name}.json").write_bytes(codec.encode_indented(value) + b"\n")


if __name__ == "__main__":
    main()
