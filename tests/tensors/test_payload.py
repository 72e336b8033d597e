"""Payload configs: good ones, every way to be bad, and the hostile files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.narrow import instance
from tests.samples import CURRENT_LAYOUT, corpus, hostile, release_id
from tests.tensors.helpers import FOLDER, WHERE, archive, config, meta, payload, view_of

from pt2kit import errors
from pt2kit.codec import decode
from pt2kit.errors import LimitError, PayloadError, Pt2Error, SchemaError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.layouts.detection import detect
from pt2kit.schema import (
    Device,
    ExportedProgram,
    Layout,
    PayloadConfig,
    PayloadMeta,
    ScalarType,
    SymExpr,
    SymInt,
)
from pt2kit.tensors import MetaView, OpaquePayload, TensorView, check_against, views_from_config
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.zip.reader import Archive, open_archive

Views = dict[str, TensorView | MetaView | OpaquePayload]


def describe(entries: PayloadConfig, records: dict[str, bytes]) -> Views:
    return views_from_config(
        entries, archive({FOLDER + name: data for name, data in records.items()}), folder=FOLDER, where=WHERE
    )


def all_views(path: Path, model: str | None = None) -> dict[str, Views]:
    """Weights and constants of the programs of a file, compared with their graphs, and everything read."""
    with open_archive(path) as opened:
        layout = detect(opened)
        found = {}
        for name in layout.models if model is None else (model,):
            assert layout.parts(name).configs
            found[name] = {**_config(opened, layout.root, name, True), **_config(opened, layout.root, name, False)}
            _compare(opened, layout.record(names.model_json(name)), found[name])
    return found


def _config(opened: Archive, root: str, model: str, is_weights: bool) -> Views:
    where = root + (names.weights_config(model) if is_weights else names.constants_config(model))
    folder = root + (names.WEIGHTS if is_weights else names.CONSTANTS)
    return views_from_config(decode(opened.read(where), PayloadConfig, where).value, opened, folder=folder, where=where)


def _compare(opened: Archive, record: str, views: Views) -> None:
    module = decode(opened.read(record), ExportedProgram, record).value.graph_module
    for spec in module.signature.input_specs:
        owner = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
        if spec.type in owner:
            view = views.get(getattr(spec.value, owner[spec.type]))
            if isinstance(view, TensorView) and spec.value.arg.name in module.graph.tensor_values:
                check_against(view, module.graph.tensor_values[spec.value.arg.name], record)
    for view in views.values():
        assert repr(view)
        if isinstance(view, OpaquePayload):
            view.view()
        else:
            assert len(instance(TensorView, view).tobytes()) == view.nbytes
            assert view.numpy().shape == view.sizes


@pytest.mark.parametrize("path", corpus(*CURRENT_LAYOUT), ids=release_id)
def test_real_files(path: Path) -> None:
    """Every payload of every real file of today's layout is described, agrees with its graph, and can be read."""
    for views in all_views(path).values():
        assert all(isinstance(view, TensorView) for view in views.values())


def test_mapped_in_place() -> None:
    """Weights of a local file are views of its mapping, read-only, and in the config's order."""
    path = corpus(CURRENT_LAYOUT[-1])[0].parent / "mlp.pt2"
    views = all_views(path)["model"]
    for view in views.values():
        assert isinstance(view, TensorView)
        assert view.storage.in_place
        assert not view.numpy().flags.writeable
        assert view.numpy().ctypes.data == np.frombuffer(view.buffer(), np.uint8).ctypes.data


def test_shared_weights_of_a_real_file() -> None:
    """Tied and viewing weights are views of one storage; others are not."""
    views = all_views(corpus(CURRENT_LAYOUT[-1])[0].parent / "shared_weights.pt2")["model"]
    by_record: dict[str, set[int]] = {}
    for view in views.values():
        assert isinstance(view, TensorView)
        by_record.setdefault(view.record, set()).add(id(view.storage))
    assert any(len([v for v in views.values() if v.record == record]) > 1 for record in by_record)
    assert all(len(objects) == 1 for objects in by_record.values())


