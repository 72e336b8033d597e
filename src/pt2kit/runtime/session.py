"""Exported programs run with NumPy, without torch: `Session`, and `run` for one call; inputs and outputs as files.

Files of inputs and outputs are .npy, .npz and .safetensors. Outputs also have short descriptions.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import WeakSet

import numpy as np

from pt2kit import schema
from pt2kit.dataflow.domain import effects_of
from pt2kit.dataflow.engine import changed_inputs
from pt2kit.dataflow.inner_tensors import in_parts
from pt2kit.errors import InputError, OperatorError, PayloadError, UnsupportedError
from pt2kit.graph.traversal import is_custom, walk
from pt2kit.messages import printable, quote
from pt2kit.package.open import Package, opened
from pt2kit.runtime.arrays import RUNNING, Array, DType, Running
from pt2kit.runtime.execution import Observer, Plan
from pt2kit.runtime.inputs import Convention, InputSpec, convention_of, random_inputs
from pt2kit.runtime.plan import check_operators, prepare
from pt2kit.runtime.table import write
from pt2kit.schema import ScalarType
from pt2kit.schema.versions import release_of
from pt2kit.signature.export_signature import from_schema
from pt2kit.signature.specs import InputKind, OutputKind
from pt2kit.tensors.safetensors_file import read_safetensors, to_safetensors
from pt2kit.tensors.view import TensorView, view_of_array
from pt2kit.treespec.values import Node
from pt2kit.zip.listing import FileLike
from pt2kit.zip.reader import Storage
from pt2kit.zip.source import Source

if TYPE_CHECKING:
    from pt2kit.runtime.jax_engine import JaxExecutable


DEFAULT_BYTES: Final = 1 << 36
SMALL_BYTES: Final = 1 << 20
_GRADIENTS: Final = (OutputKind.GRADIENT_TO_PARAMETER, OutputKind.GRADIENT_TO_USER_INPUT)
_WRITES_STATE: Final = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)

SAFETENSORS: Final = ".safetensors"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one call of a session.

    Args:
        max_bytes: bytes that one array may have; no larger one is allocated.
        max_seconds: seconds that a call may take, checked between nodes; None for any time.
    """

    max_bytes: int = DEFAULT_BYTES
    max_seconds: float | None = None


DEFAULT_RUN_LIMITS: Final = RunLimits()


