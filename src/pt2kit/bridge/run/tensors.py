"""The tensors and objects of a program -> attributes of a module, as the module of an exported program has them.

Source: `_assign_attr` in torch/export/unflatten.py, `_create_stateful_graph_module` in torch/export/_unlift.py, 2.13.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch

from pt2kit import signature as twin
from pt2kit.signature.specs import InputKind


def place_tensors(
    root: torch.nn.Module,
    signature: twin.ExportGraphSignature,
    state_dict: Mapping[str, Any],
    constants: Mapping[str, Any],
) -> None:
    """Give a module the parameters, buffers and constants of a program, under their names.

    Args:
        root: the module.
        signature: says what each is.
        state_dict: parameters and persistent buffers, live; shared with the module.
        constants: everything else that is live; shared.

    Constants are plain attributes, which neither move nor appear in the state dict. A constant that asks for gradients
    is detached, with a warning.
    """
    detached: dict[int, torch.Tensor] = {}
    owners = _Owners(root)
    for spec in signature.input_specs:
        name = spec.target
        if name is None:
            continue
        owner, field = owners.find(name)
        if spec.kind is InputKind.PARAMETER:
            owner.register_parameter(field, state_dict[name])
        elif spec.kind is InputKind.BUFFER:
            is_stored = bool(spec.persistent) and name in state_dict
            value = state_dict[name] if is_stored else constants[name]
            owner.register_buffer(field, value, persistent=bool(spec.persistent))
        else:
            setattr(owner, field, _constant(name, constants[name], detached))
    lifted = {spec.target for spec in signature.input_specs}
    for name, value in constants.items():
        if name not in lifted:
            owner, field = owners.find(name)
            if not hasattr(owner, field):
                setattr(owner, field, _constant(name, value, detached))


class _Owners:
    """The modules that attributes belong to, made if need be."""

    def __init__(self, root: torch.nn.Module) -> None:
        self._known = {"": root}

    def find(self, path: str) -> tuple[torch.nn.Module, str]:
        """The module of an attribute, and the attribute's own name."""
        parent, _, field = path.rpartition(".")
        module = self._known.get(parent)
        if module is None:
            owner, name = self.find(parent)
            module = self._known[parent] = torch.nn.Module()
            owner.add_module(name, module)
        return module, field


def _constant(name: str, value: Any, detached: dict[int, torch.Tensor]) -> Any:
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return value
    warnings.warn(f"the constant {name!r} requires gradient and is no parameter: it is detached", stacklevel=2)
    if id(value) not in detached:
        detached[id(value)] = value.detach()
    return detached[id(value)]