SYMBOLIC = SymInt(as_expr=SymExpr(expr_str="s0", hint=None))
REFUSED: list[tuple[str, PayloadMeta, type[Pt2Error], str]] = [
    ("slash", payload("../../models/model.json", meta()), PayloadError, "which holds a slash [P1]"),
    ("absolute", payload("/etc/hostname", meta()), PayloadError, "which holds a slash [P1]"),
    ("parent", payload("..", meta()), PayloadError, "which has the component '..' [P1]"),
    ("nothing", payload("", meta()), PayloadError, "which is empty [P1]"),
    ("backslash", payload("a\\b", meta()), PayloadError, "which holds a backslash [P1]"),
    ("config", payload("model_weights_config.json", meta()), PayloadError, "which is the name of a config [P1]"),
    ("missing", payload("weight_9", meta()), PayloadError, f"expected a record {FOLDER}weight_9, got none"),
    ("missing pickle", payload("weight_9", None, use_pickle=True), PayloadError, "[P2]"),
    (
        "no meta",
        payload("weight_0", None),
        PayloadError,
        "tensor_meta: expected a description of raw bytes, got null [P3]",
    ),
    ("unknown type", payload("weight_0", meta(dtype=ScalarType.UNKNOWN)), SchemaError, "got 0 [P4]"),
    ("sparse", payload("weight_0", meta(layout=Layout.SparseCsr)), UnsupportedError, "got SparseCsr [P5]"),
    ("meta", payload("weight_0", meta(device=Device("meta"))), PayloadError, "that holds data, got meta [P6]"),
    ("evil", payload("weight_0", meta(device=Device("evil", -5))), UnsupportedError, "got evil [P6]"),
]
REFUSED_NUMBERS: list[tuple[str, PayloadMeta, type[Pt2Error], str]] = [
    (
        "symbolic size",
        payload("weight_0", msgspec.structs.replace(meta(), sizes=[SYMBOLIC])),
        PayloadError,
        "$.config.w.tensor_meta.sizes[0]: expected a number, got an expression [P7]",
    ),
    (
        "symbolic stride",
        payload("weight_0", msgspec.structs.replace(meta(), strides=[SYMBOLIC])),
        PayloadError,
        "$.config.w.tensor_meta.strides[0]: expected a number, got an expression [P7]",
    ),
    (
        "symbolic offset",
        payload("weight_0", msgspec.structs.replace(meta(), storage_offset=SYMBOLIC)),
        PayloadError,
        "$.config.w.tensor_meta.storage_offset[0]: expected a number",
    ),
    ("dimensions", payload("weight_0", meta((1,) * 65)), LimitError, "at most 64 dimensions, got 65 [P7]"),
    ("too long", payload("weight_0", meta((4,))), PayloadError, "expected at least 16 bytes"),
    ("too many", payload("weight_0", meta((1 << 61,), (0,))), PayloadError, "[P8]"),
    ("gradient", payload("weight_0", meta(dtype=ScalarType.INT, requires_grad=True)), PayloadError, "[P12]"),
    (
        "no whole number",
        payload("weight_0", meta((1,), dtype=ScalarType.COMPLEXDOUBLE)),
        PayloadError,
        "expected a multiple of 16 bytes for complex128, got 24 [P10]",
    ),
]


CASES = REFUSED + REFUSED_NUMBERS


