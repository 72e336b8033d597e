"""The named tuples of this process by class name, for programs up to schema 5.1, which know nothing else of them."""

from __future__ import annotations

from pt2kit.bridge.torch_names import pytree


def registered_namedtuples() -> dict[str, str]:
    """Class name -> name under which it is registered; a class name that two share is left out."""
    found: dict[str, set[str]] = {}
    for registered, kind in list(pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.items()):
        if isinstance(registered, str) and pytree.is_namedtuple_class(kind):
            found.setdefault(kind.__name__, set()).add(registered)
    return {name: registered.pop() for name, registered in found.items() if len(registered) == 1}
