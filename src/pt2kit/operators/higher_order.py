"""Higher-order operators: which arguments are subgraphs, what the subgraphs get, and how the results depend on them.

Export also leaves functions of torch in graphs, most of which open and close a region instead (`FUNCTIONS`).

    torch.ops.higher_order.while_loop(cond_fn, body_fn, (i, x), (w,))
    HIGHER_ORDER["while_loop"].bind(positional, items)    [(CARRIED, i), (CARRIED, x), (PASSED, w)]: the inputs of each
                                                          subgraph, in order

`runs` says how often a subgraph runs: a forward analysis runs it once (`ONCE`), joins the branches (`BRANCH`), or
repeats it until nothing changes (`LOOP`, `SCAN`). Nothing is certain of the subgraphs of an operator that is `OPAQUE`.

Source: torch/_higher_order_ops, 2.13 and 2.6; the same in the files of all other releases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

Argument = TypeVar("Argument")
Value = TypeVar("Value")


class Runs(Enum):
    """How often an operator runs its subgraphs."""

    ONCE = "once"
    """Its one subgraph runs once, instead of the call; its writes are visible outside."""
    BRANCH = "branch"
    """One of its subgraphs runs, once."""
    LOOP = "loop"
    """The second subgraph runs as long as the first one returns true; its results are its next carried values."""
    MAP = "map"
    """The subgraph runs once per slice, on copies, in any order."""
    SCAN = "scan"
    """The subgraph runs once per slice, in order; its first results are its next carried values."""
    OPAQUE = "opaque"
    """Not known, or not a subgraph but an operator or object that is called."""


ONCE, BRANCH, LOOP, MAP, SCAN, OPAQUE = Runs


class Role(Enum):
    """The part of an operand that a subgraph gets."""

    PASSED = "passed"
    """The operand itself, in every run."""
    CARRIED = "carried"
    """The operand in the first run, a result of the previous run in each further one."""
    SLICED = "sliced"
    """A slice of the operand, without its first dimension."""


PASSED, CARRIED, SLICED = Role


class Stacked(Enum):
    """Which results are stacked: every run adds a slice in a new dimension 0."""

    NONE = "none"
    AFTER_CARRIED = "after carried"
    """Those that follow the carried values; the new dimension is as long as that of the operands that are sliced."""
    ALL = "all"
    """All, in a dimension whose length only the run shows."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An input of a subgraph: the role of an operand, and the operand."""

    role: Role
    value: object


@dataclass(frozen=True, slots=True)
class Operands:
    """Which positional arguments become inputs of the subgraphs.

    Args:
        start: the first of them.
        lists: the role of the entries of the n-th list; further lists have the last. Only arguments that are lists
            count then; options may be between them. () if all are passed, lists entry by entry.
        is_paired: the first list is passed twice: two slices are combined.
    """

    start: int
    lists: tuple[Role, ...] = ()
    is_paired: bool = False


@dataclass(frozen=True, slots=True)
class Calls:
    """How a higher-order operator calls its subgraphs.

    Args:
        graphs: which positional arguments are subgraphs; each of them gets the same operands.
        operands: which positional arguments they get.
        runs: how often they run.
        arguments: how many positional arguments there are at least.
        results: index into `graphs` of the subgraph whose results are those of the call; None if they are others.
        singles: indices into `graphs` of the subgraphs that return one value, a condition, not a list of them.
        stacked: which results have one slice per run.
        predicate: position of the argument that selects the branch; None if there is none.
        is_same: whether the results are described as those of the subgraph are.
    """

    graphs: tuple[int, ...]
    operands: Operands
    runs: Runs
    arguments: int
    results: int | None = 0
    singles: tuple[int, ...] = ()
    stacked: Stacked = Stacked.NONE
    predicate: int | None = None
    is_same: bool = False

    def bind(self, positional: Sequence[Argument], items: Callable[[Argument], Sequence[object] | None]) -> list[Bound]:
        """Return the inputs of each subgraph, in order.

        Args:
            positional: the positional arguments of the call, whatever represents them.
            items: returns the entries of an argument that is a list; None for other arguments.
        """
        operands = self.operands
        bound: list[Bound] = []
        seen = 0
        for argument in positional[operands.start :]:
            entries = items(argument)
            if entries is None:
                if not operands.lists:
                    bound.append(Bound(PASSED, argument))
                continue
            role = operands.lists[min(seen, len(operands.lists) - 1)] if operands.lists else PASSED
            times = 2 if operands.is_paired and seen == 0 else 1
            bound += [Bound(role, entry) for entry in entries] * times
            seen += 1
        return bound


def _once(position: int, arguments: int, operands: Operands | None = None) -> Calls:
    """Return the convention of an operator that runs its subgraph in place, by default on all arguments after it."""
    return Calls((position,), operands or Operands(position + 1), ONCE, arguments, is_same=True)


RUNNING_CODE: Final = frozenset(
    (
        *("aoti_call_delegate", "executorch_call_delegate", "inductor_compiled_code", "inline_asm_elementwise"),
        *("triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"),
    )
)
"""Operators that run code which is no operator and no subgraph."""

