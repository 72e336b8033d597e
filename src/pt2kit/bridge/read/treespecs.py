"""Build live `pytree.TreeSpec`s from tree specs as data, of classes that are registered already. Nothing is imported.

A named tuple whose class is not registered gets a placeholder class with the stored fields, any other container a
`Placeholder`. Classes of modules among the inputs, factories and enum classes are needed; `TreeSpecs.missing` lists
those that are not available, for a whole program.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from pt2kit import treespec
from pt2kit.bridge.placeholder_types import STAND_IN_NAME, Placeholder, placeholder_context
from pt2kit.bridge.read.module_inputs import find_module_class, is_module, module_context
from pt2kit.bridge.torch_names import leaf_spec, pytree
from pt2kit.errors import SchemaError, UnsupportedError
from pt2kit.treespec.kinds import DEFAULTDICT, MAPPINGS, NAMEDTUPLE, FieldTable, defaultdict_parts
from pt2kit.treespec.spec import TreeSpec

_FACTORIES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        f"builtins.{kind.__name__}": kind
        for kind in (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple)
    }
    | {
        f"collections.{kind.__name__}": kind
        for kind in (collections.Counter, collections.OrderedDict, collections.deque)
    }
    | {"collections.defaultdict": collections.defaultdict}
)


class TreeSpecs:
    """Builds the live specs of one program; one placeholder class per named tuple.

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
        treespec.validate(spec, where, self.fields)
        leaf = leaf_spec()

        def build(node: TreeSpec, children: list[pytree.TreeSpec]) -> pytree.TreeSpec:
            return pytree.TreeSpec(*self._type(node, where), children)

        return treespec.fold(spec, lambda _: leaf, build)

    def missing(self, specs: Iterable[Iterable[TreeSpec]]) -> Iterator[str]:
        """Yield what the specs of a program need and this process lacks: type names, factories, enum classes.

        Raises:
            SchemaError: a context that contradicts its type.
        """
        for spec in chain.from_iterable(specs):
            yield from self._missing(spec)

    def _missing(self, spec: TreeSpec, where: str = "in_spec or out_spec") -> Iterator[str]:
        for node in treespec.walk(spec):
            if node.is_leaf or node.type == NAMEDTUPLE:
                continue
            if str(node.type) not in pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE:
                if is_module(node) and find_module_class(str(node.type), self._trust) is None:
                    yield f"the container type {node.type}"
            elif node.type == DEFAULTDICT:
                factory = defaultdict_parts(node, where)[0]
                if factory not in _FACTORIES:
                    yield f"the factory {factory} of a defaultdict"
            if node.type in MAPPINGS:
                for key in treespec.mapping_keys(node, where):
                    if isinstance(key, treespec.EnumKey) and find_enum(key.fqn) is None:
                        yield f"the enum class {key.fqn}"

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
        name, _ = defaultdict_parts(node, where)
        if name not in _FACTORIES:
            raise UnsupportedError(
                f"{where}: expected a factory that is a plain container or number, got {name[:80]!a}"
            )
        return [_FACTORIES[name], [_live_key(key, where) for key in treespec.mapping_keys(node, where)]]
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
