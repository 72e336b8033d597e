"""Prove by running that a changed program computes the same: seeded inputs within the declared ranges, several sizes.

A proof is evidence, not logic: both programs run with NumPy on the same inputs, of the sizes of the example and of
others within the ranges of each symbol, of any sign, positive, and between 0 and 1. Outputs, and the inputs and
buffers that a program writes, must agree within the tolerances of `torch.testing.assert_close`, times three, as equal
programs may round differently. What cannot be run is an error that names it, so a proof that ends without one covered
everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from pt2kit.comparing.runs import copied, error_of, in_type
from pt2kit.errors import InputError, ProofError, Pt2Error, UnsupportedError
from pt2kit.graph.argument_values import arguments
from pt2kit.graph.traversal import operator_counts, operator_name
from pt2kit.messages import printable
from pt2kit.operators.schemas import is_random
from pt2kit.package.open import Package
from pt2kit.runtime.arrays import cast, kind
from pt2kit.runtime.execution import Given
from pt2kit.runtime.inputs import random_inputs
from pt2kit.runtime.session import RunLimits, Session, output_leaves
from pt2kit.signature.export_signature import from_schema
from pt2kit.signature.specs import OutputKind
from pt2kit.treespec.callsig import split_call
from pt2kit.treespec.spec import leaf_count

RUNS: Final = 6
"""Runs of each program that a proof needs; half of them with numbers of any sign, the others as `_inputs` says."""
ATTEMPTS: Final = 4 * RUNS
LIMITS: Final = RunLimits(max_seconds=120)
"""A changed loop may not end."""
SCALE: Final = 3.0
"""Factor on the tolerances."""


Named = dict[str, Any]
Run = Callable[[list[Any]], Named]
"""Runs a program with some inputs; returns what is compared, by name."""


def prove(before: Package, after: Package, *, models: Mapping[str, str] | None = None) -> None:
    """Check that the programs of two packages compute the same.

    Args:
        before, after: the packages.
        models: program before -> program after; by default those of equal names, or the only ones.

    Raises:
        ProofError: results differ; the message says for which inputs.
        UnsupportedError: operators that cannot be run, by name; or no inputs drawn have results that can be compared.
    """
    for old, new in (models or _matching(before, after)).items():
        _prove_program(before, old, after, new)


def _prove_program(before: Package, old: str, after: Package, new: str) -> None:
    where = f"{after.name}: program {printable(new)}"
    first, second = _session(before, old), _session(after, new)
    order = _order(first, second, where)

    def run(session: Session, order: Sequence[int], leaves: list[Any]) -> Named:
        given = [in_type(leaves[place], spec.dtype) for place, spec in zip(order, session.inputs, strict=True)]
        outputs = output_leaves(session.run_leaves(given))
        written = {f"input {first.inputs[place].name}": one for place, one in zip(order, given, strict=True)}
        return _numbered(outputs) | written | {f"state {name}": array for name, array in session.state.items()}

    _compare(first, where, partial(run, first, range(len(first.inputs))), partial(run, second, order))


def prove_part(whole: Package, model: str | None, part: Package) -> None:
    """Check that an extracted program computes the same values as the program it was cut out of.

    Args:
        whole: the package that it was cut from.
        model: the program there.
        part: a package with one program.

    Raises:
        ProofError, UnsupportedError: as `prove`.
    """
    name = whole.choose(model)
    [new] = part.layout.models
    where = f"{part.name}: program {printable(new)}"
    first, second = _session(whole, name), _session(part, new)
    graph = whole.programs[name].graph_module.graph
    inner = part.programs[new].graph_module.graph
    names = [next(arguments(spec.argument), "") for spec in second.inputs]
    outputs = _output_names(part, new)
    wanted = {*names, *outputs}
    specs = from_schema(whole.programs[name].graph_module).input_specs
    stored = {spec.arg.name: spec.target for spec in specs if spec.target is not None}
    written = {target: one.copy() for target, one in first.state.items() if one.flags.writeable}
    seen: Named = {}

    def keep(number: int, values: list[Any], _: Given) -> None:
        defined = [one for output in graph.nodes[number].outputs for one in arguments(output)]
        seen.update({one: _copy(value) for one, value in zip(defined, values, strict=False) if one in wanted})

    def expected(leaves: list[Any]) -> Named:
        seen.clear()
        for session in (first, second):  # the part may read a buffer without the node that updates it
            for target, one in session.state.items():
                if one.flags.writeable:
                    one[...] = written[target]
        seen.update({one: _copy(first.state[stored[one]]) for one in names if one in stored})
        for spec, value in zip(first.inputs, leaves, strict=True):
            seen.update(dict.fromkeys(arguments(spec.argument), _copy(value)))
        first.run_leaves(leaves, keep)
        known = {*seen, *stored, ""}
        if missing := [one for one in (*names, *outputs) if one not in known and one in inner.tensor_values]:
            raise ProofError(f"{where}: expected values of the whole program, got {printable(missing[0])}")
        return {one: seen[one] for one in outputs if one in seen}

    def found(leaves: list[Any]) -> Named:
        given = [_copy(seen[one]) if one else spec.constant for one, spec in zip(names, second.inputs, strict=True)]
        results = output_leaves(second.run_leaves(given))
        return {one: value for one, value in zip(outputs, results, strict=True) if one in seen}

    _compare(first, where, expected, found)


def prove_joined(
    first: Package,
    second: Package,
    models: tuple[str | None, str | None],
    connect: Iterable[tuple[Any, str]],
    both: Package,
) -> None:
    """Check that a composed program computes the same as its two parts, run one after the other.

    Args:
        first, second: the packages that were joined.
        models: the program of each.
        connect: names or numbers of outputs of the first, each with the name of an input of the second.
        both: the package of the joined program.

    Raises:
        ProofError, UnsupportedError: as `prove`.
    """
    names = [one.choose(model) for one, model in zip((first, second), models, strict=True)]
    [joined] = both.layout.models
    where = f"{both.name}: program {printable(joined)}"
    a, b, c = _session(first, names[0]), _session(second, names[1]), _session(both, joined)
    outputs = _output_names(first, names[0])
    links = {target: one if isinstance(one, int) else outputs.index(one) for one, target in connect}
    inputs = [next(arguments(spec.argument), spec.name) for spec in b.inputs]
    # Positional arguments of both come before keyword arguments of both.
    own = [_positional(a), _positional(b) - sum(one in links for one in inputs[: _positional(b)])]
    keywords = len(a.inputs) - own[0]

    def expected(leaves: list[Any]) -> Named:
        start = sum(own)
        given = leaves[: own[0]] + leaves[start : start + keywords]
        rest = iter(leaves[own[0] : start] + leaves[start + keywords :])
        results = output_leaves(a.run_leaves(given))
        passed = [
            in_type(results[links[name]], spec.dtype) if name in links else next(rest)
            for name, spec in zip(inputs, b.inputs, strict=True)
        ]
        kept = [one for number, one in enumerate(results) if number not in links.values()]
        return _numbered([*kept, *output_leaves(b.run_leaves(passed))])

    _compare(c, where, expected, lambda leaves: _numbered(output_leaves(c.run_leaves(leaves))))


def _compare(session: Session, where: str, expected: Run, found: Run) -> None:
    """Run both sides on seeded inputs until enough runs agree.

    Args:
        session: whose inputs are drawn.
        where: the program, for messages.
        expected, found: the two sides; the first may refuse inputs, the second may not.

    Raises:
        ProofError: a difference.
        UnsupportedError: the first side accepts no inputs, or has no finite results.
    """
    done, is_finite = 0, False
    refused: Pt2Error | None = None
    for attempt in range(ATTEMPTS):
        if done == RUNS:
            break
        leaves = _inputs(session, attempt)
        try:
            wanted = {name: _copy(value) for name, value in expected(copied(leaves)).items()}
        except (UnsupportedError, ProofError):
            raise
        except Pt2Error as error:
            refused = error
            continue
        shown = f"{where}: for inputs of seed {attempt} ({_sizes(leaves)})"
        try:
            got = found(copied(leaves))
        except Pt2Error as error:
            raise ProofError(f"{shown}: expected results, got an error: {error}") from error
        _check_equal(shown, wanted, got)
        done += 1
        outputs = [value for name, value in wanted.items() if not name.startswith(("input ", "state "))]
        is_finite = is_finite or not outputs or any(map(_has_finite, outputs))
    if not done or not is_finite:
        why = f": {refused}" if refused is not None else ""
        message = "expected inputs for which the program has finite results, so that they can be compared, found none"
        raise UnsupportedError(f"{where}: {message}{why}")


def _check_equal(shown: str, wanted: Named, got: Named) -> None:
    for name, value in wanted.items():
        if name not in got:
            if name.startswith("output"):
                raise ProofError(f"{shown}: expected {name}, got fewer outputs")
            continue
        error = error_of(value, got[name], SCALE)
        if error.exceeds:
            raise ProofError(f"{shown}: expected {name} as before, got differences of up to {error.max:.3g}")
    if more := [name for name in got if name.startswith("output") and name not in wanted]:
        raise ProofError(f"{shown}: expected outputs as before, got {more[0]} besides")


def _inputs(session: Session, seed: int) -> list[Any]:
    """Return random inputs: of the sizes of the example first, then of others.

    Floating point numbers are of any sign, positive every second time, and every fourth time between 0 and 1, as
    programs ask for that read colors or probabilities. Integers are negative every fourth time only: most are indices.
    """
    try:
        leaves = random_inputs(session.convention, seed, vary=seed >= 2)
    except InputError:
        leaves = random_inputs(session.convention, seed)
    random = np.random.default_rng(seed)
    for place, one in enumerate(leaves):
        if isinstance(one, np.ndarray) and kind(one.dtype) == 1:  # Other numbers, as long as the program takes them.
            least = -1 - seed if seed % 4 == 2 else 0
            leaves[place] = cast(random.integers(least, 2 + seed, one.shape), one.dtype)
        elif isinstance(one, np.ndarray) and kind(one.dtype) == 2 and seed % 2:
            leaves[place] = np.abs(one) if seed % 4 == 1 else cast(random.random(one.shape), one.dtype)
    return leaves


def _matching(before: Package, after: Package) -> dict[str, str]:
    old, new = before.layout.models, after.layout.models
    names = {name: name for name in old if name in new} or ({old[0]: new[0]} if len(old) == len(new) == 1 else {})
    if not names:
        raise ProofError(f"{after.name}: expected a program of {before.name}, got {', '.join(map(printable, new))}")
    return names


def _session(package: Package, model: str) -> Session:
    """Prepare a program whose results are the same in every run.

    Raises:
        UnsupportedError: operators without a kernel, or random ones.
    """
    session = Session(package, model=model, seed=0, limits=LIMITS)
    counts = operator_counts(package.programs[model])
    random = [name for name in map(operator_name, counts) if is_random(name)]
    if random and _depends_on_chance(package, model):
        raise UnsupportedError(
            f"{package.name}: expected results that do not depend on chance, got {printable(random[0])}, so nothing "
            "is proven"
        )
    return session


def _depends_on_chance(package: Package, model: str) -> bool:
    """Return whether equal inputs have other results with other seeds; many operators draw only if they train.

    Inputs that the program refuses are skipped; if it refuses all, the comparison reports that.
    """
    for attempt in range(ATTEMPTS):
        sessions = [Session(package, model=model, seed=seed, limits=LIMITS) for seed in range(2)]
        try:
            results = [output_leaves(session.run_leaves(_inputs(session, attempt))) for session in sessions]
        except Pt2Error:
            continue
        return any(error_of(one, other).exceeds for one, other in zip(*results, strict=True))
    return False


def _order(first: Session, second: Session, where: str) -> list[int]:
    """Return which input of the first program each input of the second is: by name, else by position."""
    old, new = [spec.name for spec in first.inputs], [spec.name for spec in second.inputs]
    if set(new) <= set(old):
        return [old.index(name) for name in new]
    if len(old) == len(new):
        return list(range(len(old)))
    raise ProofError(f"{where}: expected the inputs {', '.join(old)}, got {', '.join(new)}, so runs cannot be compared")


def _output_names(package: Package, model: str) -> list[str]:
    """Return the names of the values that the caller gets; "" for constants."""
    specs = from_schema(package.programs[model].graph_module).output_specs
    kinds = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
    return [str(getattr(spec.arg, "name", "")) for spec in specs if spec.kind in kinds]


def _positional(session: Session) -> int:
    """Return how many of the inputs are passed by position."""
    spec = session.convention.in_spec
    if spec is None:
        return len(session.inputs)
    return sum(map(leaf_count, split_call(spec)[0]))


def _numbered(values: Sequence[Any]) -> Named:
    return {f"output {number}": value for number, value in enumerate(values)}


def _copy(value: Any) -> Any:
    return value.copy(order="K") if isinstance(value, np.ndarray) else value


def _has_finite(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or not value.size or error_of(value, value).nonfinite[0] < value.size


def _sizes(leaves: Sequence[Any]) -> str:
    """Return the sizes of arrays and the values of numbers, for messages."""
    shown = (str(list(one.shape)) if isinstance(one, np.ndarray) else printable(repr(one), 40) for one in leaves)
    return ", ".join(shown)
