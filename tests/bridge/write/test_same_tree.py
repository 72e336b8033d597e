"""For every program of the zoo, what pt2kit writes is what torch writes, and torch reads it."""

from __future__ import annotations

import copy
import io
import operator
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from tests.bridge.write.trees import (
    RECORDS,
    Difference,
    addressless,
    content,
    find_differences,
    names,
    our_file,
    torch_file,
    tree,
)
from tests.bridge.zoo import zoo
from tests.bridge.zoo.program import Program

pytestmark = pytest.mark.usefixtures("quiet")

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"
STACKS = r"models/model\.json: .*\.metadata\.(nn_module_stack|source_fn_stack|torch_fn)"
NODE = r"models/model\.json: \$\.graph_module\.graph\.nodes\[\d+\]\."
WEIGHTS = r"data/weights/model_weights_config\.json: \$\.config"

# program -> the id of a difference -> where it shows
EXPECTED: dict[str, dict[str, str]] = {
    "odd_names": {"T1": STACKS},
    "odd_names__strict": {"T1": STACKS},
    "odd_names__decomp": {"T1": STACKS},
    "metadata_separators": {"T1": STACKS},
    "opaque_value": {"T2": r"data/constants/model_constants_config\.json: \$\.config: keys"},
    "conjugate": {"T3": WEIGHTS + r"(: keys|\.\w+\.(path_name|tensor_meta\..*))"},
    "custom_op_symbol": {"T8": NODE + r"inputs\[1\]\.arg: keys"},
    "crossed_names": {"T9": r"models/model\.json: \$\.graph_module\.graph\.outputs\[0\]\.as_tensor\.name"},
    "fake_weights": {"T4": WEIGHTS + r".*\.path_name"},
    "meta_weights": {"T4": WEIGHTS + r".*\.path_name"},
}
# differences that no single program shows; the tests that do are named
ELSEWHERE = {
    "T5": "test_save.py::test_programs_share_weights",
    "T6": "test_save.py::test_opset_version",
    "R6": "test_nodes.py",
    "R9": "test_sequences.py",
    "R10": "test_sequences.py",
    "R11": "test_outputs.py",
    "R13": "test_metadata.py",
    "T7": "test_metadata.py::test_surrogates",
    "T10": "test_two_exports.py",
    "T11": "test_fixed_point.py::test_marks_of_export_are_not_saved",
}
REFUSED_BY_TORCH = {
    "repeated_results": "R1",
    "unused_results": "R2",
    "custom_op_nested_ints": "R3",
    "custom_op_nested_int_tuples": "R3",
    "sym_sum": "R4",
    "sym_ops_sum__strict": "R4",
    "ceiling": "R4",
    "sym_bool": "R5",
    "sparse_coo": "R7",
    "sparse_csr": "R7",
    "empty_weights": "R8",
    "joint_second": "R12",
}
ALL = zoo.programs()
# Other releases may save what this one refuses.
PINNED = torch.__version__.startswith("2.13.")


@pytest.mark.parametrize("program", zoo.cases(ALL), ids=repr)
def test_same_tree(program: Program) -> None:
    """The three JSON records are equal, except for what docs/differences.md lists, and so are the bytes of weights."""
    live = zoo.exported(program)
    ours = our_file(live)
    try:
        theirs = torch_file(live)
    except Exception:  # noqa: BLE001 (torch has no error family)
        assert program.name in REFUSED_BY_TORCH
        return
    assert not (PINNED and program.torch_saves), "torch refuses to save it, says the zoo"
    found: list[Difference] = []
    for record in RECORDS:
        one, other = (addressless(tree(file, record)) for file in (theirs, ours))
        found += find_differences(one, other, f"{record}: $")
    expected = EXPECTED.get(program.name, {})
    unexpected = [d for d in found if not any(re.match(pattern, d.place) for pattern in expected.values())]
    assert not unexpected, f"first of {len(unexpected)}: {unexpected[0]}"
    missing = [key for key, pattern in expected.items() if not any(re.match(pattern, d.place) for d in found)]
    assert not missing, f"listed in docs/differences.md and not found: {missing}"
    if not expected.keys() & {"T2", "T3", "T4"}:
        _check_records(theirs, ours)


@pytest.mark.sampled(4, 1)
@pytest.mark.parametrize("program", zoo.cases([p for p in ALL if not p.torch_reads]), ids=repr)
def test_torch_reads(program: Program) -> None:
    """torch.export.load reads what pt2kit wrote, and the program gives the same outputs as before."""
    live = zoo.exported(program)
    read = _load(our_file(live))
    assert _calls(read) == _calls(live)
    if program.random:
        return
    expected = live if program.torch_saves or program.name in EXPECTED else _load(torch_file(live))
    for args, kwargs in copy.deepcopy(list(program.calls())):
        again_args, again_kwargs = copy.deepcopy((args, kwargs))
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = expected.module()(*args, **kwargs)
            got = read.module()(*again_args, **again_kwargs)
        _check_equal(got, want)
        _check_equal((again_args, again_kwargs), (args, kwargs))


def test_the_page_lists_the_same_differences() -> None:
    """docs/differences.md and this file know the same ids."""
    listed = set(re.findall(r"^\| ([TR]\d+) \|", PAGE.read_text(), re.MULTILINE))
    used = {key for keys in EXPECTED.values() for key in keys} | set(ELSEWHERE) | set(REFUSED_BY_TORCH.values())
    assert listed == used


def _check_records(theirs: bytes, ours: bytes) -> None:
    """Storages have the same bytes under the same name; pickles hold the same, so they only need to be there."""
    configs = [tree(ours, record)["config"].items() for record in RECORDS[1:]]
    pickled = {meta["path_name"] for config in configs for _, meta in config if meta["use_pickle"]}
    stored = [name for name in names(theirs) if re.search(r"/(weight|tensor|custom_obj|opaque_obj)_\d+$", name)]
    assert sorted(stored) == sorted(name for name in names(ours) if re.search(r"/(weight|tensor|\w+_obj)_\d+$", name))
    for name in stored:
        if name.rpartition("/")[2] not in pickled:
            assert content(theirs, name) == content(ours, name), name


def _load(file: bytes) -> torch.export.ExportedProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.load(io.BytesIO(file))


def _calls(program: torch.export.ExportedProgram) -> list[str]:
    """Return the targets that a program calls, except getitem nodes, which reading makes anew."""
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    return [str(node.target) for node in nodes if node.target is not operator.getitem]


def _check_equal(got: Any, want: Any) -> None:
    (have, have_spec), (need, need_spec) = pytree.tree_flatten(got), pytree.tree_flatten(want)
    assert have_spec == need_spec
    for index, (a, b) in enumerate(zip(have, need, strict=True)):
        if isinstance(b, torch.Tensor):
            assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride()), f"leaf {index}"
            assert _bits(a) == _bits(b), f"leaf {index}"
        elif not isinstance(b, torch.nn.Module):
            assert a == b or (a != a and b != b), f"leaf {index}"


def _bits(tensor: torch.Tensor) -> Any:
    plain = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return plain.reshape(-1).view(torch.uint8).tolist()
