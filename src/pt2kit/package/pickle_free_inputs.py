"""Sample inputs without a pickle: an index of their leaves, and their tensors as raw records with a config of weights.

    data/sample_inputs/<model>.pt                  empty: for torch, the program has no sample inputs
    data/sample_inputs/tensor_<i>                  the bytes of a storage
    extra/pt2kit/sample_inputs/<model>.json        the index

The index is text, as torch reads every extra file as text; the bytes are not under `extra/`, for the same reason.
`sanitizing` writes these records. A pickle that is there counts, and the index next to it does not.

    {"format": "pt2kit sample inputs 2", "leaves": [{"tensor": "0"}, 2, {"float": 0.5}],
     "config": {"0": {"path_name": "tensor_0", "is_param": false, "use_pickle": false, "tensor_meta": {…}}}}

`leaves` are those of the program's `in_spec`, in its order; the containers are there. A leaf is null, a truth value, an
integer, a text, or an object whose one key is its kind. `config` describes the tensors as that of the weights does, and
is read by the same function, with the same checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pt2kit import codec, schema
from pt2kit.codec.encoder import plain_float
from pt2kit.errors import PayloadError, UnsupportedError
from pt2kit.package import record_names as names
from pt2kit.package.programs import read_json
from pt2kit.pickles import values as data
from pt2kit.pickles.allowed_globals import name_global
from pt2kit.pickles.budget import DEFAULT_PICKLE_LIMITS, Budget, Place, describe
from pt2kit.pickles.builtin_reducers import make_device
from pt2kit.pickles.values import ITEM_SIZES, LAYOUTS, MEMORY_FORMATS
from pt2kit.tensors.compound import MetaView
from pt2kit.tensors.payload import views_from_config
from pt2kit.tensors.pickled import FAKE_TENSOR, fake_tensor
from pt2kit.tensors.view import TensorView

if TYPE_CHECKING:
    from pt2kit.package.layouts.base import Layout

FORMAT: Final = "pt2kit sample inputs 2"
"""Format name in an index; the number is that of the definition in `docs/sanitize.md`."""

_NAMES: Final = MappingProxyType({data.DType: "dtype", data.Layout: "layout", data.MemoryFormat: "memory_format"})
_NO_NUMBERS: Final = MappingProxyType({"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf})


@dataclass(frozen=True, slots=True)
class PickleFreeInputs:
    """Sample inputs as an index has them, or as one that is to be written.

    Args:
        where: the record that they were read from, for messages.
        leaves: the leaves of the program's tree spec, in its order: views for tensors, other values as
            `pickles.reader` describes them.
        records: names of the records that hold them, the index first; none of a pickle.
    """

    where: str
    leaves: tuple[Any, ...]
    records: tuple[str, ...] = ()


class _Index(Struct):
    """The content of an index."""

    format: str
    leaves: list[Any]
    config: dict[str, schema.PayloadMeta]


def read_pickle_free_inputs(layout: Layout, model: str) -> PickleFreeInputs | None:
    """Read the sample inputs of a program that has an index of them; None if it has none. Reads no tensor.

    Raises:
        JsonError: an index that is no JSON.
        SchemaError: one without the keys of the format.
        PayloadError: one of another format, a tensor that contradicts its record, a leaf of no kind.
        ArchiveError, UnsupportedError, LimitError: it cannot be read.
    """
    where = names.samples_index(model)
    full = layout.record(where)
    if full not in layout.archive.records:
        return None
    tree = codec.parse(read_json(layout.archive, full, where), where)
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        got = tree.get("format") if isinstance(tree, dict) else tree
        raise PayloadError(f"{where}: format: expected {FORMAT!r}, got {describe(got)}; sanitize the original again")
    decoded = codec.convert(tree, _Index, where)
    if decoded.unknown:
        got = ", ".join(map(str, decoded.unknown))[:200]
        raise PayloadError(f"{where}: expected format, leaves and config, got {got}")
    config = decoded.value.config
    for name, meta in config.items():
        if not names.is_samples_storage(names.SAMPLE_INPUTS + meta.path_name) or meta.use_pickle:
            got = "a pickle" if meta.use_pickle else f"{meta.path_name[:80]!a}"
            raise PayloadError(f"{where}: {name[:80]!a}: expected a raw record such as 'tensor_0', got {got}")
    folder = layout.record(names.SAMPLE_INPUTS)
    views = views_from_config(schema.PayloadConfig(config), layout.archive, folder=folder, where=where)
    budget = Budget(where, DEFAULT_PICKLE_LIMITS)
    leaves = tuple(_leaf(leaf, views, Place(budget, f"leaves[{i}]")) for i, leaf in enumerate(decoded.value.leaves))
    records = dict.fromkeys((where, *(names.SAMPLE_INPUTS + meta.path_name for meta in config.values())))
    return PickleFreeInputs(where, leaves, tuple(records))


def input_tensors(leaves: Sequence[Any], where: str) -> dict[str, TensorView | MetaView]:
    """Return the tensors among leaves by the names that an index has for them; a repeated one once.

    Raises:
        UnsupportedError: a leaf that an index cannot hold.
    """
    tensors: dict[int, tuple[str, TensorView | MetaView]] = {}
    for number, leaf in enumerate(leaves):
        if not isinstance(leaf, TensorView | MetaView):
            leaf_tree(leaf, where)
        else:
            tensors.setdefault(id(leaf), (str(number), leaf))
    return dict(tensors.values())


def write_index(leaves: Sequence[Any], config: schema.PayloadConfig, where: str) -> bytes:
    """Return the content of an index.

    Args:
        leaves: as in `PickleFreeInputs`.
        config: where the tensors are, by the names that `input_tensors` gave them.
        where: the record that the leaves come from, for messages.

    Raises:
        UnsupportedError: a leaf that an index cannot hold.
    """
    named = {id(view): name for name, view in input_tensors(leaves, where).items()}
    rows = [{"tensor": named[id(leaf)]} if id(leaf) in named else leaf_tree(leaf, where) for leaf in leaves]
    return codec.encode(_Index(FORMAT, rows, config.config))


def leaf_tree(leaf: Any, where: str) -> Any:
    """Return the JSON of a leaf that is no tensor.

    Raises:
        UnsupportedError: an index has no form for it.
    """
    if leaf is None or type(leaf) in (bool, int, str):
        return leaf
    match leaf:
        case float():
            return {"float": plain_float(leaf)}
        case complex():
            return {"complex": [plain_float(leaf.real), plain_float(leaf.imag)]}
        case data.DType(name) | data.Layout(name) | data.MemoryFormat(name):
            return {_NAMES[type(leaf)]: name}
        case data.Device():
            return {"device": leaf.text}
    if (fake := fake_tensor(leaf, where)) is not None:
        return {"fake_tensor": [codec.to_tree(fake[0]), fake[1]]}
    raise UnsupportedError(f"{where}: expected plain data, got {data.kind_text(leaf)[:200]!a}")


def _leaf(written: Any, views: Mapping[str, Any], at: Place) -> Any:
    """Return a leaf of an index."""
    if written is None or isinstance(written, bool | int | str):
        return written
    if not isinstance(written, dict) or len(written) != 1:
        raise at.wrong("an object with one key", written)
    [(kind, body)] = written.items()
    if kind == "tensor":
        return _known(body, views, at, "a tensor of config")
    if kind not in _KINDS:
        raise at.error("a kind of value", f"{kind[:40]!a}")
    return _KINDS[kind](body, Place(at.budget, f"{at.path}.{kind}"))


def _known(body: Any, known: Any, at: Place, expected: str) -> Any:
    """Return what a table has for a text; the text itself for a set of texts."""
    if not isinstance(body, str) or body not in known:
        raise at.wrong(expected, body)
    return known[body] if isinstance(known, Mapping) else body


def _float(body: Any, at: Place) -> float:
    if isinstance(body, float):
        return body
    found: float = _known(body, _NO_NUMBERS, at, "a number with a fraction, NaN, Infinity or -Infinity")
    return found


def _complex(body: Any, at: Place) -> complex:
    real, imag = _pair(body, at)
    return complex(_float(real, at), _float(imag, at))


def _pair(body: Any, at: Place) -> list[Any]:
    if not isinstance(body, list) or len(body) != 2:
        raise at.wrong("a list of two", body)
    return body


def _fake_tensor(body: Any, at: Place) -> data.Opaque:
    meta, is_param = _pair(body, at)
    fake = data.Opaque(name_global(*FAKE_TENSOR.rsplit(".", 1)), (codec.encode(meta), at.flag(is_param)))
    fake_tensor(fake, f"{at.budget.where}: {at.path}")
    return fake


def _named(cls: type, known: Any) -> Callable[[Any, Place], Any]:
    """Return the reader of a name of torch."""
    return lambda body, at: cls(_known(body, known, at, "a name that torch has"))


_KINDS: Final[Mapping[str, Callable[[Any, Place], Any]]] = MappingProxyType(
    {
        "float": _float,
        "complex": _complex,
        "dtype": _named(data.DType, frozenset(ITEM_SIZES)),
        "layout": _named(data.Layout, LAYOUTS),
        "memory_format": _named(data.MemoryFormat, MEMORY_FORMATS),
        "device": lambda body, at: make_device(at, body),
        "fake_tensor": _fake_tensor,
    }
)
"""Kind of a leaf -> (its JSON, its place) -> the leaf."""
