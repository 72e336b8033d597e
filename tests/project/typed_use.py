"""Code of users, for type checkers; `test_typing.py` has it checked and run."""

from __future__ import annotations

from typing import Any

import pt2kit
from pt2kit import schema
from pt2kit.runtime import register


def names_and_numbers(argument: schema.Argument) -> str:
    """The arms of a union: by `match`, and by what is set."""
    match argument:
        case schema.Argument(as_tensor=schema.TensorArgument(name)):
            return name.upper()
        case schema.Argument(as_int=int(number)):
            return str(number + 1)
        case other:
            return f"{other.type} {other.value!r}"


@register("mine::twice")
def twice(x: Any) -> Any:
    """A kernel keeps its type."""
    return x + x


def look(path: str, target: str) -> int:
    """A file from end to end."""
    shown = 0
    with pt2kit.open(path) as package:
        for name, payload in package.weights().items():
            if isinstance(payload, pt2kit.TensorView):
                shown += len(name) + sum(payload.sizes) + payload.storage_offset
            shown += int(payload.numpy().size) + payload.dense().nbytes
        for node in package.programs["model"].graph_module.graph.nodes:
            shown += sum(len(names_and_numbers(named.arg)) for named in node.inputs)
        report = pt2kit.check(package)
        shown += sum(len(problem.hint + problem.text + problem.loc) for problem in report)
        with pt2kit.edit(package) as editor:
            editor.rename_input("x", "y")
        pt2kit.write(editor.result, target)
        with pt2kit.edit(package.programs["model"]) as alone:
            shown += len(alone.graph.nodes)
        shown += len(alone.result.graph_module.graph.nodes)
    differences = pt2kit.diff(path, target)
    shown += len(str(differences)) + len(repr(differences)) + len(pt2kit.digest(path).program)
    return shown + len(pt2kit.canonicalize(path).graph_module.graph.nodes)
