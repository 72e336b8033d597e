"""Sample inputs of an edited program: adapted to its new call, or dropped with a reason.

Each input keeps its sample while arguments are dropped, reordered and renamed. An input that is new has none: then all
of them go, which torch takes for a program that was saved without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pt2kit import schema, treespec
from pt2kit.checks.findings import context_of
from pt2kit.checks.stored_inputs import sample_problems
from pt2kit.editing.assembly import Parts
from pt2kit.editing.interface import MAPPINGS, SEQUENCES, Input, spec_of
from pt2kit.editing.interface_edits import bound_symbols, check_sizes
from pt2kit.editing.state import EditState
from pt2kit.editing.weights import to_view
from pt2kit.errors import GraphError, Pt2Error, UnsupportedError, attempt
from pt2kit.messages import count_text, quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.pickles import writer as torch_save
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.tensors.pickled import to_pickled
from pt2kit.tensors.view import TensorView


def set_sample_inputs(editor: EditState, values: Mapping[str, Any]) -> None:
    """Store inputs that the program can be called with, as `torch.export` stores those that it exported with.

    Args:
        values: name of an input -> an array, a payload of any package, or a number. Constants of the call need none.

    Raises:
        GraphError: an input that is missing or does not exist, other element types or sizes, or only a program.
        UnsupportedError: the call has containers that a torch.save file cannot hold as data.
    """
    edit = "set_sample_inputs"
    if not editor.has_weights:
        raise GraphError(f"{edit}: expected a package, got a program alone")
    wanted = {one.name: one for one in editor.user_inputs if one.value is not None}
    if values.keys() != wanted.keys():
        odd = [name for name in values if name not in wanted]
        missing = [name for name in wanted if name not in values]
        raise GraphError(f"{edit}: expected the inputs {', '.join(wanted) or 'none'}, got {odd} and lacks {missing}")
    samples = {wanted[name]: _sample(wanted[name], value, edit) for name, value in values.items()}
    tensors = {one.value: view for one, view in samples.items() if one.value is not None and one.value.kind == "tensor"}
    numbers: dict[str, int] = {}
    for one, view in tensors.items():
        numbers = bound_symbols(one.meta.sizes, view.sizes) | numbers
    for one, view in tensors.items():
        check_sizes(editor, one.meta.sizes, view.sizes, numbers, f"{edit}: {quote(one.name)}")
    _record(editor, samples)
    editor.samples = samples


def _sample(one: Input, value: Any, edit: str) -> Any:
    """Return the sample of an input, checked; a view for a tensor."""
    if one.value is None or one.value.kind != "tensor":
        return value
    view, dtype = to_view(one.name, value, edit=edit), one.value.meta.dtype
    if view.dtype != dtype:
        wanted = f"{DTYPES[dtype].name}{list(one.value.shape or ())}"
        got = f"{DTYPES[view.dtype].name}{list(view.sizes)}"
        raise GraphError(f"{edit}: expected {wanted} for {quote(one.name)}, got {got}", rule="K9")
    return view


def convert(editor: EditState, change: Callable[[TensorView], TensorView]) -> None:
    """Change the tensors among the sample inputs; samples that cannot be read as the program's call are left alone."""
    if editor.samples is None:
        editor.samples = attempt(_stored, editor)
    if editor.samples is not None:
        editor.samples |= {one: change(value) for one, value in editor.samples.items() if isinstance(value, TensorView)}


def _stored(editor: EditState) -> dict[Input, Any] | None:
    """Return the sample inputs of the package by the inputs that they are for; None if there are none.

    Raises:
        Pt2Error: they are not what the program was called with, or hold more than data.
    """
    package, root = editor.opened_package, editor.calls.root
    held = None if package is None or root is None else package.sample_inputs(editor.model)
    if held is None or root is None:
        return None
    leaves = treespec.flatten(held, treespec.parse(root.in_spec), "sample inputs")
    if len(leaves) != len(editor.calls.opened):
        raise GraphError(f"expected {count_text(len(editor.calls.opened), 'sample input')}, got {len(leaves)}")
    return dict(zip(editor.calls.opened, leaves, strict=True))


def _record(editor: EditState, samples: Mapping[Input, Any]) -> bytes:
    """Return the record of sample inputs: the call's containers around them.

    Raises:
        UnsupportedError: containers that a torch.save file cannot hold as data.
    """
    record = names.sample_inputs(editor.model)
    leaves = [samples.get(one, one.constant) for one in editor.user_inputs]
    plain = [to_pickled(one) if isinstance(one, TensorView) else one for one in leaves]
    spec = spec_of(editor.calls.ins)
    try:
        return torch_save.dumps(treespec.unflatten(plain, spec, record), record)
    except UnsupportedError as error:
        odd = [node.type for node in treespec.walk(spec) if node.type not in (None, *SEQUENCES, *MAPPINGS)]
        if not odd:
            raise
        raise UnsupportedError(
            f"{record}: expected tuples, lists and dicts around sample inputs, got {odd[0]}"
        ) from error


def pack(editor: EditState, parts: Parts, program: schema.ExportedProgram) -> tuple[Package, list[str]]:
    """Return the package of a changed model, with sample inputs that match its call, or without any.

    Returns:
        the package, and why sample inputs were left out.
    """
    model, reason = editor.model, ""
    try:
        samples = _adapted(editor, parts) if editor.samples is None else editor.samples
        if samples is not None:
            record = _record(editor, samples)
            parts.drop_samples(model)
            parts.put(names.sample_inputs(model), record)
    except Pt2Error as error:
        reason = str(error)
    package = parts.package()
    if not reason:
        context = context_of(program, names.model_json(model), schema.CURRENT.number)
        reason = next((problem.message for problem in sample_problems(package, model, context)), "")
    if not reason:
        return package, []
    parts.drop_samples(model)
    return parts.package(), [f"the sample inputs of {model} were left out: {reason}"]


def _adapted(editor: EditState, parts: Parts) -> dict[Input, Any] | None:
    """Return the sample inputs for a call that has changed; None if it has not, or there are none.

    Raises:
        Pt2Error: they do not fit the call.
    """
    if not editor.calls.has_changed(editor.user_inputs):
        return None
    if names.samples_index(editor.model) in parts.records:
        raise GraphError("they are no torch.save file")
    samples = _stored(editor)
    if samples is not None and any(one.value is not None and one not in samples for one in editor.user_inputs):
        raise GraphError("the program takes an argument that it did not take before")
    return samples
