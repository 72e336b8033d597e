"""Container types of pytree specs: the number of children of each, and the keys by which they are reached.

Covers the types that torch registers with a serialized name: tuple, list, dict, OrderedDict, defaultdict, deque,
named tuples (both context styles), torch.Size, torch.return_types and the two immutable collections of fx. Other types
are the user's; their context is data, and two shapes of it are understood because libraries register with them:
`[[field, ...], [fields that are None]]` (torch's dataclasses) and a list of as many strings as there are children
(output classes). Enum members in contexts stay descriptions; nothing is imported.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeGuard

from pt2kit.errors import Problem, Pt2Error, SchemaError, attempt
from pt2kit.messages import count_text, kind_of, printable, quote
from pt2kit.treespec.spec import TreeSpec, context_value, inner_context, walk

NAMEDTUPLE = "collections.namedtuple"
DEQUE = "collections.deque"
DEFAULTDICT = "collections.defaultdict"
_OPERATORS: Final = """
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fused_moving_avg_obs_fq_helper _linalg_det
    _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd _lu_with_info _scaled_dot_product_cudnn_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_for_cpu _unpack_dual aminmax cummax cummin frexp geqrf histogram
    histogramdd kthvalue linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv_ex linalg_ldl_factor
    linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_polar linalg_qr
    linalg_slogdet linalg_solve_ex linalg_svd lu_unpack max median min mode nanmedian qr slogdet sort svd symeig
    topk triangular_solve
