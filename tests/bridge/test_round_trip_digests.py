"""Digests after torch's own load and save: of programs, and of expressions that sympy evaluates on the way."""

from __future__ import annotations

import io
import logging
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from tests.bridge.zoo import zoo
from tests.digests.reference_expressions import normal
from tests.samples import CURRENT_LAYOUT, corpus, release_id
from torch.utils._sympy import functions

import pt2kit
from pt2kit.canonical.expressions import Normalizer

# Functions that torch passes to sympy (GraphModuleDeserializer, torch 2.13); Max and Min are not among them.
LOCALS = {name: getattr(functions, name) for name in ("FloorDiv", "Mod", "PythonMod", "CleanDiv", "CeilDiv")}
SYMBOLS = [
    sympy.Symbol("s0", positive=True, integer=True),
    sympy.Symbol("s53", positive=True, integer=True),
    sympy.Symbol("u0", integer=True, nonnegative=True),
]
ZOO = ["shared_weights", "sym_float__strict", "multi_output", "associative_scan", "scan", "sym_ops__decomp"]
FILES = [path for path in corpus(*CURRENT_LAYOUT[-2:]) if path.stem not in ("namedtuple_io", "custom_op")][::4]


def torch_again(file: Any) -> bytes:
    """A file after torch loaded and saved it."""
    logging.disable(logging.CRITICAL)
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.load(file), out)
    logging.disable(logging.NOTSET)
    return out.getvalue()


@pytest.mark.parametrize("name", ZOO)
def test_fresh_exports(name: str, tmp_path: Path) -> None:
    """The `program` digest is that of the file that torch makes of it, and diff agrees."""
    [program] = [one for one in zoo.programs() if one.name == name]
    file = tmp_path / "x.pt2"
    torch.export.save(zoo.exported(program), str(file))
    again = torch_again(str(file))
    assert pt2kit.digest(file).program == pt2kit.digest(again).program
    found = pt2kit.diff(file, again, metadata=False)
    assert [change for change in found.changes if change.area not in ("record", "weight")] == []


@pytest.mark.parametrize("path", FILES, ids=release_id)
def test_sample_files(path: Path) -> None:
    """As above; torch reads the default model of an archive of several."""
    try:
        again = torch_again(str(path))
    except Exception as error:  # noqa: BLE001 (torch has no error family)
        pytest.skip(f"torch cannot load it: {error!r}")
    assert pt2kit.digest(path).program == pt2kit.digest(again).program


def test_a_minimum_that_sympy_decides() -> None:
    """The case that transformers has."""
    text = sympy.srepr(functions.Min(32, 32 * SYMBOLS[1]))
    assert text != sympy.srepr(sympy.sympify(text, locals=LOCALS)) == "Integer(32)"
    assert Normalizer().normal(text) == 32


def test_expressions_that_sympy_evaluates() -> None:
    """Random sizes have the normal form of what sympy makes of them; another implementation gives the same."""
    draw = random.Random(13)
    evaluated = 0
    for _ in range(600):
        text = sympy.srepr(_size(draw, 3))
        again = sympy.srepr(sympy.sympify(text, locals=LOCALS))
        evaluated += text != again
        assert Normalizer().normal(text) == Normalizer().normal(again) == normal(text)[0] == normal(again)[0], text
    assert evaluated > 10


def _size(draw: random.Random, depth: int) -> sympy.Expr:
    """A size that is not negative, as sizes are."""
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([*SYMBOLS, *map(sympy.Integer, (1, 2, 3, 32, 64))])
    one, other = _size(draw, depth - 1), _size(draw, depth - 1)
    kind = draw.choice(["sum", "product", "scaled", "min", "max", "divided", "remainder"])
    if kind == "sum":
        return one + other
    if kind == "product":
        return one * other
    if kind == "scaled":
        return one * draw.choice([2, 32])
    if kind in ("min", "max"):
        return (functions.Min if kind == "min" else functions.Max)(one, other)
    by = sympy.Integer(draw.choice([2, 3, 4, 32]))
    return functions.FloorDiv(one, by) if kind == "divided" else functions.Mod(draw.choice(SYMBOLS[:2]), by)
