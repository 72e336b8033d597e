"""Payloads: every entry by itself, what the signature takes, what nobody uses, what is no number."""

from __future__ import annotations

import json
import math
import pickle
import struct
from typing import Any

import pytest
from tests import samples
from tests.checks.mutations import (
    CONFIG,
    CONSTANTS_FILE,
    MLP,
    SHARED,
    WEIGHTS,
    Mutation,
    meta,
    program,
    records,
    spec,
    weights,
)
from tests.checks.mutations import stored as entry
from tests.packages import edited, rewritten

from pt2kit.checks import check
from pt2kit.errors import Problem
from pt2kit.package import record_names as names
from pt2kit.package.open import open_package

FLOAT8 = samples.sample("2.13.0", "float8")


def said(data: Any, *, payloads: bool = False) -> list[Problem]:
    """Return payload problems."""
    return [problem for problem in check(data, payloads=payloads) if problem.rule[0] == "P"]


def test_every_entry_is_looked_at() -> None:
    """Each bad entry is reported; good ones are still compared with the graph."""

    def change(config: Any) -> None:
        config["0.weight"]["tensor_meta"]["sizes"][0] = {"as_int": 1 << 40}
        config["0.bias"]["path_name"] = "weight_9"
        config["2.weight"]["tensor_meta"]["dtype"] = 4
        config["2.weight"]["tensor_meta"]["requires_grad"] = False

    found = said(weights(MLP, change).data)
    assert [(problem.rule, problem.loc) for problem in found if problem.kind == "error"] == [
        ("P9", "data/weights/weight_0: '0.weight'"),
        ("P2", f'{WEIGHTS}: $.config["0.bias"].path_name'),
        ("P14", "models/model.json: $.graph_module.graph.tensor_values.p_2_weight: payload '2.weight': dtype"),
    ]


@pytest.mark.parametrize(
    ("path", "kind", "missing"),
    [
        (MLP, "parameter", "expected a parameter among the weights with the name 'nope', got none of that name"),
        (CONSTANTS_FILE, "tensor_constant", "expected a tensor among the constants with the name 'nope'"),
        (samples.sample("2.13.0", "nonpersistent_buffer"), "buffer", "with the name 'nope', got none of that name"),
    ],
)
def test_missing(path: Any, kind: str, missing: str) -> None:
    """A missing tensor of the signature is reported at its spec."""

    def change(tree: Any) -> None:
        specs = tree["graph_module"]["signature"]["input_specs"]
        number = next(number for number, held in enumerate(specs) if kind in held)
        spec(tree, "input", number)[f"{kind}_name"] = "nope"

    [problem] = [problem for problem in said(program(path, change).data) if problem.kind == "error"]
    assert problem.rule == "P19"
    assert missing in problem.message


def test_parameters_are_parameters() -> None:
    """A parameter is stored as one."""
    [problem] = said(weights(MLP, lambda config: config["2.bias"].update(is_param=False)).data)
    assert (problem.rule, problem.message) == (
        "P19",
        "expected '2.bias' to be stored as a parameter, got one that is not",
    )


def test_nothing_is_missing_where_nothing_can_be_read() -> None:
    """An unreadable list of weights is one problem; its weights are not reported as well."""
    assert [problem.rule for problem in check(rewritten(MLP, {WEIGHTS: b"["})) if problem.kind != "note"] == ["J1"]


def test_what_nobody_uses() -> None:
    """An entry without an input is a note, a record without an entry a warning, a tied name nothing."""
    config = {"extra": entry("tensor_0", meta())}
    mutation = records(MLP, {CONFIG: json.dumps({"config": config}).encode(), names.CONSTANTS + "tensor_0": bytes(8)})
    [problem] = said(mutation.data)
    assert (problem.rule, problem.kind, problem.loc) == ("P20", "note", f"{CONFIG}: $.config.extra")
    [problem] = said(rewritten(MLP, {names.weight(7): b"12345678"}))
    assert (problem.rule, problem.kind, problem.loc) == ("P20", "warning", "data/weights/weight_7")
    assert said(SHARED) == []


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ((1, 2, 3, 4), None, ""),
        ((1, 2, 3, math.inf), "note", "1 of the 4 elements of '2.bias' are infinite"),
        ((math.nan, 2, math.nan, -math.inf), "warning", "expected numbers in '2.bias', got 2 NaN among 4 elements"),
    ],
)
def test_numbers(values: tuple[float, ...], kind: str | None, text: str) -> None:
    """NaN is a warning, an infinity a note; neither is looked for unless records are to be read."""
    data = rewritten(MLP, {names.weight(3): struct.pack("<4f", *values)})
    assert said(data) == []
    assert [(problem.kind, problem.message) for problem in said(data, payloads=True)] == [(kind, text)] * bool(kind)


