"""Aliasing and mutation of operators: which results share memory with arguments, and which arguments are written.

Schemas declare most of it ("(a)", "(a!)", "(a -> *)"), but not all: `aten.contiguous` may return its argument, and
`aten.batch_norm` writes its running statistics. `data/aliasing.txt` has what `tools/measure_aliasing.py` measured with
real calls. Its first line names the release of torch, the others have four columns:

    aten.reshape.default 0 self sometimes             in some calls the result shared memory with the argument
    aten.permute.default 0 self always                in all calls
    aten.batch_norm.default - running_mean written    a call wrote the argument, although the schema does not declare it
    ? aten.cudnn_convolution default out              these overloads could not be called
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pt2kit.data_files import data_file
from pt2kit.schema.operators import ValueType, find_operator, operators_of

_HOLDING: Final = ("Tensor", "t", "Any", "Dict", "RRef", "Future", "Await", "(")
"""How types begin whose values have memory."""

_VIEW: Final = "prims.as_strided.default"
"""The one operator whose schema declares a write although it returns a view."""


class Alias(NamedTuple):
    """A result that shares memory with an argument.

    Args:
        result: its index; a result that is a list of tensors is one result.
        parameter: the name of the parameter.
        certainty: "always" if the schema declares it and every measured call showed it, or if the operator returns the
            argument that it writes; "may" if it depends on the arguments or the device, or is not known.
    """

    result: int
    parameter: str
    certainty: Literal["always", "may"]


# A pure function of files of the package; programs call the same few operators over and over.
@functools.lru_cache(maxsize=4096)
def aliases(name: str, release: str) -> tuple[Alias, ...]:
    """Return which results of an overload share memory with which arguments, declared or measured.

    Args:
        name: "aten.view.default", without "torch.ops.".
        release: "2.6".

    Returns:
        Pairs in the order of results and parameters; none for an overload that the release does not have.

    Raises:
        VersionError: no release that the table of schemas has.
    """
    operator = find_operator(name, release)
    if operator is None:
        return ()
    measured = _measured().aliases.get(name, {})
    found = []
    for index, result in enumerate(operator.results):
        for parameter in operator.parameters.values():
            seen = measured.get((index, parameter.name))
            is_declared = _share(parameter.type, result)
            if is_declared and (result.is_written or seen == "always"):
                found.append(Alias(index, parameter.name, "always"))
            elif is_declared or seen:
                found.append(Alias(index, parameter.name, "may"))
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def written(name: str, release: str) -> frozenset[str]:
    """Return the names of the parameters that an overload writes, declared or measured.

    Args:
        name: "aten.add_.Tensor", without "torch.ops.".
        release: "2.6".

    Raises:
        VersionError: no release that the table of schemas has.
    """
    operator = find_operator(name, release)
    if operator is None:
        return frozenset()
    measured = _measured().written.get(name, ())
    return frozenset(
        parameter.name
        for parameter in operator.parameters.values()
        if (parameter.type.is_written and name != _VIEW) or parameter.name in measured
    )


def is_measured(name: str) -> bool:
    """Return whether an overload was called to measure it; otherwise only its schema is known."""
    measured = _measured()
    return name in operators_of(measured.release) and name not in measured.uncalled


def _share(parameter: ValueType, result: ValueType) -> bool:
    """Return whether a schema declares that a result shares memory with an argument."""
    names = _alias_names(result)
    if "*" in names:  # Any memory: TorchScript's operators of lists and dictionaries.
        return parameter.base.startswith(_HOLDING)
    return bool(names & _alias_names(parameter))


def _alias_names(type_: ValueType) -> frozenset[str]:
    """Return the names of the memory that an annotation such as "a!", "a -> *" or "b|a" starts with."""
    before = type_.alias.partition("->")[0].replace("!", "")
    return frozenset(name.strip() for name in before.split("|") if name.strip())


@dataclass(frozen=True, slots=True)
class _Measured:
    """The file.

    Args:
        release: of torch that was measured ("2.13").
        aliases: overload -> (index of the result, parameter) -> "always" or "sometimes".
        written: overload -> parameters that it writes without a declaration.
        uncalled: overloads of that release that could not be called.
    """

    release: str
    aliases: dict[str, dict[tuple[int, str], str]]
    written: dict[str, set[str]]
    uncalled: set[str]


# The file is part of the package and never changes.
@functools.cache
def _measured() -> _Measured:
    text = data_file("operators/data/aliasing.txt").read_text(encoding="utf-8")
    head, *lines = text.splitlines()
    found = _Measured(".".join(head.split(".")[:2]), {}, {}, set())
    for line in lines:
        name, *rest = line.split()
        if name == "?":
            found.uncalled.update(f"{rest[0]}.{overload}" for overload in rest[1:])
        elif rest[2] == "written":
            found.written.setdefault(name, set()).add(rest[1])
        else:
            found.aliases.setdefault(name, {})[int(rest[0]), rest[1]] = rest[2]
    return found
