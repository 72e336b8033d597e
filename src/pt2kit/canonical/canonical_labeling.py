"""Canonical labeling of a graph: an order of its nodes that does not depend on how they were numbered.

The things are the numbers of nodes that no result of the graph tells apart: those that lead to no output. Each has a
*colour*, its properties without its edges. An edge `(user, slot, used, result)` says that one uses another, where, and
which of its results. The order is found by refinement and search:

1. *Refine.* Keep an ordered list of cells, at first one per colour, and a queue, at first all cells. Take the first
   cell S from the queue. The signature of a thing is the sorted list of `(0, slot, result)` for each use it makes of a
   member of S and `(1, slot, result)` for each use that a member of S makes of it. Replace each cell, in order, by its
   parts with equal signatures, in ascending order. The parts go to the end of the queue: all of them if the cell was
   still in the queue (the first takes its place there), else all but the first largest. Until the queue is empty.
2. *Split.* Things alone in their cell are done. The others fall into components that no edge connects. A component
   whose members are all in different cells has the order of its cells.
3. *Search.* In any other component, take the first cell of several members. Put each of them in turn into a cell of
   its own before the rest, and go on with 1, queueing these two cells. Of the orders that result, take one whose *code*
   is least: for each member in order, its cell before the search, and the sorted list of (slot, result, position of
   the used member) for the uses it makes of members.
4. Order all things by cell, then by the code of their component, then by their place in it.

Where there is a choice among equals, that is, components with one code or members that can be exchanged, the lower
numbers come first. Why the numbering does not matter otherwise: no other step looks at a number. Two components with
one code have an isomorphism between them that keeps cells and, as refinement made all members of a cell use and be used
by what is outside the components in the same way, it extends to everything: exchanging them changes nothing. The same
holds for two members whose orders have one code.

Graph isomorphism can be written as such a question, so some questions take exponentially long. `WORK` bounds the
searches of one program, all of its subgraphs together, by what they touch; beyond it, and below `MAX_DEPTH` choices
inside choices, the first member by number stands for all. That is right wherever the members of a cell can be
exchanged, as in everything met so far but graphs built to deceive refinement; only for those may the order then
depend on the numbering.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

WORK: Final = 2_000_000
"""Things and edges that a search may look at: a few seconds."""

MAX_DEPTH: Final = 64
"""Choices inside choices."""

Edge = tuple[int, int, int, int]
"""A user, its slot, what it uses, which result of it."""

Link = tuple[int, int, int]
"""The item on the other end, the slot, the result."""

Cells = list[list[int]]
Code = tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...]


@dataclass(slots=True)
class Search:
    """The remaining budget of searches, shared by all graphs of one program: subgraphs do not multiply it.

    Args:
        work: things and edges that may be looked at.
    """

    work: int = WORK


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the things of each key, in order; other keys have none."""
    groups: dict[K, list[T]] = defaultdict(list)
    for thing in things:
        groups[key(thing)].append(thing)
    return groups


def order(colours: Mapping[int, Hashable], edges: Sequence[Edge], search: Search | None = None) -> list[int]:
    """Sort items into an order that does not depend on their numbers.

    Args:
        colours: thing -> its colour; colours can be compared with one another.
        edges: the uses among the things.
        search: what the search may cost; less is left of it afterwards.

    Returns:
        all things.

    Cost: items and edges, times the logarithm of their number, without a search; `search` bounds the search.
    """
    classes = grouped(colours, colours.__getitem__)
    cells = [classes[colour] for colour in sorted(classes)]  # type: ignore[type-var]
    uses: dict[int, list[Link]] = {thing: [] for thing in colours}
    users: dict[int, list[Link]] = {thing: [] for thing in colours}
    for user, slot, used, result in edges:
        uses[user].append((used, slot, result))
        users[used].append((user, slot, result))
    return _Solver(uses, users, search or Search()).solve(cells, list(range(len(cells))), 0)


