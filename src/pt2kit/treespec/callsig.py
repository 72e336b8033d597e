"""Call signature of a program as people write it, from tree specs, argument names and leaf descriptions.

    forward(x: f32[s77, 8], d: dict{"p": f32[2], "q": list[f32[2]]}, *, scale: int = 3) -> (f32[s77, 4], NT(a=f32[]))

What a leaf is called is the caller's business; this module only arranges the texts. Names from the file are shown,
never used: what does not print is escaped, what is no identifier is quoted.
"""

from __future__ import annotations

import keyword
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pt2kit.errors import GraphError, Problem, SchemaError
from pt2kit.messages import count_text, printable
from pt2kit.treespec.containers import MAPPINGS, SEQUENCES, FieldTable, Key, child_keys, leaf_keys, namedtuple_name
from pt2kit.treespec.spec import TreeSpec, fold, leaf_count

_SHORT = {
    "builtins.tuple": "tuple",
    "builtins.list": "list",
    "builtins.dict": "dict",
    "torch.Size": "Size",
}


ArgumentKind = Literal["positional", "keyword"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the call.

    Args:
        name: as stored, unescaped; `arg_<i>` where the file has no name.
        kind: "positional" or "keyword".
        type: its structure with the leaf descriptions in it, ready to print.
    """

    name: str
    kind: ArgumentKind
    type: str


@dataclass(frozen=True, slots=True)
class CallSignature:
    """The parameters of a call, positional ones first, and what it returns: a tuple as `(a, b)`."""

    parameters: tuple[Parameter, ...]
    returns: str


def split_call(
    in_spec: TreeSpec, where: str = "in_spec", *, schema_1: bool = False
) -> tuple[tuple[TreeSpec, ...], dict[str, TreeSpec]]:
    """Return the specs of the positional arguments, and those of the keyword arguments by name.

    Args:
        in_spec: a tuple of the tuple of positional arguments and the dict of keyword arguments.
        where: place, for messages.
        schema_1: torch 2.1 writes that form only for calls with keywords, else just the tuple of arguments. There a
            call of one tuple and one non-empty dict cannot be told from one with keywords.

    Raises:
        SchemaError: the root is no tuple.
    """
    if in_spec.type != "builtins.tuple":
        raise SchemaError(f"{where}: expected a tuple of arguments at the root, got {printable(str(in_spec.type))}")
    if len(in_spec.children) == 2 and [child.type for child in in_spec.children] == ["builtins.tuple", "builtins.dict"]:
        args, kwargs = in_spec.children
        keys = [key.value for key in child_keys(kwargs, f"{where}: $[1].children_spec[1]")]
        if all(isinstance(key, str) for key in keys) and (keys or not schema_1):
            return args.children, dict(zip(map(str, keys), kwargs.children, strict=True))
    return in_spec.children, {}


def named_arguments(
    in_spec: TreeSpec, names: Sequence[str] | None, where: str = "in_spec"
) -> list[tuple[str, ArgumentKind, TreeSpec]]:
    """Return the name, the kind and the spec of each argument, positional ones first.

    Args:
        in_spec: as in `split_call`.
        names: `forward_arg_names`; names are taken as far as they go, keywords always from the spec.
        where: place, for messages.

    Raises:
        SchemaError: the root is no tuple.
    """
    args, kwargs = split_call(in_spec, where)
    known = dict(enumerate(names or ()))
    return [
        *((known.get(i, f"arg_{i}"), "positional", spec) for i, spec in enumerate(args)),
        *((name, "keyword", spec) for name, spec in kwargs.items()),
    ]


def input_paths(
    in_spec: TreeSpec, names: Sequence[str] | None, fields: FieldTable | None = None
) -> list[tuple[Any, ...]]:
    """Return the path to each input (`symbols.guards.Path`): the name of its argument, then the steps inside it.

    Args:
        in_spec, names: as in `named_arguments`.
        fields: field names of named tuples, where the file has the table.

    Raises:
        SchemaError, JsonError: a spec that contradicts itself.
    """
    return [
        (name, *(key.step for key in keys))
        for name, _, spec in named_arguments(in_spec, names, "in_spec")
        for keys in leaf_keys(spec, "in_spec", fields)
    ]


def call_signature(
    in_spec: TreeSpec,
    out_spec: TreeSpec,
    inputs: Sequence[str],
    outputs: Sequence[str],
    arg_names: Sequence[str] | None = None,
    *,
    where: str = "signature",
    fields: FieldTable | None = None,
) -> CallSignature:
    """Arrange leaf descriptions into a call signature.

    Args:
        in_spec, out_spec: the specs of the root entry of the module call graph (or of schema 1's call_spec).
        inputs, outputs: a description for each leaf: "f32[s77, 8]", "int = 3".
        arg_names: `forward_arg_names`; names are taken as far as they go, keywords always from the spec.
        where: place, for messages.
        fields: field names of named tuples, where the file has the table.

    Raises:
        GraphError: not as many descriptions as leaves.
        SchemaError, JsonError: a spec that contradicts itself.
    """
    arguments = named_arguments(in_spec, arg_names, f"{where}: in_spec")
    _check_leaves(in_spec, inputs, f"{where}: in_spec")
    leaves = iter(inputs)
    parameters = tuple(Parameter(name, kind, _type(spec, leaves, where, fields)) for name, kind, spec in arguments)
    _check_leaves(out_spec, outputs, f"{where}: out_spec")
    return CallSignature(parameters, _returns(out_spec, iter(outputs), where, fields))


def _returns(spec: TreeSpec, leaves: Iterator[str], where: str, fields: FieldTable | None) -> str:
    if spec.type != "builtins.tuple":
        return _type(spec, leaves, where, fields)
    texts = [_type(child, leaves, where, fields) for child in spec.children]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _type(spec: TreeSpec, leaves: Iterator[str], where: str, fields: FieldTable | None) -> str:
    """Return one structure with the next descriptions as its leaves, in one line: `tuple[f32[2], dict{"k": i64[]}]`."""

    def write(node: TreeSpec, children: list[str]) -> str:
        return _container_text(node, children, child_keys(node, where, fields))

    return fold(spec, lambda _: printable(next(leaves), 400), write)


def render(signature: CallSignature, name: str = "forward", width: int | None = None) -> str:
    """Return the signature as text.

    Args:
        signature: what `call_signature` made.
        name: the function's name, escaped if it is no identifier.
        width: characters per line; None for one line. A longer signature gets one line per parameter.
    """
    parts: list[str] = []
    for i, parameter in enumerate(signature.parameters):
        if parameter.kind == "keyword" and (i == 0 or signature.parameters[i - 1].kind == "positional"):
            parts.append("*")
        parts.append(f"{show_name(parameter.name)}: {parameter.type}")
    line = f"{show_name(name)}({', '.join(parts)}) -> {signature.returns}"
    if width is None or len(line) <= width or not parts:
        return line
    body = "".join(f"    {part},\n" for part in parts)
    return f"{show_name(name)}(\n{body}) -> {signature.returns}"


def show_name(name: str) -> str:
    """Return a name as it may be printed: itself if it is an identifier, else in quotes with everything odd escaped."""
    if name.isidentifier() and not keyword.iskeyword(name) and len(name) <= 200:
        return name
    return _quoted(name)


def find_name_problems(names: Sequence[str], in_spec: TreeSpec, where: str = "forward_arg_names") -> Iterator[Problem]:
    """Yield the problems of `forward_arg_names`, which torch pastes into generated source: they must be identifiers.

    The caller names the rule. An empty list means no names and is fine.

    Raises:
        SchemaError: an in_spec that is no call, as in `split_call`.
    """
    args, kwargs = split_call(in_spec, where)
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        place = f"{where}[{i}]"
        plain = unicodedata.normalize("NFKC", name)  # Python's parser compares identifiers in this form
        if not name.isidentifier() or keyword.iskeyword(plain):
            yield Problem(place, "", f"expected an identifier that is no keyword, got {_quoted(name)}")
        elif plain != name or name == "__debug__":
            yield Problem(place, "", f"expected a name that a variable of Python can have, got {_quoted(name)}")
        elif plain == "self":
            yield Problem(place, "", "expected a name other than self, which the module itself has, got self")
        elif plain in seen:
            yield Problem(place, "", f"expected distinct names, got {plain} also at [{seen[plain]}]")
        seen.setdefault(plain, i)
    count = len(args) + len(kwargs)
    if names and len(names) != count:
        text = f"expected {count_text(count, 'name')} ({len(args)} positional, {len(kwargs)} keyword), got {len(names)}"
        yield Problem(where, "", text)
    elif names and list(names[len(args) :]) != list(kwargs):
        got, want = (", ".join(map(show_name, part)) for part in (names[len(args) :], kwargs))
        yield Problem(where, "", f"expected the keyword arguments of in_spec at the end ({want}), got {got}")


def _container_text(spec: TreeSpec, children: Sequence[str], keys: Sequence[Key]) -> str:
    full = namedtuple_name(spec) or str(spec.type)
    last = full.rpartition(".")[2]
    name = _SHORT.get(full) or (last if last.isidentifier() else _quoted(full))
    kind = keys[0].kind if keys else ("item" if spec.type in MAPPINGS else "index")
    if kind == "field":
        pairs = zip(keys, children, strict=True)
        return f"{name}({', '.join(f'{show_name(str(key.value))}={child}' for key, child in pairs)})"
    if kind == "item":
        pairs = zip(keys, children, strict=True)
        return f"{name}{{{', '.join(f'{_key_text(key.value)}: {child}' for key, child in pairs)}}}"
    return f"{name}[{', '.join(children)}]" if spec.type in SEQUENCES else f"{name}({', '.join(children)})"


def _key_text(key: object) -> str:
    return _quoted(key) if isinstance(key, str) else printable(repr(key))


def _quoted(text: str) -> str:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped, len(escaped))}"'


def _check_leaves(spec: TreeSpec, leaves: Sequence[str], where: str) -> None:
    count = leaf_count(spec)
    if len(leaves) != count:
        raise GraphError(f"{where}: expected {count_text(count, 'leaf', 'leaves')}, got {len(leaves)} descriptions")
