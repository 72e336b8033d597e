"""Edited programs in torch: they load, and run as the same edit made on the fx graph; fake tensors infer the rest."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from tests.narrow import dense
from tests.packages import bytes_of
from tests.samples import sample

import pt2kit
from pt2kit.editing import passes
from pt2kit.errors import GraphError, InputError


def load(package: pt2kit.Package) -> torch.export.ExportedProgram:
    """Load a package with stock torch."""
    return torch.export.load(io.BytesIO(bytes_of(pt2kit.write, package)))


def test_an_edited_program_runs_as_the_same_edit_in_fx() -> None:
    """relu becomes gelu in both; inputs and numbers are the same, and so are the results."""
    path = sample("2.13.0", "dynamic_batch")
    with pt2kit.edit(path) as editor:
        passes.rename_operators(editor, {"aten::relu": "aten::gelu"})
        editor.add_output("linear")
    ours = load(editor.result).module()
    theirs = torch.export.load(path)
    graph = theirs.graph_module.graph
    for node in graph.nodes:
        if node.target is torch.ops.aten.relu.default:
            node.target = torch.ops.aten.gelu.default
    theirs.graph_module.recompile()
    x = torch.randn(7, 8)
    result, linear = ours(x)
    assert torch.equal(result, theirs.module()(x))
    assert torch.equal(
        linear, torch.nn.functional.linear(x, *(theirs.state_dict[f"a.{n}"] for n in ("weight", "bias")))
    )


def test_weights_inputs_and_outputs_arrive() -> None:
    """New numbers, a frozen input and another order of outputs are what torch computes with."""
    with pt2kit.edit(sample("2.13.0", "mlp")) as editor:
        for name, view in dense(editor.weights).items():
            editor.set_weight(name, np.ones(view.shape, "f4"))
        editor.freeze_input("input", np.ones((3, 8), "f4"))
        editor.add_output("relu", position=0)
    relu, result = load(editor.result).module()()
    assert torch.equal(relu, torch.full((3, 16), 9.0))
    assert torch.equal(result, torch.full((3, 4), 145.0))


def test_cast_weights_compute_in_the_old_type() -> None:
    """Weights in bfloat16 give what rounding them gives; the state dict holds them in bfloat16."""
    path = sample("2.13.0", "mlp")
    with pt2kit.edit(path) as editor:
        passes.cast_weights(editor, "bf16")
    found, plain = load(editor.result), torch.export.load(path)
    assert {tensor.dtype for tensor in found.state_dict.values()} == {torch.bfloat16}
    x = torch.randn(3, 8)
    rounded = {name: tensor.bfloat16().float() for name, tensor in plain.state_dict.items()}
    expected = torch.func.functional_call(plain.module(), rounded, (x,))
    assert torch.allclose(found.module()(x), expected)


def test_extracted_and_composed_programs_run() -> None:
    """Two halves joined compute what the whole does; each alone what its part does."""
    path = sample("2.13.0", "mlp")
    first, second = pt2kit.extract(path, outputs=["relu"]), pt2kit.extract(path, inputs=["relu"])
    whole = torch.export.load(path).module()
    x = torch.randn(3, 8)
    assert torch.equal(load(pt2kit.compose(first, second, {"relu": "relu"})).module()(x), whole(x))
    assert torch.equal(load(second).module()(load(first).module()(x)), whole(x))


class Branches(torch.nn.Module):
    """Results of one call that go different ways, writes to results of calls, and names that get numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute with thirds of each row."""
        first, second, third = x.chunk(3, dim=-1)
        y = (first + 1).relu_()
        y.mul_(second.to(torch.float64).to(torch.float32))
        values, places = (third + 1).topk(2)
        return y.sum(-1) + values.sum(-1) + places.to(torch.float32).to(torch.float64).sum(-1)


def test_programs_cut_at_any_value_run() -> None:
    """The first part returns the value as it was there; the parts joined compute what the whole does."""
    x = torch.randn(4, 9)
    program = torch.export.export(Branches(), (x,))
    file = bytes_of(torch.export.save, program)
    values: dict[str, torch.Tensor] = {}

    class Recorded(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            if n.op == "call_function" and isinstance(result, torch.Tensor):
                values[n.name] = result.clone()
            return result

    (whole,) = Recorded(program.graph_module).run(x)
    assert {"getitem", "getitem_3", "relu_", "mul_", "to_1"} <= values.keys()
    for name, value in values.items():
        first = pt2kit.extract(file, outputs=[name])
        second = pt2kit.extract(file, inputs=[name, "x"])
        assert torch.equal(load(first).module()(x), value), name
        joined = load(pt2kit.compose(first, second, {name: name})).module()
        assert torch.equal(joined(x, x), whole), name


class Written(torch.nn.Module):
    """Writes to a result, once through a view of it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a sine and a sum."""
        y = x * 2
        y[0].add_(1)
        z = y.sin()
        y[1:].mul_(3)
        return z, y + z


def test_parts_write_what_they_read() -> None:
    """Writes through views are part of what is cut out where the memory is read later, and happen once."""
    x = torch.randn(4)
    file, whole = bytes_of(torch.export.save, torch.export.export(Written(), (x,))), Written()(x)
    for one, other in zip(load(pt2kit.extract(file)).module()(x), whole, strict=True):
        assert torch.equal(one, other)
    assert torch.equal(load(pt2kit.extract(file, outputs=["mul"])).module()(x), x * 2)
    first, second = pt2kit.extract(file, outputs=["mul", "sin"]), pt2kit.extract(file, inputs=["mul", "sin"])
    y, z = load(first).module()(x)
    assert torch.equal(y[1:], 2 * x[1:])
    assert torch.equal(z, whole[0])
    assert torch.equal(load(second).module()(y, z)[1], whole[1])
    joined = load(pt2kit.compose(first, second, {0: "mul", 1: "sin"})).module()(x)
    assert torch.equal(joined[-1], whole[1])


class Cached(torch.nn.Module):
    """Stores what it gets in a buffer, through a view, and reads it in the next call alone."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sine of what was stored before, and the input."""
        stored = x.relu()
        y = self.cache[1] + stored
        self.cache[1].copy_(stored)
        return y.sin()


