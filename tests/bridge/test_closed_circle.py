"""Closed circle: what `save` writes, `check` finds sound and `load` loads; also after trips through torch.

Programs are exports of samples of torch's own lists of operators, higher-order operators and modules, the zoo, and
programs that once broke the circle.
"""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch
from tests.bridge.test_fixed_point import TRUST
from tests.bridge.zoo import zoo
from tests.packages import bytes_of
from torch.export import Dim, ExportedProgram
from torch.nn import functional as nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.hop_db import hop_db

import pt2kit
from pt2kit.errors import Pt2Error, UnsupportedError

pytestmark = pytest.mark.usefixtures("quiet")

pytestmark = pytest.mark.filterwarnings("ignore")
TRIPS = 2
ZOO = zoo.programs()
FINDINGS = {
    "nn.functional.triplet_margin_with_distance_loss": "X1",  # a module among the inputs
    "subclass_weight": "X2",
    "inline_asm_elementwise": "X10",
}
"""Program -> the rule by which `check` reports what torch would run; other programs have no errors."""
TRUSTED = TRUST | {
    "nn.functional.triplet_margin_with_distance_loss": ("torch.nn.modules.distance.PairwiseDistance",),
    "inline_asm_elementwise": ("X10",),
}
"""Program -> what `load` needs to be told to trust."""


def saved(program: ExportedProgram, save: Callable[..., None] = pt2kit.save) -> bytes:
    """The program as a file."""
    return bytes_of(save, program)


def broken(program: ExportedProgram, name: str = "") -> list[str]:
    """Return what breaks the circle for a program; `save` may refuse it with an error of ours."""
    try:
        file = saved(program)
    except Pt2Error:
        return []
    found: list[str] = []
    for trip in range(TRIPS + 1):
        errors = pt2kit.check(file).errors
        if {problem.rule for problem in errors} != {FINDINGS[name]} if name in FINDINGS else errors:
            found.append(f"after {trip} trips, check: {errors}")
        for load in (pt2kit.load, pt2kit.load_module):
            try:
                load(file, trust=TRUSTED.get(name, ()))
            except Exception as error:  # noqa: BLE001 - Any error breaks the circle.
                found.append(f"after {trip} trips, {load.__name__}: {type(error).__name__}: {error}")
        if trip == TRIPS:
            break
        try:
            file = saved(torch.export.load(io.BytesIO(file)), torch.export.save)
        except Exception:  # noqa: BLE001 - torch reads or saves fewer programs than it exports.
            break
    return found


