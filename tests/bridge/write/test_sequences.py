"""Lists with nodes in them."""

from __future__ import annotations

import pytest
from torch.fx import Graph, Node

from pt2kit import codec
from pt2kit.bridge.write.arguments import write_list
from pt2kit.errors import UnsupportedError
from pt2kit.schema import (
    Argument,
    CustomObjArgument,
    GraphArgument,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

VALUES = {
    "t": Argument(as_tensor=TensorArgument("t")),
    "u": Argument(as_tensor=TensorArgument("u")),
    "i": Argument(as_sym_int=SymIntArgument(as_name="i")),
    "f": Argument(as_sym_float=SymFloatArgument(as_name="f")),
    "b": Argument(as_sym_bool=SymBoolArgument(as_name="b")),
    "o": Argument(as_custom_obj=CustomObjArgument("o", "a.B")),
    "n": Argument(as_none=True),
    "g": Argument(as_graph=GraphArgument("g", None)),  # type: ignore[arg-type]
}
GRAPH = Graph()
NODES = {name: GRAPH.placeholder(name) for name in VALUES}


def write(items, element=None):
    """Names stand for nodes."""

    def fill(item):
        return [fill(entry) for entry in item] if isinstance(item, list) else NODES.get(item, item)

    return codec.to_tree(write_list(fill(items), lambda node: VALUES[node.name], element))


CASES = [
    (["t", "u"], None, {"as_tensors": [{"name": "t"}, {"name": "u"}]}),
    (["t", None], None, {"as_optional_tensors": [{"as_tensor": {"name": "t"}}, {"as_none": True}]}),
    (["n", "t"], None, {"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "t"}}]}),
    ([None, None], None, {"as_optional_tensors": [{"as_none": True}, {"as_none": True}]}),
    (["i", 3], None, {"as_sym_ints": [{"as_name": "i"}, {"as_int": 3}]}),
    ([3, "i", "i"], "int", {"as_sym_ints": [{"as_int": 3}, {"as_name": "i"}, {"as_name": "i"}]}),
    (["f", 0.5], None, {"as_sym_floats": [{"as_name": "f"}, {"as_float": 0.5}]}),
    (["f", 2], "float", {"as_sym_floats": [{"as_name": "f"}, {"as_float": 2.0}]}),
    (["b", True], None, {"as_sym_bools": [{"as_name": "b"}, {"as_bool": True}]}),
    (["t", "i"], None, {"as_tensors": [{"name": "t"}, {"name": "i"}]}),
    (["i", "f", "b", "o"], None, {"as_tensors": [{"name": name} for name in "ifbo"]}),
    ([["t"], [], ["u", "t"]], None, {"as_nested_tensors": [[{"name": "t"}], [], [{"name": "u"}, {"name": "t"}]]}),
]


@pytest.mark.parametrize(("items", "element", "expected"), CASES, ids=[repr(items) for items, _, _ in CASES])
def test_lists(items, element, expected):
    """The entries decide the kind; a mixture of named values is a list of tensors, as torch has it."""
    assert write(items, element) == expected


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["t", 3], "expected a list of one kind that the format has, got one of Node, int"),
        (["i", True], "got one of Node, bool"),
        (["f", 2], "got one of Node, int"),
        (["b", 1], "got one of Node, int"),
        (["t", None, 1], "got one of Node, NoneType, int"),
        (["g", "t"], "expected named values in a list of tensors, got"),
        ([["t", None]], "expected a list of one kind"),
        ([["t"], 1], "expected a list of one kind"),
    ],
)
def test_refused(items, message):
    """Mixtures that no kind of list holds are refused, and say what they mix."""
    with pytest.raises(UnsupportedError, match=message):
        write(items)


def test_uses_are_looked_up():
    """Each node is replaced by what stands for it, which may be another node's value."""
    seen: list[Node] = []

    def use(node: Node) -> Argument:
        seen.append(node)
        return VALUES["u"]

    assert codec.to_tree(write_list([NODES["t"]], use, None)) == {"as_tensors": [{"name": "u"}]}
    assert seen == [NODES["t"]]
