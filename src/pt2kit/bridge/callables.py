"""Names in a live graph, as the format spells them: callables, nodes that torch's reader renames, custom operator
types.

torch's reader names a node without a result after its operator ("_assert_unused"), whatever its name in the file. A
live program has that name, as torch sets it, and remembers the file's (`StoredName`), so that it can be written again.

Custom operator types are extensions that write and read targets "#namespace:name". An extension defines for one Python
type of `node.target` the names and schemas of its instances. The user registers it before saving and before loading; a
file can only name what is registered. Extensions registered with torch's own `register_extension` are found too.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pt2kit.bridge.torch_names import SYMBOLIC, extension_registry
from pt2kit.errors import UnsupportedError

SYMBOLIC_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    function for target, function in SYMBOLIC.items() if not target.startswith("torch._")
)
"""Functions over symbolic numbers that export puts into a graph, but for private ones."""


def target_text(target: Any) -> str:
    """Return the name of a callable in the format: "torch.ops.aten.add.Tensor", "_operator.mul", "torch.sym_max".

    Args:
        target: an operator, a function, or a text, which is its own name.

    Raises:
        UnsupportedError: an object without a module and a name of its own.

    Source: `serialize_operator` in torch/_export/serde/serialize.py, 2.13.
    """
    if isinstance(target, str):
        return target
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise UnsupportedError(f"expected a callable with a module and a name, got {type(target).__name__}")
    if module.startswith("torch._ops"):  # a generated module that holds the operators of a namespace
        module = f"torch.ops{module.removeprefix('torch._ops')}"
    return f"{module}.{name}"


def describe(target: Any) -> str:
    """Return the name of any callable, for metadata and messages; never fails."""
    try:
        return target_text(target)
    except UnsupportedError:
        owner = getattr(target, "__objclass__", None) or type(target)
        name = getattr(target, "__name__", None) if hasattr(target, "__objclass__") else None
        return ".".join(part for part in (owner.__module__, owner.__qualname__, name) if isinstance(part, str))


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a plain function's parameters, in order; empty if Python does not have them."""
    try:
        return tuple(inspect.signature(function).parameters)
    except ValueError:  # builtins without a text signature
        return ()


class StoredName(str):
    """Name of a live node that also stores its name in the file.

    Attributes:
        stored: the file's name.
    """

    __slots__ = ("stored",)
    stored: str

    def __new__(cls, name: str, stored: str) -> StoredName:
        """Create the name `name`, with `stored` as its name in the file."""
        made = super().__new__(cls, name)
        made.stored = stored
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.stored


def stored_name(node: Any) -> str:
    """Return the name to write for a node: its stored one, unless another node of its graph has that one now."""
    name: str = node.name
    if not isinstance(name, StoredName):
        return name
    return str(name) if any(other.name == name.stored for other in node.graph.nodes) else name.stored


@dataclass(frozen=True, slots=True)
class Extension:
    """Defines how operators of one Python type are written and read.

    Args:
        namespace: the part of the target before the colon; without "#" and ":".
        type: the Python type of the operators, not one of torch's own.
        to_name: operator -> its name, without ":".
        from_name: name -> operator; called with names from files, so it must only look them up.
        schema: operator -> its `torch.FunctionSchema`.
    """

    namespace: str
    type: type
    to_name: Callable[[Any], str]
    from_name: Callable[[str], Any]
    schema: Callable[[Any], Any]

    def target(self, operator: Any) -> str:
        """Return the text that represents an operator in a file.

        Raises:
            UnsupportedError: `to_name` returned text that cannot be part of a target.
        """
        return f"#{self.namespace}:{checked_name(self.to_name(operator), self.namespace)}"


# Registration is an act of the program that uses this package, like importing a module of custom operators. Each one
# replaces the whole mapping, so readers need no lock.
_LOCK = threading.Lock()
_extensions: MappingProxyType[str, Extension] = MappingProxyType({})


def register_extension(extension: Extension) -> None:
    """Register an extension with `save` and `load`, for all threads, until `unregister_extension`.

    Raises:
        UnsupportedError: the namespace or the type is taken, unfit, or torch's own.
    """
    global _extensions
    name, kind = extension.namespace, extension.type
    if not isinstance(name, str) or not name or ":" in name or "#" in name:
        raise UnsupportedError(f"extension: expected a namespace without '#' and ':', got {name!r}")
    if not isinstance(kind, type) or kind.__module__.partition(".")[0] in ("torch", "builtins"):
        raise UnsupportedError(f"extension {name!r}: expected a type outside torch and builtins, got {kind!r}")
    with _LOCK:
        if find_namespace(name) is not None:
            raise UnsupportedError(f"extension {name!r}: expected a free namespace, got one that is registered")
        if find_type(kind) is not None:
            raise UnsupportedError(f"extension {name!r}: expected a free type, got {kind!r}, which is registered")
        _extensions = MappingProxyType({**_extensions, name: extension})


def unregister_extension(namespace: str) -> None:
    """Forget an extension registered here; nothing happens if there is none."""
    global _extensions
    with _LOCK:
        _extensions = MappingProxyType({key: value for key, value in _extensions.items() if key != namespace})


def find_type(kind: type) -> Extension | None:
    """Return the extension for operators of exactly this type."""
    return next((extension for extension in _registered() if extension.type is kind), None)


def find_namespace(namespace: str) -> Extension | None:
    """Return the extension that names with this namespace in a file belong to."""
    return next((extension for extension in _registered() if extension.namespace == namespace), None)


def _registered() -> Iterator[Extension]:
    """Yield the extensions that are registered here, then those of torch's own `register_extension`."""
    yield from _extensions.values()
    for kind, handler in extension_registry().items():
        yield Extension(handler.namespace(), kind, handler.to_op_name, handler.from_op_name, handler.op_schema)


def checked_name(name: Any, namespace: str) -> str:
    """Return the name of an operator, which can be part of a target "#namespace:name".

    Raises:
        UnsupportedError: it cannot.
    """
    if not isinstance(name, str) or ":" in name:
        raise UnsupportedError(f"extension {namespace!r}: expected a name without ':', got {name!r}")
    return name
