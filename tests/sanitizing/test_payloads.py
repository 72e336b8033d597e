"""Weights and constants: raw records, or refused by name."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from tests import samples
from tests.narrow import instance
from tests.packages import edited, rewritten
from tests.pickles import pickle_forge as forge
from tests.sanitizing.files import pickles_in, sanitized

import pt2kit
from pt2kit.errors import UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.tensors import TensorView

MLP = samples.sample("2.13.0", "mlp")
CONFIG = names.weights_config("model")


def last_weight() -> tuple[str, TensorView]:
    """The name and the view of the last weight of the sample."""
    with pt2kit.open(MLP) as package:
        name, payload = list(package.weights().items())[-1]
        view = instance(TensorView, payload)
        view.storage.read()  # which stays when the file is closed
        return name, view


NAME, VIEW = last_weight()


def pickled(value: Any) -> bytes:
    """The sample with one weight as a pickle."""

    def change(tree: Any) -> None:
        tree["config"][NAME] |= {"use_pickle": True, "path_name": "weight_77"}

    data = edited(MLP, change, CONFIG)
    with pt2kit.open(MLP) as package:
        old = package.relative(package.weights()[NAME].record)
    storages = {"0": VIEW.tobytes()}
    content = forge.payload(forge.stream(value), storages)
    return rewritten(io.BytesIO(data), {names.weight(77): content, old: None})


def tensor(**options: Any) -> Any:
    """The numbers of the weight as a pickled tensor."""
    count = VIEW.numel
    return forge.tensor(size=VIEW.sizes, stride=VIEW.strides, of=forge.storage(numel=count), **options)


def test_plain_pickles_become_raw() -> None:
    """A pickled dense tensor becomes a raw record with the same numbers; the report names it."""
    data = pickled(tensor(requires_grad=True))
    clean, done = sanitized(data)
    assert done.unpickled == (f"model: weight {NAME!r}",)
    assert pickles_in(clean) == []
    with pt2kit.open(clean) as package:
        np.testing.assert_array_equal(package.weights()[NAME].numpy(), VIEW.numpy())
        assert instance(TensorView, package.weights()[NAME]).requires_grad
        assert package.weights()[NAME].is_param  # as the config says; the pickle is of a plain tensor
    assert pt2kit.digest(io.BytesIO(clean)) == pt2kit.digest(io.BytesIO(data))
    assert sanitized(clean)[0] == clean
    assert sanitized(clean)[1].unpickled == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (forge.Call("os.system", ("true",)), r"os\.system"),
        (forge.Call("shop.Tensor", (tensor(),)), r"shop\.Tensor"),
        ([tensor()], "got a list"),
        (
            forge.Call(
                "torch._utils._rebuild_parameter_with_state", (tensor(), False, forge.Call(forge.ORDERED), {"a": 1})
            ),
            "a tensor with attributes",
        ),
    ],
)
def test_other_pickles(value: Any, text: str) -> None:
    """A pickle of anything else is refused by the tensor's name and what is in it."""
    with pytest.raises(UnsupportedError, match=rf"model: weight '{NAME}': .*{text}.*X2"):
        sanitized(pickled(value))


def test_conjugates() -> None:
    """A tensor with a negative bit is not what its bytes are: no raw record can express that."""
    with pytest.raises(UnsupportedError, match=r"expected the numbers as they are.*Z4"):
        sanitized(pickled(tensor(metadata={"neg": True})))


def test_missing_weights() -> None:
    """A program whose weights are not all there is refused: torch could not load the new file either."""

    def change(tree: Any) -> None:
        del tree["config"][NAME]

    with pytest.raises(UnsupportedError, match=f"model: '{NAME}': expected a weight or constant of that name.*Z4"):
        sanitized(edited(MLP, change, CONFIG), drop=["unused"])


def test_several_programs() -> None:
    """Records of all programs of an archive are numbered together, and keep what they hold."""
    path = samples.sample("2.13.0", "multi_model_package")
    clean, _ = sanitized(path)
    with pt2kit.open(path) as old, pt2kit.open(clean) as new:
        for model in old.layout.models:
            for name, view in old.weights(model).items():
                np.testing.assert_array_equal(new.weights(model)[name].numpy(), view.numpy())
