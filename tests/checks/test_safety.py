"""Code that torch would run or import on loading a file: found in hostile files, seldom in real ones."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import pytest
from tests import samples
from tests.packages import edited, rewritten

import pt2kit
from pt2kit.checks import safety_findings
from pt2kit.errors import Problem, Pt2Error
from pt2kit.package import record_names as names
from pt2kit.tensors.pickled import FAKE_TENSOR

MLP = samples.sample("2.13.0", "mlp")
HOSTILE = {case["name"]: case["path"] for case in samples.hostile()}
TABLE = "models/model.json: $.graph_module.graph.tensor_values"
FOUND: list[tuple[str, str, str, str]] = [
    ("pickle_sample_inputs", "X1", "data/sample_inputs/model.pt", "calls _operator.getitem, io.open"),
    ("pickle_sample_inputs_raw", "X1", "data/sample_inputs/model.pt", "calls io.open"),
    ("pickle_tensor_constant", "X2", "data/constants/tensor_0", "torch unpickles 'k' (pickle): calls io.open"),
    ("pickle_opaque_constant", "X3", "data/constants/opaque_obj_0", "torch unpickles 'k' (opaque): calls io.open"),
    ("pickle_custom_obj_garbage", "X3", "data/constants/custom_obj_0", "(torchbind): calls io.open"),
    ("guard_syntax_error", "X4", "models/model.json: $.guards_code", "1 of them no plain conditions: 'this is not ('"),
    ("eval_expr_size", "X5", f"{TABLE}.linear.sizes[0]", "torch evaluates the expression \"[open('"),
    ("eval_expr_os_exit", "X5", f"{TABLE}.linear.sizes[0]", "\"__import__('os')._exit(7)\""),
    ("fx_placeholder_name", "X6", "models/model.json: $.graph_module.graph.inputs[5]", "pastes the name \"x=open('"),
    (
        "fx_forward_arg_names",
        "X6",
        "models/model.json: $.graph_module.module_call_graph[0].signature.forward_arg_names[1]",
        "pastes the name \"y=[open('",
    ),
    ("fx_parameter_name", "X6", "models/model.json: $.graph_module.signature.input_specs[1]", "pastes the path"),
    (
        "fx_hop_kwarg_name",
        "X6",
        "models/model.json: $.graph_module.graph.nodes[1].inputs[2].name",
        "pastes the name \"**([open('",
    ),
    ("fx_subgraph_name", "X6", "models/model.json: $.graph_module.graph.nodes[1].inputs[0]", "pastes the path"),
    ("op_torch_os_mkdir", "X7", "models/model.json: $.graph_module.graph.nodes[1].target", "looks up 'torch.os.mkdir'"),
    ("op_hop_wrap_operator", "X7", "models/model.json: $.graph_module.graph.nodes[1].target", "'torch.os.mkdir'"),
    ("op_empty_target", "X7", "models/model.json: $.graph_module.graph.nodes[1].target", "looks up ''"),
    ("aoti_so_dlopen", "X8", "data/aotinductor/model/", "torch loads compiled code (3 records) into the process"),
    ("treespec_defaultdict_import", "X9", "models/model.json: $.graph_module.module_call_graph[1]", '"this"'),
    (
        "op_from_file_create",
        "X10",
        "models/model.json: $.graph_module.graph.nodes[1].target",
        "it reads or writes files",
    ),
    ("op_reinterpret_oob_crash", "X10", "models/model.json: $.graph_module.graph.nodes[1].target", "it trusts its"),
    ("fx_string_arg_quote", "X12", "models/model.json: $.graph_module.graph.nodes[1]", "the program prints"),
    ("op_extension_unknown", "X13", "models/model.json: $.graph_module.graph.nodes[1].target", "'#evil:relu'"),
    ("treespec_enum_import", "X9", "models/model.json: $.graph_module.module_call_graph[1]", "mailcap"),
]


def _findings(data: Any) -> list[Problem]:
    with pt2kit.open(data) as package:
        return list(safety_findings(package))


@pytest.mark.parametrize(("name", "rule", "place", "text"), FOUND, ids=[case[0] for case in FOUND])
def test_hostile_files(name: str, rule: str, place: str, text: str) -> None:
    """An attack has a finding with its rule, its place and what it names."""
    found = [problem for problem in _findings(HOSTILE[name]) if problem.rule == rule]
    assert all(problem.kind == "safety" for problem in found)
    assert any(problem.loc == place and text in problem.message for problem in found), found


@pytest.mark.parametrize("path", samples.corpus(*samples.CURRENT_LAYOUT), ids=samples.release_id)
def test_real_files(path) -> None:
    """Real files have pickled sample inputs and guards, and nothing else; torch imports the classes of named tuples."""
    for problem in _findings(path):
        if (problem.rule, problem.kind) == ("X10", "warning"):
            continue  # An unchecked kernel, whose arguments only a run tells.
        assert problem.rule in ("X1", "X4")
        assert problem.message.endswith(("plain data", "calls make.NT", "plain conditions")), problem


def test_no_sample_inputs_no_finding() -> None:
    """A file without sample inputs has no finding."""
    for record in (None, b""):
        assert _findings(rewritten(MLP, {names.sample_inputs("model"): record})) == []


def test_what_cannot_be_read_is_passed_over() -> None:
    """A program, a config or a pickle that cannot be read hides no finding about the rest, and raises nothing."""
    broken = {
        names.model_json("model"): b"[",
        names.weights_config("model"): b"[",
        names.sample_inputs("model"): b"PK\x03\x04 nothing",
        names.aotinductor("m", "x.so"): b"",
    }
    found = _findings(rewritten(MLP, broken))
    assert [problem.rule for problem in found] == ["X1", "X8"]
    assert "cannot be read as data" in found[0].message


@pytest.mark.parametrize(
    "before",
    [b"X\x03\0\0\0\xed\xa0\x80", b"V\\ud800\n", b"I0x10\n", b"L 12 L\n", b"N0" * 1_000_000 + b"N"],
    ids=["surrogate", "line of a surrogate", "hexadecimal", "spaces", "many"],
)
def test_calls_behind_what_cannot_be_read(before: bytes) -> None:
    """Python's unpickler reads more than data may hold; a call may follow."""
    from tests.pickles import pickle_forge as forge

    stream = b"\x80\x02" + before + b"0cbuiltins\nexec\nX\x01\0\0\x001\x85R."
    if sys.version_info < (3, 14) or before != b"I0x10\n":  # torch on Python 3.14 does not read that
        pickle.loads(stream)
    file = rewritten(MLP, {names.sample_inputs("model"): forge.payload(stream)})
    [found] = _findings(file)
    assert (found.rule, found.kind) == ("X1", "safety")
    assert not pt2kit.check(file).ok


