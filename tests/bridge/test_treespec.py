"""Tree specs against torch's own writer, reader, flattening and key paths."""

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch
import torch.utils._pytree as pytree
from hypothesis import given
from tests.narrow import instance
from tests.treespec.trees import FIELDS, REGISTERED, Point, leaves_of, spec_of, values

from pt2kit.treespec import (
    Node,
    dump,
    find_name_problems,
    find_problems,
    flatten,
    key_paths,
    leaf_count,
    parse,
    split_call,
    unflatten,
)


@dataclasses.dataclass
class Boxes:
    corners: object
    score: object = None
    label: object = None


class Color(enum.Enum):
    RED = 1


Wide = namedtuple("Wide", ["first", "second", "third"])


@pytest.fixture(autouse=True, scope="module")
def registered():
    """The classes of this module and of the strategies, known to torch for as long as the module runs."""
    for cls, name in {**REGISTERED, Wide: "shapes.Wide"}.items():
        pytree._register_namedtuple(cls, serialized_type_name=name)
    torch.export.register_dataclass(Boxes, serialized_type_name="shapes.Boxes")
    yield
    for cls in (*REGISTERED, Wide, Boxes):
        pytree._deregister_pytree_node(cls)


NESTED = [
    7,
    (),
    ((1, [2, {"a": 3, "b": (4,)}]), {}),
    OrderedDict([("z", 1), ("a", [2])]),
    defaultdict(list, {"k": 1, 3: [2]}),
    deque([1, 2], maxlen=4),
    deque([(1,)]),
    {Color.RED: 1, "red": 2},
    {None: 1, True: 2, 2.5: 3, "é\u2028": 4},
    Point(1, Point([2], {"p": 3})),
    Boxes(1, [2, 3]),
    [Boxes((1,), label=2)],
    torch.Size([3, 4]),
    torch.fx.immutable_collections.immutable_list([1, 2]),
    torch.fx.immutable_collections.immutable_dict({"a": 1}),
]


@pytest.mark.parametrize("value", NESTED, ids=range(len(NESTED)))
def test_texts_and_paths_of_torch(value):
    """torch's text is read, checked and written back; torch reads ours; leaves and their paths are torch's."""
    paths, spec = pytree.tree_flatten_with_path(value)
    text = pytree.treespec_dumps(spec)
    own = parse(text)
    assert list(find_problems(own, fields=FIELDS)) == []
    assert dump(own) == text
    assert pytree.treespec_loads(dump(own)) == spec
    assert leaf_count(own) == spec.num_leaves
    shown = key_paths(own, fields=FIELDS)
    assert tuple(pytree.keystr(path) for path, _ in paths) == tuple(
        p.replace("<Color.RED>", "<Color.RED: 1>") for p in shown
    )


@given(values)
def test_any_value_flattens_as_torch_does(value):
    """Texts, leaves, values and paths agree with torch for nested builtin containers and named tuples."""
    leaves, spec = pytree.tree_flatten(value)
    own = parse(pytree.treespec_dumps(spec))
    assert own == spec_of(value)
    assert flatten(value, own, fields=FIELDS) == leaves == leaves_of(value)
    assert unflatten(leaves, own, fields=FIELDS) == pytree.tree_unflatten(leaves, spec)
    assert [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(value)[0]] == list(
        key_paths(own, fields=FIELDS)
    )


def test_user_types_are_nodes_that_flatten_again():
    """A registered dataclass is a description here; with its fields torch's leaves come out in torch's order."""
    value = {"b": Boxes([1, 2], label=3)}
    leaves, spec = pytree.tree_flatten(value)
    own = parse(pytree.treespec_dumps(spec))
    node = instance(dict, unflatten(leaves, own))["b"]
    assert node == Node("shapes.Boxes", own.children[0].context, ([1, 2], 3))
    assert flatten({"b": node}, own) == leaves

    def expand(name: str, item: object) -> list[object] | None:
        return [item.corners, item.label] if name == "shapes.Boxes" and isinstance(item, Boxes) else None

    assert flatten(value, own, expand=expand) == leaves


class Called(torch.nn.Module):
    def forward(self, x, pair, *rest, scale, **more):
        return {"y": x * scale + pair.x, "z": [pair.y, *rest, *more.values()]}


def test_a_real_call_signature():
    """Specs, names and fields of an exported call agree with what was called."""
    t = torch.ones(2)
    program = torch.export.export(Called(), (t, Point(t, t), t), {"scale": t, "extra": t}, strict=False)
    signature = program.module_call_graph[0].signature
    in_spec = parse(pytree.treespec_dumps(signature.in_spec))
    args, kwargs = split_call(in_spec)
    assert (len(args), list(kwargs)) == (3, ["scale", "extra"])
    assert list(find_name_problems(signature.forward_arg_names, in_spec)) == []
    assert signature.forward_arg_names == ["x", "pair", "rest_0", "scale", "extra"]
    assert leaf_count(in_spec) == len(program.graph_signature.user_inputs)
    assert leaf_count(parse(pytree.treespec_dumps(signature.out_spec))) == len(program.graph_signature.user_outputs)
