"""Full text of a file for line-based comparison, as in `git diff`: programs, tensors, other records.

What depends on how the file is packed is left out, and so is the metadata of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pt2kit.digests.compute import digest_parts, payloads_of
from pt2kit.messages import printable
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.schema import ExportedProgram
from pt2kit.text.arguments import argument_text
from pt2kit.text.names import dotted
from pt2kit.text.program import program_lines

MAX_SPEC: Final = 10_000
"""Characters of a tree of inputs or outputs."""


def whole_lines(package: Package) -> Iterator[str]:
    """Yield everything in a package, a line at a time; of each tensor its type and its digest.

    Raises:
        Pt2Error: a part of it cannot be read.

    Cost: reads every tensor once.
    """
    for model in package.layout.models:
        program = _sorted(package.programs[model])
        yield f"model {printable(model)}"
        yield from (f"  {line}" for line in _header_lines(program))
        yield from (f"  {line}" for line in program_lines(program))
        yield from (f"  {line}" for line in _call_lines(program))
        digests = digest_parts(package, ("weights", "constants"), model)
        for kind, table in (("weights", "tensors"), ("constants", "constant_tensors")):
            payloads = payloads_of(package, model, kind)
            if payloads:
                yield f"  {kind}"
            for name in sorted(payloads):
                yield f"    {dotted(name)}: {payloads[name].describe()} {digests[table][name]}"
    yield from _records(package)


def _sorted(program: ExportedProgram) -> ExportedProgram:
    """Return a program with its maps and sets sorted."""
    return ExportedProgram(
        graph_module=program.graph_module,
        opset_version=program.opset_version,
        range_constraints=dict(sorted(program.range_constraints.items())),
        schema_version=program.schema_version,
        verifiers=program.verifiers,
        torch_version=program.torch_version,
        guards_code=sorted(program.guards_code),
    )


def _header_lines(program: ExportedProgram) -> Iterator[str]:
    """Yield the fields of a program's header."""
    versions = program.opset_version
    yield f"operator sets {', '.join(f'{printable(name)} {versions[name]}' for name in sorted(versions))}"
    yield f"verifiers {', '.join(map(printable, program.verifiers))}"
    yield f"torch {printable(program.torch_version)}"


def _call_lines(program: ExportedProgram) -> Iterator[str]:
    """Yield the call signatures of modules that keep theirs, the program itself first."""
    module = program.graph_module
    for entry in sorted(module.module_call_graph, key=lambda entry: entry.fqn):
        if (call := entry.signature) is None:
            continue
        yield f"call of {dotted(entry.fqn) if entry.fqn else '(the program itself)'}"
        if call.forward_arg_names is not None:
            yield f"  parameters {', '.join(map(printable, call.forward_arg_names))}"
        yield from (f"  takes {argument_text(argument)}" for argument in call.inputs)
        yield from (f"  gives {argument_text(argument)}" for argument in call.outputs)
        yield f"  in_spec {printable(call.in_spec, MAX_SPEC)}"
        yield f"  out_spec {printable(call.out_spec, MAX_SPEC)}"
    for name in sorted(module.treespec_namedtuple_fields):
        fields = module.treespec_namedtuple_fields[name].field_names
        yield f"named tuple {printable(name)}: {', '.join(map(printable, fields))}"


def _records(package: Package) -> Iterator[str]:
    kinds = ("sample inputs", "extra file", "compiled code", "other")
    rows = {package.relative(name): record for name, record in package.records.items()}
    shown = sorted(name for name in rows if names.kind(name) in kinds)
    if shown:
        yield "records"
    for name in shown:
        yield f"  {printable(name)}: {rows[name].size:,} bytes, crc32 {rows[name].crc32:08x}"
