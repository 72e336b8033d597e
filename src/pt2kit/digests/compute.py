"""Digests of a package or program: computation (`Digest`), and verification against an expected one.

The digests of graph, signature, constraints and metadata read no tensors. They are of the program's normal form
(`canonical.canonicalize`), with the order around nodes that may write kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pt2kit import codec, schema
from pt2kit.canonical.form import graph_digest
from pt2kit.canonical.program import canonicalize, sort_inputs
from pt2kit.digests.payloads import Hasher, Payloads, digest_payloads
from pt2kit.digests.result import (
    DEFINITION,
    OLDER,
    PARTS,
    TABLES,
    Digest,
    Mismatch,
    compare,
    definition_of,
    hash_value,
    read_expected,
    text,
)
from pt2kit.errors import UnsupportedError
from pt2kit.graph.traversal import graphs
from pt2kit.package import record_names as names
from pt2kit.package.open import Package, opened
from pt2kit.tensors.export import AnyView
from pt2kit.tensors.opaque import OpaquePayload
from pt2kit.zip.listing import FileLike
from pt2kit.zip.source import Progress, no_progress

PROGRAM_PARTS: Final = ("graph", "signature", "constraints", "metadata")
TABLE_OF: Final[Mapping[str, str]] = MappingProxyType({"weights": "tensors", "constants": "constant_tensors"})


def program_parts(
    program: schema.ExportedProgram, unknown: Sequence[codec.Unknown] = (), definition: int = DEFINITION
) -> dict[str, bytes]:
    """Digest a program without its tensors.

    Args:
        program: any program of the current schema version.
        unknown: keys that this build does not know, as they were read with the program. They may mean anything, so
            they count as part of the graph, with the places where they stood.
        definition: the number of the definition to follow.

    Returns:
        part -> its digest, 32 bytes; the parts are `PROGRAM_PARTS`.

    Raises:
        GraphError, LimitError: the program has no normal form.

    Cost: linear; 10,000 nodes take half a second.
    """
    form = canonicalize(program, keep_metadata=True, keep_write_order=True, as_reloaded=definition > 2)
    module = form.graph_module
    graph = {
        "graph": graph_digest(module.graph),
        "opset_version": form.opset_version,
        "verifiers": form.verifiers,
        **({"unknown": {str(key): key.value for key in unknown}} if unknown else {}),
    }
    signature = {
        "signature": module.signature,
        "arguments": _arguments(program.graph_module),
        "module_call_graph": module.module_call_graph,
        "treespec_namedtuple_fields": module.treespec_namedtuple_fields,
    }
    constraints = {"range_constraints": form.range_constraints, "guards_code": form.guards_code}
    metadata = {
        "nodes": [[node.metadata for node in scope.graph.nodes] for scope in graphs(form)],
        "metadata": program.graph_module.metadata,
        "torch_version": form.torch_version,
    }
    return {
        "graph": hash_value("program graph", graph),
        "signature": hash_value("signature", signature),
        "constraints": hash_value("constraints", constraints),
        "metadata": hash_value("metadata", metadata),
    }


def _arguments(module: schema.GraphModule) -> list[int]:
    """Return the positions, in the normal form, of the inputs that a caller passes, in the order in which they are
    passed.

    The normal form puts constant inputs behind the others, and so forgets their places.
    """
    place = {position: place for place, position in enumerate(sort_inputs(module))}
    return [
        place[position]
        for position, spec in enumerate(module.signature.input_specs)
        if spec.type in ("user_input", "constant_input")
    ]


def digest(package: Package | FileLike, model: str | None = None, *, progress: Progress = no_progress) -> Digest:
    """Digest one program of a package: its parts, its tensors, and all of it.

    Two files have one `program` digest if and only if they hold the same program: however the archive is packed,
    records are numbered, values are named and nodes are ordered, and whatever stack traces they carry.

    Args:
        package: an open package, or a file, which is opened and closed.
        model: which program; by default the only one, or "model".
        progress: called with the bytes of tensors done and in all.

    Raises:
        ArchiveError: no such program.
        OSError, Pt2Error: the file cannot be read, or the program has no normal form.

    Cost: reads every tensor once, in pieces; a deflated record is held whole while it is hashed.
    """
    with opened(package) as source:
        return Digest(**digest_parts(source, PARTS, model, progress=progress))


def digest_program(program: schema.ExportedProgram) -> dict[str, str]:
    """Digest a program that comes without its tensors.

    Returns:
        "graph", "signature", "constraints" and "metadata" -> digest.

    Raises:
        GraphError, LimitError: the program has no normal form.
    """
    return {part: text(one) for part, one in program_parts(program).items()}


def verify(
    package: Package | FileLike,
    expected: Digest | Mapping[str, Any],
    model: str | None = None,
    *,
    parts: Iterable[str] | None = None,
    tensors: Iterable[str] | None = None,
    progress: Progress = no_progress,
) -> list[Mismatch]:
    """Compare a program with expected digests, all of them or some.

    Args:
        package: an open package, or a file, which is opened and closed.
        expected: a `Digest`, or what its `to_tree` gives, or a part of that: `{"program": "sha256:…"}`. Digests of an
            older definition are compared by that definition; those that do not state theirs, by each.
        model: which program; by default the only one, or "model".
        parts: the parts to compare ("graph", "weights", …); by default all that `expected` has. With "weights" and
            "constants" their tensors are compared by name, too.
        tensors: names of weights and constants to compare, and nothing else unless in `parts`; no others are read.
        progress: called with the bytes of tensors done and in all.

    Returns:
        what differs; nothing where all is as expected.

    Raises:
        ArchiveError: no such program.
        UnsupportedError: `expected` is malformed, or lacks what was asked for.
        OSError, Pt2Error: the file cannot be read, or the program has no normal form.
    """
    stated = expected.to_tree() if isinstance(expected, Digest) else expected
    tree = read_expected(stated, "expected digests")
    number = definition_of(stated, "expected digests")
    wanted = tuple(part for part in PARTS if part in tree) if parts is None and tensors is None else tuple(parts or ())
    if missing := [part for part in wanted if part not in tree]:
        raise UnsupportedError(f"expected digests: expected that of {missing[0]!r}, got none")
    asked = {part: tree[part] for part in wanted}
    asked |= {table: tree[table] for part, table in TABLE_OF.items() if part in wanted and table in tree}
    found: list[list[Mismatch]] = []
    with opened(package) as source:
        for definition in (DEFINITION, *OLDER) if number is None else (number,):
            got = digest_parts(source, wanted, model, progress=progress, definition=definition) if wanted else {}
            mismatches = compare(asked, got)
            if tensors is not None:
                mismatches += _verify_tensors(source, source.choose(model), tree, list(tensors), progress, definition)
            if not mismatches:
                return []
            found.append(mismatches)
    return found[0]


def digest_parts(
    package: Package,
    wanted: Iterable[str],
    model: str | None = None,
    *,
    progress: Progress = no_progress,
    definition: int = DEFINITION,
) -> dict[str, Any]:
    """Digest some parts of a program, reading no tensors that they don't need.

    Args:
        package: an open package.
        wanted: parts by name ("graph", "weights", …).
        model: which program; by default the only one, or "model".
        progress: called with the bytes of tensors done and in all.
        definition: the number of the definition to follow.

    Returns:
        part -> digest, of those that were asked for and those that came along; with weights or constants their tables.

    Raises:
        ArchiveError: no such program.
        Pt2Error: as `digest`.
    """
    model, wanted = package.choose(model), frozenset(wanted)
    tables: dict[str, Any] = {}
    raw: dict[str, bytes] = {}
    everything = "program" in wanted
    if everything or wanted & set(PROGRAM_PARTS):
        stored = package.stored[model]
        raw |= program_parts(stored.program, stored.unknown, definition)
    kinds = [kind for kind in TABLE_OF if everything or kind in wanted]
    for kind, payloads in _payloads(package, model, kinds, progress, definition).items():
        raw[kind] = payloads.digest
        tables[TABLE_OF[kind]] = {name: text(one) for name, one in payloads.by_name.items()}
    if everything:
        raw["program"] = hash_value(
            "program", {part: raw[part] for part in PARTS if part not in ("program", "metadata")}
        )
    return tables | {part: text(one) for part, one in raw.items()}


def _payloads(
    package: Package, model: str, kinds: list[str], progress: Progress, definition: int
) -> dict[str, Payloads]:
    by_kind = {kind: payloads_of(package, model, kind) for kind in kinds}
    hasher = Hasher([payload for payloads in by_kind.values() for payload in payloads.values()], progress, definition)
    unknown = unknown_in_configs(package, model) if kinds else {}
    return {kind: digest_payloads(payloads, hasher, unknown.get(kind)) for kind, payloads in by_kind.items()}


def payloads_of(package: Package, model: str, kind: str) -> Mapping[str, AnyView]:
    """Return the weights or the constants of a model by what they mean: pickled tensors of plain data as those
    tensors."""
    payloads = package.weights(model) if kind == "weights" else package.constants(model)
    return {name: one.meaning() if isinstance(one, OpaquePayload) else one for name, one in payloads.items()}


def unknown_in_configs(package: Package, model: str) -> dict[str, dict[str, Any]]:
    """Return kind of payload -> unknown keys of its config in this build; kinds without any are omitted."""
    by_kind = {}
    for kind in TABLE_OF:
        config = names.payload_config(model, kind)
        if any(place.startswith(f"{config}: ") for place in package.unknown(model)):
            data = package.archive.read(package.layout.record(config))
            keys = codec.decode(data, schema.PayloadConfig, config).unknown
            by_kind[kind] = {str(key): key.value for key in keys}
    return by_kind


def _verify_tensors(
    package: Package, model: str, tree: Mapping[str, Any], wanted: list[str], progress: Progress, definition: int
) -> list[Mismatch]:
    """Compare single tensors, reading no others."""
    if missing := [name for name in wanted if not any(name in tree.get(table, ()) for table in TABLES)]:
        raise UnsupportedError(f"expected digests: expected that of tensor {missing[0][:80]!r}, got none")
    asked = {table: {name: tree[table][name] for name in wanted if name in tree.get(table, ())} for table in TABLES}
    there = {}
    for kind, table in TABLE_OF.items():
        payloads = payloads_of(package, model, kind)
        there[table] = {name: payloads[name] for name in asked[table] if name in payloads}
    hasher = Hasher([one for payloads in there.values() for one in payloads.values()], progress, definition)
    got = {table: {name: text(hasher.leaf(one)) for name, one in there[table].items()} for table in TABLES}
    return compare(asked, got)
