"""Call signatures of a program and its modules, updated as inputs and outputs are added and removed.

The root's `in_spec` and `out_spec` are trees whose leaves are the inputs and outputs themselves. Signatures of modules
follow the names of the values they mention, and go with them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from pt2kit import graph as rules
from pt2kit import schema, symbols, treespec
from pt2kit.editing.graphs import Graph, Slot
from pt2kit.editing.interface import (
    Branch,
    Input,
    Output,
    Tree,
    grow,
    leaves_of,
    spec_of,
    tuple_of,
)
from pt2kit.errors import GraphError, attempt
from pt2kit.symbols.guards import Path, Source
from pt2kit.treespec.callsig import input_paths


@dataclass(frozen=True, slots=True)
class Condition:
    """A guard, bound to the inputs that it refers to, whose names and places may change.

    Args:
        text: as it was read.
        references: text of a reference -> how it is read, and the input; empty for a guard that is not understood.
    """

    text: str
    references: Mapping[str, tuple[Source, Input]]

    def __str__(self) -> str:
        return self.text


class Calls:
    """The module call graph of a program.

    Attributes:
        ins: the tree of what the caller passes: a tuple of the tuple of positional arguments and the dict of keywords;
            None where the file says nothing that can be understood.
        outs: the tree of what the caller gets; likewise.
        arg_names: the names of the arguments, positional ones first; empty where the file has none.
        opened: what the caller passed when the program was opened.
        added: entries of modules of another program, which were joined to this one.
        prefix: in front of the paths of all modules.
    """

    def __init__(
        self, module: schema.GraphModule, graph: Graph, inputs: Sequence[Input], outputs: Sequence[Output]
    ) -> None:
        self._graph = graph
        self._entries = [(entry, self._slots(entry.signature)) for entry in module.module_call_graph]
        self.root = root = self._entries[0][0].signature if self._starts_with_root() else None
        self.added: list[schema.ModuleCallEntry] = []
        self.prefix = ""
        self.opened = [one for one in inputs if one.is_user]
        self.ins = _tree(root.in_spec if root else "", self.opened)
        self.outs = _tree(root.out_spec if root else "", [one for one in outputs if one.is_user])
        self.arg_names = list(root.forward_arg_names or ()) if root else []

    def _starts_with_root(self) -> bool:
        return bool(self._entries) and not self._entries[0][0].fqn

    def has_changed(self, inputs: Sequence[Input]) -> bool:
        """Return whether the caller passes other inputs than when the program was opened, or in another way."""
        if self.root is None or self.ins is None:
            return False
        return self.opened != inputs or spec_of(self.ins) != treespec.parse(self.root.in_spec)

    def sides(self, edit: str) -> tuple[Branch, Branch]:
        """Return the tuple of positional arguments and the dict of keywords.

        Raises:
            GraphError: the file says nothing of the call that can be understood.
        """
        ins = self.ins
        if isinstance(ins, Branch) and len(ins.children) == 2:
            args, kwargs = ins.children
            if isinstance(args, Branch) and isinstance(kwargs, Branch) and kwargs.keys is not None:
                return args, kwargs
        raise GraphError(f"{edit}: expected an in_spec of positional arguments and keywords, got none in this program")

    def results(self, edit: str) -> Tree:
        """Return the tree of what the caller gets.

        Raises:
            GraphError: the file says nothing of it that can be understood.
        """
        if self.outs is None:
            raise GraphError(f"{edit}: expected an out_spec over the outputs, got none in this program")
        return self.outs

    def names(self, edit: str) -> list[str]:
        """Return the name of each positional argument and keyword: the file's, else that of its value, else
        `arg_<i>`."""
        args, kwargs = self.sides(edit)
        if len(self.arg_names) == len(args.children) + len(kwargs.children):
            return list(self.arg_names)
        own = [child.name if isinstance(child, Input) else "" for child in args.children]
        return [*(name or f"arg_{place}" for place, name in enumerate(own)), *map(str, kwargs.keys or ())]

    def order(self, items: list[Any], tree: Tree) -> None:
        """Sort what the caller passes or gets into the order of a tree's leaves; the others keep their positions."""
        leaves = iter(list(leaves_of(tree)))
        items[:] = [next(leaves) if one.is_user else one for one in items]

    def restart(
        self, args: Sequence[Tree], kwargs: Mapping[str, Tree], outs: Tree, names: Sequence[str] | None
    ) -> None:
        """Replace the program's own call.

        Args:
            args, kwargs: what the caller passes.
            outs: what the caller gets.
            names: the names of the arguments; None to leave them out.
        """
        by_name = tuple_of(list(kwargs.values()))
        by_name.type, by_name.keys = "builtins.dict", list(kwargs)
        self.ins, self.outs = tuple_of([tuple_of(args), by_name]), outs
        self.arg_names = list(names or ())
        modules = self._entries[1:] if self._starts_with_root() else self._entries
        self.root = schema.ModuleCallSignature([], [], "", "", None if names is None else [])
        self._entries = [(schema.ModuleCallEntry("", self.root), ([], [])), *modules]

    def keep_modules(self, paths: Container[str]) -> None:
        """Remove the entries of all other modules."""
        self._entries = [(entry, slots) for entry, slots in self._entries if not entry.fqn or entry.fqn in paths]

    def conditions(self, guards: Sequence[str], fields: Mapping[str, schema.NamedTupleDef]) -> list[Condition | str]:
        """Return guards with the inputs that they refer to.

        Args:
            guards: as the file has them.
            fields: the fields of named tuples.
        """
        leaves, paths = self._located(fields) if guards else ([], [])
        found: list[Condition | str] = []
        for text in guards:
            guard = attempt(symbols.parse_guard, text)
            places = attempt(lambda of: [(one, one.find(paths, "")) for one in of.sources], guard) if guard else None
            found.append(Condition(text, {one.text: (one, leaves[place]) for one, place in places or ()}))
        return found

    def guards(self, conditions: Sequence[Condition | str], fields: Mapping[str, schema.NamedTupleDef]) -> list[str]:
        """Return the texts of conditions, with the inputs where they are now; those on inputs that are gone are left
        out. A text is a new guard, on the inputs as they are now."""
        leaves, paths = self._located(fields) if conditions else ([], [])

        def reference(found: re.Match[str], of: Condition) -> str:
            source, one = of.references[found[0]]
            place = attempt(source.find, paths, "")
            is_same = place is not None and leaves[place] is one
            return found[0] if is_same else source.moved(paths[leaves.index(one)])

        texts = []
        for condition in conditions:
            if isinstance(condition, str):
                texts.append(condition)
            elif all(one in leaves for _, one in condition.references.values()):
                pattern = "|".join(map(re.escape, sorted(condition.references, key=len, reverse=True)))
                texts.append(re.sub(pattern or "$^", partial(reference, of=condition), condition.text))
        return texts

    def _located(self, fields: Mapping[str, schema.NamedTupleDef]) -> tuple[list[Any], list[Path]]:
        """Return what the caller passes, and the path to each; nothing if the call is not understood."""
        known = {name: row.field_names for name, row in fields.items()}
        paths = attempt(lambda: input_paths(spec_of(self.ins), self.names("guards"), fields=known))
        return ([], []) if self.ins is None or paths is None else (list(leaves_of(self.ins)), paths)

    def written(self) -> list[schema.ModuleCallEntry]:
        """Return the module call graph with all edits."""
        own = [self._entry(entry, *slots) for entry, slots in self._entries]
        if self.prefix:
            own = [replace(entry, fqn=f"{self.prefix}.{entry.fqn}") if entry.fqn else entry for entry in own]
        known = {entry.fqn for entry in own}
        return own + [entry for entry in self.added if entry.fqn not in known]

    def _entry(
        self, entry: schema.ModuleCallEntry, inputs: Sequence[Slot], outputs: Sequence[Slot]
    ) -> schema.ModuleCallEntry:
        old = entry.signature
        if old is None:
            return entry
        is_root = old is self.root
        if not is_root and not all(map(self._is_alive, (*inputs, *outputs))):
            return schema.ModuleCallEntry(entry.fqn, None)
        fields: dict[str, Any] = {
            "inputs": [slot.written() for slot in inputs if self._is_alive(slot)],
            "outputs": [slot.written() for slot in outputs if self._is_alive(slot)],
        }
        if is_root:
            fields["in_spec"], fields["out_spec"] = _text(old.in_spec, self.ins), _text(old.out_spec, self.outs)
            is_named = self.arg_names or old.forward_arg_names is not None
            fields["forward_arg_names"] = self.arg_names if is_named else None
        new = replace(old, **fields)
        return entry if new == old else schema.ModuleCallEntry(entry.fqn, new)

    def _slots(self, call: schema.ModuleCallSignature | None) -> tuple[list[Slot], list[Slot]]:
        """Return the slots of the inputs and of the outputs of a call; none if there is no call."""
        return ([], []) if call is None else (list(map(self._slot, call.inputs)), list(map(self._slot, call.outputs)))

    def _slot(self, argument: schema.Argument) -> Slot:
        """Return the slot of an argument of a kept signature; one that names a value which the graph lacks (K6) has
        no values, and is written unchanged."""
        names, values = list(rules.arguments(argument)), self._graph.values
        is_known = all(name in values for name in names)
        return Slot(argument, [values[name] for name in names] if is_known else [])

    def _is_alive(self, slot: Slot) -> bool:
        return all(self._graph.values.get(value.name) is value for value in slot.values)


def _tree(text: str, leaves: Sequence[Any]) -> Tree | None:
    """Return the tree of a spec over inputs or outputs; None if they do not match."""
    spec = attempt(treespec.parse, text)
    return grow(spec, leaves) if spec is not None and treespec.leaf_count(spec) == len(leaves) else None


def _text(old: str, tree: Tree | None) -> str:
    """Return the text of a tree; the old text if both are equal."""
    if tree is None:
        return old
    spec = spec_of(tree)
    return old if old and treespec.parse(old) == spec else treespec.dump(spec)
