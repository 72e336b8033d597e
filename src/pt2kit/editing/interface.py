"""Inputs and outputs of a program: specs in the signature with slots in the graph, and editable trees (pytrees).

The leaves of a call's trees are the inputs or outputs themselves. An item of a tuple, a list or a dict can be removed
or inserted. Other containers have a shape of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pt2kit import schema, treespec
from pt2kit.editing.graphs import Slot, Value
from pt2kit.errors import GraphError
from pt2kit.messages import quote
from pt2kit.schema.names import target_of
from pt2kit.schema.reflection import field_classes
from pt2kit.treespec import containers
from pt2kit.treespec.spec import LEAF, TreeSpec

OF_INPUTS: Final = ("user_input_mutation", "gradient_to_user_input")
"""The kinds of outputs whose target is an input of the caller's."""

USER: Final = 2
"""The group of what the caller passes or gets."""

_GROUPS: Final = {
    "token": 0,
    **dict.fromkeys(("user_input", "constant_input", "user_output", "loss_output"), USER),
    **dict.fromkeys(("gradient_to_parameter", "gradient_to_user_input"), 3),
}
"""Kind of an input or output -> its group, as groups follow one another; 1 for those that are not listed."""

_CLOSED: Final = (containers.DEQUE, "torch.Size", *containers.RETURN_TYPES)
SEQUENCES: Final = tuple(kind for kind in containers.SEQUENCES if kind not in _CLOSED)
MAPPINGS: Final = tuple(kind for kind in containers.MAPPINGS if kind != containers.DEFAULTDICT)
"""The containers whose items can be removed and inserted."""

Tree: TypeAlias = "Branch | Any"
"""A container or a leaf."""


class Port:
    """An input or output of a program: what `Input` and `Output` share.

    Attributes:
        slot: its place in the graph.
        kind: the kind of its spec.
        target: the name of the weight, constant or object that it belongs to; None if there is none.
    """

    __slots__ = ("_origin", "kind", "slot", "target")

    def __init__(self, spec: Any, slot: Slot) -> None:
        self._origin = spec
        self.slot = slot
        self.kind: str = spec.type
        self.target: str | None = None if self.kind in OF_INPUTS else target_of(spec)

    @property
    def value(self) -> Value | None:
        """Return the value in the graph; None for a constant of the calling convention."""
        return self.slot.values[0] if self.slot.values else None

    @property
    def name(self) -> str:
        """Return the name of the value; "" for a constant without one."""
        return self.slot.values[0].name if self.slot.values else ""

    @property
    def group(self) -> int:
        """Return the number of its group: tokens, weights and writes, what the caller passes or gets, gradients."""
        return _GROUPS.get(self.kind, 1)

    @property
    def is_user(self) -> bool:
        """Return whether the caller passes or gets it."""
        return self.group == USER

    def spec(self) -> Any:
        """Return the spec in the signature; the spec that was read if nothing changed."""
        union: type[schema.InputSpec | schema.OutputSpec] = type(self._origin)
        new = union(**{self.kind: field_classes(union)[self.kind](*self._fields())})
        return self._origin if new == self._origin else new

    def _fields(self) -> list[Any]:
        """Return the fields of the spec: the argument, then the target if it has one."""
        if self.kind == "token":
            return [schema.TokenArgument(self.name)]
        argument = self.slot.written()
        given = argument if self.kind in ("user_input", "user_output") else argument.value
        return [given] if self.target is None else [given, self.target]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.kind}{f' {self.target}' if self.target else ''}>"


class Input(Port):
    """One input of a program.

    Attributes:
        kind: "user_input", "parameter", "buffer", "tensor_constant", "custom_obj", "token", "constant_input".
        target: the name of the weight, constant or object; None for what the caller passes.
        persistent: whether a buffer is in the state dict.
    """

    __slots__ = ("_constant", "persistent")

    def __init__(self, spec: schema.InputSpec, slot: Slot) -> None:
        super().__init__(spec, slot)
        self.persistent: bool = getattr(spec.value, "persistent", False)
        self._constant: str = spec.value.name if self.kind == "constant_input" else ""

    @classmethod
    def of(cls, value: Value) -> Input:
        """Return an input that the caller passes."""
        slot = Slot.of(value)
        return cls(schema.InputSpec(user_input=schema.UserInputSpec(slot.template)), slot)

    @property
    def name(self) -> str:
        """Return the name of the value, or of the placeholder of a constant; "" for a constant without one."""
        return super().name or self._constant

    @property
    def constant(self) -> Any:
        """Return the constant that the caller has to pass; None if it is no constant, or is None."""
        if self.slot.values or self.slot.template.type == "as_none":
            return None
        return self.slot.template.value

    def rename_constant(self, name: str) -> None:
        """Rename the placeholder of a constant."""
        self._constant = name

    def _fields(self) -> list[Any]:
        if self.kind == "constant_input":
            return [self.name, self._origin.value.value]
        return [*super()._fields(), self.persistent] if self.kind == "buffer" else super()._fields()


