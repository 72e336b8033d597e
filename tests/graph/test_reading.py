"""`Package.graph`: nodes, arguments by name, values, subgraphs and weights of real programs."""

from __future__ import annotations

import msgspec
import pytest
from tests.samples import corpus, sample

import pt2kit
from pt2kit import schema
from pt2kit.graph.reading import Graph, Value, defaults
from pt2kit.graph.traversal import walk

MLP = sample("2.13.0", "mlp")


def test_a_node_has_what_the_file_says() -> None:
    """Operator, arguments by name, module, source line, results and users."""
    graph = pt2kit.open(MLP).graph()
    first, relu, last = graph.nodes
    assert first.op == "aten.linear.default"
    assert first.module == "0"
    assert first.module_type == "torch.nn.modules.linear.Linear"
    assert first.source is not None
    assert first.source.function == "forward"
    assert first.users == (relu,)
    assert first.output.shape == (3, 16)
    assert first.output.dtype == "float32"
    assert first.output.device == "cpu"
    assert first.args["weight"].target == "0.weight"
    assert first.args["weight"].role == "parameter"
    assert relu.inputs == (first.output,)
    assert graph.outputs == (last.output,)
    assert last.output.is_output
    assert graph.node("relu") is relu
    assert graph.release == "2.13"


def test_weights_have_their_numbers() -> None:
    """`tensor` is the entry of the package; a value that is computed has none."""
    package = pt2kit.open(MLP)
    graph = package.graph()
    assert [value.target for value in graph.weights()] == list(package.weights())
    assert graph.weights()[0].tensor() is package.weights()["0.weight"]
    with pytest.raises(pt2kit.Pt2Error, match=r"value 'relu': expected a stored parameter, .*, got a computed value"):
        graph.node("relu").output.tensor()
    with pytest.raises(pt2kit.Pt2Error, match="expected one result, got 0"):
        graph.nodes[0].__class__(graph, 0, msgspec.structs.replace(graph.nodes[0]._node)).output  # noqa: B018


def test_defaults_are_filled_in_and_other_names_raise() -> None:
    """Arguments that the file leaves out have the schema's defaults; a misspelled one is an error with a suggestion."""
    graph = pt2kit.open(sample("2.13.0", "convnet")).graph()
    conv = next(node for node in graph.nodes if node.op == "aten.conv2d.default")
    assert list(conv.args) == ["input", "weight", "bias", "stride", "padding", "dilation", "groups"]
    assert conv.args["groups"] == 1
    assert conv.args["dilation"] == (1, 1)
    with pytest.raises(KeyError, match=r"one of 'input', .*, got 'pading'; did you mean padding\?"):
        conv.args["pading"]


def test_symbolic_sizes_are_numbers_and_texts() -> None:
    """A dynamic dimension is the text of its expression."""
    graph = pt2kit.open(sample("2.13.0", "dynamic_batch")).graph()
    [shape] = [value.shape for value in graph.inputs if value.role == "user_input"]
    assert shape is not None
    assert isinstance(shape[0], str)
    assert shape[0].startswith("s")
    assert all(isinstance(size, int) for size in shape[1:])


def test_a_custom_operator_keeps_what_the_file_has() -> None:
    """An operator without a schema has the arguments that the file names, and no others."""
    graphs = [pt2kit.open(path).graph() for path in corpus("2.13.0") if "custom" in path.stem]
    nodes = [node for graph in graphs for node in graph.walk() if not node.op.startswith(("aten.", "_operator."))]
    assert nodes
    for node in nodes:
        assert list(node.args) == [named.name or str(place) for place, named in enumerate(node._node.inputs)]


def test_subgraphs_are_graphs() -> None:
    """Branches are reached as arguments and by name, and `walk` visits their nodes after the node that has them."""
    graph = pt2kit.open(sample("2.13.0", "cond")).graph()
    [cond] = [node for node in graph.nodes if node.op == "higher_order.cond"]
    branches = [argument for argument in cond.args.values() if isinstance(argument, Graph)]
    assert branches == list(cond.subgraphs.values())
    assert all(branch.owner is cond for branch in branches)
    names = [node.name for node in graph.walk()]
    inner = [node.name for branch in branches for node in branch.nodes]
    assert names[names.index("cond") + 1 :][: len(inner)] == inner


def test_every_sample_can_be_read_whole() -> None:
    """All programs of all releases: the nodes are those of the file, and users and inputs are each other's inverse."""
    for path in corpus():
        package = pt2kit.open(path)
        for model in package.programs:
            graph = package.graph(model)
            nodes = list(graph.walk())
            assert [node._node for node in nodes] == [step.node for step in walk(package.programs[model])], path
            for node in nodes:
                given = [named.name for named in node._node.inputs if named.name]
                assert node.op.startswith("_operator.") or node.op.startswith("torch.") or set(given) <= set(node.args)
                for value in node.inputs:
                    assert value.producer is None or node in value.producer.users
                for value in node.outputs:
                    assert value.producer is node
                    assert all(value in user.inputs for user in value.users)
                    if isinstance(value.meta, schema.TensorMeta):
                        assert value.shape is not None
                        assert value.strides is not None
                        assert len(value.shape) == len(value.meta.sizes)
            for value in graph.weights():
                value.tensor()


def test_defaults_are_those_of_a_release() -> None:
    """An operator that a release lacks has no defaults; texts of the table become plain values."""
    assert defaults("aten.max_pool2d.default", "2.13")["padding"] == (0, 0)
    assert defaults("aten.max_pool2d.default", "2.13")["stride"] == ()
    assert defaults("aten.rms_norm.default", "2.1") == {}
    assert defaults("mylib.op.default", "2.13") == {}


def test_the_classes_are_public() -> None:
    """The classes are names of `pt2kit`, for `isinstance` and annotations."""
    assert pt2kit.Value is Value
    assert pt2kit.Graph is Graph
