"""Custom operator types: extensions that write and read targets "#namespace:name".

An extension defines for one Python type of `node.target` the names and schemas of its instances. The user
registers it before saving and before loading; a file can only name what is registered. Extensions registered with
torch's own `register_extension` are found too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pt2kit.bridge.torch_names import extension_registry
from pt2kit.errors import UnsupportedError


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
        name = self.to_name(operator)
        if not isinstance(name, str) or ":" in name:
            raise UnsupportedError(f"extension {self.namespace!r}: expected a name without ':', got {name!r}")
        return f"#{self.namespace}:{name}"


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
    for extension in _extensions.values():
        if extension.type is kind:
            return extension
    handler = extension_registry().get(kind)
    return None if handler is None else _from_torch(kind, handler)


def find_namespace(namespace: str) -> Extension | None:
    """Return the extension that names with this namespace in a file belong to."""
    extension = _extensions.get(namespace)
    if extension is not None:
        return extension
    for kind, handler in extension_registry().items():
        if handler.namespace() == namespace:
            return _from_torch(kind, handler)
    return None


def find_target(text: str) -> Any:
    """Return the operator that a target "#namespace:name" represents.

    Raises:
        UnsupportedError: not such a text, or nothing is registered under its namespace.
    """
    namespace, colon, name = text[1:].partition(":")
    if not text.startswith("#") or not colon or ":" in name:
        raise UnsupportedError(f"expected a target #namespace:name, got {text[:80]!r}")
    extension = find_namespace(namespace)
    if extension is None:
        raise UnsupportedError(
            f"target {text[:80]!r}: no extension {namespace!r}; call pt2kit.register_extension first"
        )
    return extension.from_name(name)


def _from_torch(kind: type, handler: Any) -> Extension:
    return Extension(handler.namespace(), kind, handler.to_op_name, handler.from_op_name, handler.op_schema)