def exported(function: Any, args: Any, kwargs: Any, **options: Any) -> ExportedProgram | None:
    """An export of a function or module; None if torch cannot."""

    class Module(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            results = function(*args, **kwargs)
            # torch saves no torch.return_types, but a plain tuple of their values.
            return tuple(results) if type(results).__module__ == "torch.return_types" else results

    module = function if isinstance(function, torch.nn.Module) else Module()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.export.export(module, args, kwargs, **options)
    except Exception:  # noqa: BLE001 - torch exports fewer calls than it runs.
        return None
    finally:
        while torch._C._functorch.peek_interpreter_stack() is not None:  # of an export that failed
            torch._C._functorch.pop_dynamic_layer_stack()


def _sample(operator: Any) -> Any:
    """Export the first sample of an operator; None if there is none, or torch cannot."""
    dtypes = sorted(operator.supported_dtypes("cpu"), key=lambda dtype: (dtype is not torch.float32, str(dtype)))
    for sample in operator.sample_inputs("cpu", dtypes[0], requires_grad=False) if dtypes else ():
        return exported(operator.op, (sample.input, *sample.args), sample.kwargs)
    return None


def _modules(info: Any) -> Iterator[ExportedProgram]:
    for training in (True, False):
        for sample in info.module_inputs_func(info, "cpu", torch.float32, requires_grad=False, training=training)[:2]:
            module = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
            call = sample.forward_input
            program = exported(module.train(training), call.args, call.kwargs) if call is not None else None
            if program is not None:
                yield program


@pytest.mark.sampled(10)
@pytest.mark.parametrize("info", op_db, ids=lambda info: info.formatted_name)
def test_operators(info: Any) -> None:
    """Samples of op_db."""
    program = _sample(info)
    if program is None:
        pytest.skip("torch does not export it")
    assert broken(program, info.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("info", hop_db, ids=lambda info: info.name)
def test_higher_order_operators(info: Any) -> None:
    """Samples of hop_db."""
    sample = next(iter(info.sample_inputs("cpu", torch.float32, requires_grad=False)))
    program = exported(info.op, (sample.input, *sample.args), sample.kwargs)
    if program is None:
        pytest.skip("torch does not export it")
    assert broken(program, info.name) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.formatted_name)
def test_modules(info: Any) -> None:
    """Samples of module_db, that train and that evaluate."""
    for program in _modules(info):
        assert broken(program) == []


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("program", zoo.cases(ZOO), ids=repr)
def test_zoo(program: Any) -> None:
    """The zoo."""
    assert broken(zoo.exported(program), program.name) == []


@pytest.mark.parametrize("name", [name for name, rule in FINDINGS.items() if rule != "X10"])
def test_findings(name: str) -> None:
    """Torch, too, unpickles records with these findings only if they are trusted."""
    operator = next((info for info in op_db if info.name == name), None)
    program = _sample(operator) if operator else zoo.exported(next(one for one in ZOO if one.name == name))
    file = saved(program)
    (record,) = {problem.loc for problem in pt2kit.check(file).errors}
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        data = archive.read(f"archive/{record}")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        torch.load(io.BytesIO(data), weights_only=True)


class Block(torch.nn.Module):
    """A weight of a sparse layout."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight.to_dense() @ x


def _compare(x: torch.Tensor, n: Any) -> torch.Tensor:
    return x * n if n == 3 else x + n


def _root(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sym_sqrt(x.shape[0] / 4)


def _nothing(x: torch.Tensor) -> torch.Tensor:
    """A region of export that is left empty: a call of a higher-order operator without results."""
    with torch.no_grad():
        y = torch.vmap(lambda row: row * 2)(x)
        with torch.enable_grad():
            return y.sin()


EYE, ONES = torch.eye(4), torch.ones(4)
COO = EYE.to_sparse()
BROKE: dict[str, Callable[[], ExportedProgram | None]] = {
    "bsr weight": lambda: exported(Block(EYE.to_sparse_bsr((2, 2))), (EYE,), {}),
    "bsc weight": lambda: exported(Block(EYE.to_sparse_bsc((2, 1))), (EYE,), {}),
    "bsr input": lambda: exported(lambda w, x: w.to_dense() @ x, (EYE.to_sparse_bsr((2, 2)), EYE), {}),
    "coo weight": lambda: exported(Block(COO), (EYE,), {}),
    "to coo": lambda: exported(lambda x: (x.to_sparse() * 2).to_dense() + 1, (EYE,), {}),
    "coo of another dtype": lambda: exported(lambda x: x.to(torch.float64).sum(), (COO,), {}),
    "coo by dense": lambda: exported(lambda x, y: (x * y, x @ x, torch.cat([x, x]), x.clone()), (COO, EYE), {}),
    "coo rows": lambda: exported(lambda x, y: x.index_select(0, y), (COO, torch.tensor([1])), {}),
    "coo number": lambda: exported(lambda x: x.to_sparse(), (torch.tensor(2.0),), {}),
    "csr weight": lambda: exported(Block(EYE.to_sparse_csr()), (EYE,), {}),
    "root": lambda: exported(_root, (ONES,), {}, dynamic_shapes={"args": ({0: Dim("n", min=2, max=50)},)}),
    "specialized": lambda: exported(_compare, (ONES, 3), {}, dynamic_shapes={"args": ({0: Dim.AUTO}, Dim.AUTO)}),
    "specialized, strict": lambda: exported(
        _compare, (ONES, 3), {}, dynamic_shapes={"args": ({0: Dim.AUTO}, Dim.AUTO)}, strict=True
    ),
    "empty region": lambda: exported(_nothing, (ONES,), {}),
    "true": lambda: exported(lambda x, n: x * n, (ONES, True), {}),
    "padded to nothing": lambda: exported(
        lambda x: torch.constant_pad_nd(x, (-1, -2, 1, 1)),
        (torch.ones(5, 3),),
        {},
        dynamic_shapes={"args": ({0: Dim.AUTO, 1: Dim.AUTO},)},
    ),
    "losses of integers": lambda: exported(
        lambda x: (nn.margin_ranking_loss(x, x, x), nn.l1_loss(x, x, reduction="sum"), nn.poisson_nll_loss(x, x)),
        (torch.tensor([1, 2, 3], dtype=torch.uint8),),
        {},
    ),
    "sum by einsum": lambda: exported(lambda x: torch.einsum("ij->i", x), (EYE.to(torch.int16),), {}),
}


@pytest.mark.parametrize("name", BROKE)
def test_broke(name: str) -> None:
    """Programs that `save` wrote and `check`, `load` or torch's own round trip broke on."""
    program = BROKE[name]()
    assert program is not None
    assert broken(program) == []


@pytest.mark.parametrize(
    ("program", "node", "changed", "message"),
    [
        ("to coo", 0, {"layout": 7, "strides": [{"as_int": 4}, {"as_int": 1}]}, "expected layout SparseCoo, got Str"),
        ("to coo", 0, {"layout": 2}, "expected layout SparseCoo, got SparseCsr"),
        ("to coo", 2, {"layout": 1}, "expected layout Strided, got SparseCoo"),
        ("to coo", 0, {"layout": 7, "dtype": 8}, "expected dtype f32, got f64"),
    ],
)
def test_layouts_that_torch_does_not_write(program: str, node: int, changed: Mapping[str, Any], message: str) -> None:
    """Declarations of sparse values are still compared, except for changes by torch's own round trip."""
    written = BROKE[program]()
    assert written is not None

    def change(graph: Any) -> None:
        name = graph["nodes"][node]["outputs"][0]["as_tensor"]["name"]
        graph["tensor_values"][name].update(changed)

    found = [one.message for one in pt2kit.check(edited(saved(written), change)).errors if one.rule == "T11"]
    assert any(one.startswith(message) for one in found), found


def test_gradients_of_other_buffers() -> None:
    """A buffer may require a gradient that the graph does not declare only if it is a view of a parameter."""
    model = torch.nn.Linear(4, 4)
    model.register_buffer("own", torch.ones(4, requires_grad=True))
    model.register_buffer("row", model.weight[0])

    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return model(x) + model.own + model.row

    program = exported(Sum(), (ONES,), {})
    assert program is not None

    def change(graph: Any) -> None:
        for name, meta in graph["tensor_values"].items():
            meta["requires_grad"] &= not name.startswith("b_")

    (problem,) = [one for one in pt2kit.check(edited(saved(program), change)) if one.severity != "note"]
    assert (problem.rule, problem.severity) == ("P14", "warning")  # torch and `load` take the file.
    assert problem.message.startswith("expected 'inner.own' to require a gradient as in the graph, False, got True")


def edited(file: bytes, change: Callable[[Any], None]) -> bytes:
    """The file with another graph."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(out, "w") as new:
        for record in old.namelist():
            data = old.read(record)
            if record.endswith("models/model.json"):
                tree = json.loads(data)
                change(tree["graph_module"]["graph"])
                data = json.dumps(tree).encode()
            new.writestr(record, data)
    return out.getvalue()


def test_refused() -> None:
    """Sizes of nested tensors and tensors of torch.func.grad, which the format cannot hold, are refused by node."""
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    nested = exported(lambda x: x.sin(), (jagged,), {}, strict=True)
    assert nested is not None
    with pytest.raises(UnsupportedError, match=r"node \w+.*: expected a size that is an expression, .* nested tensor"):
        saved(nested)
    gradient = exported(lambda x: torch.func.grad(lambda y: y.sin().sum())(x), (ONES,), {})
    assert gradient is not None
    with pytest.raises(UnsupportedError, match=r"node c_lifted_tensor_0: .* a tensor of torch\.func\.grad"):
        saved(gradient)


class _Written(torch.nn.Module):
    """A buffer that trained values are written to, itself or through a view."""

    def __init__(self, is_view: bool) -> None:
        super().__init__()
        self.is_view = is_view
        self.register_buffer("total", torch.ones(3))
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (self.total[:2] if self.is_view else self.total).add_((self.weight * x)[: 2 if self.is_view else 3])
        return self.total * 1


@pytest.mark.parametrize("is_decomposed", [False, True])
@pytest.mark.parametrize("is_view", [False, True])
def test_written_buffers(is_view: bool, is_decomposed: bool) -> None:
    """torch describes them as requiring a gradient, although they are stored without."""
    program = torch.export.export(_Written(is_view), (torch.ones(3),), strict=False)
    file = bytes_of(torch.export.save, program.run_decompositions({}) if is_decomposed else program)
    assert not pt2kit.check(file, payloads=True).errors


class _WrittenInRegion(_Written):
    """The same in a region, whose nodes are in a subgraph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(x)


@pytest.mark.parametrize("is_view", [False, True])
def test_buffers_written_in_regions(is_view: bool) -> None:
    """Buffers that a subgraph writes to are described likewise."""
    file = bytes_of(torch.export.save, torch.export.export(_WrittenInRegion(is_view), (torch.ones(3),), strict=False))
    assert not pt2kit.check(file, payloads=True).errors