@pytest.mark.parametrize(
    ("size", "kind"),
    [
        ({"as_int": 2}, "note"),
        ({"as_expr": {"expr_str": "2*s0", "hint": None}}, "note"),
        ({"as_expr": {"expr_str": "__import__('os').getpid()", "hint": None}}, "safety"),
        ({"as_expr": {"expr_str": "2", "code": "1"}}, "safety"),
        ("2", "safety"),
    ],
    ids=["number", "expression", "code", "unknown key", "other"],
)
@pytest.mark.parametrize("is_hidden", [False, True])
def test_descriptions_of_fake_tensors(size: Any, kind: str, is_hidden: bool) -> None:
    """torch evaluates the sizes of a fake tensor; it is data if they are numbers and expressions, wherever it is."""
    from tests.pickles import pickle_forge as forge

    count = {"as_int": 1}
    meta = {
        "dtype": 7,
        "sizes": [size],
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [count],
        "storage_offset": count,
        "layout": 7,
    }
    text = forge.Call("_codecs.encode", (json.dumps(meta), "latin1"))
    fake: Any = forge.Call(FAKE_TENSOR, (text, False))
    value = {"part": [fake]} if is_hidden else fake
    content = forge.payload(forge.stream(((value,), {})))
    [found] = _findings(rewritten(MLP, {names.sample_inputs("model"): content}))
    assert (found.rule, found.kind) == ("X1", kind)