HIGHER_ORDER: Final[Mapping[str, Calls]] = MappingProxyType(
    {
        "cond": Calls((1, 2), Operands(3, (PASSED,)), BRANCH, 4, predicate=0, is_same=True),
        "while_loop": Calls((0, 1), Operands(2, (CARRIED, PASSED)), LOOP, 4, results=1, singles=(0,), is_same=True),
        "while_loop_stack_output": Calls(
            (0, 1), Operands(2, (CARRIED, PASSED)), LOOP, 4, results=None, singles=(0,), stacked=Stacked.ALL
        ),
        "map_impl": Calls((0,), Operands(1, (SLICED, PASSED)), MAP, 3, stacked=Stacked.AFTER_CARRIED),
        "scan": Calls((0,), Operands(1, (CARRIED, SLICED, PASSED)), SCAN, 4, stacked=Stacked.AFTER_CARRIED),
        "associative_scan": Calls(
            (0,), Operands(1, (SLICED, PASSED), is_paired=True), MAP, 3, stacked=Stacked.AFTER_CARRIED
        ),
        "invoke_subgraph": _once(0, 2, Operands(2)),
        "wrap_with_set_grad_enabled": _once(1, 2),
        "wrap_with_autocast": _once(4, 5),
        **dict.fromkeys(("strict_mode", "hints_wrapper"), _once(0, 2, Operands(1, (PASSED,)))),
        **dict.fromkeys(("tag_activation_checkpoint", "wrap_activation_checkpoint", "wrap"), _once(0, 1)),
        **dict.fromkeys(("invoke_quant", "invoke_quant_packed", "foreach_map"), _once(0, 1)),
        "run_const_graph": Calls((0,), Operands(1), OPAQUE, 2),
        **dict.fromkeys(
            (
                *("auto_functionalized", "auto_functionalized_v2", "call_torchbind", "flex_attention"),
                *("flex_attention_backward", "local_map_hop", "map", "out_dtype", "print", "with_effects"),
                *RUNNING_CODE,
            ),
            Calls((), Operands(0), OPAQUE, 0, results=None),
        ),
    }
)
"""Name of a higher-order operator ("cond") -> its convention."""

RETURNS_SINGLE: Final[Mapping[str, bool]] = MappingProxyType(
    {"out_dtype": True, "auto_functionalized": False, "auto_functionalized_v2": False, "with_effects": False}
)
"""Operators without subgraphs -> whether they return a single tensor, or a list of results."""
WRITING: Final = frozenset(
    ("invoke_leaf_function", "register_hook", "call_torchbind", "print", "triton_kernel_wrapper_mutation")
)
"""Operators that write into their arguments, or act on the world, whatever their subgraphs do."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of torch over tensors or modes that export leaves in graphs.

    Args:
        kinds: the kinds of its arguments by place, as far as a call is checked: "Tensor", "int", "str".
        opens: the function that opens the region which this one closes; "" if it closes none.
    """

    kinds: tuple[str, ...] = ()
    opens: str = ""


PREDISPATCH: Final = "torch._functorch.predispatch."
OPENS: Final = f"{PREDISPATCH}_vmap_increment_nesting"
CLOSES: Final = f"{PREDISPATCH}_vmap_decrement_nesting"
HIDES: Final = f"{PREDISPATCH}_add_batch_dim"
SHOWS: Final = f"{PREDISPATCH}_remove_batch_dim"
"""Functions that open and close regions of vmap, hide the dimension of a batch in them, and give it back."""

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        HIDES: Function(("Tensor", "int", "int")),
        SHOWS: Function(("Tensor", "int", "int")),
        OPENS: Function(("int", "str")),
        CLOSES: Function(opens=OPENS),
        f"{PREDISPATCH}_jvp_decrement_nesting": Function(opens=f"{PREDISPATCH}_jvp_increment_nesting"),
        f"{PREDISPATCH}_exit_dual_level": Function(opens=f"{PREDISPATCH}_enter_dual_level"),
        "torch.amp.autocast_mode._exit_autocast": Function(opens="torch.amp.autocast_mode._enter_autocast"),
        **dict.fromkeys(
            (
                *(f"{PREDISPATCH}{name}" for name in ("_jvp_increment_nesting", "_enter_dual_level", "_make_dual")),
                *(f"{PREDISPATCH}{name}" for name in ("_unpack_dual", "_unwrap_for_grad", "lazy_load_decompositions")),
                *("torch._C._set_grad_enabled", "torch.amp.autocast_mode._enter_autocast"),
                "torch.fx.experimental.symbolic_shapes.cast_symbool_to_symint_guardless",
            ),
            Function(),
        ),
    }
)
"""Name of such a function -> what is known of it.

Source: `Verifier` in torch/_export/verifier.py and torch/_functorch/predispatch.py, 2.13. The one that applies a custom
autograd function is left out: it reads the class to apply from its arguments.
"""
