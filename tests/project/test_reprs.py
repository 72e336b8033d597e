"""The repr of objects at a prompt is short, and shows what they are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests import samples

import pt2kit
from pt2kit.package.stored import Named

MLP = samples.sample("2.13.0", "mlp")
OTHER = samples.sample("2.13.0", "mlp__decomp")


def test_reprs_are_short() -> None:
    """Nothing prints a program, a table of digests or thousands of tensors because somebody looks at it."""
    with pt2kit.open(samples.sample("2.13.0", "many_params")) as package:
        for value in (
            package,
            package.programs,
            package.programs["model"],
            package.weights(),
            pt2kit.check(package),
            pt2kit.digest(package),
            pt2kit.diff(package, MLP),
        ):
            assert len(repr(value)) < 1500, type(value)


def test_the_text_of_a_diff_is_what_the_command_prints() -> None:
    """And that of a report is its problems."""
    from pt2kit.text.diff_report import diff_lines

    found = pt2kit.diff(MLP, OTHER)
    assert str(found).splitlines() == list(diff_lines(found))
    report = pt2kit.check(MLP)
    assert str(report) == "\n".join(map(str, report))


def test_unknown_names_list_those_that_are_there() -> None:
    """A name that is not there is a KeyError that says which are, and which may be meant."""
    with pt2kit.open(MLP) as package:
        for ask, text in (
            (
                lambda: package.programs["modle"],
                "expected a program, one of 'model', got 'modle'; did you mean model?",
            ),
            (
                lambda: package.weights()["0.weihgt"],
                "expected a tensor, one of '0.weight', '0.bias', '2.weight', '2.bias'",
            ),
            (lambda: package.extra_files["x"], "expected an extra file, one of none, got 'x'"),
        ):
            with pytest.raises(KeyError) as caught:
                ask()
            assert text in str(caught.value.args[0])
        with pytest.raises(TypeError, match="which does not change"):
            package.weights()["x"] = None  # type: ignore[index]


def test_problems_bring_their_hints() -> None:
    """A problem has its rule's text and a hint at what to do."""
    [problem] = [one for one in pt2kit.check(MLP) if one.rule == "X1"]
    rule = pt2kit.checks.RULES["X1"]
    assert (problem.text, problem.hint) == (rule.text, rule.hint)
    assert pt2kit.Problem("x", "none", "y").hint == ""


def test_copies_of_named_tables_are_plain() -> None:
    """A copy can be changed."""
    import copy
    import pickle

    table = Named({"a": 1}, "tensor")
    assert pickle.loads(pickle.dumps(table)) == copy.deepcopy(table) == {"a": 1}
    assert dict(table) | {"b": 2} == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "code",
    [
        "from pt2kit import *",
        "import pt2kit; assert all(hasattr(pt2kit, name) for name in pt2kit.__all__)",
        "import pt2kit, pydoc; assert 'pip install' in pydoc.render_doc(pt2kit)",
        "import pt2kit, inspect; assert inspect.isfunction(dict(inspect.getmembers(pt2kit))['load'])",
        "import pt2kit; assert not hasattr(pt2kit, 'bridge'); assert inspect_class(pt2kit.Extension)",
    ],
)
def test_names_are_there_without_torch(code: str) -> None:
    """Looking at the names of the package needs no torch; using one that does says how to install it."""
    without = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sympy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
inspect_class = lambda one: isinstance(one, type)
"""
    after = """
import pt2kit
try:
    pt2kit.load("x.pt2")
except ModuleNotFoundError as error:
    assert "pip install 'pt2kit[torch]'" in str(error), error
else:
    sys.exit("no error")
"""
    done = subprocess.run(
        [sys.executable, "-c", f"{without}{code}\n{after}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
