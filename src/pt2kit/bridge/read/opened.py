"""What the payloads of a program are when they are live, and what opening them needs to know of the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from pt2kit import schema


class FakeTensors(Protocol):
    """Makes fake tensors, for payloads that hold some."""

    def tensor(self, meta: schema.TensorMeta, where: str) -> torch.Tensor:
        """A new fake tensor of a description; `where` is its place, for messages."""


@dataclass(frozen=True, slots=True)
class Payloads:
    """What a program holds beside its graph, live.

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
    """What opening the payloads needs to know of the program.

    Args:
        values: makes fake tensors.
        in_spec: the live structure of the inputs.
        sources: where its leaves are in the file's structure; None where the two are the same.
    """

    values: FakeTensors
    in_spec: Any
    sources: tuple[int | None, ...] | None
