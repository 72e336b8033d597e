"""A version's field table -> a program that uses every type, field, arm and member of it."""

from __future__ import annotations

import base64
from typing import Any

from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.values import PickledTensor
from pt2kit.schema import parse_version
from pt2kit.schema.fieldtable import (
    AnyOf,
    DictOf,
    ListOf,
    Nullable,
    Ref,
    Scalar,
    TupleOf,
    Type,
    default_values,
    frozen_table,
)
from pt2kit.versions.check import canonical_type
from pt2kit.zip.reader import Storage

STACK = '  File "model.py", line 3, in forward\n    return x + 1\n'
LEAF = '{"type": null, "context": null, "children_spec": []}'
TUPLE = '{"type": "builtins.tuple", "context": "null", "children_spec": [%s]}'
NO_KEYWORDS = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
PAIR = f'{{"type": "collections.namedtuple", "context": %s, "children_spec": [{LEAF}, {LEAF}]}}'
VALUES = ("x", "p", "buf", "tmp", "cst", "tok", "k", "r0", "r1", "c", "t", "m1", "m2", "m3", "g1", "g2", "loss", "tok2")


def tensor() -> PickledTensor:
    """Three floats."""
    data = memoryview(b"\0\0\x80?\0\0\0@\0\0@@")
    return PickledTensor(Storage("0", 12, lambda: data), "float32", (3,), (1,), 0)


