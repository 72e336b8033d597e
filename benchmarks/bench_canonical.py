"""Normal forms and digests: a program -> the same program in normal form, a file -> its digests; against torch."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

from benchmarks import measure, programs
from benchmarks.harness import AtMost, Bench, Limit, Measured, Settings, TimesBetter

NODES = 100_000
QUICK_NODES = 5_000
LAYER = 10
"""Nodes of one layer of the large program."""

OPERATORS = ("linear", "mul", "sin", "relu", "add", "transpose", "matmul", "softmax", "mul", "add")


def our_classes() -> Any:
    """Return our schema's classes for `large_program`."""
    from pt2kit import schema

    return SimpleNamespace(**vars(schema), make=lambda cls, **held: cls(**held))


def torch_classes() -> Any:
    """Return torch's schema classes for `large_program`."""
    from torch._export.serde import schema

    return SimpleNamespace(**vars(schema), make=lambda cls, **held: cls.create(**held))


def large_program(s: Any, count: int) -> Any:
    """A program of `count` nodes in layers, each with a parameter, a residual connection and nodes of equal rank."""

    def tensor(name: str) -> Any:
        return s.make(s.Argument, as_tensor=s.TensorArgument(name=name))

    one = s.make(s.SymInt, as_int=8)
    meta = s.TensorMeta(
        dtype=s.ScalarType.FLOAT, sizes=[one, one], requires_grad=False, device=s.Device(type="cpu", index=None),
        strides=[one, s.make(s.SymInt, as_int=1)], storage_offset=s.make(s.SymInt, as_int=0), layout=s.Layout.Strided,
    )  # fmt: skip
    layers = count // LAYER
    weights = [f"w{n}" for n in range(layers)]
    nodes, last = [], "x"
    for number in range(layers * LAYER):
        layer, place = divmod(number, LAYER)
        used = [
            last if place < 4 else f"v{number - 4}",
            weights[layer] if place == 0 else f"v{number - 1}" if number else "x",
        ]
        named = [
            s.NamedArgument(name=f"a{n}", arg=tensor(name), kind=s.ArgumentKind.POSITIONAL)
            for n, name in enumerate(used)
        ]
        named.append(s.NamedArgument(name="k", arg=s.make(s.Argument, as_int=place), kind=s.ArgumentKind.POSITIONAL))
        nodes.append(
            s.Node(
                target=f"torch.ops.aten.{OPERATORS[place]}.default", inputs=named, outputs=[tensor(f"v{number}")],
                metadata={}, is_hop_single_tensor_return=None, name=f"v{number}",
            )
        )  # fmt: skip
        last = f"v{number}" if place == LAYER - 1 else last
    values = [*weights, "x", *(f"v{number}" for number in range(len(nodes)))]
    graph = s.Graph(
        inputs=[tensor(name) for name in (*weights, "x")], outputs=[tensor(last)], nodes=nodes,
        tensor_values=dict.fromkeys(values, meta), sym_int_values={}, sym_bool_values={},
    )  # fmt: skip
    inputs = [
        s.make(s.InputSpec, parameter=s.InputToParameterSpec(arg=s.TensorArgument(name=name), parameter_name=name))
        for name in weights
    ]
    inputs.append(s.make(s.InputSpec, user_input=s.UserInputSpec(arg=tensor("x"))))
    outputs = [s.make(s.OutputSpec, user_output=s.UserOutputSpec(arg=tensor(last)))]
    signature = s.GraphSignature(input_specs=inputs, output_specs=outputs)
    module = s.GraphModule(graph=graph, signature=signature, module_call_graph=[], metadata={})
    version = s.SchemaVersion(major=8, minor=20)
    return s.ExportedProgram(
        graph_module=module, opset_version={"aten": 10}, range_constraints={}, schema_version=version,
        verifiers=[], torch_version="2.13.0", guards_code=[],
    )  # fmt: skip


def canonical_vs_torch(settings: Settings) -> Measured:
    from torch._export.serde.serialize import canonicalize as by_torch

    from pt2kit import canonicalize

    count = QUICK_NODES if settings.quick else NODES
    mine, theirs = large_program(our_classes(), count), large_program(torch_classes(), count)
    ours, reference = measure.alternate(
        lambda: canonicalize(mine), lambda: by_torch(theirs), rounds=settings.rounds(3), reference_rounds=1
    )
    small = large_program(our_classes(), QUICK_NODES), large_program(torch_classes(), QUICK_NODES)
    targets = [
        [node.target for node in program.graph_module.graph.nodes]
        for program in (canonicalize(small[0]), by_torch(small[1]))
    ]
    same = targets[0] == targets[1]
    return Measured(
        ours, reference, note=f"{count:,} nodes, {'the same order' if same else 'ANOTHER ORDER'} as torch's"
    )


def canonical_growth(settings: Settings) -> Measured:
    """Time per node of a program of ten times as many nodes."""
    from pt2kit import canonicalize

    few, many = (2_000, 20_000) if settings.quick else (10_000, 100_000)
    small, large = large_program(our_classes(), few), large_program(our_classes(), many)
    ours, reference = measure.alternate(
        lambda: canonicalize(large), lambda: canonicalize(small), rounds=settings.rounds(3)
    )
    return Measured(ours / many, reference / few, note=f"per node, {many:,} nodes against {few:,}")


def digest_program(settings: Settings) -> Measured:
    from pt2kit.digests import digest_program as digest
    from pt2kit.package.open import open_package

    with open_package(programs.path("transformer_2700")) as package:
        program = package.programs["model"]
    ours = measure.best(lambda: digest(program), rounds=settings.rounds(10))
    return Measured(ours, note=f"{programs.facts('transformer_2700')['nodes']} nodes, without weights")


def digest_weights(settings: Settings) -> Measured:
    """Digests of all weights, against the plain SHA-256 of the file's bytes."""
    import hashlib
    import mmap

    from pt2kit import digest

    file = programs.path("weights_256mb")

    def plain() -> None:
        with open(file, "rb") as held, mmap.mmap(held.fileno(), 0, access=mmap.ACCESS_READ) as data:
            hashlib.sha256(data).digest()

    ours, reference = measure.alternate(lambda: digest(file), plain, rounds=settings.rounds(3))
    return Measured(ours, reference, note=f"{os.path.getsize(file) / 1e6:.0f} MB of weights")


BENCHES = (
    Bench("canonical_vs_torch", "canonicalize, against torch's", TimesBetter(3), canonical_vs_torch),
    Bench("canonical_growth", "canonicalize, ten times the nodes", AtMost(2), canonical_growth),
    Bench("digest_program", "digest of a program of 2,680 nodes", Limit(1, "s"), digest_program),
    Bench("digest_weights", "digest, against sha256 of the file", AtMost(1.5), digest_weights),
)