def test_a_view_of_what_the_part_computes_is_refused() -> None:
    """Writes through the view would not be seen in the memory that the part has of its own."""
    file = bytes_of(torch.export.save, torch.export.export(Written(), (torch.randn(4),)))
    with pytest.raises(GraphError, match=r"got 'select', which shares what node 'add_' writes with 'mul'; name"):
        pt2kit.extract(file, inputs=["select", "x"])


@pytest.mark.parametrize("inputs", [None, ["relu"]])
def test_parts_write_to_buffers_through_views(inputs: list[str] | None) -> None:
    """Writes to memory that outlives the call are part of what is cut out, although no result depends on them."""
    x = torch.ones(4)
    file = bytes_of(torch.export.save, torch.export.export(Cached(), (x,)))
    module = load(pt2kit.extract(file, inputs=inputs)).module()
    results = [module(x) for _ in range(2)]
    assert torch.equal(results[0], x.sin())
    assert torch.equal(results[1], (x + x).sin())


class Counted(torch.nn.Module):
    """Counts its calls, and reads the count later."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sine times the number of calls."""
        self.count.add_(1)
        y = x.sin()
        return y * self.count[None]


def test_a_buffer_that_both_parts_write_to_is_refused() -> None:
    """The second part counts alone, as the first one does; joined they share no buffer."""
    x = torch.ones(4)
    file = bytes_of(torch.export.save, torch.export.export(Counted(), (x,)))
    first, second = (
        pt2kit.extract(file, outputs=["sin"]),
        pt2kit.extract(file, inputs=["sin"]),
    )
    module = load(second).module()
    assert [module(x)[0].item() for _ in range(2)] == [1, 2]
    with pytest.raises(GraphError, match=r"got 'count', to which both do; pass prefixes="):
        pt2kit.compose(first, second, {0: "sin"})
    joined = load(pt2kit.compose(first, second, {0: "sin"}, prefixes=("a", "b"))).module()
    assert torch.equal(joined(x), x.sin())


class Mixed(torch.nn.Module):
    """Multiplies under autocast, which converts operands when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sine of a product, and a product of that with the input."""
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ self.weight
            z = y @ x.mT
        return y.float().sin(), z


def test_sizes_change_under_autocast() -> None:
    """Results keep the type that is declared of them, and operands may differ in theirs."""
    model = Mixed()
    for shapes, edit in [
        (None, lambda editor: passes.make_dynamic(editor, "x", 0)),
        (({0: torch.export.Dim.DYNAMIC},), lambda editor: editor.specialize(next(iter(editor.ranges)), 3)),
    ]:
        file = bytes_of(torch.export.save, torch.export.export(model, (torch.randn(2, 8),), dynamic_shapes=shapes))
        editor = pt2kit.edit(file)
        edit(editor)
        x = torch.randn(3, 8)
        for one, other in zip(load(editor.finish()).module()(x), model(x), strict=True):
            torch.testing.assert_close(one, other)


class Stepped(torch.nn.Module):
    """Reads a counter, counts, and reads it again."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.ones(()))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the products with the counter before and after the step."""
        y = x * self.count
        self.count.add_(1)
        return y, x - self.count


