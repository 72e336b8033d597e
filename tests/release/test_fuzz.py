"""Damaged programs and hostile files: a conversion is a file or one of our errors, and never anything else."""

from __future__ import annotations

import copy
import io
import random
from pathlib import Path
from typing import Any

import pytest
from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit.errors import Pt2Error

FILES = (
    *(
        samples.sample("2.13.0", name)
        for name in ("cond", "buffer_mutation__decomp", "training_loss_joint", "kwargs_and_nested_inputs", "sym_float")
    ),
    *(samples.sample(release, name) for release in ("2.1.2", "2.4.1", "2.6.0") for name in ("cond", "constants")),
)
TARGETS = ("8.20", "8.14", "8.8", "8.7", "8.6", "8.2", "7.3", "5.3", "5.3-traces", "5.1", "2", "1", "draft")
LOSSES = ("persistent", "class_fqn", "dialect", "unknown_keys")
VALUES: tuple[Any, ...]
VALUES = (None, 0, -1, 2**70, "", "torch.ops.higher_order.cond", True, [], {}, 1.5, "Infinity", {"as_int": 3})


def paths(tree: Any) -> list[tuple[Any, ...]]:
    """The places of a tree."""
    found: list[tuple[Any, ...]] = []
    stack: list[tuple[Any, tuple[Any, ...]]] = [(tree, ())]
    while stack:
        held, path = stack.pop()
        found.append(path)
        children = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
        stack += [(child, (*path, key)) for key, child in children]
    return found


def damage(tree: Any, rng: random.Random) -> None:
    """Change a tree in a few places: leave out, put something else there, repeat, turn round."""
    known = paths(tree)
    for _ in range(rng.randint(1, 3)):
        *outer, key = rng.choice([path for path in known if path])
        holder = tree
        try:
            for step in outer:
                holder = holder[step]
            held = holder[key]
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
        match rng.randint(0, 3):
            case 0:
                del holder[key]
            case 1:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(held))
            case _ if isinstance(held, list):
                held.reverse()


@pytest.mark.parametrize("seed", range(60))
def test_damaged_programs(seed: int) -> None:
    """Whatever was changed in a program, converting it gives a file or an error of ours."""
    rng = random.Random(seed)
    path = rng.choice(FILES)
    with pt2kit.open(path) as package:
        record = package.relative(package.layout.program_record("model"))
    data = edited(path, lambda tree: damage(tree, rng), record)
    for target in rng.sample(TARGETS, 3):
        buffer = io.BytesIO()
        try:
            pt2kit.convert(data, buffer, target=target, allow=LOSSES)
        except Pt2Error:
            continue
        assert pt2kit.open(buffer.getvalue()).layout.models == ("model",)


@pytest.mark.parametrize("case", samples.hostile(), ids=lambda case: case["file"])
def test_hostile_files(case: dict[str, Any], tmp_path: Path) -> None:
    """They are refused by one of our errors, or what comes of them opens; nothing is left behind."""
    target = tmp_path / "x.pt2"
    for version in ("torch==2.15", "torch==2.5"):
        try:
            pt2kit.convert(case["path"], target, target=version)
        except Pt2Error:
            assert not list(tmp_path.iterdir())
        else:
            pt2kit.open(target).close()
            target.unlink()
