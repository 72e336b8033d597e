"""Weights and constants of a package: what is in them, and what contradicts the graph."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests import samples
from tests.narrow import dense
from tests.packages import edited, rewritten, tree_of

import pt2kit
from pt2kit.errors import ArchiveError, PayloadError, Pt2Error, SchemaError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.tensors import OpaquePayload

MLP = samples.sample("2.13.0", "mlp")
CONSTANTS = samples.sample("2.13.0", "constants")
CONFIG = names.constants_config("model")


def test_tied_weights_share_their_storage() -> None:
    """Names that share bytes hold the same storage; views into it have offsets and strides of their own."""
    with pt2kit.open(samples.sample("2.13.0", "shared_weights")) as package:
        weights = dense(package.weights())
        assert weights["emb.weight"].shares_storage(weights["out.weight"])
        assert weights["base"].shares_storage(weights["mat_t"])
        assert not weights["base"].shares_storage(weights["emb.weight"])
        np.testing.assert_array_equal(weights["mat_t"].numpy(), weights["base"].numpy().reshape(3, 4).T)


def test_weights_are_read_only() -> None:
    """Nobody can change what others see: neither the mapping nor the numbers."""
    with pt2kit.open(MLP) as package:
        weights = package.weights()
        name, view = next(iter(weights.items()))
        with pytest.raises(TypeError, match="expected to read a tensor of a package, which does not change"):
            weights[name] = view  # type: ignore[index]
        with pytest.raises(ValueError, match="read-only"):
            view.numpy()[...] = 0


def test_constants() -> None:
    """Lifted constants and buffers that are not persistent are among the constants, not among the weights."""
    with pt2kit.open(CONSTANTS) as package:
        assert package.weights() == {}
        found = {name: view.numpy().tolist() for name, view in package.constants().items()}
        assert set(found) == {"lifted_tensor_0", "c", "lifted_tensor_1"}
    with pt2kit.open(samples.sample("2.13.0", "nonpersistent_buffer")) as package:
        assert set(package.constants()) - set(package.weights()) == set(package.constants())


@pytest.mark.parametrize(
    ("record", "kind", "use_pickle"),
    [("custom_obj_0", "torchbind", False), ("opaque_obj_0", "opaque", False), ("tensor_9", "pickle", True)],
)
def test_pickled_constants_are_listed_not_rebuilt(record: str, kind: str, use_pickle: bool) -> None:
    """A constant that is a pickle is described; asking for the tensor in it refuses what is not plain data, by name."""
    data = (samples.DATA / "hostile" / "000_pickle_sample_inputs.pt2").read_bytes()
    with pt2kit.open(data) as package:
        pickle = bytes(package.archive.read(package.layout.record(names.sample_inputs("model"))))
    with pt2kit.open(CONSTANTS) as package:
        config = tree_of(package.archive.read(package.layout.record(CONFIG)))
    meta = next(iter(config["config"].values()))["tensor_meta"]
    config["config"]["odd"] = {
        "path_name": record,
        "is_param": False,
        "use_pickle": use_pickle,
        "tensor_meta": meta if use_pickle else None,
    }
    changed = rewritten(CONSTANTS, {CONFIG: _json(config), names.CONSTANTS + record: pickle})
    with pt2kit.open(changed) as package:
        odd = package.constants()["odd"]
        assert isinstance(odd, OpaquePayload)
        assert (odd.kind, odd.nbytes) == (kind, len(pickle))
        assert "io.open" in odd.globals()
        with pytest.raises(UnsupportedError, match=r"io\.open"):
            odd.view()


def _json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def _first(tree: Any) -> Any:
    return next(iter(tree["config"].values()))


WEIGHTS = names.weights_config("model")
MISFITS = [
    (WEIGHTS, lambda tree: _first(tree).update(path_name="weight_99"), PayloadError, "weight_99"),
    (WEIGHTS, lambda tree: _first(tree).update(path_name="../../models/model.json"), PayloadError, "P1"),
    (WEIGHTS, lambda tree: _first(tree)["tensor_meta"].update(dtype=8), PayloadError, "P9"),
    (WEIGHTS, lambda tree: _first(tree)["tensor_meta"]["sizes"].reverse(), PayloadError, "P14"),
    (WEIGHTS, lambda tree: tree.update(config=[]), SchemaError, "$.config: expected object, got array"),
]


@pytest.mark.parametrize(("record", "change", "error", "text"), MISFITS)
def test_misfits(record: str, change, error: type[Pt2Error], text: str) -> None:
    """Metadata that contradicts its record or the graph is refused when the weights are asked for."""
    with pt2kit.open(edited(MLP, change, record)) as package:
        assert package.programs["model"]
        with pytest.raises(error) as caught:
            package.weights()
    assert text in str(caught.value)


def test_every_input_of_one_payload_is_compared() -> None:
    """Two inputs that take the same payload are both compared with it."""

    def change(tree: Any) -> None:
        specs = tree["graph_module"]["signature"]["input_specs"]
        specs[1]["parameter"]["parameter_name"] = specs[0]["parameter"]["parameter_name"]

    with pt2kit.open(edited(MLP, change)) as package, pytest.raises(PayloadError, match="P14"):
        package.weights()


def test_a_layout_that_the_payload_has_not() -> None:
    """A graph that says of a densely stored weight that it is sparse is refused."""

    def change(tree: Any) -> None:
        next(iter(tree["graph_module"]["graph"]["tensor_values"].values()))["layout"] = 1

    with pt2kit.open(edited(MLP, change)) as package, pytest.raises(UnsupportedError) as caught:
        package.weights()
    assert "layout: expected Strided, as payload" in str(caught.value)
    assert str(caught.value).endswith("got SparseCoo [P5]")


def test_a_pickled_payload_hides_no_other() -> None:
    """Payloads are compared with the graph, also those behind one that cannot be."""

    def change(tree: Any) -> None:
        graph = tree["graph_module"]["graph"]
        graph["tensor_values"][graph["inputs"][3]["as_tensor"]["name"]]["sizes"] = [{"as_int": 5}]

    file = edited(edited(MLP, lambda tree: _first(tree).update(use_pickle=True), WEIGHTS), change)
    with pt2kit.open(file) as package, pytest.raises(PayloadError, match="P14"):
        package.weights()


def test_missing_configs() -> None:
    """A program without a config has no weights to ask for; the program itself is fine."""
    with pt2kit.open(rewritten(MLP, {WEIGHTS: None})) as package:
        assert package.programs["model"]
        with pytest.raises(ArchiveError, match=r"expected a record data/weights/model_weights_config\.json"):
            package.weights()


def test_payloads_of_torch_2_8_beside_those_of_today() -> None:
    """A program whose weights are a torch.save file, in an archive that has others, is read or refused by layout."""
    with pt2kit.open(samples.sample("2.13.0", "multi_model_package")) as package:
        moved = {names.weights_config("second"): None, names.constants_config("second"): None}
    changed = rewritten(
        samples.sample("2.13.0", "multi_model_package"),
        {**moved, names.weights_payload("second"): b"PK", names.constants_payload("second"): b"PK"},
    )
    with pt2kit.open(changed) as package:
        assert package.weights("model")
        with pytest.raises(PayloadError, match=r"second\.pt: expected a zip of torch\.save .*, got a text file"):
            package.weights("second")
