"""The table of kernels: names, arguments and rules that exist, and what rules demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pt2kit.operators import schemas
from pt2kit.operators.demands import Call, Operand
from pt2kit.operators.kernel_rules import find_rule, texts
from pt2kit.operators.requirements import (
    GROWING,
    TABLE,
    UNINITIALIZED,
    find_row,
    refusal,
)
from pt2kit.schema import ScalarType

RELEASE = "2.13"
"""The release with which the table of kernels was made."""


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("torch.ops.aten.from_file.default", "it reads or writes files"),
        ("torch.ops.c10d.send.default", "it talks to other processes"),
        ("torch.ops.higher_order.aoti_call_delegate", "it runs a compiled library"),
        ("torch.ops.aten.view_copy.dtype", "it trusts its arguments with memory that they may not have"),
        ("torch.ops.aten.view_copy.dtype_out", "it trusts its arguments with memory that they may not have"),
        ("torch.ops.aten.fbgemm_pack_quantized_matrix.KN", "it returns an object that a tensor hides"),
        ("torch.ops.aten._wrapped_linear_prepack.default", "it returns an object that a tensor hides"),
        ("torch.ops._quantized._wrapped_linear_prepack.default", "it returns an object that a tensor hides"),
        ("torch.ops.quantized.make_quantized_cell_params.default", "it takes sizes on trust"),
        ("torch.ops.aten.view_copy.out", None),
        ("torch.ops.aten.embedding.default", None),
        ("torch.ops.aten.add.Tensor", None),
        ("torch.ops.mine.from_file.default", None),
        ("torch.ops.aten", None),
        ("_operator.add", None),
        ("", None),
    ],
)
def test_refusal(target: str, reason: str | None) -> None:
    """A refusal says what the operator does; everything else is not refused."""
    assert refusal(target) == reason


def test_names_exist() -> None:
    """Every name of the table is spelled as torch spells it."""
    table = schemas.operators(RELEASE)
    known = {name.rpartition(".")[0] for name in table.schemas} | {f"higher_order.{n}" for n in table.higher_order}
    rows = {*TABLE.operators, *UNINITIALIZED, *GROWING}
    own = {name for name in rows if name.partition(".")[0] in ("aten", "prims")}
    assert own - known - set(table.schemas) == set()
    refused = {name.partition(".")[0] for name, row in TABLE.operators.items() if row.is_refused}
    assert refused & TABLE.namespaces.keys() <= {"inductor"}


def test_rows() -> None:
    """A row is refused, required by a rule that exists, or kept for a stated reason."""
    assert {row.requires for row in TABLE.operators.values()} - {""} <= set(texts())
    assert all(row.requires in texts() or row.kept or row.is_refused for row in TABLE.operators.values())
    for name, row in TABLE.operators.items():
        count = max((len(one.results) for one in _signatures(name)), default=9)
        assert all(position < count for position in row.copied), name


def _signatures(name: str) -> list[Any]:
    from pt2kit.schema.operators import parse_operator

    table = schemas.operators(RELEASE).schemas
    return [parse_operator(text) for key, text in table.items() if key == name or key.rpartition(".")[0] == name]


def test_variants() -> None:
    """An overload that writes its result to a tensor that it gets is looked at as the one it is a variant of."""
    table = schemas.operators(RELEASE).schemas
    for name, row in TABLE.operators.items():
        base, _, overload = name.partition(".")[2].partition(".")
        namespace = name.partition(".")[0]
        own = {key for key in table if key.startswith(f"{namespace}.{base}.")}
        out = {key for key in own if "out: " in table[key] or key.endswith(("_out", ".out"))}
        if overload:
            out &= {f"{name}_out"}
        assert all(find_row(f"torch.ops.{key}") is TABLE.operators.get(key, row) for key in out), name


def test_rules_read_parameters_that_exist() -> None:
    """A rule asks a call for arguments of its operator, whatever is known of them."""
    for name, row in TABLE.operators.items():
        for signature in _signatures(name) if row.requires else []:
            given = dict.fromkeys(signature.parameters)
            asked = _Asked(given)
            list(find_rule(row.requires)(asked))
            assert asked.names & set(given) or row.requires in ("nothing", "embedding", "saved target"), name


class _Asked(Call):
    """A call that notes what it is asked for."""

    def __init__(self, given: dict[str, None]) -> None:
        super().__init__(given, None, True)
        self.names: set[str] = set()
        outer = self

        class Noting(dict):  # type: ignore[type-arg]
            def get(self, name: str, default: object = None) -> object:
                outer.names.add(name)
                return default

        self.arguments = Noting(given)


def broken(rule: str, **arguments: object) -> list[str]:
    """The arguments of which a rule says that they are wrong."""
    return [demand.argument for demand in find_rule(rule)(Call(arguments)) if not demand.holds]


def test_unknown_sizes_fit() -> None:
    """Unknown facts are not wrong."""
    tensor = Operand((None, None, None, None), (None,) * 4)
    assert broken("attention", query=tensor, key=tensor, value=tensor) == []
    assert broken("batch norm", input=tensor, weight=Operand((None,)), training=True) == []
    assert broken("pool 2d", self=tensor, grad_output=tensor) == []


def test_rows_of_bags_hold_scales() -> None:
    """A quantized row has room for a scale, an offset and a number."""
    bags = {"indices": Operand((3,)), "offsets": Operand((2,))}
    assert broken("row-wise bags", weight=Operand((8, 4)), **bags) == ["weight"]
    assert broken("row-wise bags", weight=Operand((8, 5)), **bags) == []


def test_demands_name_the_argument() -> None:
    """A demand that does not hold names what is wrong."""
    four, three = Operand((2, 4, 8, 8), (256, 64, 8, 1)), Operand((3,), (1,))
    assert broken("batch norm", input=four, weight=three, running_mean=three) == ["weight", "running_mean"]
    assert broken("half", self=four, dim=[3], last_dim_size=99) == ["last_dim_size"]
    assert broken("half", self=four, dim=[3], last_dim_size=14) == []
    assert broken("batch norm gradient", input=four, train=True, save_mean=None) == ["save_mean"]
    assert broken("grouped heads", enable_gqa=True, key=Operand((2, 0, 8, 4))) == ["key"]
    assert broken("grouped heads", enable_gqa=False, key=Operand((2, 0, 8, 4))) == []
    assert broken("strided", size=[2], stride=[1], storage_offset=1 << 62) == ["stride"]
    assert broken("strided", size=[2, 0], stride=[1 << 62, 1]) == broken("strided", size=[2], stride=[4]) == []
    assert broken("int8 product", self=Operand((2, 8), (8, 1), dtype=ScalarType.BFLOAT16)) == ["self"]
    assert broken("int8 product", self=Operand((2, 8), (8, 1), dtype=ScalarType.FLOAT)) == []
    assert broken("observed", self=four, per_row_fake_quant=True, ch_axis=-1) == ["ch_axis"]
    assert broken("steps", weight=Operand((4, 2, 1)), stride=[1, 1 << 15]) == ["stride"]
    assert broken("steps", W=Operand((4, 1, 1)), stride=2_048) == ["stride"]
    assert broken("steps", weight=Operand((4, 1, 1)), stride=2_047) == []
    assert broken("steps", weight=Operand((4, None, 1)), stride=[1 << 40]) == broken("steps", weight=four) == []
    pairs = {"x1": Operand((5, 3, 2)), "x2": Operand((6, 1, 4, 2)), "grad": Operand((6, 5, 3, 4))}
    assert broken("distances", **pairs, cdist=Operand((6, 5, 3, 4))) == []
    assert broken("distances", **pairs, cdist=Operand((6, 0, 3, 4))) == ["cdist"]
    repeated = {name: Operand((3,), (0,)) for name in ("weight", "save_invstd")}
    assert broken("batch norm gradient", input=Operand((4, 3), (3, 1)), **repeated) == ["weight", "save_invstd"]
    layers: dict[str, Any] = {"input": Operand((5, 3), (3, 1)), "normalized_shape": [3]}
    assert broken("layer norm", **layers, mean=Operand((5, 1), (0, 1)), rstd=Operand((5, 1), (1, 1))) == ["mean"]
    fit = Operand((5, 16), (16, 1))
    for strides in ((0, 1), (1, 1), (8, 1), (1, 2)):
        assert broken("int8 matrices", self=Operand((5, 16), strides), mat2=Operand((16, 8), (1, 16))) == ["self"]
        assert broken("int8 matrices", self=Operand((5, 16), strides), mat2=Operand((16, 8), (100, 2))) == []
    assert broken("int8 matrices", self=fit, mat2=Operand((16, 1), (1, 1))) == []
    assert broken("int8 matrices", self=fit, mat2=Operand((16, 1), (1, 0))) == ["mat2"]
    assert broken("int8 matrices", self=fit, mat2=Operand((16, 0), (1, 0))) == []
    assert broken("int8 matrices", self=fit, mat2=Operand((16, None), (1, 0))) == []
    assert broken("int8 matrices", self=Operand((5, 1), (1, 1)), mat2=Operand((1, 8), (1, 1))) == ["mat2"]
    first = next(find_rule("heads")(Call({"num_head": 0, "embed_dim": 4})))
    assert (first.holds, first.argument) == (False, "num_head")


@pytest.mark.parametrize("layout", ["SparseCsc", "torch.sparse_csc"])
def test_columns_are_compressed(layout: str) -> None:
    """The layout decides which dimension is compressed, as the schema spells it and as torch does."""
    sizes = {"compressed_indices": [0, 1, 1, 2], "plain_indices": [0, 1], "values": [1, 1]}
    given: dict[str, Any] = {name: Operand([len(row)], values=np.array(row)) for name, row in sizes.items()}
    call = Call({**given, "size": [2, 3], "layout": layout})
    assert all(demand.holds for demand in find_rule("compressed")(call))


def test_steps_of_dimensions_of_one_element() -> None:
    """A tensor is contiguous whatever the strides of its dimensions of one element are."""
    given: dict[str, Any] = {"self": Operand((4, 128)), "mat2": Operand((64, 64)), "qGroupSize": 128}
    for strides in ((2, 2, 1), (128, 2, 1), None):
        assert broken("four bits", **given, qScaleAndZeros=Operand((1, 64, 2), strides)) == []
    assert broken("four bits", **given, qScaleAndZeros=Operand((1, 64, 2), (128, 1, 64))) == ["qScaleAndZeros"]
    given["qGroupSize"] = 64
    assert broken("four bits", **given, qScaleAndZeros=Operand((2, 64, 2), (2, 4, 1))) == ["qScaleAndZeros"]


def test_aligned_corners_need_no_scales() -> None:
    """Scales that do not fit the sizes are read unless the corners are aligned."""
    given: dict[str, Any] = {"self": Operand((1, 3, 10, 20)), "output_size": [3, 3], "scales_h": 1.7, "scales_w": 0.9}
    assert broken("scaled", **given, align_corners=True) == []
    assert broken("scaled", **given, align_corners=False) == ["output_size"]
    assert broken("scaled", **given) == ["output_size"]


@pytest.mark.parametrize("name", ["grads", "exp_avgs", "exp_avg_sqs", "state_sums", "momentum_buffer_list"])
def test_lists_of_fused_optimizers(name: str) -> None:
    """Each list that an optimizer has is compared with its parameters, whichever lists other optimizers have."""
    parameters = [Operand((2, 3), (3, 1)), Operand((4,), (1,))]
    assert broken("fused", self=parameters, **{name: parameters}) == []
    assert broken("fused", self=[Operand((4, 1), (1, 1))], **{name: [Operand((4, 1), (1, 1000))]}) == []
    assert broken("fused", self=parameters, **{name: parameters[:1]}) == [name]
    assert broken("fused", self=parameters, **{name: parameters[::-1]}) == [name]
    assert broken("fused", self=parameters, **{name: []}) == ([] if name == "momentum_buffer_list" else [name])