class Output(Port):
    """One output of a program.

    Attributes:
        kind: "user_output", "loss_output", "buffer_mutation", "parameter_mutation", "user_input_mutation",
            "gradient_to_parameter", "gradient_to_user_input", "token".
        target: the name of the parameter or buffer that is written or has the gradient, else None.
        input: the input of the caller's that is written or has the gradient, else None.
    """

    __slots__ = ("input",)

    def __init__(self, spec: schema.OutputSpec, slot: Slot, inputs: Mapping[str, Input]) -> None:
        super().__init__(spec, slot)
        self.input: Input | None = inputs.get(spec.value.user_input_name) if self.kind in OF_INPUTS else None

    @classmethod
    def of(cls, value: Value) -> Output:
        """Return an output that the caller gets."""
        slot = Slot.of(value)
        return cls(schema.OutputSpec(user_output=schema.UserOutputSpec(slot.template)), slot, {})

    def _fields(self) -> list[Any]:
        if self.kind not in OF_INPUTS:
            return super()._fields()
        return [*super()._fields(), self._origin.value.user_input_name if self.input is None else self.input.name]


def values_of(ports: Iterable[Port]) -> list[Value]:
    """Return the values of inputs or outputs; constants of the calling convention have none."""
    return [value for one in ports for value in one.slot.values]


def insert_in_group(items: list[Any], new: Port) -> None:
    """Insert an input or output after the last one of its group."""
    items.insert(sum(one.group <= new.group for one in items), new)


class Branch:
    """A container in a tree: its type, its context as text, and its children in order."""

    __slots__ = ("children", "context", "type")

    def __init__(self, type: str, context: str, children: list[Tree]) -> None:
        self.type = type
        self.context = context
        self.children = children

    @property
    def keys(self) -> list[Any] | None:
        """Return the keys of a dict; None for any other container."""
        if self.type not in MAPPINGS:
            return None
        keys = treespec.inner_context(TreeSpec(self.type, self.context))
        return keys if isinstance(keys, list) else None

    @keys.setter
    def keys(self, keys: Sequence[Any]) -> None:
        self.context = treespec.context_text(list(keys))

    @property
    def is_open(self) -> bool:
        """Return whether children can be added and removed."""
        return self.type in SEQUENCES or self.keys is not None

    def position(self, position: int | None, edit: str) -> int:
        """Return the position of a new child; the end where it is None.

        Raises:
            GraphError: a position beyond the end, or before the beginning.
        """
        place = len(self.children) if position is None else position
        if not 0 <= place <= len(self.children):
            raise GraphError(f"{edit}: expected a position from 0 to {len(self.children)}, got {place}")
        return place

    def insert(self, position: int, child: Tree, key: str | None, edit: str) -> None:
        """Insert a child.

        Raises:
            GraphError: a container of a shape of its own, or a dict without a new key.
        """
        keys = self.keys
        if not self.is_open:
            raise GraphError(f"{edit}: expected a tuple, list or dict, got a {self.type}, which has its own shape")
        if keys is not None:
            if key is None or key in keys:
                got = "none" if key is None else f"{quote(key)}, which is there"
                raise GraphError(f"{edit}: expected a new key for the dict ({', '.join(map(str, keys))}), got {got}")
            keys.insert(position, key)
            self.keys = keys
        self.children.insert(position, child)

    def remove(self, child: Tree, edit: str) -> None:
        """Remove a child.

        Raises:
            GraphError: a container of a shape of its own.
        """
        if not self.is_open:
            raise GraphError(f"{edit}: expected an item of a tuple, list or dict, got one of a {self.type}")
        position = next(i for i, one in enumerate(self.children) if one is child)
        keys = self.keys
        if keys is not None:
            del keys[position]
            self.keys = keys
        del self.children[position]


def tuple_of(children: Sequence[Tree]) -> Branch:
    """Return a tuple."""
    return Branch("builtins.tuple", '"null"', list(children))


def grow(spec: TreeSpec, leaves: Sequence[Any]) -> Tree:
    """Return the tree of a spec with the given items at its leaves, as many as it has."""
    rest = iter(leaves)
    return treespec.fold(
        spec, lambda _: next(rest), lambda node, children: Branch(str(node.type), node.context, children)
    )


def spec_of(tree: Tree) -> TreeSpec:
    """Return the spec of a tree."""
    if not isinstance(tree, Branch):
        return LEAF
    return TreeSpec(tree.type, tree.context, tuple(map(spec_of, tree.children)))


def leaves_of(tree: Tree) -> Iterator[Any]:
    """Yield the items at the leaves, left to right."""
    if not isinstance(tree, Branch):
        yield tree
        return
    for child in tree.children:
        yield from leaves_of(child)


def parent_of(tree: Tree, wanted: Tree) -> Branch | None:
    """Return the container of an item; None for the root, and for an item that is not in the tree."""
    stack = [tree]
    while stack:
        branch = stack.pop()
        if isinstance(branch, Branch):
            if any(child is wanted for child in branch.children):
                return branch
            stack += branch.children
    return None
