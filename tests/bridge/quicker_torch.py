"""Keep results that torch computes anew for every file, export and sample of operators; they stay those of torch."""

from __future__ import annotations

import functools
import typing
from typing import Any

import torch
from torch._export import utils
from torch._export.serde import serialize
from torch.testing._internal import common_utils


class _Typing:
    """The module `typing`, whose `get_type_hints` evaluates the annotations of a class once."""

    def __init__(self) -> None:
        self._known: dict[Any, dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(typing, name)

    def get_type_hints(self, of: Any, **scopes: Any) -> dict[str, Any]:
        if of not in self._known:
            self._known[of] = typing.get_type_hints(of, **scopes)
        return self._known[of]


def keep_results() -> None:
    """Let torch keep the types of its schema and the list of composite operators, and skip a search for a test case."""
    if getattr(serialize, "typing", None) is typing:
        serialize.typing = _Typing()
    if hasattr(utils, "_materialize_cpp_cia_ops"):
        utils._materialize_cpp_cia_ops = _once_for_each_list(utils._materialize_cpp_cia_ops)
    # Samples ask for the unittest.TestCase that they are made in, by walking all frames; there is none.
    common_utils.extract_test_fn = lambda: None


def _once_for_each_list(materialize: Any) -> Any:
    """Call a function that looks up all composite operators only if operators were registered since the last time."""

    @functools.cache
    def materialized(_: frozenset[str]) -> None:
        materialize()

    def looked_up() -> None:
        materialized(frozenset(torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")))

    return looked_up