"""
RETURN_TYPES: Final = frozenset(
    f"torch.return_types.{name}{out}" for name in _OPERATORS.split() for out in ("", "_out")
)
"""The tuples that operators of torch return; torch 2.1, 2.2 and 2.15 have them in tree specs, others refuse them."""
SEQUENCES: Final[Mapping[str, type]] = {
    "builtins.tuple": tuple,
    "builtins.list": list,
    "torch.Size": tuple,
    "torch.fx.immutable_collections.immutable_list": list,
    DEQUE: deque,
    **dict.fromkeys(RETURN_TYPES, tuple),
}
"""Type of a sequence -> the class of its values in plain Python."""
MAPPINGS: Final[Mapping[str, type]] = {
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
    "torch.fx.immutable_collections.immutable_dict": dict,
    DEFAULTDICT: defaultdict,
}
"""Type of a dict-like container -> the class of its values in plain Python."""
FACTORIES: Final[Mapping[str, type]] = {
    f"{kind.__module__}.{kind.__name__}": kind
    for kind in (
        *(bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple),
        *(Counter, OrderedDict, defaultdict, deque),
    )
}
"""Name of a factory that a defaultdict may have -> the factory."""

PYTHONS_OWN: Final = frozenset((*MAPPINGS, *SEQUENCES, NAMEDTUPLE))
"""Types whose containers are Python's, or torch's by itself; of others, a reader may not have the class."""

FieldTable = Mapping[str, Sequence[str]]
"""Registered type name of a named tuple -> its field names: `treespec_namedtuple_fields` of schema 8.7 and later."""


@dataclass(frozen=True, slots=True)
class EnumKey:
    """An enum member in a context: its class as "module:Qualified.Name", and its name in it. Never looked up."""

    fqn: str
    name: str

    def __repr__(self) -> str:
        return f"<{printable(self.fqn.partition(':')[2] or self.fqn)}.{printable(self.name)}>"


@dataclass(frozen=True, slots=True)
class Key:
    """How a child is reached from its container.

    Args:
        kind: "index" of a sequence, "item" of a mapping, "field" of a named tuple or dataclass.
        value: the index (int), the mapping's key (a scalar, a tuple of them, or an EnumKey), or the field name (str).
    """

    kind: Literal["index", "item", "field"]
    value: object

    @property
    def step(self) -> object:
        """Return the key as a step on a path to an input (`symbols.guards.Path`): (name,) for a field."""
        return (self.value,) if self.kind == "field" else self.value

    def __str__(self) -> str:
        text = printable(str(self.value) if self.kind == "field" else repr(self.value))
        return f".{text}" if self.kind == "field" else f"[{text}]"


def names_of_fields(spec: TreeSpec, where: str, fields: FieldTable) -> dict[str, tuple[str, ...] | None]:
    """Return the names of the fields of each type of container in a spec.

    Returns:
        type -> names; None for a type whose children are not fields, or that has others elsewhere in the spec.

    Raises: as `child_keys`.
    """
    names: dict[str, tuple[str, ...] | None] = {}
    for node in walk(spec):
        if not node.is_leaf:
            keys = child_keys(node, where, fields)
            named = tuple(str(key.value) for key in keys) if all(key.kind == "field" for key in keys) else None
            if names.setdefault(str(node.type), named) != named:
                names[str(node.type)] = None
    return names


def child_keys(spec: TreeSpec, where: str = "treespec", fields: FieldTable | None = None) -> tuple[Key, ...]:
    """Return the key of every child of one container, in order.

    Args:
        spec: a container; its children are not looked into.
        where: place of the node, for messages.
        fields: field names of named tuples, where the file has the table.

    Raises:
        SchemaError: the context does not fit the type or the number of children.
        JsonError: a context string that is not JSON.
    """
    if spec.is_leaf:
        return ()
    if spec.type in SEQUENCES:
        return _sequence_keys(spec, where)
    if spec.type in MAPPINGS:
        keys = mapping_keys(spec, where)
        _check_count(spec, where, len(keys), "one child per key of the context")
        return tuple(Key("item", key) for key in keys)
    if spec.type == NAMEDTUPLE:
        names = namedtuple_fields(spec, where, fields)
        if names is None:
            return _indices(spec)
        _check_count(spec, where, len(names), f"one child per field ({', '.join(map(printable, names))})")
        return tuple(Key("field", name) for name in names)
    return listed_keys(spec)


def find_problems(spec: TreeSpec, where: str = "treespec", fields: FieldTable | None = None) -> Iterator[Problem]:
    """Yield each container of a spec that contradicts its context, with its path in the JSON of the spec, parents
    first.

    Types that are not built in are not checked. The caller names the rule.
    """
    stack = [(spec, f"{where}: $[1]", -1)]
    while stack:
        node, place, index = stack.pop()
        if index >= 0:  # the place is made here and not when pushed: a wide node would hold a long text per child
            place = f"{place}.children_spec[{index}]"
        try:
            child_keys(node, place, fields)
        except Pt2Error as error:
            yield Problem(place, "", error.message.removeprefix(f"{place}: "))
        stack.extend((node.children[i], place, i) for i in reversed(range(len(node.children))))


def key_paths(spec: TreeSpec, where: str = "treespec", fields: FieldTable | None = None) -> tuple[str, ...]:
    """Return the path of every leaf, like "[0]['mask'].values", left to right; non-printing characters are escaped.

    Raises:
        SchemaError, JsonError: as `child_keys`.

    Source: `keystr` in torch/utils/_pytree.py (2.13) writes the same for its builtin containers.
    """
    return tuple("".join(map(str, keys)) for keys in leaf_keys(spec, where, fields))


def leaf_keys(spec: TreeSpec, where: str = "treespec", fields: FieldTable | None = None) -> Iterator[tuple[Key, ...]]:
    """Yield the keys that lead to each leaf, left to right.

    Raises:
        SchemaError, JsonError: as `child_keys`.
    """
    stack: list[tuple[TreeSpec, tuple[Key, ...]]] = [(spec, ())]
    while stack:
        node, path = stack.pop()
        if node.is_leaf:
            yield path
            continue
        keys = child_keys(node, f"{where}: tree{''.join(map(str, path))}", fields)
        stack.extend((child, (*path, key)) for child, key in zip(reversed(node.children), reversed(keys), strict=True))


def mapping_keys(spec: TreeSpec, where: str = "treespec") -> tuple[object, ...]:
    """Return the keys of a dict-like container, hashable: lists became tuples, enum members `EnumKey`s.

    Raises:
        SchemaError: the context is not a list of distinct keys.
    """
    keys = defaultdict_parts(spec, where)[1] if spec.type == DEFAULTDICT else inner_context(spec, where)
    if not isinstance(keys, list):
        raise SchemaError(f"{where}: expected a list of keys as the context of {spec.type}, got {kind_of(keys)}")
    frozen = tuple(_freeze(key, where) for key in keys)
    if len(set(frozen)) < len(frozen):
        raise SchemaError(f"{where}: expected distinct keys, got {len(set(frozen))} distinct ones among {len(frozen)}")
    return frozen


def defaultdict_parts(spec: TreeSpec, where: str = "treespec") -> tuple[str, list[object]]:
    """Return the name of a defaultdict's factory as "module.name", and its keys as JSON values. The factory is not
    imported.

    Raises:
        SchemaError: the context is not the object that torch writes.
    """
    context = context_value(spec, where)
    expected = ("default_factory_module", "default_factory_name", "dict_context")
    if not isinstance(context, dict) or set(context) != set(expected):
        raise SchemaError(f"{where}: expected a context with the keys {', '.join(expected)}, got {kind_of(context)}")
    module, name, keys = (context[key] for key in expected)
    if not isinstance(module, str) or not isinstance(name, str) or not isinstance(keys, list):
        raise SchemaError(f"{where}: expected two names and a list of keys in the context, got {kind_of(context)}")
    return f"{module}.{name}", keys


def namedtuple_name(spec: TreeSpec, where: str = "treespec") -> str | None:
    """Return the type name of a named tuple: registered name (torch 2.4 on) or bare class name; None for other
    nodes."""
    if spec.type != NAMEDTUPLE:
        return None
    context = context_value(spec, where)
    if isinstance(context, dict):
        context = context.get("class_name")
    if not isinstance(context, str):
        raise SchemaError(f"{where}: expected a type name as the context of a named tuple, got {kind_of(context)}")
    return context


def namedtuple_fields(
    spec: TreeSpec, where: str = "treespec", fields: FieldTable | None = None
) -> tuple[str, ...] | None:
    """Return the field names of a named tuple, from its own context (up to torch 2.3) or the table; None if neither has
    them.

    Raises:
        SchemaError: names that are no names, or the same name twice.
    """
    name = namedtuple_name(spec, where)
    context = context_value(spec, where)
    if isinstance(context, dict):
        if set(context) != {"class_name", "fields"}:
            raise SchemaError(f"{where}: expected a context with the keys class_name, fields, got {kind_of(context)}")
        names: object = context["fields"]
    else:
        names = (fields or {}).get(name or "")
    if names is None:
        return None
    if not isinstance(names, Sequence) or isinstance(names, str) or not _all_strings(names):
        raise SchemaError(f"{where}: expected a list of field names for {quote(name)}, got {kind_of(names)}")
    if len(set(names)) < len(names):
        raise SchemaError(f"{where}: expected distinct field names for {quote(name)}, got {kind_of(list(names))}")
    return tuple(names)


def _sequence_keys(spec: TreeSpec, where: str) -> tuple[Key, ...]:
    value = inner_context(spec, where)
    if spec.type != DEQUE:
        if value is not None:
            raise SchemaError(f"{where}: expected the context null for {spec.type}, got {kind_of(value)}")
        return _indices(spec)
    if value is not None and (type(value) is not int or value < 0):
        raise SchemaError(f"{where}: expected a maxlen or null as the context of a deque, got {kind_of(value)}")
    if isinstance(value, int) and len(spec.children) > value:
        raise SchemaError(f"{where}: expected at most maxlen = {value} children of a deque, got {len(spec.children)}")
    return _indices(spec)


def listed_keys(spec: TreeSpec) -> tuple[Key, ...]:
    """Return the keys of a container of a type that is not built in, which usual contexts list; indices otherwise.

    The usual contexts are a list of names, and a list that begins with one: names and further data.
    """
    value = attempt(inner_context, spec)  # any context is allowed for a user's type
    if not isinstance(value, list):
        return _indices(spec)
    is_nested = bool(value) and isinstance(value[0], list)
    names = value[0] if is_nested else value
    if not _all_strings(names) or len(set(names)) < len(names) or len(names) != len(spec.children):
        return _indices(spec)
    is_dataclass = is_nested and len(value) == 2 and isinstance(value[1], list) and _all_strings(value[1])
    return tuple(Key("field" if is_dataclass else "item", name) for name in names)


def _indices(spec: TreeSpec) -> tuple[Key, ...]:
    return tuple(Key("index", i) for i in range(len(spec.children)))


def _check_count(spec: TreeSpec, where: str, expected: int, meaning: str) -> None:
    if len(spec.children) != expected:
        count = count_text(expected, "child", "children")
        raise SchemaError(f"{where}: expected {count} of {spec.type}, {meaning}, got {len(spec.children)}")


def _freeze(key: object, where: str) -> object:
    if isinstance(key, list):
        return tuple(_freeze(part, where) for part in key)
    if not isinstance(key, dict):
        return key
    fqn, name = key.get("fqn"), key.get("name")
    if set(key) != {"__enum__", "fqn", "name"} or not isinstance(fqn, str) or not isinstance(name, str):
        raise SchemaError(f"{where}: expected a scalar, a list or an enum member as a key, got {kind_of(key)}")
    return EnumKey(fqn, name)


def _all_strings(values: Sequence[object]) -> TypeGuard[Sequence[str]]:
    return all(isinstance(value, str) for value in values)
