"""Live tree specs (`pytree.TreeSpec`), signature classes and module call graph of torch, from verified data.

Tree specs are built from specs as data, of classes that are registered already. Nothing is imported. A named tuple
whose class is not registered gets a placeholder class with the stored fields, any other container a `Placeholder`.
Classes of modules among the inputs, factories and enum classes are needed; `TreeSpecs.missing` has those that are not
available.

export flattens a module (`nn.Module`) among the inputs into its parameters and buffers. A tree spec then has the
module's class as a container type, which torch registers for as long as it needs it. Here such a class is found by its
name only if the caller trusts that name.
"""

from __future__ import annotations

import collections
import dataclasses
import pkgutil
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, Final

import torch
from torch.export import graph_signature as live
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature

from pt2kit import schema, treespec
from pt2kit.bridge.placeholder_types import STAND_IN_NAME, Placeholder, placeholder_context
from pt2kit.bridge.read.names import attribute_path, check_variable
from pt2kit.bridge.torch_names import leaf_spec, pytree, walk_specs
from pt2kit.errors import GraphError, SchemaError, UnsupportedError, attempt
from pt2kit.messages import count_text
from pt2kit.signature.export_signature import ExportGraphSignature
from pt2kit.signature.specs import ArgumentSpec, argument_spec
from pt2kit.treespec.containers import (
    DEFAULTDICT,
    FACTORIES,
    MAPPINGS,
    NAMEDTUPLE,
    RETURN_TYPES,
    FieldTable,
    defaultdict_parts,
)
from pt2kit.treespec.spec import TreeSpec

