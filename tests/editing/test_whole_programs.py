"""Edits of whole programs on all samples: another element type, dynamic sizes, sample inputs; metadata of new nodes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.samples import corpus, release_id, sample

import pt2kit
from pt2kit.editing import passes
from pt2kit.editing.editor import PackageEditor
from pt2kit.errors import GraphError, Pt2Error, UnsupportedError

MLP = sample("2.13.0", "mlp")
FLOATS = {"float16", "float32", "float64"}


def errors(package: pt2kit.Package) -> list[str]:
    """Return the errors of a package, by rule and message."""
    return [f"{one.rule} {one.message}" for one in pt2kit.check(package) if one.kind == "error"]


@pytest.mark.parametrize("path", corpus("2.13.0"), ids=release_id)
def test_every_sample_computes_in_bfloat16_or_says_why_not(path: object) -> None:
    """The result has no new errors, and no tensor of floats but those that an operator always gives."""
    with pt2kit.open(path) as package:  # type: ignore[arg-type]
        model = package.layout.models[0]
        editor = pt2kit.edit(package, model)
        before = {value.name: value.dtype for value in package.graph(model).values.values()}
        try:
            passes.compute_in(editor, "bfloat16")
            result = editor.finish()
        except GraphError as error:
            assert "expected" in str(error)
            return
        after = {value.name: value.dtype for value in result.graph(model).values.values()}
        assert after.keys() == before.keys()
        changed = [name for name, dtype in before.items() if dtype in FLOATS and after[name] == "bfloat16"]
        assert len(changed) >= 0.8 * sum(dtype in FLOATS for dtype in before.values())
        kept = [name for name, dtype in before.items() if dtype not in FLOATS and after[name] != dtype]
        assert kept == []
        assert set(errors(result)) <= set(errors(package))


def test_a_program_with_effects_runs_in_bfloat16() -> None:
    """Its tokens, which order the effects, have no numbers to be converted."""
    with pt2kit.open(sample("2.13.0", "print_effect__decomp")) as package:
        editor = pt2kit.edit(package)
        passes.compute_in(editor, "bfloat16")
        session = pt2kit.Session(editor.finish())
    sizes = [size for size in session.inputs[0].sizes or () if isinstance(size, int)]
    assert session(np.ones(sizes, session.inputs[0].dtype)).dtype.name == "bfloat16"


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_dimensions_become_dynamic_or_are_refused(dice: Random) -> None:
    """A proven program has no new errors, and sizes differ only if they were equal in the example."""
    with pt2kit.open(dice.choice(corpus("2.13.0"))) as package:
        model = package.layout.models[0]
        editor = pt2kit.edit(package, model)
        tensors = [one for one in editor.user_inputs if one.value is not None and one.value.shape]
        if not tensors:
            return
        one = dice.choice(tensors)
        assert one.value is not None
        assert one.value.shape is not None
        dim = dice.randrange(len(one.value.shape))
        before = {value.name: value.shape for value in package.graph(model).values.values()}
        written = editor.check()
        try:
            symbol = passes.make_dynamic(editor, one.name, dim, 1, 99)
        except GraphError as error:
            assert "expected" in str(error)
            assert one.value.shape == before[one.name] or "[T8]" in str(error) or str(one.value.shape)
            assert editor.check().range_constraints == written.range_constraints
            return
        result = editor.finish()
        assert set(errors(result)) <= set(errors(package))
        after = {value.name: value.shape for value in result.graph(model).values.values()}
        shape = after[one.name]
        assert shape is not None
        assert shape[dim] == symbol
        for name, sizes in before.items():
            new = after[name]
            assert (sizes is None) == (new is None)
            assert sizes is None or new is None or len(sizes) == len(new)


def test_a_dimension_that_is_not_there_is_named() -> None:
    """Inputs, dimensions and ranges that do not fit are refused with what there is."""
    editor = pt2kit.edit(MLP)
    with pytest.raises(GraphError, match=r"expected the name of an input tensor \(input\), got 'x'"):
        passes.make_dynamic(editor, "x", 0)
    with pytest.raises(GraphError, match="expected a dimension from 0 to 1, got 2"):
        passes.make_dynamic(editor, "input", 2)
    with pytest.raises(GraphError, match="expected a range with the size it has, 3, got 4 to 9"):
        passes.make_dynamic(editor, "input", 0, 4, 9)
    with pytest.raises(GraphError, match=r"node 'linear' \(aten.linear.default\), which does not"):
        passes.make_dynamic(editor, "input", 1, 1, 9)


def test_sizes_of_programs_with_gradients_stay() -> None:
    """Gradients have numbers that were computed from the sizes, which no rule finds again."""
    editor = pt2kit.edit(sample("2.13.0", "training_loss_joint"))
    with pytest.raises(GraphError, match="expected a program without gradients"):
        passes.make_dynamic(editor, "x", 0, equal=[("t", 0)])


def test_sample_inputs_are_set() -> None:
    """The arrays are in the file; names, element types and sizes that do not fit are refused."""
    x = np.arange(24, dtype="f4").reshape(3, 8)
    with pt2kit.edit(MLP) as editor:
        editor.set_sample_inputs({"input": x})
    held = editor.result.sample_inputs()
    assert held is not None
    assert np.array_equal(held[0][0].numpy(), x)
    assert held[1] == {}
    editor = pt2kit.edit(MLP)
    with pytest.raises(GraphError, match=r"expected float32\[3, 8\] for 'input', got float64\[3, 8\]"):
        editor.set_sample_inputs({"input": x.astype("f8")})
    with pytest.raises(GraphError, match=r"expected the inputs input, got \['x'\] and lacks \['input'\]"):
        editor.set_sample_inputs({"x": x})


def test_sample_inputs_of_nested_calls_are_set() -> None:
    """Containers of the call are kept, constants filled in; a named tuple of a user's cannot be written as data."""
    for name in ("scalar_inputs", "none_input", "cond"):
        with pt2kit.open(sample("2.13.0", name)) as package:
            before = package.sample_inputs()
            editor = pt2kit.edit(package)
            values = {}
            for one in editor.user_inputs:
                if one.value is not None:
                    shape = [size if isinstance(size, int) else 3 for size in one.value.shape or ()]
                    kind = package.graph().values[one.name].dtype
                    values[one.name] = np.ones(shape, kind) if one.value.kind == "tensor" else 4
            editor.set_sample_inputs(values)
            after = editor.finish().sample_inputs()
        assert before is not None
        assert after is not None
        assert [type(one) for one in after[0]] == [type(one) for one in before[0]]
        assert list(after[1]) == list(before[1])
    editor = pt2kit.edit(sample("2.13.0", "kwargs_and_nested_inputs"))
    with pytest.raises(UnsupportedError, match="expected tuples, lists and dicts around sample inputs"):
        editor.set_sample_inputs({one.name: np.ones((2, 3), "f4") for one in editor.user_inputs})


