"""The parts that editors are made of: ordered lists, names, trees of calls, inputs and outputs, tables of weights."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.calls import count_calls
from tests.samples import sample

import pt2kit
from pt2kit import treespec
from pt2kit.editing import passes
from pt2kit.editing.interface import Branch, grow, leaves_of, parent_of, spec_of, tuple_of
from pt2kit.editing.structures import Link, Names, Nodes, check_name
from pt2kit.editing.weights import laid_out, to_view
from pt2kit.errors import GraphError


class Item(Link["Item"]):
    """An item with a number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@pytest.mark.parametrize("seed", range(4))
def test_an_ordered_list_is_like_a_list(seed: int) -> None:
    """Random insertions and removals: the same items as in a list, and orders that grow along it."""
    dice = Random(seed)
    items: list[Item] = []
    ordered: Nodes[Item] = Nodes({})
    for number in range(300):
        if items and dice.random() < 0.3:
            ordered.unlink(items.pop(dice.randrange(len(items))))
        else:
            place = 0 if seed == 0 else dice.randint(0, len(items))
            item = Item(number)
            ordered.link(item, items[place] if place < len(items) else None)
            items.insert(place, item)
    assert list(ordered) == items
    assert list(reversed(ordered)) == items[::-1]
    assert len(ordered) == len(items)
    orders = [item.order for item in items]
    assert orders == sorted(set(orders))


def test_a_list_may_change_while_it_is_iterated() -> None:
    """Items that are inserted after the one at hand are visited; removed ones are not."""
    ordered: Nodes[Item] = Nodes({})
    items = [Item(number) for number in range(4)]
    for item in items:
        ordered.link(item, None)
    seen = []
    for item in ordered:
        seen.append(item.number)
        if item.number == 0:
            ordered.link(Item(10), items[1])
            ordered.unlink(items[2])
        if item.number == 1:
            ordered.unlink(item)
    assert seen == [0, 10, 1, 3]


def test_names_are_made_unique() -> None:
    """Taken names, keywords and names of Python get a number; other characters become underscores."""
    values: dict[str, object] = {"x": 1, "x_1": 1}
    names = Names(values, {"left_over"})
    assert [names.unique(wish) for wish in ("y", "x", "sum", "left_over", "a.b", "1a", "lambda")] == [
        *("y", "x_2", "sum_1", "left_over_1", "a_b", "_1a", "lambda_1")
    ]
    names.nodes.add("y")
    with pytest.raises(GraphError, match="expected a name that no node has, got 'y'"):
        names.check_free("edit", "y")
    with pytest.raises(GraphError, match=r"expected an identifier that is no keyword of Python, nor 'self'"):
        check_name("edit", "self")


def test_trees_are_grown_and_written_back() -> None:
    """A tree over leaves has the spec that it was grown from; items of tuples, lists and dicts come and go."""
    spec = treespec.parse(treespec.dump(spec_of(tuple_of(["a", tuple_of(["b", "c"])]))))
    tree = grow(spec, [1, 2, 3])
    assert spec_of(tree) == spec
    assert list(leaves_of(tree)) == [1, 2, 3]
    inner = tree.children[1]
    assert isinstance(inner, Branch)
    assert parent_of(tree, inner) is tree
    assert isinstance(tree, Branch)
    inner.insert(0, 9, None, "edit")
    tree.remove(tree.children[0], "edit")
    assert list(leaves_of(tree)) == [9, 2, 3]
    by_key = Branch("builtins.dict", treespec.context_text(["k"]), [1])
    by_key.insert(1, 2, "m", "edit")
    assert by_key.keys == ["k", "m"]
    with pytest.raises(GraphError, match=r"expected a new key for the dict \(k, m\), got 'k', which is there"):
        by_key.insert(1, 2, "k", "edit")
    with pytest.raises(GraphError, match=r"expected a tuple, list or dict, got a mine\.Type, which has its own shape"):
        Branch("mine.Type", '""', []).insert(0, 1, None, "edit")


@pytest.mark.parametrize("name", ["mlp", "buffer_mutation", "input_mutation", "scalar_inputs", "print_effect", "cond"])
def test_specs_of_inputs_and_outputs_are_those_that_were_read(name: str) -> None:
    """Nothing changed: the same objects. A renamed value changes its own spec alone."""
    program = pt2kit.open(sample("2.13.0", name)).programs["model"]
    signature = program.graph_module.signature
    editor = pt2kit.edit(program)
    assert all(one.spec() is spec for one, spec in zip(editor.inputs, signature.input_specs, strict=True))
    assert all(one.spec() is spec for one, spec in zip(editor.outputs, signature.output_specs, strict=True))
    value = next(one.value for one in editor.inputs if one.value is not None)
    editor.graph.rename(value, "renamed")
    changed = [spec for one, spec in zip(editor.inputs, signature.input_specs, strict=True) if one.spec() != spec]
    assert len(changed) == 1


def test_an_input_that_is_written_keeps_a_name_that_torch_finds() -> None:
    """torch.fx renames a placeholder called "max", and then finds no input to write the result back to."""
    editor = pt2kit.edit(sample("2.13.0", "input_mutation__decomp"))
    written = next(one.input for one in editor.outputs if one.kind == "user_input_mutation")
    assert written is not None
    editor.rename_input(written.name, "max")
    with pytest.raises(GraphError, match="expected an input that is written to not to be named like a function of Py"):
        editor.finish()


def test_equal_numbers_stay_in_their_records() -> None:
    """Weights that a package is given from itself have the storages that it has: no record is written anew."""
    with pt2kit.open(sample("2.13.0", "mlp")) as package:
        with pt2kit.edit(package) as editor:
            editor.load_weights(package)
            editor.add_output("relu")
        records = [package.relative(name) for name in package.records if "weights/" in name]
        assert [name.rpartition("/")[2] for name in editor.result.records if "weights/" in name] == [
            name.rpartition("/")[2] for name in records
        ]


def test_numbers_take_the_layout_of_what_they_replace() -> None:
    """A transposed weight is stored transposed: the file keeps its strides."""
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    view = laid_out(to_view("w", numbers), (1, 2))
    assert view.strides == (1, 2)
    assert view.tobytes() == numbers.tobytes()
    assert bytes(view.storage.read()) == numbers.T.tobytes()


def test_sizes_written_into_a_normalization_are_replaced() -> None:
    """The first size of `native_group_norm` is written as a number, and becomes the symbol."""
    with pt2kit.edit(sample("2.13.0", "mlp")) as editor:
        relu = editor.graph.nodes["relu"].output
        norm = editor.graph.append("aten.native_group_norm", relu, None, None, 3, 16, 1, 4, 1e-5)
        editor.add_output(norm.outputs[0])
        symbol = passes.make_dynamic(editor, "input", 0, 1, 64)
    assert editor.result.graph().outputs[1].shape == (symbol, 16)


def test_ten_thousand_replacements_take_linear_time() -> None:
    """Four times as many replacements take at most five times as many calls."""

    def replace() -> None:
        for node in list(editor.graph.nodes):
            if node.target == "torch.ops.aten.relu.default":
                new = node.insert_after("aten.neg", node.inputs[0])
                node.output.replace_uses(new.output)
                node.erase()

    taken = []
    for count in (500, 2_000):
        editor = pt2kit.edit(sample("2.13.0", "mlp"))
        value = editor.graph.nodes["relu"].output
        for _ in range(count):
            assert value.producer is not None
            value = editor.graph.insert_after(value.producer, "aten.relu", value).output
        taken.append(count_calls(replace))
    assert taken[1] < 5 * taken[0]
