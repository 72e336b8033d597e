"""Calls whose sizes have to fit -> those that do not, by the sizes that values have, not those that a file declares.

A file may declare any sizes. So a program that calls such an operator is gone through with tensors that have sizes and
no memory, from its inputs on, each symbol as the number it had in the example. Where an operator cannot be run like
that, what the file declares is taken.
"""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from typing import Any, Final

import sympy
import torch
from torch import fx

from pt2kit.bridge.callables import describe
from pt2kit.bridge.torch_names import FakeTensorMode, HigherOrderOperator, OpOverload, schema_of
from pt2kit.checks.kernel_sizes import RULES
from pt2kit.checks.passing_on import PASSING
from pt2kit.checks.provenance import name_of
from pt2kit.checks.refused import Row, find_everyday
from pt2kit.checks.shapes import Shape
from pt2kit.errors import OperatorError

_RUN: Final = ("aten", "prims")
_UNBACKED: Final = (10_000, 100_000)
"""What is taken for a number that only running the program tells: not what somebody could have counted on."""

_LIMIT: Final = 2**63


def check_actual_sizes(module: fx.GraphModule, trust: Set[str] = frozenset()) -> None:
    """Refuse a program with calls whose sizes do not fit.

    Args:
        module: the program; its nodes have fake values as metadata. It is not changed.
        trust: operators ("aten._fft_c2r") whose calls are taken as they are, or "X10".

    Raises:
        OperatorError: the first such call (X10).

    Cost: nothing where no such operator is called, else about 200 microseconds per node.
    """
    graphs = [inner.graph for inner in module.modules() if isinstance(inner, fx.GraphModule)]
    targets = {node.target for graph in graphs for node in graph.nodes}
    if "X10" in trust or not any(_row(target) is not None for target in targets):
        return
    _Runner(trust).run(module, None)


def _row(target: Any) -> Row | None:
    """The row of what a node calls, if it is an operator with a rule for sizes."""
    if not isinstance(target, OpOverload):
        return None
    row = find_everyday(describe(target))
    return row if row is not None and row.sizes else None


class _Runner:
    """One run through a program."""

    def __init__(self, trust: Set[str]) -> None:
        self.trust = trust
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.symbols: dict[Any, int] = {}

    def run(self, module: fx.GraphModule, inputs: Sequence[Any] | None) -> Any:
        """Go through a graph; what it gives. Without inputs, they are what the file declares."""
        values: dict[fx.Node, Any] = {}
        input_values = iter(inputs or ())
        result: Any = None
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = self.declared(node) if inputs is None else next(input_values, None)
            elif node.op == "get_attr":
                values[node] = getattr(module, str(node.target), None)
            elif node.op == "output":
                result = fx.map_arg(node.args[0], values.__getitem__)
            else:
                args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
                values[node] = self.call(node, args, kwargs)
        return result

    def call(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        """What a node gives."""
        row = _row(node.target)
        if row is not None:
            self.check(node, row, args, kwargs)
        target: Any = node.target
        if isinstance(target, HigherOrderOperator):
            return self.higher_order(node, args)
        if isinstance(target, OpOverload):
            lists = any("List" in str(value.type) for value in schema_of(target).returns)
            if target.namespace not in _RUN or lists or not schema_of(target).returns:
                return self.declared(node)
        try:
            with self.mode, torch.no_grad():
                return target(*args, **kwargs)
        except Exception:  # noqa: BLE001  no kernel for fake values, numbers that only running tells, a wrong call
            return self.declared(node)

    def higher_order(self, node: fx.Node, args: Any) -> Any:
        """The subgraphs of a call, with what is passed to them where that is the same as what they take."""
        bodies = [value for value in args if isinstance(value, fx.GraphModule)]
        passed = [leaf for value in args for leaf in (value if isinstance(value, (list, tuple)) else (value,))]
        is_passing = node.target.name() in PASSING
        results = []
        for body in bodies:
            count = sum(inner.op == "placeholder" for inner in body.graph.nodes)
            known = is_passing and count <= len(passed)
            results.append(self.run(body, passed[len(passed) - count :] if known else None))
        return results[0] if is_passing and len(results) == 1 else self.declared(node)

    def check(self, node: fx.Node, row: Row, args: Any, kwargs: Any) -> None:
        """Refuse a call whose sizes do not fit."""
        name = name_of(describe(node.target))
        if name in self.trust:
            return
        names = [argument.name for argument in schema_of(node.target).arguments]
        call = {key: _plain(value) for key, value in (*zip(names, args, strict=False), *kwargs.items())}
        for text in RULES[row.sizes](call):
            raise OperatorError(
                f"node {node.name} ({describe(node.target)}): expected {text}, got {_shown(call)}; "
                f"if you trust the file, pass trust=({name!r},)",
                rule="X10",
            )

    def declared(self, node: fx.Node) -> Any:
        """What the file says that a node gives."""
        return self.concrete(node.meta.get("val"))

    def concrete(self, value: Any) -> Any:
        """A value with numbers for symbols."""
        if isinstance(value, torch.Tensor):
            try:
                with self.mode:
                    sizes, strides = list(map(self.number, value.shape)), list(map(self.number, value.stride()))
                    if not all(type(size) is int and 0 <= size < _LIMIT for size in (*sizes, *strides)):
                        return None  # an expression without a number, or one that no tensor has
                    return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
            except (RuntimeError, NotImplementedError, ValueError):
                return None
        if isinstance(value, (list, tuple)):
            return [self.concrete(item) for item in value]
        return self.number(value)

    def number(self, value: Any) -> Any:
        """A number for a symbolic one: that of the example, or one by chance."""
        if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return value
        if value.node.has_hint():
            return value.node.hint
        expression = value.node.expr
        for symbol in expression.free_symbols:
            self.symbols.setdefault(symbol, sympy.Integer(random.randint(*_UNBACKED)))
        substituted = expression.xreplace(self.symbols)
        return int(substituted) if isinstance(value, torch.SymInt) and substituted.is_number else None


def _plain(value: Any) -> Any:
    """An argument as the rules take it: sizes for a tensor."""
    if isinstance(value, torch.Tensor):
        return Shape(value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (int, float, bool, str)) else None


def _shown(call: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in call.items() if value is not None)[:200]
