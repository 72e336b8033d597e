"""Names in a file that mean something to Python or torch: refused, or the program runs as it did under its own name."""

from __future__ import annotations

import copy
import functools
import io
import json
import keyword
import zipfile
from typing import Any

import pytest
import torch
from tests.packages import bytes_of

from pt2kit.bridge.load import load
from pt2kit.bridge.run.load_module import load_module
from pt2kit.errors import Pt2Error
from pt2kit.schema.names import GLOBALS

pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.filterwarnings("ignore")]

NAMES = (
    *("None", "lambda", "class", "match", "_", "self", "forward", "training", "state_dict", "type", "float", "graph"),
    *("code", "meta", "recompile", "_parameters", "_modules", "_in_spec", "_guards_fn", "range_constraints"),
    *("__class__", "__dict__", "__builtins__", "__import__", "__init__", "__debug__", "print", "getattr", "int"),
    *("torch", "device", "inf", "nan", "fx_pytree", "pytree", "operator", "a.b", "x y", "x'", "", "0", "ﬁ", "µ"),
)
# Names that break `torch.export.unflatten` for the exported program, too: docs/differences.md, L9.
NOT_UNFLATTENED = {name for name in NAMES if keyword.iskeyword(name)} | {"graph", "code", "meta", "recompile"}
# torch's source calls this before anything can bind it again; its own module ends in the same error.
NOT_CALLED = "fx_pytree"
# `unflatten` also requires the names that export gives to these placeholders ("p_…", "c_…").
BY_PREFIX = ("placeholder of a parameter", "placeholder of a constant")
PLACES = {
    "input": ("first",),
    "keyword": ("key",),
    "placeholder of a parameter": ("p_par",),
    "placeholder of a constant": ("c_lifted_tensor_0",),
    "value": ("add",),
    "subgraph": ("true_graph_0",),
    "parameter": ("par",),
    "constant": ("lifted_tensor_0",),
    "parameter of a module": ("sub.weight",),
    "module": ("sub", "sub.weight", "sub.bias"),
}


class Model(torch.nn.Module):
    """One of everything that has a name."""

    def __init__(self) -> None:
        super().__init__()
        self.sub = torch.nn.Linear(3, 3)
        self.par = torch.nn.Parameter(torch.ones(3))

    def forward(self, first: torch.Tensor, *, key: torch.Tensor) -> torch.Tensor:
        y = self.sub(first) + self.par + torch.tensor([1.0, 2.0, 3.0])
        y = y.to(device=torch.device("cpu"), dtype=torch.float64).clamp(max=float("inf"))
        z: torch.Tensor = torch.cond(y.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (y,))
        return z + key


@functools.cache
def exported() -> tuple[dict[str, bytes], torch.Tensor]:
    """The records of the file, and what the model gives."""
    torch.manual_seed(0)
    model, file = Model(), io.BytesIO()
    torch.export.save(torch.export.export(model, (torch.ones(2, 3),), {"key": torch.ones(3)}, strict=False), file)
    with zipfile.ZipFile(file) as archive:
        records = {name: archive.read(name) for name in archive.namelist() if "sample_inputs" not in name}
    with torch.no_grad():
        return records, model(torch.ones(2, 3), key=torch.ones(3))


def renamed(place: str, name: str) -> bytes:
    """The file with another name in one place, wherever the program says it."""
    olds = PLACES[place]

    def new(text: str) -> str:
        if place == "keyword" and text.startswith("["):
            return text.replace('\\"key\\"', json.dumps(json.dumps(name))[1:-1])
        if text not in olds:
            return text
        return name + text[len(olds[0]) :] if place == "module" else text.removesuffix("weight") * ("." in text) + name

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {new(key): walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return new(value) if isinstance(value, str) else value

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for record, data in exported()[0].items():
            is_named = record.endswith(
                ("models/model.json", "model_weights_config.json", "model_constants_config.json")
            )
            archive.writestr(record, json.dumps(walk(json.loads(data))) if is_named else data)
    return out.getvalue()


def gives_the_same(call: Any, keyword_name: str) -> bool:
    """Return whether a module computes what the model does."""
    with torch.no_grad():
        return torch.allclose(call(torch.ones(2, 3), **{keyword_name: torch.ones(3)}), exported()[1])


@pytest.mark.parametrize("place", PLACES)
def test_names(place: str) -> None:
    """Under every name the file is refused in one line, or its code compiles and its modules compute the same."""
    taken = 0
    for name in ("plain", *NAMES):
        try:
            program = load(renamed(place, name))
        except Pt2Error as error:
            assert name != "plain", error
            assert str(error).isprintable()
            continue
        taken += 1
        word = name if place == "keyword" else "key"
        compile(program.graph_module.code, name, "exec")
        if name == NOT_CALLED and place in ("input", "keyword"):
            with pytest.raises(AttributeError, match="no attribute 'tree_flatten_spec'"):
                gives_the_same(program.module(), word)
        else:
            assert gives_the_same(program.module(), word), name
        if name not in NOT_UNFLATTENED and place not in BY_PREFIX:
            assert gives_the_same(torch.export.unflatten(program), word), name
    assert taken > 1


class Named(torch.nn.Module):
    """Takes a tensor under any name, and uses a device and an infinite number."""

    def forward(self, x: torch.Tensor, **given: torch.Tensor) -> torch.Tensor:
        (value,) = given.values()
        return (x * value).clamp(max=float("inf")) + torch.ones(3, device="cpu") * float("inf")


@pytest.mark.parametrize("name", GLOBALS)
def test_hidden_names(name: str) -> None:
    """A program with an argument called like what torch's source uses computes what the model does, guards included."""
    args, kwargs = (torch.ones(3),), {name: torch.ones(3)}
    file = bytes_of(torch.export.save, torch.export.export(Named(), args, kwargs))
    expected = Named()(*args, **kwargs)
    program = load(file)
    modules = [load_module(file)]
    if name == NOT_CALLED:
        for read in (program, torch.export.load(io.BytesIO(file))):
            with pytest.raises(AttributeError, match="no attribute 'tree_flatten_spec'"):
                read.module()(*args, **kwargs)
    else:
        modules += [program.module(), copy.deepcopy(program.module()), program.module(check_guards=False)]
    for module in modules:
        assert torch.equal(module(*args, **kwargs), expected)
    assert load(bytes_of(torch.export.save, program)).graph_module.code == program.graph_module.code
