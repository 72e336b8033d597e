"""Source functions of nodes: the metadata texts `source_fn_stack`, `source_fn` and `torch_fn`, parsed to names and
printed.

    source_fn_stack     name,target;name,target     the functions of the user's code a node comes from, outermost first
    source_fn           name,target                 the same up to torch 2.1, one entry
    torch_fn            name;kind.function          a unique name of the call, and what was called

torch escapes nothing; names with separators are written with percent escapes (see `escapes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pt2kit.errors import SchemaError
from pt2kit.node_metadata.escapes import decode_name, encode_name


@dataclass(frozen=True, slots=True)
class SourceFn:
    """One function of a source_fn_stack.

    Args:
        name: name of the node in the graph that the user's code was captured in.
        target: the function: "torch.nn.modules.linear.Linear", "_operator.add", "relu". A name, never resolved here.
    """

    name: str
    target: str


def parse_source_fn_stack(text: str, where: str = "source_fn_stack") -> tuple[SourceFn, ...]:
    """Return the entries of a source_fn_stack (or of source_fn, which has one); () for an empty text.

    Raises:
        SchemaError: an entry without exactly one comma, which torch does not read either.
    """
    if not text:
        return ()
    entries = []
    for i, piece in enumerate(text.split(";")):
        parts = piece.split(",")
        if len(parts) != 2:
            raise SchemaError(f"{where}: expected entry {i} to be name,target, got {len(parts)} parts: {piece[:80]!a}")
        entries.append(SourceFn(*(decode_name(part, ",;") for part in parts)))
    return tuple(entries)


def dump_source_fn_stack(entries: Sequence[SourceFn]) -> str:
    """Return the text of a source_fn_stack; the same that was parsed."""
    return ";".join(f"{encode_name(entry.name, ',;')},{encode_name(entry.target, ',;')}" for entry in entries)


def parse_torch_fn(text: str) -> tuple[str, ...]:
    """Return the parts of a torch_fn, by convention the name of the call and "kind.function"; () for an empty text."""
    parts = text.split(";") if text else ()
    return tuple(parts) if "%" not in text else tuple(decode_name(part, ";") for part in parts)


def dump_torch_fn(parts: Sequence[str]) -> str:
    """Return the text of a torch_fn; the same that was parsed."""
    return ";".join(encode_name(part, ";") for part in parts)
