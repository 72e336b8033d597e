"""Shadows of tensors: what is written through a view, and what a look at the storage sees."""

from __future__ import annotations

from pt2kit.checks.shadows import VIEWS, Memory, Shadow, fresh, joined, lies_as, restrided


def part(shadow: Shadow, view: str, **call: object) -> Shadow:
    """A view of a shadow."""
    made = VIEWS[view](shadow.mask, shadow.sizes or (), call)
    assert isinstance(made, tuple)
    return Shadow(shadow.memory, made[1], made[0])


def test_writing_through_views_is_seen_in_the_whole() -> None:
    """Each row written, all is written; one left out, not all."""
    whole = fresh("empty", (2, 3))
    part(whole, "aten.select", dim=0, index=0).write()
    assert whole.unwritten
    part(whole, "aten.select", dim=0, index=1).write()
    assert not whole.unwritten


def test_looks_at_any_number_of_rows() -> None:
    """A look sees the columns that were written; what is written through it may miss rows, and does not count."""
    whole = fresh("empty", (None, 3))
    part(whole, "aten.select", dim=1, index=0).write()
    look = restrided(whole, ["rows", 1], [3, 1], 0)
    assert look.sizes == (None, 1)
    assert not look.unwritten
    other = restrided(whole, ["rows", 2], [3, 1], 1)
    assert other.unwritten
    other.write()
    assert whole.unwritten


def test_looks_that_leave_a_row_are_lost() -> None:
    """What reaches over the end of a row, or steps otherwise, sees whatever is unwritten."""
    whole = fresh("empty", (None, 3))
    for sizes, strides, offset in ((["rows", 3], [3, 1], 1), (["rows"], [2], 0), ([4], [1], 0)):
        assert restrided(whole, sizes, strides, offset).mask is None


def test_strides_are_compared() -> None:
    """A tensor lies as its shadow does if its strides say so, rows of symbols included."""
    assert lies_as(fresh("empty", (2, 3)), [3, 1])
    assert not lies_as(fresh("empty", (2, 3)), [1, 2])
    assert lies_as(fresh("empty", (None, 3)), [3, 1])
    assert not lies_as(fresh("empty", (None, 3)), [4, 1])
    assert not lies_as(fresh("empty", (2, None)), [3, 1])


def test_symbols_stay_where_nothing_else_stands() -> None:
    """The sizes of what is computed element by element."""
    assert joined((3, 1), [(3, None), (1,)]) == (3, None)
    assert joined((3, 4), [(3, None), (4,)]) == (3, 4)


def test_spoiling_reaches_what_may_be_the_same() -> None:
    """What is computed from unwritten memory spoils all memories that may be one."""
    one, other = Memory("a"), Memory("b")
    one.linked.append(other)
    one.spoil("use")
    assert other.spoiled
    assert other.use == "use"
