"""Operators -> lines of evidence: hostile calls in forked processes, whose deaths and changing results are written.

torch is imported once; a child runs operator after operator and says in shared memory what it is about to call. When
it dies, the parent writes that down, has the one call run again alone, and starts the next child behind it. A kind of
lie about an argument that killed once is not tried again. A call that succeeds is repeated over memory that is filled
otherwise: results that follow the filling are memory that the operator did not write, or not own.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import mmap
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn, TextIO

import torch
from tools.kernels.hostile import Case, cases
from tools.kernels.samples import Call, Calls, copy, find, made, relatives
from torch.utils import _pytree as pytree

CALL_SECONDS: Final = 0.4
OPERATOR_SECONDS: Final = 2.5
MEMORY: Final = 6 << 30
MAX_DEATHS: Final = 10
FILLS: Final = (0xA5, 0x3C, 0xA5)
MAX_COMPARED: Final = 1 << 16
MAX_REPEATED: Final = 30
"""Calls of one operator that are repeated over other memory."""
SLOW: Final = ("SIGPROF", "SIGKILL")
"""How calls end that take too long."""
SKIPPED: Final = ("c10d", "symm_mem", "_c10d_functional", "_c10d_functional_autograd", "_test", "debug_mode_ops")
"""Namespaces that talk to other processes, or are torch's tests of itself."""


@dataclass
class Progress:
    """The next call of a child, in memory shared with its parent."""

    memory: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 4096))

    def tell(self, operator: int, number: int, label: tuple[str, str, str]) -> None:
        """Say what comes next: the number of the operator, that of its case (-1: a base), and what lies."""
        text = json.dumps([operator, number, *label]).encode()[:4000]
        self.memory[:4] = len(text).to_bytes(4, "little")
        self.memory[4 : 4 + len(text)] = text

    def told(self) -> tuple[int, int, tuple[str, str, str]]:
        """Return the last report."""
        length = int.from_bytes(self.memory[:4], "little")
        operator, number, *label = json.loads(self.memory[4 : 4 + length])
        return operator, number, (label[0], label[1], label[2])


class Mode:
    """How operators are called: as torch does, or as `pt2kit.load_module` does."""

    is_validated = False