class Session:
    """A program that can be called with NumPy arrays. Nothing in its file is executed; torch is not needed.

    It is made for tests, audits, reference results and small machines, not for speed on large models. Results agree
    with torch's within the tolerances of `torch.testing.assert_close`; random operators follow the same distributions
    with other numbers.

    Args:
        file: what `pt2kit.open` accepts, or an open package, which stays open.
        model: the program; by default the only one, or "model".
        backend: "numpy", or "jax", which compiles the program (`pip install 'pt2kit[jax]'`).
        limits: what one call may cost.
        seed: of random operators; None for a new one.

    Raises:
        OSError, Pt2Error: the file cannot be read.
        UnsupportedError: operators without a kernel, listed with the numbers of their nodes; custom objects.

    Examples:
        session = pt2kit.Session("model.pt2")
        logits = session(np.zeros((1, 3, 224, 224), np.float32))
    """

    def __init__(
        self,
        file: FileLike | Source | Package,
        *,
        model: str | None = None,
        backend: str = "numpy",
        limits: RunLimits = DEFAULT_RUN_LIMITS,
        seed: int | None = None,
    ) -> None:
        if backend not in ("numpy", "jax"):
            raise UnsupportedError(f"backend: expected numpy or jax, got {quote(backend)}")
        if seed is not None and seed < 0:
            raise UnsupportedError(f"seed: expected a number of at least 0, got {seed}")
        self._backend = backend
        self._limits = limits
        self._lock = threading.RLock()
        _SESSIONS.add(self)
        self._random = np.random.default_rng(seed)
        with opened(file) as package:
            self._load(package, model)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Args:
            args, kwargs: as the program was exported: arrays for tensors (`ml_dtypes` for bfloat16 and 8-bit floats),
                numbers, None, texts, and containers of these. An array that the program writes to is changed.

        Returns:
            Arrays and numbers in the program's containers. Named tuples and containers of libraries that are not
            installed are placeholders with the same fields. A program with a loss also returns a dict of gradients.

        Raises:
            InputError: inputs that the program does not take.
            OperatorError: an operator refuses its operands; the message names the node.
            LimitError: an array, or the time, is more than `limits` allow.
        """
        return self._run(self._convention.leaves(args, kwargs))

    def run_leaves(self, values: Sequence[Any], observe: Observer | None = None) -> Any:
        """Run the program with one value per entry of `inputs`, without its containers.

        Args:
            values: the inputs.
            observe: called after each node of the root graph with its number, the values that it returned, and its
                arguments by their names or places.

        Raises:
            InputError, OperatorError, LimitError: as a call.
            UnsupportedError: nodes are to be observed with another backend than "numpy".
        """
        return self._run(self._convention.checked(values), observe)

    def _run(self, leaves: Sequence[Any], observe: Observer | None = None) -> Any:
        seconds = self._limits.max_seconds
        deadline = None if seconds is None else monotonic() + seconds
        # One call at a time: buffers may change, and the generator of random numbers does.
        with self._lock, np.errstate(all="ignore"):
            token = RUNNING.set(Running(self._limits.max_bytes, self._random, deadline))
            try:
                results = self._graph(*self._arguments(leaves), observe=observe)
                return self._finish(results, leaves)
            finally:
                RUNNING.reset(token)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "expected an object that can be pickled or copied, got a Session: pass the path of its file on and make "
            "another one there"
        )

    @staticmethod
    def _renew_locks() -> None:
        """Release all sessions in the child of a fork: the threads that call them do not exist there."""
        for session in _SESSIONS:
            session._lock = threading.RLock()

    @property
    def inputs(self) -> Sequence[InputSpec]:
        """Return the values that the caller passes, in the order of the graph: names, element types and sizes."""
        return self._convention.inputs

    @property
    def convention(self) -> Convention:
        """Return the call signature of the program."""
        return self._convention

    @property
    def state(self) -> Mapping[str, Array]:
        """Return name -> array of each parameter, buffer and constant of the program; buffers are those of the last
        call."""
        return dict(self._state)

    def stablehlo(self, values: Sequence[Any]) -> str:
        """Return the program as the text of a StableHLO module, for inputs of the sizes of some values.

        Parameters, buffers and inputs are its arguments, listed in comments at its beginning. What the program asserts
        about numbers is left out.

        Args:
            values: one value per entry of `inputs`.

        Raises:
            UnsupportedError: an operator that jax cannot run, or a session with another backend.
        """
        if self._backend != "jax":
            raise UnsupportedError(f"stablehlo: expected a session with the backend jax, got {self._backend}")
        names = [str(spec.target or spec.arg.name) for spec in self._inputs]
        return str(self._graph.stablehlo(self._arguments(self._convention.checked(values)), names))

    def _load(self, package: Package, model: str | None) -> None:
        chosen = package.choose(model)
        payloads: ChainMap[str, Any] = ChainMap(package.weights(chosen), package.constants(chosen))  # type: ignore[arg-type]
        program, parts = in_parts(package.programs[chosen], payloads)
        payloads.maps[:0] = parts.values()
        check_operators(program, package.name)
        signature = from_schema(program.graph_module)
        graph = program.graph_module.graph
        self._inputs = signature.input_specs
        self._outputs = signature.output_specs
        users = [a for a, spec in zip(graph.inputs, self._inputs, strict=True) if spec.kind is InputKind.USER_INPUT]
        self._convention = convention_of(program, users)
        plan = prepare(graph, "$.graph_module.graph", release_of(program.torch_version))
        self._state = self._read_state(package.name, payloads, program)
        self._graph: Any = self._compiled(plan) if self._backend == "jax" else plan

    def _compiled(self, plan: Plan) -> JaxExecutable:
        """Return the program as jax runs it, traced for the sizes that it was exported with.

        Raises:
            UnsupportedError: jax is not installed, or cannot run an operator.
        """
        try:
            from pt2kit.runtime.jax_engine import JaxExecutable
        except ImportError as error:
            message = f"expected the package {error.name}, which is not installed: pip install 'pt2kit[jax]'"
            raise UnsupportedError(f"jax: {message}") from error
        # Tensors that are not written to; small constants become a part of the compiled program.
        held = {
            place: spec.kind is InputKind.CONSTANT_TENSOR and self._state[spec.target].nbytes <= SMALL_BYTES
            for place, spec in enumerate(self._inputs)
            if spec.target is not None and not self._state[spec.target].flags.writeable
        }
        constants = [place for place, is_part in held.items() if is_part]
        compiled = JaxExecutable(plan, held.keys(), constants, self._limits.max_bytes)
        # A program that does not accept the example is traced when it is called.
        with contextlib.suppress(InputError, OperatorError):
            compiled.traced(self._arguments(random_inputs(self._convention)))
        return compiled

    def _read_state(self, where: str, payloads: Mapping[str, Any], program: schema.ExportedProgram) -> dict[str, Array]:
        """Return the tensors of the program; those that may be written to are copies of the file's.

        Storages are copied, not tensors: a write reaches all tensors that share one.
        """
        written = {spec.target for spec in self._outputs if spec.kind in _WRITES_STATE}
        copied = bool(written)
        if _calls_writers(program):
            copied, changed = True, changed_inputs(program)
            written |= {spec.target for spec in self._inputs if spec.arg.name in changed}
        views: dict[str, TensorView] = {}
        copies: dict[Storage, memoryview] = {}
        for spec in self._inputs:
            if spec.target is None:
                continue
            if spec.target not in payloads:
                raise PayloadError(f"{where}: expected the tensor {quote(spec.target)}, got a file without it")
            views[spec.target] = view = _dense(payloads[spec.target])
            if copied and (spec.kind is not InputKind.PARAMETER or spec.target in written):
                copies[view.storage] = copies.get(view.storage) or memoryview(bytearray(view.storage.read()))
        return {name: _array_of(view, copies.get(view.storage)) for name, view in views.items()}

    def _arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """Return a value for each graph input."""
        users = iter(leaves)
        held: Mapping[Any, Array] = self._state  # tokens have no name, and no value
        return [next(users) if spec.kind is InputKind.USER_INPUT else held.get(spec.target) for spec in self._inputs]

    def _finish(self, results: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """Write mutations back, and return the outputs for the caller; of a joint graph also its gradients, by name."""
        users = (spec.arg.name for spec in self._inputs if spec.kind is InputKind.USER_INPUT)
        given = dict(zip(users, leaves, strict=True))
        outputs: list[Any] = []
        gradients: dict[str, Any] = {}
        for spec, value in zip(self._outputs, results, strict=True):
            name = str(spec.target)
            if spec.kind in _WRITES_STATE or spec.kind is OutputKind.USER_INPUT_MUTATION:
                target = (self._state if spec.kind in _WRITES_STATE else given)[name]
                if not target.flags.writeable:  # state that is written is a copy of the file's
                    raise InputError(
                        f"input {printable(name)}: expected an array that can be written to, got a read-only one"
                    )
                if target is not value:
                    write(target, value)
            elif spec.kind in _GRADIENTS:
                gradients[name] = self._own(value)
            elif spec.kind is not OutputKind.TOKEN:
                outputs.append(value)
        returned = self._convention.outputs([self._own(value) for value in outputs])
        return (returned, gradients) if gradients else returned

    def _own(self, value: Any) -> Any:
        """Return an output that no later call changes."""
        if isinstance(value, np.ndarray) and any(
            np.may_share_memory(value, one) for one in self._state.values() if one.flags.writeable
        ):
            return value.copy()
        return value


_SESSIONS: Final[WeakSet[Session]] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Session._renew_locks)


def _calls_writers(program: schema.ExportedProgram) -> bool:
    """Return whether a program calls operators that write to their operands, or may do so."""
    release = release_of(program.torch_version)
    targets = {step.node.target for step in walk(program)}
    return any(is_custom(target) or effects_of(target, release).written for target in targets)


def _dense(payload: Any) -> TensorView:
    """Return a tensor of a file; sparse tensors become dense.

    Raises:
        UnsupportedError: a payload that is no tensor of numbers.
    """
    if not hasattr(payload, "dense"):
        raise UnsupportedError(
            f"{quote(getattr(payload, 'name', '?'))}: expected a tensor, got {type(payload).__name__}"
        )
    view: TensorView = payload.dense()
    return view


def _array_of(view: TensorView, copy: memoryview | None) -> Array:
    """Return a tensor as an array, over a copy of its storage if there is one; the array can be written to then."""
    data = view.storage.read() if copy is None else copy
    array = view.over(data, upcast=view.dtype is ScalarType.COMPLEXHALF)
    return array if copy is None or array.flags.writeable else array.copy(order="K")


def run(file: FileLike | Source | Package, /, *args: Any, **kwargs: Any) -> Any:
    """Run a program once with NumPy, without torch: `Session(file)(*args, **kwargs)`.

    Args:
        file: what `pt2kit.open` accepts, or an open package.
        args, kwargs: as in `Session.__call__`.

    Raises:
        OSError, Pt2Error: as `Session` and `Session.__call__`.
    """
    return Session(file)(*args, **kwargs)


def read_array(path: str) -> Any:
    """Return the array in a .npy file. Pickled objects are refused.

    Raises:
        InputError: no such file, or no array of numbers.
    """
    with _refusing(path):
        array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise InputError(f"{printable(path, 300)}: expected a NumPy file, got an archive of several arrays")
    return array


def read_arrays(path: str) -> dict[str, Any]:
    """Return the arrays in an .npz or .safetensors file by name. Pickled objects are refused.

    Raises:
        InputError: no such file, or no arrays of numbers.
        PayloadError: no safetensors file.
    """
    if path.endswith(SAFETENSORS):
        return {name: view.numpy() for name, view in read_safetensors(path).items()}
    with _refusing(path), np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_outputs(path: str) -> list[Any]:
    """Return recorded outputs as a list: output_0, output_1, … of an .npz or .safetensors file, or of a folder.

    Raises:
        InputError: no such files.
        PayloadError: no safetensors file.
    """
    folder = Path(path)
    if folder.is_dir():
        found = {file.stem: read_array(str(file)) for file in folder.glob("output_*.npy")}
    else:
        found = read_arrays(path)
    names = [f"output_{number}" for number in range(len(found))]
    if not found or set(names) != set(found):
        raise InputError(
            f"{printable(path, 300)}: expected output_0, output_1, …, got {', '.join(sorted(found)[:20]) or 'none'}"
        )
    return [found[name] for name in names]


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, EOFError, AttributeError, TypeError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{printable(path, 300)}: {error.strerror}") from error
        # NumPy takes whatever it does not know for a pickle, and recommends to load that.
        got = "another kind of file, or Python objects" if "pickle" in str(error) else printable(str(error), 300)
        raise InputError(f"{printable(path, 300)}: expected a NumPy file, got {got}") from error


def typed(value: Any, dtype: DType | None) -> Any:
    """Return a value read from a file in the element type that an input has.

    Types that NumPy lacks (bfloat16, 8-bit floats) are stored as bits: unsigned integers of the same size. A number
    that an integer type does not hold keeps its own type, which the program refuses.
    """
    if dtype is None or value is None:
        return value
    if not isinstance(value, np.ndarray):
        with contextlib.suppress(OverflowError):
            array = np.asarray(value, dtype)
            if array == value or dtype.kind not in "biu":
                return array
        return np.asarray(value)
    is_bits = value.dtype.kind in "uV" and value.dtype.itemsize == dtype.itemsize
    return value.view(dtype) if is_bits and is_foreign(dtype) else value


def as_recorded(value: Any, computed: Any) -> Any:
    """Return an output that was read from a file, as `write_outputs` writes it, in the form of a computed one."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "U":
        return str(value) or (None if computed is None else "")
    return typed(value, computed.dtype) if isinstance(computed, np.ndarray) else value