def test_a_read_in_front_of_a_write_that_was_made_is_refused() -> None:
    """The counter has been written to where the second part begins; it would multiply by another number."""
    file = bytes_of(torch.export.save, torch.export.export(Stepped(), (torch.ones(4),)))
    with pytest.raises(GraphError, match=r"before node 'add_' writes to 'b_count', which node 'mul' reads as it was"):
        pt2kit.extract(file, inputs=["sub", "x"])
    second = load(pt2kit.extract(file, inputs=["mul", "sub"])).module()
    for one, other in zip(second(torch.ones(4), torch.zeros(4)), (torch.ones(4), torch.zeros(4)), strict=True):
        assert torch.equal(one, other)


class Asserted(torch.nn.Module):
    """Asserts the type of a table that an input is written to."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return sums of both, and of the table."""
        z = y.cos()
        table = torch.zeros(4)
        table[1:].copy_(x[1:])
        torch.ops.aten._assert_tensor_metadata.default(table, dtype=torch.float32)
        return z + (x + table)


def test_assertions_of_memory_that_other_inputs_are_written_to_are_left_out() -> None:
    """The table is made without the input, but not what it holds."""
    x, y = torch.ones(4), torch.ones(4)
    part = pt2kit.extract(bytes_of(torch.export.save, torch.export.export(Asserted(), (x, y))), inputs=["cos", "add"])
    assert torch.equal(load(part).module()(x, y), x + y)


def test_a_write_that_was_made_and_is_needed_is_refused() -> None:
    """The result of the write is what the second part needs, not the value that was written to."""
    program = torch.export.export(Branches(), (torch.randn(4, 9),))
    file = bytes_of(torch.export.save, program)
    with pytest.raises(GraphError, match=r"got 'add', which node 'relu_' writes to; name its result"):
        pt2kit.extract(file, inputs=["add", "to_1", "x"])


