"""Live payloads of a program, and the facts about the program that opening them requires."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from pt2kit import schema


class FakeTensors(Protocol):
    """Makes fake tensors, for payloads that hold some."""

    def tensor(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """Return a new fake tensor of a description; `where` is its place, for messages."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """Live contents of a program in addition to its graph.

    Args:
        state_dict: parameters and persistent buffers.
        constants: lifted constants, non-persistent buffers and custom objects.
        example_inputs: arguments and keyword arguments of the export, or None.
    """

    state_dict: dict[str, Any]
    constants: dict[str, Any]
    example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about the program that opening its payloads requires.

    Args:
        values: makes fake tensors.
        in_spec: the live structure of the inputs.
        sources: where its leaves are in the file's structure; None where the two are the same.
    """

    values: FakeTensors
    in_spec: Any
    sources: tuple[int | None, ...] | None