def is_foreign(dtype: DType) -> bool:
    """Return whether NumPy's own files cannot name an element type."""
    return dtype.type.__module__ != "numpy"


def output_leaves(tree: Any) -> list[Any]:
    """Return the values in the containers of an output, in order."""
    parts = tree.children if isinstance(tree, Node) else tree
    if isinstance(parts, Mapping):
        parts = tuple(parts.values())
    if isinstance(parts, Sequence) and not isinstance(parts, str):
        return [leaf for part in parts for leaf in output_leaves(part)]
    return [parts]


def write_outputs(outputs: Sequence[Any], target: str) -> list[str]:
    """Write each output to output_0.npy, output_1.npy, … in a folder, or all to one .safetensors file.

    Returns:
        The path of each output.

    Raises:
        OSError: a file cannot be written.
        UnsupportedError: an element type that safetensors does not have.
    """
    named = {f"output_{number}": value for number, value in enumerate(outputs)}
    if target.endswith(SAFETENSORS):
        to_safetensors({name: view_of_array(name, value, name) for name, value in named.items()}, target)
        return [target] * len(named)
    paths = {name: Path(target, f"{name}.npy") for name in named}
    Path(target).mkdir(parents=True, exist_ok=True)
    for name, value in named.items():
        array = np.asarray("" if value is None else value)
        bits = array.view(f"u{array.dtype.itemsize}") if is_foreign(array.dtype) else array
        np.save(paths[name], bits, allow_pickle=False)
    return [*map(str, paths.values())]


def output_row(value: Any) -> dict[str, Any]:
    """Return the description of an output for scripts: element type and sizes, or the value of a number."""
    if not isinstance(value, np.ndarray):
        return {"value": value}
    return {"dtype": value.dtype.name, "sizes": list(value.shape)}


def describe_output(value: Any) -> str:
    """Return element type, sizes and range of an output in one line."""
    if not isinstance(value, np.ndarray):
        return printable(repr(value), 200)
    shown = f"{value.dtype.name}{list(value.shape)}"
    if not value.size or value.dtype.kind == "c":
        return shown
    wide = value.astype(np.float64)
    return f"{shown}  min {wide.min():.6g}  mean {wide.mean():.6g}  max {wide.max():.6g}"