class Cast(torch.nn.Module):
    """Views rows that a cast has moved together."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first columns of a row each, in another type."""
        return x.double()[:, :3].to(torch.float32).view(-1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_cast_that_changes_no_type_still_copies(dtype: str) -> None:
    """The cast copies as it did before, because the view behind it needs adjacent elements."""
    buffer = io.BytesIO()
    x = torch.randn(4, 5)
    torch.export.save(torch.export.export(Cast(), (x,)), buffer)
    with pt2kit.edit(buffer.getvalue()) as editor:
        passes.compute_in(editor, dtype)
    given = x.to(getattr(torch, dtype))
    assert torch.equal(load(editor.result).module()(given), given[:, :3].reshape(-1))


def test_arguments_behind_defaults_are_named() -> None:
    """An argument is passed by name where one before it is left to its default."""
    with pt2kit.edit(sample("2.13.0", "dynamic_batch")) as editor:
        relu = editor.value("relu")
        copied = editor.graph.append("aten.to.dtype", relu, "f64", copy=True)
        editor.add_output(copied.outputs[0])
        summed = editor.graph.append("aten.sum.dim_IntList", relu, [0])
        summed.set_argument("dtype", "f32")
        editor.add_output(summed.outputs[0])
    x = torch.randn(5, 8)
    _, twice, total = load(editor.result).module()(x)
    assert (twice.dtype, total.dtype) == (torch.float64, torch.float32)


CALLS: list[tuple[str, list[Any]]] = [
    ("aten.fft_fftshift", []),
    ("aten.fft_ifftshift", []),
]


@pytest.mark.parametrize(("operator", "arguments"), CALLS)
def test_fake_tensors_infer_what_no_rule_is_for(operator: str, arguments: list[Any]) -> None:
    """Symbolic sizes come back as the symbols they were; the program loads and runs."""
    with pt2kit.edit(sample("2.13.0", "dynamic_batch")) as editor:
        relu = editor.value("relu")
        with pytest.raises(GraphError, match=r"or infer='torch'"):
            editor.graph.append(operator, relu, *arguments)
        node = editor.graph.append(operator, relu, *arguments, infer="torch")
        editor.add_output(node.outputs[0])
    assert "s77" in str(node.outputs[0].shape)
    load(editor.result).module()(torch.randn(5, 8))


def test_what_torch_refuses_names_the_edit() -> None:
    """The message of the fake kernel stands behind the name of the edit."""
    editor = pt2kit.edit(sample("2.13.0", "mlp"))
    with pytest.raises(GraphError, match=r"append\('aten.topk'\): expected arguments that torch.ops.aten.topk.default"):
        editor.graph.append("aten.topk", editor.value("relu"), 300, infer="torch")


class Nested(torch.nn.Module):
    """Takes tensors in a list and a dict."""

    def forward(self, pair: list[torch.Tensor], more: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return their sum."""
        return pair[0] + 2 * pair[1] + 3 * more["a"] + 4 * more["b"]


def test_samples_stay_with_what_is_left_of_an_argument() -> None:
    """One item of a list is frozen: the others keep their samples, and the program gives what it gave."""
    pair, more = [torch.randn(3), torch.randn(3)], {"a": torch.randn(3), "b": torch.randn(3)}
    file = bytes_of(pt2kit.save, torch.export.export(Nested(), (pair, more)))
    with pt2kit.edit(file) as editor:
        editor.freeze_input("pair_0", pair[0].numpy())
    assert editor.notes == []
    loaded = load(editor.result)
    args, kwargs = loaded.example_inputs
    assert [len(one) for one in args] == [1, 2]
    assert torch.equal(loaded.module()(*args, **kwargs), Nested()(pair, more))


class Rows(torch.nn.Module):
    """Arguments of which the last two have equal sizes."""

    def forward(self, unused: torch.Tensor, *rows: torch.Tensor) -> torch.Tensor:
        return rows[0] + rows[1]


def runs(program: torch.export.ExportedProgram, inputs: list[torch.Tensor]) -> bool:
    """Return whether torch runs it: 2.9 does not find entries of `*args`, which guards name, in its own files."""
    try:
        program.module()(*inputs)
    except NameError:
        return False
    return True


REFUSED = (AssertionError, RuntimeError, InputError)
EDITS_OF_INPUTS: dict[str, tuple[Any, list[int]]] = {
    "rename": (lambda editor: editor.rename_input("rows_0", "first"), [0, 1, 2]),
    "exchange names": (
        lambda editor: [editor.rename_input(*one) for one in (("rows_0", "x"), ("rows_1", "rows_0"), ("x", "rows_1"))],
        [0, 1, 2],
    ),
    "drop": (lambda editor: editor.drop_input("unused"), [1, 2]),
    "freeze": (lambda editor: editor.freeze_input("unused", np.ones((4, 3), "f4")), [1, 2]),
    "reorder": (lambda editor: editor.reorder_inputs(["rows_1", "rows_0", "unused"]), [2, 1, 0]),
    "add": (lambda editor: editor.add_input("new", editor.user_inputs[0].value, position=0), [0, 0, 1, 2]),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", EDITS_OF_INPUTS)
def test_guards_follow_inputs(name: str, strict: bool) -> None:
    """Guards hold for the same inputs, whether torch names them by arguments, entries of `*args` or places."""
    edit, order = EDITS_OF_INPUTS[name]
    auto = {0: torch.export.Dim.AUTO}
    inputs = [torch.ones(4, 3), torch.ones(5, 3), torch.ones(5, 3)]
    program = torch.export.export(Rows(), tuple(inputs), dynamic_shapes=(auto, (auto, auto)), strict=strict)
    with pt2kit.edit(io.BytesIO(bytes_of(torch.export.save, program))) as editor:
        edit(editor)
    modules: list[Any] = [pt2kit.load_module(bytes_of(pt2kit.write, editor.result))]
    modules += [load(editor.result).module()] if runs(program, inputs) else []
    for module in modules:
        assert torch.equal(module(*(inputs[place] for place in order)), torch.full((5, 3), 2.0))
        inputs[2], old = torch.ones(6, 3), inputs[2]
        with pytest.raises(REFUSED, match=r"Guard failed|to be equal to|expected the same as"):
            module(*(inputs[place] for place in order))
        inputs[2] = old


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("prefixes", [("", ""), ("one", "two")])
def test_guards_of_joined_programs(prefixes: tuple[str, str], strict: bool) -> None:
    """Each guard is on the inputs of its own program."""
    auto = {0: torch.export.Dim.AUTO}
    inputs = [torch.ones(4, 3), torch.ones(5, 3), torch.ones(5, 3)]
    program = torch.export.export(Rows(), tuple(inputs), dynamic_shapes=(auto, (auto, auto)), strict=strict)
    with pt2kit.open(io.BytesIO(bytes_of(torch.export.save, program))) as package:
        module = load(pt2kit.compose(package, package, {}, prefixes=prefixes)).module()
    other = [torch.ones(7, 3), torch.ones(8, 3), torch.ones(8, 3)]
    assert [tuple(one.shape) for one in module(*inputs, *other)] == [(5, 3), (8, 3)]
    with pytest.raises(REFUSED, match=r"Guard failed|to be equal to 8, but got 9"):
        module(*inputs, *other[:2], torch.ones(9, 3))
