"""Live tree specs (`pytree.TreeSpec`), signature classes and module call graph of torch, from verified data.

Tree specs are built from specs as data, of classes that are registered already. Nothing is imported. A named tuple
whose class is not registered gets a placeholder class with the stored fields, any other container a `Placeholder`.
Classes of modules among the inputs, factories and enum classes are needed; `TreeSpecs.missing` lists those that are not
available, for a whole program.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from torch.export import graph_signature as live
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature

from pt2kit import schema, treespec
from pt2kit.bridge.placeholder_types import STAND_IN_NAME, Placeholder, placeholder_context
from pt2kit.bridge.read.module_inputs import find_module_class, is_module, module_context
from pt2kit.bridge.read.names import attribute_path, check_variable
from pt2kit.bridge.torch_names import leaf_spec, pytree
from pt2kit.errors import GraphError, SchemaError, UnsupportedError
from pt2kit.signature.convert import argument_spec
from pt2kit.signature.export_signature import ExportGraphSignature
from pt2kit.signature.specs import (
    NAMED,
    ArgumentSpec,
    ConstantArgument,
    CustomObjArgument,
)
from pt2kit.treespec.containers import DEFAULTDICT, MAPPINGS, NAMEDTUPLE, FieldTable, defaultdict_parts
from pt2kit.treespec.spec import TreeSpec

_FACTORIES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        f"{kind.__module__}.{kind.__name__}": kind
        for kind in (
            *(bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple),
            *(collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque),
        )
    }
)

WHERE = "$.graph_module.module_call_graph"

Specs = tuple[treespec.TreeSpec, ...]
"""in_spec and out_spec of an entry; () for one without signature."""

_NAMED: Final[Mapping[type, Callable[..., Any]]] = MappingProxyType({kind: vars(live)[kind.__name__] for kind in NAMED})
"""Class of an argument that stands for a value -> torch's class of its name."""


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
    """

    def __init__(self, fields: FieldTable, trust: Set[str] = frozenset()) -> None:
        self.fields = fields
        self._trust = trust
        self._stand_ins: dict[str, Any] = {}

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

    def missing(self, specs: Iterable[Iterable[TreeSpec]]) -> Iterator[Missing]:
        """Yield what the specs of a program need and this process lacks: type names, factories, enum classes.

        Raises:
            SchemaError: a context that contradicts its type.
        """
        where = "in_spec or out_spec"
        for node in chain.from_iterable(map(treespec.walk, chain.from_iterable(specs))):
            if node.is_leaf or node.type == NAMEDTUPLE:
                continue
            if str(node.type) not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
                if is_module(node) and find_module_class(str(node.type), self._trust) is None:
                    yield Missing(CONTAINER, str(node.type))
            elif node.type == DEFAULTDICT:
                factory = defaultdict_parts(node, where)[0]
                if factory not in _FACTORIES:
                    yield Missing(FACTORY, factory)
            if node.type in MAPPINGS:
                for key in treespec.mapping_keys(node, where):
                    if isinstance(key, treespec.EnumKey) and find_enum(key.fqn) is None:
                        yield Missing(ENUM, key.fqn)

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
        python_type = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(str(node.type))
        if python_type is None:
            module = find_module_class(str(node.type), self._trust)
            if module is not None:
                return module, module_context(node, module, where)
            return Placeholder, placeholder_context(node, where)
        return python_type, _context(node, python_type, where)


def _context(node: TreeSpec, kind: Any, where: str) -> Any:
    if node.type == DEFAULTDICT:
        factory = _FACTORIES[defaultdict_parts(node, where)[0]]  # `missing` lists all others.
        return [factory, [_live_key(key, where) for key in treespec.mapping_keys(node, where)]]
    if node.type in MAPPINGS:
        return [_live_key(key, where) for key in treespec.mapping_keys(node, where)]
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


def registered_namedtuples() -> dict[str, str]:
    """Return the registered name of each class name; a class name that two share is left out."""
    names_by_class: dict[str, set[str]] = {}
    for registered, kind in list(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.items()):
        if isinstance(registered, str) and pytree.is_namedtuple_class(kind):
            names_by_class.setdefault(kind.__name__, set()).add(registered)
    return {name: registered.pop() for name, registered in names_by_class.items() if len(registered) == 1}


def parse_specs(entries: Iterable[schema.ModuleCallEntry]) -> list[Specs]:
    """Return the tree specs of every entry, as data. `checks.calls` has found before that they fit the program.

    Args:
        entries: the root first.

    Raises:
        GraphError: a name that no argument can have in generated source.
    """
    return [_parse(entry, f"{WHERE}[{index}].signature") for index, entry in enumerate(entries)]


def live_module_calls(
    entries: Sequence[schema.ModuleCallEntry], parsed: Sequence[Specs], specs: TreeSpecs
) -> list[ModuleCallEntry]:
    """Return the module call graph as torch has it.

    Args:
        entries: the root first.
        parsed: the tree specs of each.
        specs: builds the live tree specs.

    Raises:
        SchemaError: a tree spec that contradicts itself.
        UnsupportedError: an unknown container type.
    """
    return [
        _entry(entry, pair, specs, f"{WHERE}[{index}]")
        for index, (entry, pair) in enumerate(zip(entries, parsed, strict=True))
    ]


def _parse(entry: schema.ModuleCallEntry, where: str) -> Specs:
    if entry.signature is None:
        return ()
    in_spec = treespec.parse(entry.signature.in_spec, f"{where}.in_spec")
    for name in entry.signature.forward_arg_names or ():
        check_variable(name, f"{where}.forward_arg_names: name of an argument")
    for name in treespec.split_call(in_spec, f"{where}.in_spec")[1]:
        check_variable(name, f"{where}.in_spec: name of a keyword argument")
    return in_spec, treespec.parse(entry.signature.out_spec, f"{where}.out_spec")


def _entry(entry: schema.ModuleCallEntry, specs: Specs, live_specs: TreeSpecs, where: str) -> ModuleCallEntry:
    call = entry.signature
    if call is None:
        return ModuleCallEntry(fqn=entry.fqn, signature=None)
    in_spec, out_spec = specs
    return ModuleCallEntry(
        fqn=entry.fqn,
        signature=ModuleCallSignature(
            inputs=[live_argument(argument_spec(argument)) for argument in call.inputs],
            outputs=[live_argument(argument_spec(argument)) for argument in call.outputs],
            in_spec=live_specs.read(in_spec, f"{where}.signature.in_spec"),
            out_spec=live_specs.read(out_spec, f"{where}.signature.out_spec"),
            forward_arg_names=list(call.forward_arg_names) if call.forward_arg_names else None,
        ),
    )


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
    """Return one argument description as torch has it."""
    if isinstance(arg, ConstantArgument):
        value = float(arg.value) if isinstance(arg.value, float) else arg.value
        return live.ConstantArgument(name=arg.name, value=value)
    if isinstance(arg, CustomObjArgument):
        return live.CustomObjArgument(name=arg.name, class_fqn=arg.class_fqn)
    return _NAMED[type(arg)](name=arg.name)


def _target(target: str | None) -> str | None:
    return None if target is None else attribute_path(target)
