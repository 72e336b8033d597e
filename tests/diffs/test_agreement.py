"""Digest, diff and normal form of one program say the same: what is equal to one is equal to all.

Programs are written down in other ways (another order of arguments, other kinds, other names of nodes and symbols) and
changed in small ways, at places that hypothesis chooses. And what one release wrote is compared with what the next did.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import samples
from tests.packages import edited

import pt2kit
from pt2kit import codec
from pt2kit.diffs import diff
from pt2kit.errors import Pt2Error
from pt2kit.package import record_names as names

FILES = samples.corpus("2.13.0")
Change = Callable[[Any, random.Random], None]


def _nodes(tree: Any) -> list[Any]:
    found: list[Any] = tree["graph_module"]["graph"]["nodes"]
    return found


def _shuffle_arguments(tree: Any, dice: random.Random) -> None:
    """The arguments of operators in another order: torch binds them by name."""
    for node in _nodes(tree):
        if node["target"].startswith("torch.ops.aten."):
            dice.shuffle(node["inputs"])


def _drop_kinds(tree: Any, dice: random.Random) -> None:
    """Arguments as releases before 8.6 wrote them."""
    for node in _nodes(tree):
        if node["target"].startswith("torch.ops.aten."):
            for named in node["inputs"]:
                named["kind"] = None


def _rename_nodes(tree: Any, dice: random.Random) -> None:
    for number, node in enumerate(_nodes(tree)):
        node["name"] = f"node_{number}"


def _rename_symbols(tree: Any, dice: random.Random) -> None:
    """Other names of the symbols of sizes, as another release may give them."""
    symbols = sorted(name for name in tree["range_constraints"] if re.fullmatch(r"s\d+", name))
    others = dict(zip(symbols, dice.sample(range(100, 900), len(symbols)), strict=True))

    def new(found: re.Match[str]) -> str:
        return f"{found[1]}s{others[found[2]]}{found[3]}" if found[2] in others else found[0]

    text = re.sub(r"(Symbol\(')(\w+)(')", new, json.dumps(tree))
    ranges = {f"s{others[name]}" if name in others else name: row for name, row in tree["range_constraints"].items()}
    tree.clear()
    tree.update(json.loads(text), range_constraints=ranges)


def _change_constant(tree: Any, dice: random.Random) -> None:
    held = [named["arg"] for node in _nodes(tree) for named in node["inputs"] if "as_int" in named["arg"]]
    if held:
        dice.choice(held)["as_int"] += 1


def _change_target(tree: Any, dice: random.Random) -> None:
    node = dice.choice(_nodes(tree)) if _nodes(tree) else {"target": "."}
    node["target"] += "_x"


def _drop_argument(tree: Any, dice: random.Random) -> None:
    held = [node for node in _nodes(tree) if node["inputs"]]
    if held:
        dice.choice(held)["inputs"].pop()


def _change_sizes(tree: Any, dice: random.Random) -> None:
    metas = tree["graph_module"]["graph"]["tensor_values"]
    held = [size for meta in metas.values() for size in meta["sizes"] if "as_int" in size]
    if held:
        dice.choice(held)["as_int"] += 1


def _change_guards(tree: Any, dice: random.Random) -> None:
    tree["guards_code"].append("1 <= 2")


def _exchange_arguments(tree: Any, dice: random.Random) -> None:
    """Two values of one call exchanged: another program, if they differ."""
    held = [node for node in _nodes(tree) if len(node["inputs"]) > 1]
    if held:
        one, other = dice.sample(dice.choice(held)["inputs"], 2)
        one["arg"], other["arg"] = other["arg"], one["arg"]


def _shuffle_subgraph_names(tree: Any, dice: random.Random) -> None:
    for node in _nodes(tree):
        for number, named in enumerate(node["inputs"]):
            if "as_graph" in named["arg"]:
                named["arg"]["as_graph"]["name"] = f"{named['arg']['as_graph']['name']}_{number}"


SAME: tuple[Change, ...] = (_shuffle_arguments, _drop_kinds, _rename_nodes, _rename_symbols)
OTHER: tuple[Change, ...] = (
    *(_change_constant, _change_target, _drop_argument, _change_sizes, _change_guards, _exchange_arguments),
    _shuffle_subgraph_names,
)


def _verdicts(one: bytes | Path, other: bytes | Path) -> dict[str, bool]:
    """Return what digest, diff and normal form each say: whether two files are one program."""
    first, second = (pt2kit.open(file) for file in (one, other))
    with first, second:
        model = first.layout.models[0]
        forms = [codec.encode(pt2kit.canonicalize(package.programs[model])) for package in (first, second)]
        changes = diff(first, second, metadata=False).changes
        digests = [pt2kit.digest(package, model) for package in (first, second)]
        tensors = [(digest.weights, digest.constants) for digest in digests]
        return {
            "digest": digests[0].program == digests[1].program,
            "diff": not [change for change in changes if change.area != "record"],
            "normal form": forms[0] == forms[1] and tensors[0] == tensors[1],  # which says nothing of tensors itself
        }


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_they_agree(data: st.DataObject) -> None:
    """A file written in another way, or changed, is one program or another to all three."""
    path = data.draw(st.sampled_from(FILES))
    changes = data.draw(st.lists(st.sampled_from([*SAME, *OTHER]), min_size=1, max_size=3))
    seed = data.draw(st.integers(0, 1000))

    def change(tree: Any) -> None:
        dice = random.Random(seed)
        for one in changes:
            one(tree, dice)

    with pt2kit.open(path) as package:
        record = names.model_json(package.layout.models[0])
    try:
        found = _verdicts(path, edited(path, change, record))
    except Pt2Error:
        return  # A change that leaves no program; nothing to compare.
    assert len(set(found.values())) == 1, (path, [one.__name__ for one in changes], found)
    if not set(changes) & set(OTHER):
        assert found["digest"]


@pytest.mark.parametrize("path", FILES, ids=samples.release_id)
def test_one_call_in_all_its_spellings(path: Path) -> None:
    """The order of an operator's arguments and their kinds change nothing."""

    def change(tree: Any) -> None:
        for one in SAME:
            one(tree, random.Random(1))

    with pt2kit.open(path) as package:
        record = names.model_json(package.layout.models[0])
    assert _verdicts(path, edited(path, change, record)) == {"digest": True, "diff": True, "normal form": True}


@pytest.mark.parametrize("path", samples.corpus(), ids=samples.release_id)
def test_a_file_is_itself(path: Path) -> None:
    """A file of any release has one normal form: that of its normal form."""
    with pt2kit.open(path) as package:
        for model in package.layout.models:
            form = pt2kit.canonicalize(package.programs[model])
            assert codec.encode(pt2kit.canonicalize(copy.deepcopy(form))) == codec.encode(form)


NEIGHBOURS = [
    (one, other)
    for name in sorted({path.name for path in samples.corpus()})
    for one, other in pairwise([path for path in samples.corpus() if path.name == name])
]


@pytest.mark.parametrize(
    ("one", "other"), NEIGHBOURS, ids=[f"{samples.release_id(a)}-{b.parent.name}" for a, b in NEIGHBOURS]
)
def test_releases(one: Path, other: Path) -> None:
    """All three agree on whether files of two releases are one program."""
    found = _verdicts(one, other)
    assert found["digest"] == found["diff"]
    assert found["digest"] or not found["normal form"]
