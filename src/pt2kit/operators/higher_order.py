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


class Runs(Enum):
    """How often an operator runs its subgraphs."""

    ONCE = "once"
    """Its one subgraph runs once, instead of the call; its writes are visible outside."""
    BRANCH = "branch"
    """One of its subgraphs runs, once; the first argument selects it."""
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


@dataclass(frozen=True, slots=True)
class Bound:
    """An input of a subgraph: the role of an operand, and the operand."""

    role: Role
    value: object


@dataclass(frozen=True, slots=True)
class Calls:
    """How a higher-order operator calls its subgraphs.

    Args:
        graphs: which positional arguments are subgraphs; each of them gets the same operands.
        runs: how often they run.
        start: the first positional argument that they get.
        lists: the role of the entries of the n-th list from there; further lists have the last. Only arguments that are
            lists count then; options may be between them. () if all are passed, lists entry by entry.
        is_paired: the first list is passed twice: two slices are combined.
        results: index into `graphs` of the subgraph whose results are those of the call; None if they are others.
    """

    graphs: tuple[int, ...]
    runs: Runs
    start: int
    lists: tuple[Role, ...] = ()
    is_paired: bool = False
    results: int | None = 0

    @property
    def least(self) -> int:
        """Return how many positional arguments a call has at least."""
        return self.start + len(self.lists)

    @property
    def is_stacked(self) -> bool:
        """Return whether the results that follow the carried values have a slice for each run, in a new dimension 0."""
        return SLICED in self.lists

    def bind(self, positional: Sequence[Argument], items: Callable[[Argument], Sequence[object] | None]) -> list[Bound]:
        """Return the inputs of each subgraph, in order.

        Args:
            positional: the positional arguments of the call, whatever represents them.
            items: returns the entries of an argument that is a list; None for other arguments.
        """
        roles = self.lists or (PASSED,)
        bound: list[Bound] = []
        seen = 0
        for argument in positional[self.start :]:
            entries = items(argument)
            if entries is None:
                if not self.lists:
                    bound.append(Bound(PASSED, argument))
                continue
            role = roles[min(seen, len(roles) - 1)]
            times = 2 if self.is_paired and seen == 0 else 1
            bound += [Bound(role, entry) for entry in entries] * times
            seen += 1
        return bound


UNFOLLOWED: Final = Calls((), OPAQUE, 0, results=None)
"""The convention of operators whose calls of subgraphs nobody follows, and of those that are not known."""

RUNNING_CODE: Final = frozenset(
    (
        *("aoti_call_delegate", "executorch_call_delegate", "inductor_compiled_code", "inline_asm_elementwise"),
        *("triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation"),
    )
)
"""Operators that run code which is no operator and no subgraph: no file may call them. It may call all others below."""

HIGHER_ORDER: Final[Mapping[str, Calls]] = MappingProxyType(
    {
        "cond": Calls((1, 2), BRANCH, 3, (PASSED,)),
        "while_loop": Calls((0, 1), LOOP, 2, (CARRIED, PASSED), results=1),
        "while_loop_stack_output": Calls((0, 1), LOOP, 2, (CARRIED, PASSED), results=None),
        "map_impl": Calls((0,), MAP, 1, (SLICED, PASSED)),
        "scan": Calls((0,), SCAN, 1, (CARRIED, SLICED, PASSED)),
        "associative_scan": Calls((0,), MAP, 1, (SLICED, PASSED), is_paired=True),
        "invoke_subgraph": Calls((0,), ONCE, 2),
        "wrap_with_set_grad_enabled": Calls((1,), ONCE, 2),
        "wrap_with_autocast": Calls((4,), ONCE, 5),
        **dict.fromkeys(("strict_mode", "hints_wrapper"), Calls((0,), ONCE, 1, (PASSED,))),
        **dict.fromkeys(
            (
                *("tag_activation_checkpoint", "wrap_activation_checkpoint", "wrap"),
                *("invoke_quant", "invoke_quant_packed", "foreach_map"),
            ),
            Calls((0,), ONCE, 1),
        ),
        "run_const_graph": Calls((0,), OPAQUE, 1),
        **dict.fromkeys(
            (
                *("auto_functionalized", "auto_functionalized_v2", "call_torchbind", "flex_attention"),
                *("flex_attention_backward", "local_map_hop", "map", "out_dtype", "print", "with_effects"),
                *RUNNING_CODE,
            ),
            UNFOLLOWED,
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
        kinds: the kinds of its arguments by place, as far as a call is checked: "Tensor", "int", or, of
            a text, those that it may be: "error|same".
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
        OPENS: Function(("int", "error|same|different")),
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
