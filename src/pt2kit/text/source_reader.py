"""Parser of the text form of a program: reads what `source` prints, and what people write by hand.

One regular expression cuts the text into tokens; each rule of the grammar (`docs/text.md`) is one function. The text
of a type is read once, however often it occurs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args, get_origin

from pt2kit import codec, schema
from pt2kit.collector import no_collection
from pt2kit.errors import Pt2Error
from pt2kit.graph.argument_values import ValueKind, arguments
from pt2kit.graph.traversal import MAX_SUBGRAPH_DEPTH, graphs, tables
from pt2kit.jsontext import path_text
from pt2kit.schema import Argument, TensorArgument
from pt2kit.schema.reflection import field_classes
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.text.source import (
    INPUT_SPECS,
    KIND_MARKS,
    LITERALS,
    OUTPUT_SPECS,
    PLAIN_ARMS,
    VERSION,
    WORDS,
    plain_arm,
    spec_value,
)
from pt2kit.text.source_tokens import CONSTANTS, STRING, Tokens

T = TypeVar("T")

_PART: Final = re.compile(rf"(\w+)\[((?:{STRING}|[^\]])*)\]")
_MARKS: Final = {mark: kind for kind, mark in KIND_MARKS.items() if mark}
_SIDES: Final[Mapping[str, tuple[type[Any], Mapping[str, tuple[str, type[Any]]]]]] = {
    "input": (schema.InputSpec, {WORDS.get(kind, kind): (kind, cls) for kind, cls in INPUT_SPECS.items()}),
    "output": (schema.OutputSpec, {kind: (kind, cls) for kind, cls in OUTPUT_SPECS.items()}),
}
"""Word of a line of the root graph -> the union of its specs, and word of a role -> its arm and the arm's class."""
_STATEMENTS: Final = frozenset(("input", "output", "single", "signature", "entry", "order"))
"""Words that begin a line of a graph; anything else begins a node."""
_SIGNATURE: Final = "$.graph_module.signature"
_TABLES: Final = get_args(ValueKind)
_UNKNOWN: Final = object()
_SHORT: Final = {row.short: number for number, row in DTYPES.items()}
"""Short name of an element type -> the type."""

_HEAD: Final[Mapping[str, tuple[Any, Callable[[Reader], Any]]]] = {
    "schema": (schema.SchemaVersion(*schema.CURRENT.pair), lambda reader: reader.version()),
    "torch": ("", lambda reader: reader.string()),
    "verifier": ([], lambda reader: reader.string()),
    "guard": ([], lambda reader: reader.string()),
    "module": ([], lambda reader: reader.module()),
    "opset": ({}, lambda reader: (reader.string(), reader.integer())),
    "range": ({}, lambda reader: (reader.string(), reader.range())),
    "metadata": ({}, lambda reader: (reader.string(), reader.string())),
    "namedtuple": ({}, lambda reader: (reader.string(), schema.NamedTupleDef(reader.strings()))),
    "expr": (None, lambda reader: reader.expression()),
}
"""Word of the head -> what there is without such a line, and what reads the rest of a line."""


def parse(text: str, where: str = "text") -> schema.ExportedProgram:
    """Read a program from its text form.

    Args:
        text: what `print_program` wrote, or what was written by hand.
        where: what messages call it.

    Returns:
        The program. What its text leaves out is as `docs/text.md` says; nothing is checked beyond the grammar and the
        schema, `pt2kit.edit` and `pt2kit.check` do that.

    Raises:
        SchemaError: text that the grammar does not have; the message names the line and column.

    Cost: linear; a program of 2,700 nodes takes about half a second.
    """
    return read(text, where).program