@pytest.mark.parametrize("arguments", [(), ("text", False), (b"{}", 1)])
def test_no_descriptions_of_fake_tensors(arguments: Any) -> None:
    """Other arguments of the function are no data."""
    from tests.pickles import pickle_forge as forge

    content = forge.payload(forge.stream(((forge.Call(FAKE_TENSOR, arguments),), {})))
    [found] = _findings(rewritten(MLP, {names.sample_inputs("model"): content}))
    assert (found.rule, found.kind) == ("X1", "safety")


@pytest.mark.parametrize(
    ("called", "kind"),
    [
        ("commands.getoutput", "safety"),
        ("distutils.spawn.spawn", "safety"),
        ("setuptools._distutils.spawn.spawn", "safety"),
        ("jinja2.Template", "safety"),
        ("library.evaluate", "safety"),
        ("library.Config", "warning"),
        ("tensordict._reductions._make_td", "warning"),
    ],
)
def test_calls_of_packages(called: str, kind: str) -> None:
    """Functions are called to do something, and packages that torch brings are nearly everywhere; Python 2 called
    subprocess `commands`, and unpickling translates that. Classes of other packages are what some inputs are of, and
    private functions rebuild some."""
    from tests.pickles import pickle_forge as forge

    file = rewritten(MLP, {names.sample_inputs("model"): forge.payload(forge.stream(forge.Call(called, ("true",))))})
    [found] = _findings(file)
    assert (found.rule, found.kind) == ("X1", kind)
    assert called in found.message


def test_every_model_is_looked_at() -> None:
    """Findings come from each program of a file."""
    found = _findings(samples.sample("2.13.0", "multi_model_package"))
    assert [problem.loc for problem in found] == ["data/sample_inputs/model.pt", "data/sample_inputs/second.pt"]


def test_names_that_are_fine() -> None:
    """Names with unusual characters that cannot leave their quotes are no finding."""

    def change(tree: Any) -> None:
        spec = tree["graph_module"]["signature"]["input_specs"][0]
        spec["parameter"]["parameter_name"] = "d['a'].a-b c(1)=é;"

    assert [problem.rule for problem in _findings(edited(MLP, change))] == ["X1"]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a\x00b"])
def test_paths_that_end_their_quotes(name: str) -> None:
    """A path with a double quote, a backslash or a control character is a finding wherever it is a target."""

    def change(tree: Any) -> None:
        tree["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = name

    assert [problem.rule for problem in _findings(edited(MLP, change))] == ["X1", "X6"]


def test_messages_are_bounded() -> None:
    """However long the names in a file are, and however many a pickle calls, a message stays short."""
    from tests.pickles import pickle_forge as forge

    calls = tuple(forge.Call(f"m{number}.{'x' * 300}", ()) for number in range(60))
    pickle = forge.payload(forge.stream((calls, {})))

    def change(tree: Any) -> None:
        tree["graph_module"]["graph"]["nodes"][0]["target"] = "x" * 100_000
        tree["guards_code"] = ["(" * 50_000]

    with pt2kit.open(edited(MLP, change)) as package:
        program = bytes(package.archive.read(package.layout.record(names.model_json("model"))))
    found = _findings(rewritten(MLP, {names.model_json("model"): program, names.sample_inputs("model"): pickle}))
    assert {problem.rule for problem in found} == {"X1", "X4", "X7"}
    assert all(len(problem.message) < 2500 for problem in found)
    assert "and 40 more" in found[0].message


def test_findings_are_data() -> None:
    """A finding is a problem like any other: it can be printed and compared."""
    [finding] = _findings(MLP)
    assert str(finding) == ("data/sample_inputs/model.pt: torch unpickles the sample inputs: plain data [X1]")


def test_nothing_is_raised_by_hostile_files() -> None:
    """Whatever a file that opens holds, looking for findings raises nothing."""
    for path in HOSTILE.values():
        try:
            package = pt2kit.open(path)
        except Pt2Error:
            continue
        with package:
            for problem in safety_findings(package):
                json.dumps(str(problem))