class Maker:
    """Makes values of a version's types, each in every form that it has."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.types = frozen_table(version).definitions
        self.old = version in ("1", "2")
        self.plain = version not in ("draft",) and parse_version(version.split("-")[0]) < (8, 0)
        self.none: Any = [] if self.plain else True

    def has(self, type_name: str, field: str) -> bool:
        """Return whether the version has a field or arm."""
        return type_name in self.types and field in self.types[type_name].fields

    def some(self, kind: Type) -> Any:
        """One value of a type."""
        match kind:
            case Scalar(name):
                return {"str": "x", "int": 3, "float": 0.5, "bool": True, "bytes": ""}[name]
            case ListOf(item):
                return [self.some(item)]
            case DictOf(item):
                return {"k": self.some(item)}
            case Nullable(inner):
                return self.some(inner)
            case TupleOf(items):
                return [self.some(item) for item in items]
            case AnyOf(arms):
                return self.some(arms[0])
            case Ref(name):
                return self.every(name)[0]

    def every(self, name: str) -> list[Any]:
        """Values of a type that together use every member, arm or field of it."""
        special = {
            "SymExpr": self._expressions,
            "SymBool": self._truths,
            "SymFloat": self._floats,
            "Device": self._devices,
            "RangeConstraint": self._ranges,
            "CustomObjArgument": self._objects,
            "Argument": self._arguments,
            "OptionalTensorArgument": self._optionals,
            "ConstantValue": self._constant_values,
            "NamedArgument": self._named_arguments,
        }
        if name in special:
            return special[name]()
        row = self.types[name]
        if row.kind == "enum":
            return [member.value for member in row.members.values()]
        if row.kind == "union":
            return [{arm: self.some(canonical_type(name, field))} for arm, field in row.fields.items()]
        whole = {key: self.some(canonical_type(name, field)) for key, field in row.fields.items()}
        empty = default_values(row)
        return [whole, {**whole, **empty}] if empty else [whole]

    def _expressions(self) -> list[Any]:
        text = "s0 + 1" if self.plain else "Add(Symbol('s0', positive=True, integer=True), Integer(1))"
        hints: list[Any] = [4] if self.version == "1" else self.every("SymExprHint")
        return [*({"expr_str": text, "hint": hint} for hint in hints), {"expr_str": text, "hint": None}]

    def _truths(self) -> list[Any]:
        if self.version == "1":
            return [{"as_expr": "s0 >= 2"}, {"as_bool": True}]
        text = "s0 >= 2" if self.plain else "GreaterThan(Symbol('s0', positive=True, integer=True), Integer(2))"
        return [{"as_expr": {"expr_str": text, "hint": {"as_bool": True}}}, {"as_bool": True}]

    def _floats(self) -> list[Any]:
        text = "ToFloat(Symbol('s0', positive=True, integer=True))"
        return [{"as_expr": {"expr_str": text, "hint": {"as_float": 4.0}}}, {"as_float": "-Infinity"}]

    def _devices(self) -> list[Any]:
        return [{"type": "cpu", "index": None}, {"type": "cuda", "index": 1}]

    def _ranges(self) -> list[Any]:
        return [{"min_val": 2, "max_val": 64}, {"min_val": 0, "max_val": None}]

    def _objects(self) -> list[Any]:
        if self.version == "1":
            return [{"blob": base64.b64encode(b"torchbind").decode()}]
        known = {"class_fqn": "golden.Thing"} if self.has("CustomObjArgument", "class_fqn") else {}
        return [{"name": "obj", **known}]

    def _arguments(self) -> list[Any]:
        row = self.types["Argument"].fields
        found = []
        for arm, field in row.items():
            values: dict[str, list[Any]] = {
                "as_none": [self.none],
                "as_tensor": [{"name": "x"}],
                "as_tensors": [[{"name": "x"}, {"name": "p"}], []],
                "as_optional_tensors": [self.every("OptionalTensorArgument")],
                "as_optional_tensor": self.every("OptionalTensorArgument"),
                "as_nested_tensors": [[[{"name": "x"}], []]],
                "as_sym_int": [{"as_name": "n"}],
                "as_sym_ints": [[{"as_name": "n"}, {"as_int": 3}]],
                "as_sym_bool": [{"as_name": "b"}],
                "as_sym_bools": [[{"as_name": "b"}, {"as_bool": False}]],
                "as_sym_float": [{"as_name": "f"}],
                "as_sym_floats": [[{"as_name": "f"}, {"as_float": "NaN"}]],
                "as_float": ["Infinity", 1e-05],
                "as_string": ["ü\n"],
                "as_operator": ["torch.ops.aten.add.Tensor"],
                "as_graph": [{"name": "branch", "graph": self._branch()}],
                "as_string_to_argument": [{"k": {"as_int": 1}}],
                "as_device": self.every("Device"),
                "as_scalar_type": self.every("ScalarType"),
                "as_layout": self.every("Layout"),
                "as_memory_format": self.every("MemoryFormat"),
            }
            given = values[arm] if arm in values else [self.some(field.type)]
            found += [{arm: value} for value in given]
        return found

    def _optionals(self) -> list[Any]:
        bare = self.version in ("1", "2", "5.1")
        return [{"as_tensor": "x" if bare else {"name": "x"}}, {"as_none": self.none}]

    def _constant_values(self) -> list[Any]:
        return [{"as_none": self.none}, {"as_int": 3}, {"as_float": 0.5}, {"as_string": "abc"}, {"as_bool": True}]

    def _named_arguments(self) -> list[Any]:
        kinds: list[Any] = [None, *self.every("ArgumentKind")] if "ArgumentKind" in self.types else [None]
        found = []
        for index, argument in enumerate(self._arguments()):
            kind = {"kind": kinds[index % len(kinds)]} if self.has("NamedArgument", "kind") else {}
            found.append({"name": f"a{index}", "arg": argument, **kind})
        return found

    def _meta(self, dtype: int = 7, layout: int = 7, **more: Any) -> dict[str, Any]:
        return {
            "dtype": dtype,
            "sizes": [{"as_int": 3}],
            "requires_grad": False,
            "device": self.every("Device")[0],
            "strides": [{"as_int": 1}],
            "storage_offset": 0 if self.old else {"as_int": 0},
            "layout": layout,
            **more,
        }

    def metas(self) -> dict[str, Any]:
        """Every element type, layout, size and device, by name."""
        found = {f"dtype_{number}": self._meta(dtype=number) for number in self.every("ScalarType")}
        found |= {f"layout_{number}": self._meta(layout=number) for number in self.every("Layout")}
        for index, size in enumerate(self.every("SymInt") + [{"as_expr": e} for e in self.every("SymExpr")]):
            found[f"size_{index}"] = self._meta(sizes=[size], requires_grad=True)
        found["device"] = self._meta(device=self.every("Device")[1])
        return found

    def _node(self, target: str, inputs: list[Any], outputs: list[Any], **more: Any) -> dict[str, Any]:
        made = {
            "target": target,
            "inputs": inputs,
            "outputs": outputs,
            "metadata": {"stack_trace": STACK, "nn_module_stack": self._stack()},
            "is_hop_single_tensor_return": None,
            "name": None,
            **more,
        }
        return {key: value for key, value in made.items() if key in self.types["Node"].fields}

    def _stack(self) -> str:
        if self.version == "1":
            return "L__self__:(,golden.M);k:(L['self'].a,golden.A)"
        return "L__self__,,golden.M;k,a,golden.A"

    def _graph(
        self, inputs: list[Any], outputs: list[Any], nodes: list[Any], values: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        if self.version == "1":
            values = {name: {"meta": meta} for name, meta in values.items()}
        made = {
            "inputs": inputs,
            "outputs": outputs,
            "nodes": nodes,
            "tensor_values": values,
            "sym_int_values": {},
            "sym_bool_values": {},
            "is_single_tensor_return": False,
            "custom_obj_values": {},
            "sym_float_values": {},
            "constants": {},
            "co_fileinfo_ordered_list": [],
            **more,
        }
        return {key: value for key, value in made.items() if key in self.types["Graph"].fields}

    def _branch(self) -> dict[str, Any]:
        inputs = [{"as_tensor": {"name": "x"}}]
        return self._graph(inputs, inputs, [], {"x": self._meta()}, is_single_tensor_return=True)

    def _named(self, argument: Any, name: str = "") -> dict[str, Any]:
        kind = {"kind": 1} if self.has("NamedArgument", "kind") else {}
        return {"name": name, "arg": argument, **kind}

    def nodes(self) -> list[Any]:
        """A call with every argument, one with every kind of result, and higher-order calls."""
        kitchen = self._node(
            "torch.ops.golden.kitchen.default", self._named_arguments(), [{"as_tensor": {"name": "k"}}]
        )
        if self.has("Node", "name"):
            kitchen["name"] = "kitchen"
        if self.version == "5.3-traces":
            kitchen["metadata"]["stack_trace"] = "0:3;"
        listed = [{"name": name} for name in ("r1", "m1", "m2", "m3", "g1", "g2", "loss", "tok2")]
        results: list[Any] = [{"as_tensor": {"name": "r0"}}, {"as_tensors": listed}]
        results += [{"as_sym_int": {"as_name": "n"}}, {"as_sym_bool": {"as_name": "b"}}]
        results += [{"as_sym_float": {"as_name": "f"}}] if self.has("Argument", "as_sym_float") else []
        results += [{"as_none": self.none}]
        many = self._node("torch.ops.golden.results.default", [self._named({"as_tensor": {"name": "x"}}, "x")], results)
        operands = self._named({"as_tensors": [{"name": "x"}]})
        branch = self._named({"as_graph": {"name": "branch", "graph": self._branch()}})
        condition = self._named({"as_tensor": {"name": "x"}})
        before = not self.has("Node", "is_hop_single_tensor_return")
        tuple_of_one: list[Any] = [{"as_tensors": [{"name": "t"}]}] if before else [{"as_tensor": {"name": "t"}}]
        given = [condition, branch, branch, operands]
        single = [{"as_tensor": {"name": "c"}}]
        calls = [
            self._node("torch.ops.higher_order.cond", given, single, is_hop_single_tensor_return=True),
            self._node("torch.ops.higher_order.cond", given, tuple_of_one, is_hop_single_tensor_return=False),
        ]
        if self.has("Node", "name"):
            calls[0]["name"] = "c"
        for node in (many, *calls):
            if self.version == "5.3-traces":
                node["metadata"]["stack_trace"] = "no trace"
        return [many, kitchen, *calls]

    def program(self) -> dict[str, Any]:
        """The whole program."""
        inputs, specs = self.inputs()
        outputs, results = self.outputs()
        values = {name: self._meta() for name in VALUES if not (name == "cst" and self.version == "1")}
        lines = {"3": {"name": "forward", "line": "return x + 1"}}
        root = self._graph(
            inputs,
            outputs,
            self.nodes(),
            {**values, **self.metas()},
            sym_int_values={"n": self.every("SymInt")[0], "i": {"as_int": 3}},
            sym_bool_values=dict(zip(("b", "b2"), self.every("SymBool"), strict=True)),
            sym_float_values=dict(zip(("f", "f2"), self._floats(), strict=True)),
            custom_obj_values={"obj": self._objects()[0]},
            constants={"cst": base64.b64encode(torch_save.dumps(tensor(), "cst")).decode()},
            co_fileinfo_ordered_list=[{"file_name": "model.py", "line_info_map": lines}],
        )
        module: dict[str, Any] = {"graph": root, "signature": self._signature(specs, results)}
        call = self._signature_of_call()
        if self.version == "1":
            module["call_spec"] = call
            module["module_call_graph"] = []
        else:
            module["module_call_graph"] = [{"fqn": "", "signature": {"inputs": [], "outputs": [], **call}}]
        argument = [{"as_tensor": {"name": "x"}}]
        inner = {"inputs": argument, "outputs": argument, **call, "in_spec": self.call(LEAF)}
        inner |= {"forward_arg_names": ["x", "y"]} if self.has("ModuleCallSignature", "forward_arg_names") else {}
        module["module_call_graph"] += [{"fqn": "a", "signature": inner}, {"fqn": "b", "signature": None}]
        module |= {"metadata": {"key": "text"}} if self.has("GraphModule", "metadata") else {}
        if self.has("GraphModule", "treespec_namedtuple_fields"):
            module["treespec_namedtuple_fields"] = {"golden.NT": {"field_names": ["a", "b"]}}
        return {"graph_module": module, **self.rest()}

    def rest(self) -> dict[str, Any]:
        """The top level next to the graph module."""
        major, minor = parse_version(self.version.split("-")[0])
        unbacked = "i0" if self.old else "u0"
        made: dict[str, Any] = {
            "opset_version": {"aten": 10},
            "range_constraints": dict(zip(("s0", unbacked), self._ranges(), strict=True)),
            "equality_constraints": [],
            "schema_version": major if self.old else {"major": major, "minor": minor},
            "example_inputs": None,
            "dialect": "ATEN",
            "verifiers": ["ATEN"],
            "torch_version": "2.99.0",
            "guards_code": ["L['x'].size()[0] == 3"],
        }
        return {key: value for key, value in made.items() if key in self.types["ExportedProgram"].fields}

    def _signature_of_call(self) -> dict[str, Any]:
        described = '{"class_name": "NT", "fields": ["a", "b"]}'
        pair = PAIR % (described if self.version in ("1", "2", "5.1") else '"golden.NT"')
        made: dict[str, Any] = {"in_spec": self.call(pair), "out_spec": f"[1, {pair}]"}
        return {**made, "forward_arg_names": None} if self.has("ModuleCallSignature", "forward_arg_names") else made

    def call(self, second: str) -> str:
        """The in_spec of a call with two positional arguments."""
        arguments = TUPLE % f"{LEAF}, {second}"
        return f"[1, {arguments}]" if self.version == "1" else f"[1, {TUPLE % f'{arguments}, {NO_KEYWORDS}'}]"

    def inputs(self) -> tuple[list[Any], list[Any]]:
        """Graph inputs, and the spec of each, one for every arm."""
        tensors = {"parameter": ("p", "a.weight"), "buffer": ("buf", "a.buf"), "tensor_constant": ("cst", "a.cst")}
        if self.version == "1":
            tensors.pop("tensor_constant")
        arguments: list[Any] = []
        specs: list[Any] = []
        if self.has("InputSpec", "token"):
            arguments.append({"as_tensor": {"name": "tok"}})
            specs.append({"token": {"arg": {"name": "tok"}}})
        for arm, (name, target) in tensors.items():
            flags: list[dict[str, Any]] = [{}]
            if arm == "buffer" and self.has("InputToBufferSpec", "persistent"):
                flags = [{"persistent": True}, {"persistent": False}]
            for index, flag in enumerate(flags):
                value = "tmp" if index else name
                arguments.append({"as_tensor": {"name": value}})
                specs.append({arm: {"arg": {"name": value}, f"{arm}_name": f"{target}{index or ''}", **flag}})
        if self.has("InputSpec", "custom_obj"):
            thing = self._objects()[0]
            arguments.append({"as_custom_obj": thing})
            specs.append({"custom_obj": {"arg": thing, "custom_obj_name": "a.obj"}})
        arguments.append({"as_tensor": {"name": "x"}})
        specs.append({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})
        if self.version != "1":
            for value in self._constant_values():
                arguments.append(value)
                named = {"constant_input": {"name": f"in_{len(specs)}", "value": value}}
                specs.append(named if self.has("InputSpec", "constant_input") else {"user_input": {"arg": value}})
        return arguments, specs

    def outputs(self) -> tuple[list[Any], list[Any]]:
        """Graph outputs, and the spec of each, one for every arm."""
        made: dict[str, tuple[str, dict[str, str]]] = {
            "token": ("tok2", {}),
            "buffer_mutation": ("m1", {"buffer_name": "a.buf"}),
            "parameter_mutation": ("m2", {"parameter_name": "a.weight"}),
            "user_input_mutation": ("m3", {"user_input_name": "x"}),
            "user_output": ("k", {}),
            "loss_output": ("loss", {}),
            "gradient_to_parameter": ("g1", {"parameter_name": "a.weight"}),
            "gradient_to_user_input": ("g2", {"user_input_name": "x"}),
        }
        arguments, specs = [], []
        for arm, (name, more) in made.items():
            first = ("buffer_mutation", "user_output", "loss_output", "gradient_to_parameter", "gradient_to_user_input")
            if not (self.has("OutputSpec", arm) if "OutputSpec" in self.types else arm in first):
                continue
            arguments.append({"as_tensor": {"name": name}})
            arg = {"as_tensor": {"name": name}} if arm == "user_output" else {"name": name}
            specs.append({arm: {"arg": arg, **more}})
        return arguments, specs

    def _signature(self, inputs: list[Any], outputs: list[Any]) -> dict[str, Any]:
        if self.version != "1":
            return {"input_specs": inputs, "output_specs": outputs}
        return {
            "inputs_to_parameters": {"p": "a.weight"},
            "inputs_to_buffers": {"buf": "a.buf"},
            "user_inputs": ["x"],
            "user_outputs": ["k", "loss"],
            "buffers_to_mutate": {"m1": "a.buf"},
            "backward_signature": {
                "gradients_to_parameters": {"g1": "a.weight"},
                "gradients_to_user_inputs": {"g2": "x"},
                "loss_output": "loss",
            },
        }
