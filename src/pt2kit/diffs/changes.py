"""Result of a comparison as data: `Change`, its `Detail`s, and `Diff`, with everything needed to show them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pt2kit import codec, schema
from pt2kit.front_door import registered

Kind: TypeAlias = Literal["added", "removed", "modified"]
Area: TypeAlias = Literal[
    "model",
    "program",
    "input",
    "output",
    "node",
    "module call",
    "constraint",
    "guard",
    "weight",
    "constant",
    "metadata",
    "record",
]

Row: TypeAlias = tuple[int | None, int | None]
"""(old number, new number) of a node that is in both graphs, or in one."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One property that differs.

    Args:
        what: the property: "target", "argument dim", "result 0 sizes", "metadata stack_trace", "values".
        old, new: the values before and after: schema objects, texts, numbers; None if missing.
    """

    what: str
    old: Any
    new: Any


def differing(what: str, old: Any, new: Any) -> tuple[Detail, ...]:
    """Return a property if it differs, and nothing if it does not."""
    return (Detail(what, old, new),) if old != new else ()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two files.

    Args:
        kind: "added", "removed" or "modified".
        area: what kind of thing it is about.
        model: the model it belongs to; "" for records and models themselves.
        name: what the thing is called, in the new file where it is there: a node's label with the path of its subgraph,
            the name of a tensor, a symbol, a record.
        module: for a node, the module that it was traced in, or whose parameters it uses; "" if unknown.
        graph: for a node, the path of its graph, the new one where there are two; "" for the root.
        old, new: for nodes, inputs and outputs their number in the old and in the new graph.
        details: of a modified thing, the properties that differ.
    """

    kind: Kind
    area: Area
    model: str
    name: str
    module: str = ""
    old: int | None = None
    new: int | None = None
    details: tuple[Detail, ...] = ()
    graph: str = ""

    @property
    def is_described_only(self) -> bool:
        """Return whether a node computes the same, and only the metas of its results, or metadata, differ."""
        return (
            self.area == "node"
            and self.kind == "modified"
            and all(detail.what.startswith(("result ", "metadata ", "name", "place")) for detail in self.details)
        )


@dataclass(frozen=True, slots=True)
class GraphPair:
    """Two graphs that were compared.

    Args:
        path: the names that lead to the new graph from its root, "" for the root.
        old, new: the graphs, the objects that the programs hold.
        pairs: (old number, new number) of the nodes that correspond, in the new order.
        new_modules: the module of each new node.
    """

    path: str
    old: schema.Graph
    new: schema.Graph
    pairs: tuple[tuple[int, int], ...]
    new_modules: tuple[str, ...]

    def rows(self) -> Iterator[Row]:
        """Yield all nodes of both graphs: the new ones in order, removed ones before the node that followed them."""
        matched, olds = dict(self.pairs), {new: old for old, new in self.pairs}
        removed = deque(old for old in range(len(self.old.nodes)) if old not in matched)
        for new in range(len(self.new.nodes)):
            old = olds.get(new)
            while old is not None and removed and removed[0] < old:
                yield removed.popleft(), None
            yield old, new
        yield from ((old, None) for old in removed)


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two programs that were compared, and their graphs, subgraphs included."""

    old: schema.ExportedProgram
    new: schema.ExportedProgram
    graphs: tuple[GraphPair, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    """All differences between two files.

    Args:
        old, new: what messages call the files.
        changes: the differences, model by model.
        models: model -> the two programs that were compared.
        tensors_compared: whether the bytes of weights and constants were compared.
    """

    old: str
    new: str
    changes: tuple[Change, ...]
    models: Mapping[str, ModelPair]
    tensors_compared: bool = True

    @property
    def same(self) -> bool:
        """Return whether nothing differs."""
        return not self.changes

    def __str__(self) -> str:
        """Return the lines that `pt2 diff` prints."""
        return "\n".join(registered("lines of a diff")(self))

    def __repr__(self) -> str:
        count = len(self.changes)
        return f"<Diff {self.old!r} -> {self.new!r}: {count} difference{'' if count == 1 else 's'}>"

    def _repr_html_(self) -> str:
        """Return the page of `pt2 diff --html`, for notebooks."""
        return str(registered("notebook view of a diff")(self)._repr_html_())

    def counts(self) -> Counter[tuple[str, str, str]]:
        """Return (model, area, kind) -> number of changes."""
        return Counter((change.model, change.area, change.kind) for change in self.changes)

    def to_tree(self) -> dict[str, Any]:
        """Return the differences as JSON has them: a summary, then every change."""
        summary = [
            {"model": model, "area": area, "kind": kind, "count": count}
            for (model, area, kind), count in sorted(self.counts().items())
        ]
        return {
            "old": self.old,
            "new": self.new,
            "same": self.same,
            "tensors_compared": self.tensors_compared,
            "summary": summary,
            "changes": codec.to_tree(self.changes),
        }