def test_every_element_type_is_looked_at() -> None:
    """Types that numpy lacks and complex numbers are read as well."""
    for name in ("float8", "dtypes", "complex_scalar", "strided_weights", "inf_nan_floats"):
        assert [problem.kind for problem in said(samples.sample("2.13.0", name), payloads=True)] in ([], ["note"])
    with_nan = json.loads(json.dumps({"config": {"extra": entry("tensor_0", meta(10, (1,)))}}))
    changed = {CONFIG: json.dumps(with_nan).encode(), names.CONSTANTS + "tensor_0": struct.pack("<2f", 1, math.nan)}
    assert "P21" in [problem.rule for problem in said(rewritten(MLP, changed), payloads=True)]


def test_overlapping_windows_are_bounded() -> None:
    """A tensor with far more elements than bytes is not unfolded."""
    huge = meta(7, (1 << 24, 1 << 24))
    changed = {
        CONFIG: json.dumps({"config": {"extra": entry("tensor_0", huge)}}).encode(),
        names.CONSTANTS + "tensor_0": bytes(1 << 28),
    }
    mutation = Mutation(None, rewritten(MLP, changed))
    assert {problem.rule for problem in said(mutation.data, payloads=True) if problem.kind != "note"} == {"P16"}


def test_checksums() -> None:
    """With payloads, each damaged record is reported once, by its name."""
    data = bytearray(MLP.read_bytes())
    for number in (0, 2):
        start = data.index(bytes(_content(names.weight(number)))[:32])
        data[start] ^= 1
    assert check(bytes(data)) == check(MLP)
    found = [problem for problem in check(bytes(data), payloads=True) if problem.rule == "A16"]
    assert [problem.loc for problem in found] == ["data/weights/weight_0", "data/weights/weight_2"]


def _content(record: str) -> memoryview:
    import pt2kit

    with pt2kit.open(MLP) as package:
        return package.archive.read(package.layout.record(record))


def test_older_layouts() -> None:
    """Weights of older releases are held against the signature and the graph, too."""
    path = samples.sample("2.5.1", "mlp")

    def change(tree: Any) -> None:
        tree["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "nope"

    found = [problem for problem in said(edited(path, change, names.PLAIN_PROGRAM)) if problem.kind == "error"]
    assert [(problem.rule, problem.loc) for problem in found] == [
        ("P19", f"{names.PLAIN_PROGRAM}: $.graph_module.signature.input_specs[0]")
    ]
    for release in ("2.1.2", "2.3.1", "2.8.0"):
        assert said(samples.sample(release, "mlp"), payloads=True) == []


@pytest.mark.parametrize(
    ("data", "is_said"),
    [
        (pickle.dumps([1, 2], 2), True),
        (pickle.dumps({"a": 1}, 4), True),
        (pickle.dumps(0x1950A86A20F9469CFC6C, 2), False),
        (pickle.dumps(0x1950A86A20F9469CFC6C, 4), False),
        (b"PK\x03\x04", False),
    ],
    ids=["a list", "a dict", "the form before 1.6", "of a newer protocol", "a zip archive"],
)
def test_a_tensor_in_a_bare_pickle(data: bytes, is_said: bool) -> None:
    """torch.load refuses a pickle that does not begin as torch.save begins it, after it has unpickled it."""
    with open_package(MLP) as package:
        root = package.layout.root
        config = json.loads(bytes(package.archive.read(root + WEIGHTS)))
    config["config"]["2.bias"]["use_pickle"] = True
    record = names.WEIGHTS + config["config"]["2.bias"]["path_name"]
    found = check(records(MLP, {WEIGHTS: json.dumps(config).encode(), record: data}).data)
    assert [problem.loc for problem in found if problem.rule == "P22"] == [record] * is_said
    assert [problem.loc for problem in found if problem.rule == "X2"] == [record]
