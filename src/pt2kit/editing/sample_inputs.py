"""Sample inputs of an edited program: adapted to its new call, or dropped with a reason.

Arguments are dropped, reordered and renamed with the call. An argument that is new has no sample, and one whose own
containers changed has none that fits: then all of them go, which torch takes for a program that was saved without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pt2kit import schema, treespec
from pt2kit.checks.program_context import context_of
from pt2kit.checks.samples import sample_problems
from pt2kit.editing.assembly import Parts
from pt2kit.editing.calls import Calls
from pt2kit.editing.interface import Input
from pt2kit.editing.interface_edits import bound_symbols, check_sizes
from pt2kit.editing.state import EditState
from pt2kit.editing.trees import spec_of
from pt2kit.editing.weights import to_view
from pt2kit.errors import GraphError, Pt2Error
from pt2kit.messages import quote
from pt2kit.package import record_names as names
from pt2kit.package.open import Package
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.reader import read_payload
from pt2kit.release.descriptions import Descriptions
from pt2kit.tensors.dtypes import DTYPES
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
    package = editor.opened_package
    if editor.samples is None and package is not None and editor.calls.ins is not None:
        try:
            held = package.sample_inputs(editor.model)
            leaves = None if held is None else treespec.flatten(held, spec_of(editor.calls.ins), "sample inputs")
        except Pt2Error:
            return
        if leaves is None or len(leaves) != len(editor.user_inputs):
            return
        editor.samples = dict(zip(editor.user_inputs, leaves, strict=True))
    for one, value in (editor.samples or {}).items():
        if isinstance(value, TensorView) and editor.samples is not None:
            editor.samples[one] = change(value)


def _record(editor: EditState, samples: Mapping[Input, Any]) -> bytes:
    """Return the record of sample inputs: the call's containers around them.

    Raises:
        UnsupportedError: containers that a torch.save file cannot hold as data.
    """
    describe, record = Descriptions().describe, names.sample_inputs(editor.model)
    leaves = [samples.get(one, one.constant) for one in editor.user_inputs]
    plain = [describe(one) if isinstance(one, TensorView) else one for one in leaves]
    return torch_save.dumps(treespec.unflatten(plain, spec_of(editor.calls.ins), record), record)


def pack(editor: EditState, parts: Parts, program: schema.ExportedProgram) -> tuple[Package, list[str]]:
    """Return the package of a changed model, with sample inputs that match its call, or without any.

    Returns:
        the package, and why sample inputs were left out.
    """
    model, calls = editor.model, editor.calls
    if editor.samples is not None:
        parts.drop_samples(model)
        try:
            parts.put(names.sample_inputs(model), _record(editor, editor.samples))
        except Pt2Error as error:
            return parts.package(), [f"the sample inputs of {model} were left out: {error}"]
        return parts.package(), []
    notes = [note] if calls.has_changed and (note := fit(parts, model, calls)) else []
    package = parts.package()
    context = context_of(program, names.model_json(model), schema.CURRENT.number)
    problem = next(sample_problems(package, model, context), None)
    if problem is None:
        return package, notes
    parts.drop_samples(model)
    return parts.package(), [*notes, f"the sample inputs of {model} were left out: {problem.message}"]


def fit(parts: Parts, model: str, calls: Calls) -> str:
    """Adapt the sample inputs of a model to its call.

    Args:
        parts: the records, which are changed.
        model: whose they are.
        calls: how the model is called now, and was.

    Returns:
        why they were left out; "" where they were adapted, or where there were none.
    """
    record = names.sample_inputs(model)
    part = parts.records.get(record)
    if part is None or not part.size:
        if names.samples_index(model) not in parts.records:
            return ""
        reason = "they are no torch.save file"
    else:
        adapted = _adapted(part.read(), record, calls)
        if isinstance(adapted, bytes):
            parts.put(record, adapted)
            return ""
        reason = adapted
    parts.drop_samples(model)
    return f"the sample inputs of {model} were left out: {reason}"


def _adapted(data: Any, where: str, calls: Calls) -> bytes | str:
    """Return the new record, or the reason why there is none."""
    places = calls.sources()
    if places is None:
        return "the program takes an argument that it did not take before"
    args, kwargs = places
    try:
        old = read_payload(memoryview(data), where)
        if not (isinstance(old, tuple) and len(old) == 2 and isinstance(old[0], tuple) and isinstance(old[1], dict)):
            return "they are no arguments and keyword arguments"
        by_place: dict[Any, Any] = dict(enumerate(old[0])) | old[1]
        new = (tuple(by_place[place] for place in args), {key: by_place[place] for key, place in kwargs.items()})
        return torch_save.dumps(new, where)
    except KeyError as error:
        return f"they lack the argument {error}"
    except Pt2Error as error:
        return str(error)
