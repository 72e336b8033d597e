"""One of each in the public API and below it: defaults, types, error classes and kinds of classes.

The rules are those of `docs/architecture.md`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.project.sources import trees

OWN_ERRORS = {
    "editing/structures.py": "a mapping that is also a sequence",
    "viewing/answers.py": "a request of the page, which the server answers with 404",
    "tensors/view.py": "`__array__` of NumPy asks for it",
    "zip/remote.py": "an answer of a server, which the caller reports as an OSError",
    "cli/check.py": "a file of accepted findings, whose errors the caller reports",
    "codec/text.py": "text, whose errors the caller places",
    "operators/rows.py": "rows of this package, read by its tests",
    "schema/fieldtable.py": "a type of a field table, whose errors the caller places",
    "schema/operators.py": "the schema of an operator, whose errors the caller places",
    "schema/wire.py": "msgspec converts it into its own error",
}
"""Files that raise KeyError, IndexError or ValueError, and why; everything else raises the errors of the family."""

TUPLES = {
    "dataflow/domain.py": {"Effects", "Value"},
    "graph/argument_values.py": {"Reference"},
    "graph/def_use.py": {"Definition", "Use"},
    "graph/traversal.py": {"Step"},
    "operators/aliasing.py": {"Alias"},
    "symbols/growth.py": {"Part"},
    "symbols/value_kinds.py": {"Facts"},
    "symbols/plain.py": {"_Text"},
    "zip/directory.py": {"Record"},
    "zip/writer.py": {"_Written"},
}
"""File -> its NamedTuples: made for each node, value, record or expression, or unpacked where they are used."""


def parameters() -> Iterator[tuple[str, ast.arg, ast.expr | None]]:
    """Yield place, parameter and default of each function; None for a parameter without a default."""
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            plain = [*node.args.posonlyargs, *node.args.args]
            missing: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
            for argument, default in [
                *zip(plain, [*missing, *node.args.defaults], strict=True),
                *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
            ]:
                yield f"{name}:{node.lineno} {node.name}", argument, default


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield the file of each class, and the class."""
    for name, tree in trees().items():
        yield from ((name, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_a_program_has_one_default() -> None:
    """`model=` is None everywhere: the only program, or "model"; an editor of a program alone calls it so."""
    found = {
        f"{place}: {ast.unparse(default)}"
        for place, argument, default in parameters()
        if argument.arg == "model" and default is not None and ast.unparse(default) != "None"
    }
    assert {text.partition(":")[0] for text in found} <= {"editing/state.py"}, found
    assert all(text.endswith("PLAIN_MODEL") for text in found)


def test_only_a_package_chooses_a_program() -> None:
    """No other function falls back to the only program, so that all accept the same names, with one message."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "expected a program, one of" in node.value
    ]
    assert [place.partition(":")[0] for place in found] == ["package/open.py"], found


def test_progress_has_one_type() -> None:
    """`progress=` is a `Progress`, which by default does nothing: None needs no case of its own."""
    wrong = [
        f"{place}: {ast.unparse(argument.annotation) if argument.annotation else 'no type'} = "
        f"{ast.unparse(default) if default else 'required'}"
        for place, argument, default in parameters()
        if argument.arg == "progress"
        and not (
            argument.annotation
            and ast.unparse(argument.annotation) == "Progress"
            and (default is None or ast.unparse(default) == "no_progress")
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_arguments_are_refused_by_errors_of_the_family() -> None:
    """KeyError, IndexError and ValueError come from mappings and from functions whose caller converts them."""
    found = {
        name
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func) in ("KeyError", "IndexError", "ValueError")
    }
    assert found == set(OWN_ERRORS)


def test_private_attributes_are_written_by_their_class() -> None:
    """`other._name = …` is written only in a class that has `_name` itself; torch's names have files of their own."""
    wrong = []
    for name, tree in trees().items():
        if name in ("bridge/torch_names.py", "bridge/torch_export_names.py"):
            continue
        inside = {
            id(node): own
            for owner in ast.walk(tree)
            if isinstance(owner, ast.ClassDef)
            for own in [_own(owner)]
            for node in ast.walk(owner)
        }
        wrong += [
            f"{name}:{node.lineno} {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store | ast.Del)
            and re.match("_[^_]", node.attr)
            and not _is_own(node)
            and node.attr not in inside.get(id(node), ())
        ]
    assert not wrong, "\n".join(wrong)


def _own(owner: ast.ClassDef) -> set[str]:
    """Return the attributes that a class has: those in its body, and those that its methods read or write."""
    attributes = (node for node in ast.walk(owner) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if _is_own(node)} | _annotated(owner)


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _annotated(owner: ast.ClassDef) -> set[str]:
    return {one.target.id for one in owner.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}


def test_classes_with_fields_are_dataclasses_with_slots() -> None:
    """A NamedTuple is in the table above, with a reason; every dataclass has slots."""
    tuples: dict[str, set[str]] = {}
    without_slots = []
    for name, owner in classes():
        if "NamedTuple" in map(ast.unparse, owner.bases):
            tuples.setdefault(name, set()).add(owner.name)
        decorators = [ast.unparse(one) for one in owner.decorator_list]
        without_slots += [
            f"{name}: {owner.name}" for one in decorators if one.startswith("dataclass") and "slots=True" not in one
        ]
    assert not without_slots
    assert tuples == TUPLES


def test_one_name_for_the_place_of_a_problem() -> None:
    """`Problem` has its fields, and no second name for one of them."""
    [problem] = [owner for name, owner in classes() if name == "errors.py" and owner.name == "Problem"]
    members = {one.name for one in problem.body if isinstance(one, ast.FunctionDef)}
    assert _annotated(problem) == {"loc", "rule", "message", "kind"}
    assert members == {"severity", "text", "hint", "__str__"}