def test_new_nodes_belong_to_their_neighbors_module() -> None:
    """A cast of a weight is part of the module that uses it, so extracting the module keeps the weight."""
    with pt2kit.edit(MLP) as editor:
        passes.cast_weights(editor, "bf16", ["2.weight"])
    node = editor.result.graph().node("p_2_weight_cast")
    assert node.module == "2"
    assert node.source == editor.result.graph().node("linear_1").source
    part = pt2kit.extract(editor.result, "2")
    assert sorted(part.weights()) == ["2.bias", "2.weight"]
    assert [value.name for value in part.graph().inputs if value.role == "user_input"] == ["relu"]


def test_weights_that_have_the_type_are_not_cast() -> None:
    """Casts count weights that changed: another float type, not the one that they have."""
    with pt2kit.edit(MLP) as editor:
        assert passes.cast_weights(editor, "float32") == 0
        assert passes.cast_weights(editor, "bf16") == 4
        assert passes.cast_weights(editor, "bf16") == 0


@pytest.mark.parametrize("file", ["shared_weights", "shared_weights__strict"])
def test_untie_says_what_nothing_uses(file: str) -> None:
    """Of the names of a tied weight calls take one; that nothing uses the others after `untie` is in the notes."""
    editor = pt2kit.edit(sample("2.13.0", file))
    editor.untie("emb.weight")
    targets = {one.target for one in editor.inputs if one.value is not None and one.value.is_used}
    (used,) = {"emb.weight", "out.weight"} & targets
    (unused,) = {"emb.weight", "out.weight"} - targets
    assert f"untie('emb.weight'): nothing uses '{unused}' now: calls take '{used}'" in editor.notes


def test_messages_name_what_there_is() -> None:
    """An operator that does not exist, and a number outside a range."""
    editor: PackageEditor = pt2kit.edit(sample("2.13.0", "dynamic_batch"))
    with pytest.raises(GraphError, match=r"no operator aten.reluu in torch [\d.]+; did you mean aten.relu"):
        editor.graph.nodes["relu"].retarget("aten.reluu")
    with pytest.raises(GraphError, match="expected s77 from 2 to 64, got 65"):
        editor.specialize("s77", 65)
    with pytest.raises(GraphError, match=r"expected a symbol of the program \(s77 from 2 to 64\), got 's7'"):
        editor.specialize("s7", 4)
    with pytest.raises(Pt2Error, match=r"expected bfloat16, float16, float32 or float64, got int64"):
        passes.compute_in(editor, "int64")
