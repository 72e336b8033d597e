"""The inputs that a program was exported with -> those of the call that edits made of it, or why there are none.

Arguments are dropped, reordered and renamed with the call. An argument that is new has no sample, and one whose own
containers changed has none that fits: then all of them go, which torch takes for a program that was saved without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pt2kit import schema
from pt2kit.checks.program_context import context_of
from pt2kit.checks.samples import sample_problems
from pt2kit.errors import Pt2Error
from pt2kit.package import record_names as names
from pt2kit.package.pickle_free_inputs.names import index_record
from pt2kit.pickles import writer as torch_save
from pt2kit.pickles.reader import read_payload

if TYPE_CHECKING:
    from pt2kit.editing.assembly import Parts
    from pt2kit.editing.calls import Calls
    from pt2kit.package.open import Package


def pack(parts: Parts, model: str, program: schema.ExportedProgram, calls: Calls) -> tuple[Package, list[str]]:
    """The package of a changed model, with sample inputs that it takes, or without any.

    Returns:
        the package, and why sample inputs were left out.
    """
    notes = [note] if calls.has_changed and (note := fit(parts, model, calls)) else []
    package = parts.package()
    context = context_of(program, names.model_json(model), schema.CURRENT.number)
    problem = next(sample_problems(package, model, context), None)
    if problem is None:
        return package, notes
    parts.drop_samples(model)
    return parts.package(), [*notes, f"the sample inputs of {model} were left out: {problem.message}"]


def fit(parts: Parts, model: str, calls: Calls) -> str:
    """Bring the sample inputs of a model in line with its call.

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
        if index_record(model) not in parts.records:
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
    """The new record, or why there is none."""
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
