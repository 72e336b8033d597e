"""Memory that nothing was written to: programs that fill their buffers load; those that let memory out do not."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge.read.edited import edited
from tests.bridge.read.memory_programs import LEAKING, SOUND, Calls

import pt2kit
from pt2kit.errors import OperatorError


def exported(function: Callable[[Any], Any], dynamic: Any) -> dict[str, torch.export.ExportedProgram]:
    """A function as export writes it, and decomposed; what torch warns of its own code is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(Calls(function), (torch.randn(3, 4),), dynamic_shapes=dynamic, strict=False)
        return {"": program, " decomposed": program.run_decompositions()}


def files(function: Callable[[Any], Any]) -> dict[str, bytes]:
    """How the program was exported -> its file; what torch itself cannot export or save is left out."""
    found = {}
    for shapes in ("static", "dynamic"):
        dynamic = ({1: torch.export.Dim("columns")},) if shapes == "dynamic" else None
        try:
            forms = exported(function, dynamic)
        except Exception:
            if shapes == "static":
                raise
            continue  # the program needs the sizes that it was written for
        for form, each in forms.items():
            file = io.BytesIO()
            torch.export.save(each, file)
            found[shapes + form] = file.getvalue()
    return found


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str) -> None:
    """What is written before it is used loads, exported with and without symbols, as it was written and decomposed."""
    for file in files(SOUND[name]).values():
        assert pt2kit.load(file).graph.nodes
        assert pt2kit.check(file).ok


@pytest.mark.parametrize("name", LEAKING)
def test_leaking(name: str) -> None:
    """What lets memory out is refused, in every form; the entry that the error names lets it pass."""
    for file in files(LEAKING[name]).values():
        with pytest.raises(
            OperatorError, match=r"whose memory nothing was written to .* pass trust=\('X11',\)"
        ) as caught:
            pt2kit.load(file)
        assert caught.value.rule == "X11"
        assert {problem.rule for problem in pt2kit.check(file).errors} == {"X11"}
        assert pt2kit.load(file, trust=("X11",)).graph.nodes


class Buffers(torch.nn.Module):
    """Fills two rows where a buffer says, which may be changed afterwards, by itself or through another one."""

    def __init__(self, change: str) -> None:
        super().__init__()
        self.change = change
        self.register_buffer("rows", torch.arange(2))
        self.register_buffer("same", self.rows.view(2, 1) if change == "same" else torch.zeros(2, 1))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        out = x.new_empty(2, 4)
        out[self.rows] = x[:2]
        getattr(self, self.change).mul_(0)
        return out, self.same + self.steps


def buffers(change: str) -> dict[str, bytes]:
    """The program, as it is and decomposed, which torch does not do to one that writes to a tensor with two names."""
    program = torch.export.export(Buffers(change), (torch.randn(3, 4),), strict=False)
    found = {}
    for form, each in {
        "": program,
        **({} if change == "same" else {" decomposed": program.run_decompositions()}),
    }.items():
        file = io.BytesIO()
        torch.export.save(each, file)
        found[form] = file.getvalue()
    return found


def test_an_index_that_stays() -> None:
    """What a buffer says counts, if the program does not write to it."""
    for file in buffers("steps").values():
        assert pt2kit.load(file).graph.nodes
        assert pt2kit.check(file).ok


@pytest.mark.parametrize("change", ["rows", "same"])
def test_an_index_that_changes(change: str) -> None:
    """A program that writes to the buffer, after all, would fill other rows the next time."""
    for file in buffers(change).values():
        with pytest.raises(OperatorError, match="whose memory nothing was written to"):
            pt2kit.load(file)
        assert {problem.rule for problem in pt2kit.check(file).errors} == {"X11"}


def columns(x: Any) -> Any:
    out = torch.empty(x.shape[0], 3)
    for column in range(3):
        out[:, column] = x[:, column] + column
    return out


def every_other(x: Any) -> Any:
    out = torch.empty(x.shape[0], 8)
    out[:, ::2], out[:, 1::2] = x, x.sin()
    return out


def wide_rows(x: Any) -> Any:
    out = torch.empty(3, x.shape[0])
    for row in range(3):
        out[row] = x[:, row]
    return out


def two_of_three(x: Any) -> Any:
    out = torch.empty(x.shape[0], 3)
    for column in range(2):
        out[:, column] = x[:, column]
    return out


def one_of_two(x: Any) -> Any:
    out = torch.empty(x.shape[0], 8)
    out[:, ::2] = x
    return out


def some_rows(x: Any) -> Any:
    out = torch.empty(x.shape[0], 3)
    out.as_strided([2, 3], [3, 1]).fill_(1)
    return out


def with_rows(function: Callable[[Any], Any]) -> dict[str, bytes]:
    """A program of any number of rows: as it is, decomposed, and decomposed as far as torch knows how."""
    program = torch.export.export(
        Calls(function), (torch.randn(5, 4),), dynamic_shapes=({0: torch.export.Dim("rows")},), strict=False
    )
    found = {}
    for name, table in (("", {}), (" decomposed", None), (" in full", dict(torch._decomp.decomposition_table))):
        file = io.BytesIO()
        torch.export.save(program if table == {} else program.run_decompositions(table), file)
        found[name] = file.getvalue()
    return found


@pytest.mark.parametrize("function", [columns, every_other, wide_rows])
def test_any_number_of_rows(function: Callable[[Any], Any]) -> None:
    """A buffer whose rows are counted by a symbol is followed column by column, in every form."""
    for file in with_rows(function).values():
        assert pt2kit.load(file).graph.nodes


@pytest.mark.parametrize("function", [two_of_three, one_of_two, some_rows])
def test_not_all_of_any_number_of_rows(function: Callable[[Any], Any]) -> None:
    """Where a column, or some of the rows, are not written, it is refused in every form."""
    for file in with_rows(function).values():
        with pytest.raises(OperatorError, match="whose memory nothing was written to"):
            pt2kit.load(file)


def test_declared_sizes_are_computed(tmp_path: Path) -> None:
    """A file that declares a buffer smaller than it is, so that it seems to be filled, is refused."""

    def fill(x: Any) -> Any:
        hidden = torch.nn.functional.linear(x, torch.ones(5, 4))
        buffer = torch.empty_like(hidden)
        for row in range(3):
            buffer[row] = hidden[row]
        return buffer

    (tmp_path / "m.pt2").write_bytes(files(fill)["static"])

    def shrink(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        del graph["nodes"][-2:]  # the last row
        for name in ("linear", "empty_like"):
            graph["tensor_values"][name]["sizes"][0] = {"as_int": 2}

    with pytest.raises(
        OperatorError, match=r"node linear: expected sizes that torch computes, .*\[3, 5\], got .*\[2, 5\]"
    ):
        pt2kit.load(edited(tmp_path / "m.pt2", shrink))
