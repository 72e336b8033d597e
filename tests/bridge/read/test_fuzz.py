"""Programs with one thing changed at random: they load, or give one error of ours; never anything else."""

from __future__ import annotations

import copy
import json
import logging
import random
import zipfile
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from tests.bridge.read import corpus_types as corpus_types
from tests.bridge.read.edited import edited, sample

from pt2kit.bridge.load import load
from pt2kit.errors import Pt2Error

NAMES = ["mlp", "dynamic_two_dims", "cond__decomp", "item_symint", "namedtuple_io", "buffer_mutation__decomp"]
NAMES += ["custom_op_args", "while_loop_hop", "scalar_inputs", "preserve_module_sig", "sym_ops__decomp"]
ROUNDS = 40
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1 << 40,
    1 << 70,
    2.5,
    "NaN",
    "",
    "x",
    "a.b",
    "class",
    "torch.ops.aten.add.Tensor",
    [],
    {},
]
ODD += [[[]], {"as_none": True}, {"as_int": 3}, {"as_tensor": {"name": "x"}}, {"as_string": "x"}, {"as_graph": {}}]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a tree."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def mutate(tree: Any, rng: random.Random) -> None:
    """Replace, remove, repeat or exchange one thing, in place."""
    paths = list(places(tree))[1:]
    *path, key = rng.choice(paths)
    owner = tree
    for step in path:
        owner = owner[step]
    kind = rng.randrange(5)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner.insert(key, copy.deepcopy(owner[key]))
    elif kind == 2:
        other = tree
        for step in rng.choice(paths):
            other = other[step]
        owner[key] = copy.deepcopy(other)
    elif kind == 3 and isinstance(owner[key], str):
        owner[key] = owner[key][::-1] if rng.random() < 0.3 else owner[key].replace("as", "sa") + "'"
    else:
        owner[key] = copy.deepcopy(rng.choice(ODD))


def tree_of(name: str) -> Any:
    """The tree of a sample's program."""
    with zipfile.ZipFile(sample(name)) as archive:
        return json.loads(archive.read(next(n for n in archive.namelist() if n.endswith("models/model.json"))))


def _becomes(new: Any, stored: Any) -> None:
    stored.clear()
    stored.update(new)


@pytest.mark.parametrize("name", NAMES)
def test_changed_programs(name: str) -> None:
    """One random change to the program's JSON; what loads also becomes a module."""
    logging.disable(logging.CRITICAL)
    base, rng = tree_of(name), random.Random(name)
    try:
        for number in range(ROUNDS):
            tree = copy.deepcopy(base)
            mutate(tree, rng)
            try:
                program = load(edited(sample(name), partial(_becomes, tree)))
            except Pt2Error as error:
                assert str(error), number
                continue
            assert isinstance(program, torch.export.ExportedProgram)
            program.validate()
    finally:
        logging.disable(logging.NOTSET)
