"""Names that torch pastes into generated source: checked to be what they claim before a graph holds them.

A value is a local variable there, a keyword of a higher-order operator stands before "=", a subgraph is an attribute.
The name of a parameter or buffer is a path: each part an identifier, or any text that can stand between double
quotes.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from typing import Final

import torch
from torch.fx import GraphModule

from pt2kit import schema
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.graph.names import GLOBALS, MAX_NAME, is_own_spelling, is_variable
from pt2kit.signature.consistency import targets_below

_QUOTED: Final = re.compile(r'[^"\\\x00-\x1f\x7f\x85\u2028\u2029]+')
_MODULES_OWN: Final = frozenset(dir(torch.nn.Module()))
"""What every module has: torch registers no parameter, buffer or module under such a name."""
_ROOTS_OWN: Final = frozenset(dir(GraphModule(torch.nn.Module(), torch.fx.Graph()))) | {
    *("_guards_fn", "_in_spec", "_out_spec", "range_constraints", "validate_inputs"),
    "self",  # the parameter of the generated function
}
"""What the module of a program has, as `ExportedProgram.module()` makes it.

Source: torch/export/_unlift.py, 2.13.
"""
_ALWAYS_USED: Final = frozenset(("torch", "fx_pytree", "pytree"))


def check_variable(name: str, where: str, error: type[Pt2Error] = GraphError) -> None:
    """Refuse a name that cannot be a variable in generated source.

    Raises:
        GraphError: (or `error`) it is no identifier, a Python keyword, `self`, or another spelling of an identifier.
    """
    if not is_variable(name):
        raise error(f"{where}: expected an identifier that is no keyword of Python, got {_shown(name)}")


def check_value_names(graph: schema.Graph, where: str) -> None:
    """Every value becomes a variable in generated source, and has one description.

    Raises:
        GraphError: a name that is no variable, or that has two descriptions.
    """
    tables = (
        graph.tensor_values,
        graph.sym_int_values,
        graph.sym_float_values,
        graph.sym_bool_values,
        graph.custom_obj_values,
    )
    seen: set[str] = set()
    for table in tables:
        for name in table:
            check_variable(name, f"{where}: name of a value")
        if not seen.isdisjoint(table):
            twice = next(name for name in table if name in seen)
            raise GraphError(f"{where}: expected one description of each value, got two of {twice}")
        seen.update(table)


def check_path(path: str, where: str) -> None:
    """Refuse the name of a parameter, buffer or constant that cannot be an attribute path in generated source.

    Raises:
        GraphError: a part is empty, holds quotes, backslashes or control characters, or would hide what modules have.
    """
    parts = path.split(".")
    for part in parts:
        if not _QUOTED.fullmatch(part) or len(part) > MAX_NAME:
            raise GraphError(f"{where}: expected names joined by dots, without quotes, got {_shown(path)}")
        if part.startswith("__") and part.endswith("__"):
            raise GraphError(f"{where}: expected names without leading and trailing '__', got {_shown(path)}")
        if not part.isascii() and part.isidentifier() and not is_own_spelling(part):
            raise GraphError(f"{where}: expected names as Python spells them, got {_shown(path)}")
    if parts[0] in _ROOTS_OWN or not _MODULES_OWN.isdisjoint(parts):
        raise GraphError(f"{where}: expected a name that modules do not have themselves, got {_shown(path)}")


def check_apart(paths: Iterable[str], subgraphs: Iterable[str], where: str) -> None:
    """Refuse names of which one is a tensor or a subgraph, and stands for a module in another.

    Raises:
        GraphError: the first such name.
    """
    known = set(paths)
    subgraphs = list(subgraphs)
    below = targets_below([*known, *subgraphs], known)
    wrong = next((name for name in known if name in below), None) or next(
        (name for name in subgraphs if name in known or name in below or name in _ROOTS_OWN), None
    )
    if wrong is not None:
        raise GraphError(f"{where}: expected one attribute of each name, got {_shown(wrong)} for two things")


def check_argument(name: str, module: GraphModule, where: str) -> None:
    """Refuse the name of an argument of a program that would hide what its generated source uses.

    Args:
        name: a checked variable.
        module: of the graph; its source is only looked at for the few names that it may use.
        where: the place of the name, for messages.

    Raises:
        GraphError: it would.
    """
    if name in _ALWAYS_USED or (name in GLOBALS and re.search(rf"(?<![\w.]){name}\b(?!\s*=[^=])", module.code)):
        raise GraphError(
            f"{where}: expected a name that torch's generated source does not use itself, got {_shown(name)}; "
            f"rename the argument of the model"
        )


def argument_target(name: str) -> str:
    """What the function of a graph calls the argument that the value `name` comes from."""
    return f"{name}_argument" if name in GLOBALS else name


def check_module_name(name: str, where: str) -> None:
    """Refuse the dotted name of a module that cannot be an attribute path; "" is the root.

    Raises:
        GraphError: a part holds quotes, backslashes or control characters.
    """
    if name and not is_quotable(name):
        raise GraphError(f"{where}: expected a name without quotes, got {_shown(name)}")


def is_quotable(text: str) -> bool:
    """Whether a text can stand between double quotes in source as it is."""
    return len(text) <= MAX_NAME and _QUOTED.fullmatch(text) is not None


def is_pasted_safely(text: str) -> bool:
    """Whether a text can stand between single quotes inside double ones, as torch writes guards and their messages."""
    return is_quotable(text) and "'" not in text and text.isprintable()


class KeywordPath(str):
    """An attribute path with parts that are keywords of Python ("class.weight"); equal to the plain text.

    torch writes `self.class.weight` into generated source for the plain text, because "class" passes for an identifier.
    The parts of this one do not, so it writes `getattr(self, "class").weight`.
    """

    __slots__ = ()

    def split(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """The parts; those that are keywords say that they are no identifiers."""
        return [_Part(part) if keyword.iskeyword(part) else part for part in str.split(self, sep, maxsplit)]

    def rsplit(self, sep: str | None = None, maxsplit: int = -1) -> list[str]:  # type: ignore[override]
        """As `split`, from the right."""
        return [_Part(part) if keyword.iskeyword(part) else part for part in str.rsplit(self, sep, maxsplit)]


class _Part(str):
    __slots__ = ()

    def isidentifier(self) -> bool:
        """False: it cannot follow a dot in source."""
        return False


def attribute_path(path: str) -> str:
    """A checked path in the form that torch writes into source correctly."""
    return KeywordPath(path) if any(keyword.iskeyword(part) for part in path.split(".")) else path


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 80 else f"{name[:77]}...")
