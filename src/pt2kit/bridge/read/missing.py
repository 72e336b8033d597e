"""What a program needs and this process does not have -> one error that lists all of it and says what to import."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import torch

from pt2kit.bridge.torch_names import has_script_class
from pt2kit.errors import OperatorError, SchemaError, UnsupportedError
from pt2kit.graph.traversal import Scope
from pt2kit.messages import listed

SHOWN: Final = 20
_SCRIPT_CLASS: Final = re.compile(r"__torch__\.torch\.classes\.(\w+)\.(\w+)", re.ASCII)
_OWN: Final = frozenset({"aten", "prims", "higher_order", "quantized"})


def raise_missing(operators: Mapping[str, str], types: Iterable[str], classes: Iterable[str]) -> None:
    """Raise if anything is missing.

    Args:
        operators: target -> where it is first used.
        types: containers, factories and enum classes, as messages call them.
        classes: script classes, by their names in the file.

    Raises:
        OperatorError: operators are missing, perhaps among other things.
        SchemaError: containers are, and no operators.
        UnsupportedError: only script classes are.
    """
    types, classes = list(dict.fromkeys(types)), list(dict.fromkeys(classes))
    texts = [f"the operator {text} ({where})" for text, where in operators.items()]
    texts += types
    texts += [f"the script class {name}" for name in classes]
    if not texts:
        return
    error = OperatorError if operators else SchemaError if types else UnsupportedError
    advice = _advice(operators, types, classes)
    raise error(
        f"{len(texts)} thing(s) that the program needs are not known here: {listed(texts, SHOWN, '; ')}. {advice}"
    )


def missing_classes(scopes: Iterable[Scope]) -> Iterator[str]:
    """The script classes of the custom objects in a program's graphs that nothing has registered."""
    for scope in scopes:
        for custom in scope.graph.custom_obj_values.values():
            match = _SCRIPT_CLASS.fullmatch(custom.class_fqn)
            if match and not has_script_class(*match.groups()):
                yield custom.class_fqn


_CONTAINER: Final = "the container type "


def _modules(types: list[str]) -> str:
    """What to do about containers if they are classes of modules, which a file may have among its inputs."""
    names = [text.removeprefix(_CONTAINER) for text in types if text.startswith(_CONTAINER)]
    if not names:
        return ""
    entries = ", ".join(map(repr, names[:SHOWN]))
    return f" For classes of modules among the inputs, if you trust the file, pass trust=({entries},)."


def _advice(operators: Mapping[str, str], types: list[str], classes: list[str]) -> str:
    custom = sorted({text.split(".")[2] for text in operators} - _OWN)
    parts = [f"the module that registers {namespace}::…" for namespace in custom]
    parts += ["the modules that define and register the containers"] if types else []
    parts += ["the libraries that register the script classes"] if classes else []
    own = len(operators) > sum(text.split(".")[2] in custom for text in operators)
    unknown = f" torch {torch.__version__} does not have the others." if own else ""
    return (
        f"Before loading, import {', '.join(parts)}.{unknown}{_modules(types)}"
        if parts
        else f"torch {torch.__version__} has none of that name"
    )