@pytest.mark.parametrize(("entry", "error", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_refused(entry: PayloadMeta, error: type[Pt2Error], text: str) -> None:
    """Each entry is refused with its place before anything is read."""
    size = 24 if "multiple" in text else 8
    with pytest.raises(error) as caught:
        describe(config(w=entry), {"weight_0": bytes(size), "model_weights_config.json": b"{}"})
    assert text in str(caught.value)
    assert type(caught.value) is error
    assert str(caught.value).startswith((f"{WHERE}: $.config.w", f"{FOLDER}weight_0: 'w': "))


def test_two_types_over_one_record() -> None:
    """torch gives each element type a record of its own; two over one are refused, and both are named."""
    entries = config(a=payload("weight_0", meta((2,))), b=payload("weight_0", meta((2,), dtype=ScalarType.INT)))
    with pytest.raises(PayloadError) as caught:
        describe(entries, {"weight_0": bytes(8)})
    assert str(caught.value) == (
        f"{WHERE}: $.config.b.tensor_meta.dtype: expected float32, which 'a' says {FOLDER}weight_0 holds, "
        "got int32 [P11]"
    )


def test_empty_record_of_many_types() -> None:
    """All tensors without elements share one empty record, whatever their type and shape."""
    entries = config(
        a=payload("weight_0", meta((0,))), b=payload("weight_0", meta((3, 0), dtype=ScalarType.LONG, offset=5))
    )
    views = describe(entries, {"weight_0": b""})
    assert [view.numpy().shape for view in views.values() if isinstance(view, TensorView)] == [(0,), (3, 0)]


def test_kinds_of_entries() -> None:
    """Script objects and Python objects go by the name of their record, as in torch; pickled tensors by the flag."""
    entries = config(
        a=payload("custom_obj_0", None, use_pickle=True),
        b=payload("opaque_obj_0", None, use_pickle=True),
        c=payload("tensor_1", meta(), use_pickle=True),
        d=payload("tensor_0", meta()),
        e=payload("any name ü", meta((1,), (1,), 1)),
    )
    views = describe(
        entries,
        {"custom_obj_0": b"1", "opaque_obj_0": b"2", "tensor_1": b"3", "tensor_0": bytes(8), "any name ü": bytes(8)},
    )
    assert [getattr(view, "kind", "raw") for view in views.values()] == ["torchbind", "opaque", "pickle", "raw", "raw"]
    assert list(views) == list("abcde")


def test_storages_are_shared_between_configs() -> None:
    """A caller that hands the same storages to two calls gets one object per record."""
    opened = archive({f"{FOLDER}weight_0": bytes(8)})
    storages: dict[str, Any] = {}
    entries = config(w=payload("weight_0", meta()))
    first, second = (
        views_from_config(entries, opened, folder=FOLDER, where=WHERE, storages=storages)["w"] for _ in range(2)
    )
    assert isinstance(first, TensorView)
    assert isinstance(second, TensorView)
    assert first.shares_storage(second)
    assert list(storages) == [f"{FOLDER}weight_0"]


def test_check_against_the_graph() -> None:
    """Type and sizes must be the graph's; symbolic sizes, strides and gradients are not compared."""
    view = view_of(np.zeros((2, 3), "<f4"), ScalarType.FLOAT, name="w")
    check_against(view, meta((2, 3)), "g")
    check_against(view, meta((2, 3), (1, 2), requires_grad=True), "g")
    check_against(view, msgspec.structs.replace(meta((2, 3)), sizes=[SYMBOLIC, SymInt(as_int=3)]), "g")
    for wrong, text in [
        (meta((3, 2)), "g: payload 'w': sizes: expected [3, 2] as in the graph, got [2, 3] [P14]"),
        (meta((2, 3, 1)), "expected [2, 3, 1] as in the graph, got [2, 3]"),
        (meta((2, 3), dtype=ScalarType.INT), "dtype: expected int32 as in the graph, got float32 [P14]"),
        (meta((2, 3), dtype=ScalarType.UNKNOWN), "dtype: expected dtype 0 as in the graph"),
        (msgspec.structs.replace(meta((2, 3)), sizes=[SYMBOLIC, SymInt(as_int=4)]), "expected [?, 4] as in the graph"),
        (meta((2, 1 << 9999), (1, 1)), "expected [2, an integer of 10000 bits] as in the graph"),
    ]:
        with pytest.raises(PayloadError) as caught:
            check_against(view, wrong, "g")
        assert text in str(caught.value)


OTHER_ROOMS = {
    # Refused, or not, by subpackages of other layers; here they only have to end in an error of ours or in tensors.
    "pickle_legacy27_zip"
}


@pytest.mark.parametrize("case", hostile(), ids=lambda case: case["name"])
def test_hostile_files(case: dict[str, Any]) -> None:
    """Hostile weights, records and pickles end as the manifest says; no other file ends in a crash."""
    wanted = case["safe_reader"]
    about_tensors = case["category"] in ("weights", "path-traversal", "pickle") or case["name"].startswith("w_")
    kinds = tuple(getattr(errors, kind) for kind in wanted["error_kinds"])
    try:
        all_views(case["path"], "model")
    except AssertionError:
        assert case["name"] in OTHER_ROOMS  # Another layout.
    except Pt2Error as error:
        if about_tensors:
            assert isinstance(error, kinds), error
    else:
        assert not about_tensors or wanted["action"] != "refuse"


numbers = st.one_of(
    st.integers(0, 4), st.integers(-2, 70), st.sampled_from([2**31, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 2**70])
)
symbolic = st.builds(lambda n: SymInt(as_int=n), numbers)
metas = st.builds(
    lambda dtype, sizes, strides, offset, device, layout, grad: msgspec.structs.replace(
        meta(),
        dtype=dtype,
        sizes=sizes,
        strides=strides,
        storage_offset=offset,
        device=device,
        layout=layout,
        requires_grad=grad,
    ),
    st.sampled_from(ScalarType),
    st.lists(symbolic, max_size=4),
    st.lists(symbolic, max_size=4),
    symbolic,
    st.builds(Device, st.sampled_from(["cpu", "cuda", "meta", "evil", ""]), st.none() | numbers),
    st.sampled_from([Layout.Strided] * 5 + list(Layout)),
    st.booleans(),
)
entries = st.builds(
    PayloadMeta,
    st.sampled_from(["weight_0", "weight_1", "weight_2", "custom_obj_0", "opaque_obj_0", "x", "..", "a/b"]),
    st.booleans(),
    st.booleans(),
    st.none() | metas,
)
OPENED = archive(
    {
        f"{FOLDER}weight_0": bytes(range(256)),
        f"{FOLDER}weight_1": b"\x01" * 64,
        f"{FOLDER}weight_2": b"",
        f"{FOLDER}custom_obj_0": b"PK\x03\x04",
        f"{FOLDER}opaque_obj_0": b"\x80\x02cos\nsystem\n.",
    }
)


@settings(max_examples=300)
@given(st.dictionaries(st.text(max_size=4), entries, max_size=3))
def test_any_config(found: dict[str, PayloadMeta]) -> None:
    """Whatever a config says, the outcome is views that can be read, or one error of ours."""
    try:
        views = views_from_config(PayloadConfig(config=found), OPENED, folder=FOLDER, where=WHERE)
        for view in views.values():
            if isinstance(view, OpaquePayload):
                view.view()
            else:
                assert view.numpy().shape == view.sizes
                if isinstance(view, TensorView) and view.nbytes < 1 << 20:
                    assert len(view.tobytes()) == view.nbytes == view.numel * DTYPES[view.dtype].itemsize
    except Pt2Error as error:
        assert "\n" not in str(error)