def read(text: str, where: str = "text") -> Parsed:
    """Read a program from its text form, as `parse` does, with the positions of its parts.

    Raises:
        SchemaError: as `parse`.
    """
    with no_collection():
        reader = Reader(text, where)
        return Parsed(reader.program(), reader, where)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A program that was read from text.

    Args:
        program: the program.
        reader: has read it.
        where: what messages call the text.
    """

    program: schema.ExportedProgram
    reader: Reader
    where: str

    def place(self, loc: str) -> str | None:
        """Return the place in the text of a place in the program: "text: line 7, column 3".

        Args:
            loc: a JSON path, or a text with one, such as a finding's `loc` or the message of an error; the innermost
                part that it names counts.

        Cost: linear in the program.
        """
        best, token = "", None
        for name, number in self._places():
            if len(name) > len(best) and re.search(rf"{re.escape(name)}(?![\w-])", loc):
                best, token = name, number
        return None if token is None else f"{self.where}: {self.reader.place_of(token)}"

    def _places(self) -> Iterator[tuple[str, int]]:
        """Yield the JSON paths of all parts that have a place, with their first tokens."""
        for scope in graphs(self.program):
            for part, number in _parts(scope.graph, self.reader.starts.get(id(scope.graph), {})):
                yield scope.where + part, number
        yield from self.reader.specs.items()


def _parts(graph: schema.Graph, starts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the parts of a graph and the descriptions of their values: JSON path, first token."""
    owners = {name: f"inputs[{n}]" for n, argument in enumerate(graph.inputs) for name in arguments(argument)}
    for n, node in enumerate(graph.nodes):
        owners |= {name: f"nodes[{n}]" for output in node.outputs for name in arguments(output)}
    yield from ((f".{part}", token) for part, token in starts.items())
    for kind, table in tables(graph).items():
        for name in table:
            if owners.get(name) in starts:
                yield path_text((f"{kind}_values", name))[1:], starts[owners[name]]