WHERE = "$.graph_module.module_call_graph"


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a program needs and this process lacks.

    Args:
        what: how messages call it, with a place for its name.
        name: of it, in the file.
    """

    what: str
    name: str


CONTAINER: Final = "the container type {}"
ENUM: Final = "the enum class {}"
FACTORY: Final = "the factory {} of a defaultdict"


class TreeSpecs:
    """Builds the live specs of one program; one placeholder class per named tuple. Contexts fit their types (K3).

    Args:
        fields: the file's table of named-tuple fields.
        trust: names of module classes that may be imported, for modules among the inputs.

    Attributes:
        missing: what the specs that were read need and this process lacks; they cannot be used then.
    """

    def __init__(self, fields: FieldTable, trust: Set[str] = frozenset()) -> None:
        self.fields = fields
        self._trust = trust
        self._stand_ins: dict[str, Any] = {}
        self.missing: list[Missing] = []

    def read(self, spec: TreeSpec, where: str) -> pytree.TreeSpec:
        """Return the live spec.

        Raises:
            SchemaError: a context that contradicts its type.
            UnsupportedError: a container that is not registered.
        """
        leaf = leaf_spec()

        def build(node: TreeSpec, children: list[pytree.TreeSpec]) -> pytree.TreeSpec:
            return pytree.TreeSpec(*self._type(node, where), children)

        return treespec.fold(spec, lambda _: leaf, build)

    def named_tuple(self, name: str, where: str) -> Any:
        """Return the class of a named tuple: the registered one, or a placeholder class with the stored fields.

        Raises:
            UnsupportedError: it is not registered, and the file does not state its fields.
        """
        known = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
        if known is not None and pytree.is_namedtuple_class(known):
            return known
        if name not in self._stand_ins:
            names = self.fields.get(name)
            if names is None:
                raise UnsupportedError(
                    f"{where}: expected the named tuple {name[:80]!a} to be registered, got none of that name: "
                    "import the module that defines and registers it before loading"
                )
            made: Any = treespec.stand_in(name, names, where)
            setattr(made, STAND_IN_NAME, name)
            self._stand_ins[name] = made
        return self._stand_ins[name]

    def _type(self, node: TreeSpec, where: str) -> tuple[Any, Any]:
        """Return the Python type of a container, and its context."""
        if node.type == NAMEDTUPLE:
            return collections.namedtuple, self.named_tuple(treespec.namedtuple_name(node, where) or "", where)
        name = str(node.type)
        python_type = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
        if name in RETURN_TYPES:  # registered in every release, in most without this name
            python_type = getattr(torch.return_types, name.rpartition(".")[2], None)
            if python_type is not None and python_type.n_sequence_fields != len(node.children):
                python_type = None
        if python_type is not None:
            return python_type, self._context(node, python_type, where)
        if (module := find_module_class(name, self._trust)) is not None:
            return module, module_context(node, module, where)
        if is_module(node):
            self.missing.append(Missing(CONTAINER, name))
        return Placeholder, placeholder_context(node, where)

    def _context(self, node: TreeSpec, kind: Any, where: str) -> Any:
        if node.type not in MAPPINGS:
            return _registered_context(node, kind, where)
        keys = [self._key(key, where) for key in treespec.mapping_keys(node, where)]
        if node.type != DEFAULTDICT:
            return keys
        factory = defaultdict_parts(node, where)[0]
        if factory not in FACTORIES:
            self.missing.append(Missing(FACTORY, factory))
        return [FACTORIES.get(factory), keys]

    def _key(self, key: object, where: str) -> object:
        if isinstance(key, treespec.EnumKey) and find_enum(key.fqn) is None:
            self.missing.append(Missing(ENUM, key.fqn))
            return key
        return _live_key(key, where)


def _registered_context(node: TreeSpec, kind: Any, where: str) -> Any:
    definition = pytree.SUPPORTED_SERIALIZED_TYPES[kind]
    dumpable = treespec.context_value(node, where)
    if definition.from_dumpable_context is None:
        if not isinstance(dumpable, str):
            raise SchemaError(f"{where}: expected a context string that holds JSON, got {type(dumpable).__name__}")
        return _live_context(treespec.inner_context(node, where), where)
    try:
        return definition.from_dumpable_context(dumpable)
    except (LookupError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        raise SchemaError(f"{where}: expected a context that {node.type} can read, got: {error}") from error


def _live_context(value: Any, where: str) -> Any:
    """Return a JSON value with its enum members made live; the parser limits their contents."""
    if isinstance(value, list):
        return [_live_context(item, where) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__enum__", "fqn", "name"}:
        return _live_key(treespec.EnumKey(str(value["fqn"]), str(value["name"])), where)
    return {key: _live_context(item, where) for key, item in value.items()}


def _live_key(key: object, where: str) -> object:
    if not isinstance(key, treespec.EnumKey):
        return key
    enum_class = find_enum(key.fqn)
    if enum_class is None or key.name not in enum_class.__members__:
        raise UnsupportedError(
            f"{where}: expected the enum member {key!r} to be known here: import its module before loading"
        )
    return enum_class[key.name]


def find_enum(fqn: str) -> type[Enum] | None:
    """Return the enum class of that name among those that are defined already."""
    todo: list[type[Enum]] = [Enum]
    while todo:
        kind = todo.pop()
        if f"{kind.__module__}:{kind.__qualname__}" == fqn:
            return kind
        todo.extend(kind.__subclasses__())
    return None


def changed_namedtuples(fields: FieldTable) -> dict[str, Any]:
    """Return the registered classes by name, of those named tuples of a file that have other fields there."""
    classes = {name: pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name) for name in fields}
    return {
        name: kind
        for name, kind in classes.items()
        if kind is not None and pytree.is_namedtuple_class(kind) and kind._fields != fields[name]
    }


def registered_namedtuples() -> dict[str, str]:
    """Return the registered name of each class name; a class name that two share is left out."""
    names_by_class: dict[str, set[str]] = {}
    for registered, kind in list(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.items()):
        if isinstance(registered, str) and pytree.is_namedtuple_class(kind):
            names_by_class.setdefault(kind.__name__, set()).add(registered)
    return {name: registered.pop() for name, registered in names_by_class.items() if len(registered) == 1}


class Prototype:
    """Replaces the original module in the context of a spec, as torch's own prototype does once that is gone.

    Args:
        kind: the module's class; torch compares prototypes by it, under the name `_proto_cls`.
    """

    __slots__ = ("_proto_cls", "module")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: type[torch.nn.Module]) -> None:
        self._proto_cls = kind
        self.module: torch.nn.Module | None = None
        """A module of that class, for passes that put modules together again."""

    def __eq__(self, other: object) -> bool:
        return getattr(other, "_proto_cls", None) is self._proto_cls

    def __call__(self) -> torch.nn.Module | None:
        """Return the module, if there is one."""
        return self.module


def find_module_class(name: str, trust: Set[str]) -> type[torch.nn.Module] | None:
    """Return the module class of that name, imported if need be; None if the caller does not trust it or it is none.

    Raises:
        UnsupportedError: it is trusted and cannot be imported.
    """
    if name not in trust:
        return None
    try:
        module_class = pkgutil.resolve_name(":".join(name.rsplit(".", 1)))
    except (ImportError, AttributeError, ValueError) as error:
        raise UnsupportedError(f"trust: expected {name!r} to be importable, got: {error}") from error
    return module_class if isinstance(module_class, type) and issubclass(module_class, torch.nn.Module) else None


def is_module(node: TreeSpec) -> bool:
    """Return whether a container is a module among the inputs: its context is the names of its tensors, and null."""
    stored = attempt(treespec.inner_context, node)
    return isinstance(stored, list) and len(stored) == 2 and isinstance(stored[0], list) and stored[1] is None


def attach_modules(specs: Iterable[pytree.TreeSpec], example_inputs: Any) -> None:
    """Attach the modules among the example inputs to the prototypes in live specs; the first of each class."""
    module_by_type: dict[type, torch.nn.Module] = {}
    for leaf in pytree.tree_leaves(example_inputs):
        if isinstance(leaf, torch.nn.Module):
            module_by_type.setdefault(type(leaf), leaf)
    for spec in chain.from_iterable(map(walk_specs, specs)) if module_by_type else ():
        if spec.type in module_by_type and isinstance(spec.context, list):
            for item in spec.context:
                if isinstance(item, Prototype):
                    item.module = module_by_type[spec.type]


def module_context(node: TreeSpec, kind: type[torch.nn.Module], where: str) -> list[Any]:
    """Return the live context of a module: the names of its tensors, and its prototype.

    Raises:
        SchemaError: not one name for each child.

    Source: `register_module_as_pytree_input_node` in torch/_export/utils.py, 2.13.
    """
    stored = treespec.inner_context(node, where)
    keys = stored[0] if isinstance(stored, list) and len(stored) == 2 else None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise SchemaError(f"{where}: {node.type}: expected the names of a module's tensors as context")
    if len(keys) != len(node.children):
        raise SchemaError(f"{where}: {node.type}: expected {count_text(len(keys), 'tensor')}, got {len(node.children)}")
    return [list(keys), Prototype(kind)]


def read_module_calls(entries: Sequence[schema.ModuleCallEntry], specs: TreeSpecs) -> list[ModuleCallEntry]:
    """Return the module call graph as torch has it.

    Args:
        entries: the root first; `checks.calls` has found before that they fit the program.
        specs: builds the live tree specs.

    Raises:
        GraphError: a name that no argument can have in generated source.
        SchemaError: a tree spec that contradicts itself.
        UnsupportedError: an unknown container type.
    """
    return [_entry(entry, specs, f"{WHERE}[{index}].signature") for index, entry in enumerate(entries)]


def _entry(entry: schema.ModuleCallEntry, specs: TreeSpecs, where: str) -> ModuleCallEntry:
    call = entry.signature
    if call is None:
        return ModuleCallEntry(fqn=entry.fqn, signature=None)
    in_place, out_place = f"{where}.in_spec", f"{where}.out_spec"
    in_spec, out_spec = treespec.parse(call.in_spec, in_place), treespec.parse(call.out_spec, out_place)
    for name in call.forward_arg_names or ():
        check_variable(name, f"{where}.forward_arg_names: name of an argument")
    for name in treespec.split_call(in_spec, in_place)[1]:
        check_variable(name, f"{in_place}: name of a keyword argument")
    live_call = ModuleCallSignature(
        inputs=[live_argument(argument_spec(argument)) for argument in call.inputs],
        outputs=[live_argument(argument_spec(argument)) for argument in call.outputs],
        in_spec=specs.read(in_spec, in_place),
        out_spec=specs.read(out_spec, out_place),
        forward_arg_names=list(call.forward_arg_names) if call.forward_arg_names else None,
    )
    return ModuleCallEntry(fqn=entry.fqn, signature=live_call)


def live_signature(signature: ExportGraphSignature) -> live.ExportGraphSignature:
    """Return the signature as torch has it.

    Raises:
        GraphError: torch refuses it.
    """
    inputs = [
        live.InputSpec(live.InputKind[spec.kind.name], live_argument(spec.arg), _target(spec.target), spec.persistent)
        for spec in signature.input_specs
    ]
    outputs = [
        live.OutputSpec(live.OutputKind[spec.kind.name], live_argument(spec.arg), _target(spec.target))
        for spec in signature.output_specs
    ]
    try:
        return live.ExportGraphSignature(input_specs=inputs, output_specs=outputs)
    except (AssertionError, ValueError) as error:
        raise GraphError(f"$.graph_module.signature: expected a signature that torch takes, got: {error}") from error


def live_argument(arg: ArgumentSpec) -> Any:
    """Return one argument description as torch has it, whose classes have the same names and fields."""
    held = {field.name: getattr(arg, field.name) for field in dataclasses.fields(arg)}
    plain = {name: float(value) if isinstance(value, float) else value for name, value in held.items()}
    return vars(live)[type(arg).__name__](**plain)


def _target(target: str | None) -> str | None:
    return None if target is None else attribute_path(target)