@functools.cache
def target_of(name: str) -> Any:
    """Return the callable of an operator.

    In validated calls, those that `load_module` refuses by name raise, and the others go through their rule: what still
    dies is not known.
    """
    if not Mode.is_validated:
        return find(name)
    from pt2kit.bridge.operators import resolve
    from pt2kit.bridge.run.validation import validated

    text = f"torch.ops.{name}"
    operator = resolve(text)
    if operator is None:
        return find(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        return validated(operator, args, kwargs, name, frozenset())(*args, **kwargs)

    return call


def operator_names() -> list[str]:
    """Every overload that the dispatcher has, "aten.add.Tensor", sorted; those that write into `out` last."""
    found = []
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = qualified.partition("::")
        name, _, overload = rest.partition(".")
        if namespace not in SKIPPED:
            found.append(f"{namespace}.{name}.{overload or 'default'}")
    return sorted(found, key=lambda name: ("out" in name.rpartition(".")[2], name))


def run(names: list[str], calls: Calls, out: TextIO, seconds: float) -> None:
    """Call operators with hostile arguments, and write what happens as one line of JSON each.

    Args:
        names: the operators, in order.
        calls: valid calls of some.
        out: where lines go; written at once.
        seconds: after which no other operator is begun.
    """
    progress = Progress()
    end = time.monotonic() + seconds
    operator, number, dead = 0, -1, set[tuple[str, str]]()
    while operator < len(names) and time.monotonic() < end:
        progress.tell(operator, number, ("", "start", ""))
        status, said = _fork(partial(_run_all, names, calls, out, progress, operator, number, dead, end))
        at, case, label = progress.told()
        if status == 0:
            return
        if at != operator:
            dead = set()
        name = names[at]
        died = _signal(status)
        alone = 0 if died in SLOW else _fork(partial(_run_one, name, calls, case))[0]
        line = {"op": name, "death": label, "signal": died, "alone": _signal(alone), "case": case}
        _write(out, line | ({"said": said} if said else {}))
        dead.add(label[:2])
        operator, number = at, case
        if len(dead) >= MAX_DEATHS:
            _write(out, {"op": name, "cases": case, "ok": -1, "base": "", "cut": True})
            operator, number, dead = at + 1, -1, set()


def _write(out: TextIO, line: dict[str, Any]) -> None:
    out.write(json.dumps(line) + "\n")
    out.flush()


def _signal(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return "" if status == 0 else f"exit {os.WEXITSTATUS(status)}"


def _fork(work: Any) -> tuple[int, str]:
    """Run something in a child; its exit status and the last line that it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(writing, 2)
        _prepare()
        try:
            work()
        except BaseException as error:  # noqa: BLE001  reported to the parent
            os.write(2, f"{type(error).__name__}: {error}"[:300].encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    os.set_blocking(reading, False)
    said = b""
    last = time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(BlockingIOError):
            while part := os.read(reading, 65536):
                said, last = (said + part)[-400:], time.monotonic()
        if done:
            os.close(reading)
            return status, said.decode(errors="replace").strip().rpartition("\n")[2][:200]
        if time.monotonic() - last > 120:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def _prepare() -> None:
    """Set a child up: limits, guarded memory, no core dumps."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    _guard("guard_on", 1)


def _guard(name: str, value: int) -> None:
    ctypes.c_int.in_dll(ctypes.CDLL(None), name).value = value


def _run_all(
    names: list[str], calls: Calls, out: TextIO, progress: Progress, first: int, number: int, dead: set[Any], end: float
) -> None:
    for operator in range(first, len(names)):
        if time.monotonic() > end:
            return
        state = Counts()
        began = time.process_time()
        after = number if operator == first else -1
        for case_number, case in enumerate(_cases(names[operator], calls, state, dead, progress, operator)):
            if case_number <= after or _is_dead(case, dead):
                continue
            progress.tell(operator, case_number, (case.argument, case.kind, case.detail))
            ended_well = state.ok
            leak = _try(names[operator], case, state)
            if state.ok > ended_well and has_gradients(names[operator]):
                progress.tell(operator, case_number, (case.argument, case.kind, f"backward, {case.detail}"))
                _try_backward(names[operator], case)
            if leak and (case.argument, "leak") not in dead:
                dead.add((case.argument, "leak"))
                _write(out, {"op": names[operator], "leak": [case.argument, case.kind, case.detail]})
            if time.process_time() - began > OPERATOR_SECONDS:
                state.cut = True
                break
        os.write(2, b"\n")  # a sign of life
        _write(out, {"op": names[operator], **vars(state)})
        dead = set()


def _run_one(name: str, calls: Calls, number: int) -> None:
    for case_number, case in enumerate(_cases(name, calls, Counts(), set(), None, 0)):
        if case_number == number:
            _try(name, case, Counts())
            if has_gradients(name):
                _try_backward(name, case)
            return


def _is_dead(case: Case, dead: set[Any]) -> bool:
    if case.kind != "pair":
        return (case.argument, case.kind) in dead
    return any(f"{argument} {kind} " in case.detail for argument, kind in dead if argument)


@dataclass
class Counts:
    """How the calls of one operator went; `base` is the source of its valid calls ("recorded", "relative", "made")."""

    cases: int = 0
    ok: int = 0
    base: str = "none"
    cut: bool = False


def _cases(
    name: str, calls: Calls, state: Counts, dead: set[Any], progress: Progress | None, operator: int
) -> Iterator[Case]:
    """The cases of an operator; the same ones, with the same numbers, each time."""
    target = find(name)
    schema = target._schema
    bases = [*calls.get(name, ())]
    state.base = "recorded" if bases else "none"
    for source, found in (("relative", relatives(name, schema, calls)), ("made", made(schema, name))):
        if bases:
            break
        for number, call in enumerate(found):
            if number >= 100 or len(bases) >= 2:
                break
            if ("base", f"{source} {number}") in dead:
                continue
            if progress is not None:
                progress.tell(operator, -1, ("base", f"{source} {number}", ""))
            if _succeeds(target_of(name), call):
                bases.append(call)
                state.base = source
    if not bases:
        bases = [call for _, call in zip(range(2), made(schema, name), strict=False)]
    for base in bases:
        yield Case("", "valid", "", partial(copy, base))
        yield from cases(schema, base, name)


def _succeeds(target: Any, call: Call) -> bool:
    try:
        with _limited():
            args, kwargs = copy(call)
            target(*args, **kwargs)
    except Exception:  # noqa: BLE001  any refusal is one
        return False
    return True


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, CALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _try(name: str, case: Case, state: Counts) -> bool:
    """Call an operator, and again over other memory if that went well; whether the results follow the memory."""
    call = target_of(name)
    state.cases += 1
    results: list[Any] = []
    for fill in FILLS:
        _guard("guard_fill", fill)
        torch.manual_seed(0)
        try:
            with _limited():
                args, kwargs = case.make()
                result = call(*args, **kwargs)
                results.append(_bytes((result, args, kwargs)))
                del result, args, kwargs
        except Exception:  # noqa: BLE001  any refusal is one
            return False
        state.ok += fill == FILLS[0] and not results[1:]
        if state.ok > MAX_REPEATED or (len(results) == 2 and results[0] == results[1]):
            return False
    return bool(results[0] == results[2])


@functools.cache
def has_gradients(name: str) -> bool:
    """Return whether autograd has a backward kernel for an operator, or decomposes it."""
    qualified, _, overload = name.replace(".", "::", 1).partition(".")
    kinds = ("AutogradCPU", "CompositeImplicitAutograd")
    full = qualified if overload == "default" else f"{qualified}.{overload}"
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(full, kind) for kind in kinds)


def _try_backward(name: str, case: Case) -> None:
    """Call an operator with gradients, and its backward kernels."""
    torch.manual_seed(0)
    try:
        with _limited():
            args, kwargs = pytree.tree_map(_with_gradient, case.make())
            results = [one for one in pytree.tree_leaves(target_of(name)(*args, **kwargs)) if _is_differentiable(one)]
            torch.autograd.backward(results, [torch.ones_like(one) for one in results])
    except Exception:  # noqa: BLE001  any refusal is one
        return


def _with_gradient(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return value.detach().requires_grad_() if is_float else value


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _bytes(value: Any) -> list[Any]:
    """The elements of everything that a call gave or changed, as far as that is quickly read."""
    found: list[Any] = []
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found.append(_elements(leaf.detach()))
        elif isinstance(leaf, (int, float, bool)):
            found.append(repr(leaf))
    return found


def _elements(value: torch.Tensor) -> Any:
    if value.layout is torch.sparse_coo:
        return [_elements(value._indices()), _elements(value._values())]
    if value.is_quantized:
        return _elements(value.int_repr())
    if value.layout is not torch.strided or value.device.type != "cpu" or value.is_nested:
        return None
    if value.numel() > MAX_COMPARED:
        return None
    plain = value.resolve_conj().resolve_neg().contiguous()
    return plain.flatten().view(torch.uint8).numpy().tobytes()


def exit_hard(code: int) -> NoReturn:
    """End without running what torch left to be run."""
    sys.stdout.flush()
    os._exit(code)