class Reader(Tokens):
    """Reads one text."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text, where)
        self._expressions: dict[str, schema.SymExpr] = {}
        self._types: dict[str, schema.TensorMeta] = {}
        self._tensors: dict[str, Argument] = {}
        self.depth = 0
        self.starts: dict[int, dict[str, int]] = {}
        """The id of each graph of the program -> its inputs, outputs and nodes by name, with their first tokens."""
        self.specs: dict[str, int] = {}
        """The JSON paths of the signature and its specs, with the first tokens of the lines that they follow from."""

    def program(self) -> schema.ExportedProgram:
        """Parse the whole text."""
        self.word("pt2")
        if self.integer() != VERSION:
            self.fail(f"the version {VERSION} of the text form", back=1)
        head = {word: copy(empty) for word, (empty, _) in _HEAD.items()}
        while not self.take("graph"):
            word = self.next("word")
            if word not in _HEAD:
                self.fail("a word of the head (schema, torch, opset, range, …) or graph", back=1)
            read = _HEAD[word][1](self)
            match head[word]:
                case list() as items:
                    items.append(read)
                case dict() as rows:
                    rows.update([read])
                case _:
                    head[word] = read
        graph, signature = self.block(is_root=True)
        self.next("end")
        module = schema.GraphModule(graph, signature, head["module"], head["metadata"], head["namedtuple"])
        return schema.ExportedProgram(
            module, head["opset"], head["range"], head["schema"], head["verifier"], head["torch"], head["guard"]
        )

    def version(self) -> schema.SchemaVersion:
        """Parse a schema version."""
        major, dot, minor = self.next("number").partition(".")
        if not dot or not major.isdecimal() or not minor.isdecimal():
            self.fail("a schema version such as 8.20", back=1)
        return schema.SchemaVersion(self.whole(major), self.whole(minor))

    def range(self) -> schema.RangeConstraint:
        """Parse the two ends of a range."""
        low, high = self.constant(), self.constant()
        if any(type(end) is not int and end is not None for end in (low, high)):
            self.fail("two ints or none", back=1)
        return schema.RangeConstraint(low, high)

    def expression(self) -> None:
        """Parse the name of an expression, its text and its hint."""
        name, text = self.next("expr"), self.string()
        hint = None
        if self.take("hint"):
            value = self.constant()
            arm = {bool: "as_bool", int: "as_int", float: "as_float"}.get(type(value))
            if arm is None:
                self.fail("an int, a float or a bool", back=1)
            hint = schema.SymExprHint.create(**{arm: value})
        self._expressions[name] = schema.SymExpr(text, hint)

    def module(self) -> schema.ModuleCallEntry:
        """Parse the name of a module, and how it is called."""
        fqn = self.string()
        if not self.take("takes"):
            return schema.ModuleCallEntry(fqn, None)
        ins = self.listed("(", ")", self.argument)
        self.word("gives")
        outs = self.listed("(", ")", self.argument)
        self.word("in_spec")
        in_spec = self.string()
        self.word("out_spec")
        out_spec = self.string()
        names = self.strings() if self.take("names") else None
        return schema.ModuleCallEntry(fqn, schema.ModuleCallSignature(ins, outs, in_spec, out_spec, names))

    def block(self, *, is_root: bool = False) -> tuple[schema.Graph, schema.GraphSignature]:
        """Parse a graph in braces, and the specs of its inputs and outputs."""
        self.depth += 1
        if self.depth > MAX_SUBGRAPH_DEPTH + 1:
            self.fail(f"subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep")
        self.sign("{")
        held: dict[str, dict[str, Any]] = {kind: {} for kind in _TABLES}
        sides: dict[str, list[Argument]] = {side: [] for side in _SIDES}
        specs: dict[str, list[Any]] = {side: [] for side in _SIDES}
        nodes: list[schema.Node] = []
        signature, single = None, False
        starts: dict[str, int] = {}
        tokens = self.tokens
        while tokens[self.at] != "}":
            start = self.at
            word = tokens[self.at] if self.kinds[self.at] == "word" and tokens[self.at + 1] != "(" else ""
            if word in _STATEMENTS:
                self.at += 1
            if word in _SIDES:
                starts[f"{word}s[{len(sides[word])}]"] = start
                argument = self.argument()
                sides[word].append(argument)
                if word == "input":
                    self._defined([argument], held)
                if is_root and self.take("="):
                    self.specs[f"{_SIGNATURE}.{word}_specs[{len(specs[word])}]"] = start
                    specs[word].append(self._role(argument, *_SIDES[word]))
            elif word == "single":
                single = True
            elif word == "signature":
                self.specs[_SIGNATURE] = start
                signature = self._signature()
            elif word == "entry":
                table, name = self._table(held), self.string()
                table[name] = self._type()[1]
            elif word == "order":
                self._order(held)
            else:
                starts[f"nodes[{len(nodes)}]"] = start
                nodes.append(self._node(held))
        self.at += 1
        self.depth -= 1
        values = {f"{kind}_values": table for kind, table in held.items()}
        graph = schema.Graph(sides["input"], sides["output"], nodes, is_single_tensor_return=single, **values)
        self.starts[id(graph)] = starts
        return graph, signature or schema.GraphSignature(specs["input"], specs["output"])

    def _table(self, held: dict[str, dict[str, Any]]) -> dict[str, Any]:
        kind = self.next("word")
        if kind not in held:
            self.fail(f"one of {', '.join(_TABLES)}", back=1)
        return held[kind]

    def _order(self, held: dict[str, dict[str, Any]]) -> None:
        table = self._table(held)
        names = self.strings()
        if sorted(names) != sorted(table):
            self.fail("all names of the table", back=1)
        rows = {name: table[name] for name in names}
        table.clear()
        table.update(rows)

    def _signature(self) -> schema.GraphSignature:
        try:
            signature: schema.GraphSignature = codec.decode(
                memoryview(self.string().encode()), schema.GraphSignature, self._where
            ).value
        except Pt2Error as error:
            self.fail(f"a signature as JSON ({error})", back=1)
        return signature

    def _role(self, argument: Argument, union: type[Any], words: Mapping[str, tuple[str, type[Any]]]) -> Any:
        word = self.next("word")
        if word not in words:
            self.fail(f"one of {', '.join(words)}", back=1)
        rest = []
        while (self.kinds[self.at] in ("string", "number") or self.tokens[self.at] in CONSTANTS) and self.tokens[
            self.at + 1
        ] not in ("=", ",", "("):  # those begin a node: `none = …`, `"target"(…)`
            rest.append(self.constant())
        kind, cls = words[word]
        try:
            return union.create(**{kind: spec_value(cls, argument, rest)})
        except (TypeError, ValueError) as error:
            self.fail(f"what {word} needs ({error})", back=1)

    def _node(self, held: dict[str, dict[str, Any]]) -> schema.Node:
        tokens = self.tokens
        outputs: list[Argument] = []
        # Some words with brackets are results, such as `sym_int(%x)`, and no operators.
        is_word = self.kinds[self.at] == "word" and tokens[self.at] not in _WORDS
        if not (is_word or self.kinds[self.at] == "string") or tokens[self.at + 1] != "(":
            outputs.append(self.argument())
            while tokens[self.at] == ",":
                self.at += 1
                outputs.append(self.argument())
            self.sign("=")
        kind = self.kinds[self.at]
        target = self.string() if kind == "string" else self.next("word")
        inputs = self.listed("(", ")", self._named)
        self._defined(outputs, held)
        name: str | None = None
        if len(outputs) == 1 and isinstance(outputs[0].as_tensor, TensorArgument):
            name = outputs[0].as_tensor.name
        single: bool | None = None
        metadata: dict[str, str] = {}
        while True:
            token = tokens[self.at]
            if token in ("named", "unnamed"):
                self.at += 1
                name = self.string() if token == "named" else None
            elif token == "single" and tokens[self.at + 1] in ("true", "false"):
                single = tokens[self.at + 1] == "true"
                self.at += 2
            elif token == "{":
                metadata = dict(self.listed("{", "}", lambda: self.pair(self.string)))
            else:
                return schema.Node(target, inputs, outputs, metadata, single, name)

    def pair(self, value: Callable[[], T]) -> tuple[str, T]:
        """Parse a text and a value, with a colon between them."""
        key = self.string()
        self.sign(":")
        return key, value()

    def _defined(self, defining: list[Argument], held: dict[str, dict[str, Any]]) -> None:
        """Read the types of the values that some arguments define, and enter them into the tables."""
        if not self.take(":"):
            return
        names = [name for argument in defining for name in arguments(argument)]
        for number, name in enumerate(names):
            if number:
                self.sign(",")
            kind, meta = self._type()
            if meta is not _UNKNOWN:
                held[kind][name] = meta

    def _type(self) -> tuple[str, Any]:
        kind, token = self.kinds[self.at], self.tokens[self.at]
        self.at += 1
        if kind == "type":
            meta = self._types.get(token)
            if meta is None:
                meta = self._types[token] = self._tensor(token)
            return "tensor", meta
        if token == "?":
            return "tensor", _UNKNOWN
        if token in ("int", "float", "bool"):
            classes = {"int": schema.SymInt, "float": schema.SymFloat, "bool": schema.SymBool}
            return f"sym_{token}", self._symbolic(classes[token], f"as_{token}")
        if token == "object":
            return "custom_obj", _WORDS[token](self).value
        return self.fail('a type such as f32[2, 3], int 4 or object(%x, "class")', back=1)

    def _symbolic(self, cls: type[Any], arm: str) -> Any:
        if self.kinds[self.at] == "expr":
            return cls(as_expr=self._known(self.next("expr")))
        return cls(**{arm: self.number(arm)})

    def _known(self, name: str) -> schema.SymExpr:
        expression = self._expressions.get(name)
        if expression is None:
            self.fail(f"an expression that is declared above, got {name},", back=1)
        return expression

    def _tensor(self, text: str) -> schema.TensorMeta:
        """Return the type of a tensor, from the text of its token."""
        parts = _PART.findall(text)
        (dtype, inside), rest = parts[0], dict(parts[1:])
        number = _SHORT.get(dtype)
        if number is None:
            if dtype not in schema.ScalarType.__members__:
                self.fail(f"an element type ({', '.join(_SHORT)}), got {dtype!r},", back=1)
            number = schema.ScalarType[dtype]
        sizes = self._sizes(inside)
        if "strides" in rest:
            strides = self._sizes(rest["strides"])
        else:
            plain = [size.as_int for size in sizes]
            if not all(isinstance(size, int) for size in plain):
                self.fail("strides[…] where a size is an expression", back=1)
            strides = [schema.SymInt(as_int=step) for step in contiguous_strides(plain)]  # type: ignore[arg-type]
        offset = self._sizes(rest["offset"])[0] if rest.get("offset") else schema.SymInt(as_int=0)
        layout = rest.get("layout", "Strided")
        if layout not in schema.Layout.__members__:
            self.fail(f"a layout ({', '.join(schema.Layout.__members__)}), got {layout!r},", back=1)
        device = self._device_of(rest["on"]) if "on" in rest else schema.Device("cpu")
        return schema.TensorMeta(
            number, sizes, rest.get("grad") == "true", device, strides, offset, schema.Layout[layout]
        )

    def _sizes(self, text: str) -> list[schema.SymInt]:
        sizes = []
        for part in text.split(",") if text.strip() else ():
            word = part.strip()
            if word.startswith("#"):
                sizes.append(schema.SymInt(as_expr=self._known(word)))
            elif word.removeprefix("-").isdecimal():
                sizes.append(schema.SymInt(as_int=self.whole(word)))
            else:
                self.fail(f"a size, got {word[:40]!r},", back=1)
        return sizes

    def _device_of(self, text: str) -> schema.Device:
        kind, _, index = text.rpartition(",") if '"' not in text.rpartition(",")[2] else (text, "", "")
        try:
            name = json.loads(kind or text)
            if isinstance(name, str) and name.encode():
                return schema.Device(name, int(index) if index else None)
        except ValueError:
            pass
        return self.fail(f'a device such as "cuda", 0, got {text[:40]!r},', back=1)

    def _named(self) -> schema.NamedArgument:
        kind: schema.ArgumentKind | None = schema.ArgumentKind.POSITIONAL
        token = self.tokens[self.at]
        if token in _MARKS:
            kind = _MARKS[token]
            self.at += 1
        name = ""
        if self.tokens[self.at + 1] == "=" and self.kinds[self.at] in ("word", "string"):
            name = self.string() if self.kinds[self.at] == "string" else self.next("word")
            self.sign("=")
        return schema.NamedArgument(name, self.argument(), kind)

    def argument(self) -> Argument:
        """Parse one argument of a node, a graph or a call."""
        kind, token = self.kinds[self.at], self.tokens[self.at]
        if kind == "value":
            self.at += 1
            tensor = self._tensors.get(token)
            if tensor is None:
                tensor = self._tensors[token] = Argument(as_tensor=TensorArgument(self.unquoted(token[1:])))
            return tensor
        if kind == "word" and token in _WORDS and self.tokens[self.at + 1] == "(":
            self.at += 1
            return _WORDS[token](self)
        if kind in ("string", "number", "word"):
            value = self.constant()
            return Argument(as_none=True) if value is None else Argument.create(**{plain_arm(value): value})
        if token == "[":
            return self._list()
        return self.fail("an argument")

    def _item(self) -> Argument:
        return self.argument() if self.tokens[self.at] != "[" else self.fail("an argument other than a list")

    def _list(self) -> Argument:
        items = self.listed("[", "]", self._item)
        arms = {item.type for item in items}
        arm = next(iter(arms)) if len(arms) == 1 else ""
        if arm == "as_tensor" or arm in PLAIN_ARMS.values():
            made: Argument = Argument.create(**{f"{arm}s": [item.value for item in items]})
            return made
        return self.fail("a list of values, numbers or texts of one kind", back=1)


# Words with brackets and the arguments that they stand for, such as `sym_ints(%s, 3)`.


def _symbolic(cls: type[Any]) -> Callable[[Reader], Any]:
    name, number = cls.__struct_fields__

    def read(reader: Reader) -> Any:
        is_named = reader.kinds[reader.at] == "value"
        return cls(**{name: reader.name()} if is_named else {number: reader.number(number)})

    return read


def _member(cls: Any, names: Mapping[str, Any] = MappingProxyType({})) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        word = reader.next("word")
        member = names.get(word, cls.__members__.get(word))
        if member is None:
            reader.fail(f"one of {', '.join([*names, *cls.__members__])}", back=1)
        return member

    return read


def _optional(reader: Reader) -> schema.OptionalTensorArgument:
    if reader.take("none"):
        return schema.OptionalTensorArgument(as_none=True)
    return schema.OptionalTensorArgument(as_tensor=TensorArgument(reader.name()))


def _device(reader: Reader) -> schema.Device:
    kind = reader.string()
    return schema.Device(kind, reader.integer() if reader.take(",") else None)


def _object(reader: Reader) -> schema.CustomObjArgument:
    name = reader.name()
    reader.sign(",")
    return schema.CustomObjArgument(name, reader.string())


def _complex(reader: Reader) -> schema.ComplexValue:
    real = float(reader.constant())
    reader.sign(",")
    return schema.ComplexValue(real, float(reader.constant()))


def _graph(reader: Reader) -> schema.GraphArgument:
    name = reader.string()
    return schema.GraphArgument(name, reader.block()[0])


def _entry(reader: Reader) -> tuple[str, Argument]:
    reader.depth += 1
    if reader.depth > MAX_SUBGRAPH_DEPTH:
        reader.fail("dicts nested less deeply")
    entry = reader.pair(reader.argument)
    reader.depth -= 1
    return entry


_ITEMS: Final[Mapping[Any, Callable[[Reader], Any]]] = {
    TensorArgument: lambda reader: TensorArgument(reader.name()),
    **{cls: _symbolic(cls) for cls in (schema.SymIntArgument, schema.SymFloatArgument, schema.SymBoolArgument)},
    schema.OptionalTensorArgument: _optional,
    schema.ScalarType: _member(schema.ScalarType, _SHORT),
    schema.MemoryFormat: _member(schema.MemoryFormat),
    schema.Layout: _member(schema.Layout),
    schema.Device: _device,
    schema.CustomObjArgument: _object,
    schema.ComplexValue: _complex,
    schema.GraphArgument: _graph,
}
"""Class of the schema -> what reads one value of it; all others are constants."""


def _item(kind: Any) -> Callable[[Reader], Any]:
    """Return what reads one value of a type of the schema; lists are in brackets."""
    if get_origin(kind) is not list:
        return _ITEMS.get(kind, Reader.constant)
    one = _item(*get_args(kind))
    return lambda reader: reader.listed("[", "]", lambda: one(reader))


def _word(arm: str, kind: Any) -> Callable[[Reader], Argument]:
    """Return what reads an argument of an arm in brackets after its word."""
    container = get_origin(kind)
    one = _entry if container is dict else _item(*get_args(kind)) if container is list else _item(kind)

    def read(reader: Reader) -> Argument:
        if container is not None:
            value = container(reader.listed("(", ")", lambda: one(reader)))
        else:
            reader.sign("(")
            value = one(reader)
            reader.sign(")")
        argument: Argument = Argument.create(**{arm: value})
        return argument

    return read


_WORDS: Final[Mapping[str, Callable[[Reader], Argument]]] = {
    WORDS.get(arm[3:], arm[3:]): _word(arm, kind)
    for arm, kind in field_classes(Argument).items()
    if arm[3:] not in LITERALS
}
"""Word with brackets -> what reads the argument that it stands for."""