@dataclass(slots=True)
class _Solver:
    uses: dict[int, list[Link]]
    users: dict[int, list[Link]]
    search: Search

    def solve(self, cells: Cells, queue: list[int], depth: int) -> list[int]:
        """Order the members of cells; `queue` lists the positions of the cells to refine by."""
        refined = self._refine(cells, queue)
        cell_of = {thing: number for number, cell in enumerate(refined) for thing in cell}
        parts: list[tuple[Code, list[int]]] = []
        for component in self._components([cell for cell in refined if len(cell) > 1]):
            ordered = self._order_component(component, cell_of, depth)
            parts.append((self._code(ordered, cell_of), ordered))
        parts.sort()
        by_cell: Cells = [cell if len(cell) == 1 else [] for cell in refined]
        for _, ordered in parts:
            for thing in ordered:
                by_cell[cell_of[thing]].append(thing)
        return [thing for cell in by_cell for thing in cell]

    def _order_component(self, component: list[int], cell_of: dict[int, int], depth: int) -> list[int]:
        by_cell = grouped(component, cell_of.__getitem__)
        cells = [by_cell[number] for number in sorted(by_cell)]
        target = next((number for number, cell in enumerate(cells) if len(cell) > 1), None)
        if target is None:
            return [thing for cell in cells for thing in cell]
        if depth >= MAX_DEPTH:
            return [thing for cell in cells for thing in sorted(cell)]
        # Members with one code can be exchanged: one of them stands for all.
        chosen: dict[Code, int] = {}
        first = None
        for member in sorted(cells[target]):
            code, ordered = self._greedy(_apart(cells, target, member), target, cell_of)
            first = first or ordered
            if self.search.work <= 0:
                return first
            chosen.setdefault(code, member)
        orders = [
            self.solve(_apart(cells, target, member), [target, target + 1], depth + 1) for member in chosen.values()
        ]
        return min(orders, key=lambda order: self._code(order, cell_of))

    def _greedy(self, cells: Cells, target: int, cell_of: dict[int, int]) -> tuple[Code, list[int]]:
        """Return the code of the order that results if each choice takes the first member."""
        queue = [target, target + 1]
        while True:
            cells = self._refine(cells, queue)
            split = next((number for number, cell in enumerate(cells) if len(cell) > 1), None)
            if split is None or self.search.work <= 0:
                break
            cells, queue = _apart(cells, split, min(cells[split])), [split, split + 1]
        ordered = [thing for cell in cells for thing in sorted(cell)]
        return self._code(ordered, cell_of), ordered

    def _code(self, ordered: list[int], cell_of: dict[int, int]) -> Code:
        self.search.work -= len(ordered)
        position = {thing: number for number, thing in enumerate(ordered)}
        code = []
        for thing in ordered:
            uses = [(slot, result, position[used]) for used, slot, result in self.uses[thing] if used in position]
            code.append((cell_of[thing], tuple(sorted(uses))))
        return tuple(code)

    def _components(self, cells: Cells) -> list[list[int]]:
        """Return the components of the members of some cells."""
        left = {thing for cell in cells for thing in cell}
        components = []
        while left:
            component = [left.pop()]
            for thing in component:
                for other, _, _ in (*self.uses[thing], *self.users[thing]):
                    if other in left:
                        left.remove(other)
                        component.append(other)
            components.append(component)
        return components

    def _refine(self, cells: Cells, queue: list[int]) -> Cells:
        partition = _Partition(cells, queue)
        self.search.work -= len(partition.start_of)
        while partition.queue:
            start, _ = partition.queue.popitem(last=False)
            splitter = list(partition.cells[start])
            signatures: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
            for thing in splitter:
                for side, links in enumerate((self.users[thing], self.uses[thing])):
                    self.search.work -= len(links)
                    for other, slot, result in links:
                        if other in partition.start_of:
                            signatures[other].append((side, slot, result))
            partition.split(signatures)
        return [list(partition.cells[start]) for start in sorted(partition.cells)]


def _apart(cells: Cells, target: int, member: int) -> Cells:
    """Return the cells with one member of one cell in a cell of its own, before the rest."""
    rest = [thing for thing in cells[target] if thing != member]
    return [*cells[:target], [member], rest, *cells[target + 1 :]]


class _Partition:
    """An ordered partition. A cell is known by its start: how many things are in the cells before it.

    Splitting costs what it touches, not what the cell holds: untouched members stay where they are, in front. The queue
    has the starts of the cells to refine by.
    """

    def __init__(self, cells: Cells, queue: list[int]) -> None:
        self.cells: dict[int, set[int]] = {}
        self.start_of: dict[int, int] = {}
        starts = []
        start = 0
        for cell in cells:
            starts.append(start)
            self.cells[start] = set(cell)
            self.start_of |= dict.fromkeys(cell, start)
            start += len(cell)
        self.queue = OrderedDict.fromkeys(starts[number] for number in queue)

    def split(self, signatures: Mapping[int, list[tuple[int, int, int]]]) -> None:
        """Replace each cell by its parts; things without a signature have the least one."""
        touched = grouped(signatures, self.start_of.__getitem__)
        for start in sorted(touched):
            if len(self.cells[start]) > 1:
                self._split_cell(start, touched[start], signatures)

    def _split_cell(self, start: int, touched: list[int], signatures: Mapping[int, list[tuple[int, int, int]]]) -> None:
        by_signature = grouped(touched, lambda thing: tuple(sorted(signatures[thing])))
        cell = self.cells[start]
        untouched = len(cell) - len(touched)
        groups = [by_signature[signature] for signature in sorted(by_signature)]
        sizes = [untouched] * (untouched > 0) + [len(group) for group in groups]
        if len(sizes) == 1:
            return
        if untouched == 0:
            groups = groups[1:]  # The first part keeps the cell's place.
        at = start + sizes[0]
        starts = [start]
        for group in groups:
            cell.difference_update(group)
            self.cells[at] = set(group)
            self.start_of |= dict.fromkeys(group, at)
            starts.append(at)
            at += len(group)
        largest = None if start in self.queue else starts[sizes.index(max(sizes))]
        self.queue.update((part, None) for part in starts if part != largest)
