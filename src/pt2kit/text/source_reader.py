"""The text form of a program -> the program: what `source` prints, and what people write by hand.

One regular expression cuts the text into tokens; each rule of the grammar (`docs/text.md`) is one function. The text
of a type is read once, however often it occurs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from pt2kit import codec, schema
from pt2kit.collector import no_collection
from pt2kit.errors import Pt2Error, SchemaError
from pt2kit.graph import MAX_SUBGRAPH_DEPTH, arguments
from pt2kit.schema import Argument, TensorArgument
from pt2kit.tensors.bounds import contiguous_strides
from pt2kit.tensors.dtypes import DTYPES
from pt2kit.text.source_words import INPUT_WORDS, KIND_MARKS, OUTPUT_WORDS, VERSION, input_spec, output_spec

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TYPE = r"[A-Za-z]\w*\[[^\]\n]*\](?: (?:strides|offset|on|layout|grad)\[[^\]\n]*\])*"
_TOKENS: Final = re.compile(
    rf"[ \t\r\n]*(?://[^\n]*[ \t\r\n]*)*(?:(?P<string>{_STRING})|(?P<value>%(?:[A-Za-z_]\w*|{_STRING}))"
    rf"|(?P<type>{_TYPE})|(?P<number>-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf))|(?P<word>[A-Za-z_][\w.]*)"
    r"|(?P<expr>#\w+)|(?P<sign>[()\[\]{}=:,*!?])|(?P<end>\Z))",
    re.ASCII,
)
_PART: Final = re.compile(rf"(\w+)\[((?:{_STRING}|[^\]])*)\]")
_SHORT: Final = {row.short: number for number, row in DTYPES.items()}
_MARKS: Final = {mark: kind for kind, mark in KIND_MARKS.items() if mark}
_INPUTS: Final = {word: kind for kind, word in INPUT_WORDS.items()}
_CONSTANTS: Final = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}
_TABLES: Final = ("tensor", "sym_int", "sym_float", "sym_bool", "custom_obj")
_UNKNOWN: Final = object()


def parse(text: str, where: str = "text") -> schema.ExportedProgram:
    """Read a program from its text form.

    Args:
        text: what `print_program` wrote, or what was written by hand.
        where: what messages call it.

    Returns:
        The program. What its text leaves out is as `docs/text.md` says; nothing is checked beyond the grammar and the
        schema, `pt2kit.edit` and `pt2kit.check` do that.

    Raises:
        SchemaError: text that the grammar does not have; the message names the line.

    Cost: linear; a program of 2,700 nodes takes about half a second.
    """
    with no_collection():
        return _Reader(text, where).program()


class _Reader:
    """Reads one text; `at` is the token at hand."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._tokens: list[str] = []
        self._kinds: list[str] = []
        self._cut()
        self.at = 0
        self._expressions: dict[str, schema.SymExpr] = {}
        self._types: dict[str, schema.TensorMeta] = {}
        self._strings: dict[str, str] = {}
        self._tensors: dict[str, Argument] = {}
        self._depth = 0

    def program(self) -> schema.ExportedProgram:
        """The whole text."""
        self._word("pt2")
        if self._int() != VERSION:
            self._fail(f"the version {VERSION} of the text form", back=1)
        version = schema.SchemaVersion(*schema.CURRENT.pair)
        held: dict[str, Any] = {
            "torch": "", "opset": {}, "verifier": [], "range": {}, "guard": [], "metadata": {}, "namedtuple": {},
            "module": [],
        }  # fmt: skip
        while not self._is("graph"):
            word = self._next("word")
            if word == "schema":
                version = self._version()
            elif word == "torch":
                held["torch"] = self._string()
            elif word in ("verifier", "guard"):
                held[word].append(self._string())
            elif word == "module":
                held["module"].append(self._module())
            elif word == "expr":
                self._expression()
            elif word in _HEADERS:
                name = self._string()
                held[word][name] = _HEADERS[word](self)
            else:
                self._fail("a word of the head (schema, torch, opset, range, …) or graph", back=1)
        self.at += 1
        graph, signature = self._block(is_root=True)
        self._next("end")
        module = schema.GraphModule(graph, signature, held["module"], held["metadata"], held["namedtuple"])
        return schema.ExportedProgram(
            module, held["opset"], held["range"], version, held["verifier"], held["torch"], held["guard"]
        )

    def _cut(self) -> None:
        """Cut the text into tokens.

        Raises:
            SchemaError: something that is no token.
        """
        position, text, match = 0, self._text, _TOKENS.match
        tokens, kinds = self._tokens, self._kinds
        while True:
            found = match(text, position)
            if found is None:
                line = text.count("\n", 0, position) + 1
                raise SchemaError(f"{self._where}: line {line}: expected a token, got {text[position : position + 40]!r}")
            kind = found.lastgroup or "end"
            kinds.append(kind)
            tokens.append(found[kind])
            position = found.end()
            if kind == "end":
                return

    def _version(self) -> schema.SchemaVersion:
        major, dot, minor = self._next("number").partition(".")
        if not dot or not major.isdecimal() or not minor.isdecimal():
            self._fail("a schema version such as 8.20", back=1)
        return schema.SchemaVersion(int(major), int(minor))

    def _range(self) -> schema.RangeConstraint:
        low, high = self._constant(), self._constant()
        if any(type(end) is not int and end is not None for end in (low, high)):
            self._fail("two ints or none", back=1)
        return schema.RangeConstraint(low, high)

    def _expression(self) -> None:
        name, text = self._next("expr"), self._string()
        hint = None
        if self._take("hint"):
            value = self._constant()
            arm = {bool: "as_bool", int: "as_int", float: "as_float"}.get(type(value))
            if arm is None:
                self._fail("an int, a float or a bool", back=1)
            hint = schema.SymExprHint(**{arm: value})
        self._expressions[name] = schema.SymExpr(text, hint)

    def _module(self) -> schema.ModuleCallEntry:
        fqn = self._string()
        if not self._take("takes"):
            return schema.ModuleCallEntry(fqn, None)
        ins = self._listed("(", ")", self._argument)
        self._word("gives")
        outs = self._listed("(", ")", self._argument)
        self._word("in_spec")
        in_spec = self._string()
        self._word("out_spec")
        out_spec = self._string()
        names = self._listed("[", "]", self._string) if self._take("names") else None
        return schema.ModuleCallEntry(fqn, schema.ModuleCallSignature(ins, outs, in_spec, out_spec, names))

    def _block(self, *, is_root: bool = False) -> tuple[schema.Graph, schema.GraphSignature]:
        """A graph in braces, and what its inputs and outputs are."""
        self._depth += 1
        if self._depth > MAX_SUBGRAPH_DEPTH + 1:
            self._fail(f"subgraphs nested at most {MAX_SUBGRAPH_DEPTH} levels deep")
        self._sign("{")
        held: dict[str, dict[str, Any]] = {kind: {} for kind in _TABLES}
        ins: list[Argument] = []
        outs: list[Argument] = []
        nodes: list[schema.Node] = []
        specs: list[Any] = []
        results: list[Any] = []
        signature, single = None, False
        tokens = self._tokens
        while tokens[self.at] != "}":
            word = tokens[self.at] if self._kinds[self.at] == "word" and tokens[self.at + 1] != "(" else ""
            if word == "input":
                self.at += 1
                ins.append(self._argument())
                self._defined(ins[-1:], held)
                specs += [self._role(ins[-1], _INPUTS, input_spec)] if is_root and self._take("=") else []
            elif word == "output":
                self.at += 1
                outs.append(self._argument())
                words = dict(zip(OUTPUT_WORDS, OUTPUT_WORDS, strict=True))
                results += [self._role(outs[-1], words, output_spec)] if is_root and self._take("=") else []
            elif word == "single":
                self.at += 1
                single = True
            elif word == "signature":
                self.at += 1
                signature = self._signature()
            elif word == "entry":
                self.at += 1
                table, name = self._table(held), self._string()
                table[name] = self._type()[1]
            elif word == "order":
                self.at += 1
                self._order(held)
            else:
                nodes.append(self._node(held))
        self.at += 1
        self._depth -= 1
        graph = schema.Graph(
            ins, outs, nodes, held["tensor"], held["sym_int"], held["sym_bool"], single, held["custom_obj"],
            held["sym_float"],
        )  # fmt: skip
        return graph, signature or schema.GraphSignature(specs, results)

    def _table(self, held: dict[str, dict[str, Any]]) -> dict[str, Any]:
        kind = self._next("word")
        if kind not in held:
            self._fail(f"one of {', '.join(_TABLES)}", back=1)
        return held[kind]

    def _order(self, held: dict[str, dict[str, Any]]) -> None:
        table = self._table(held)
        names = self._listed("[", "]", self._string)
        if sorted(names) != sorted(table):
            self._fail("all names of the table", back=1)
        rows = {name: table[name] for name in names}
        table.clear()
        table.update(rows)

    def _signature(self) -> schema.GraphSignature:
        try:
            found: schema.GraphSignature = codec.decode(
                memoryview(self._string().encode()), schema.GraphSignature, self._where
            ).value
        except Pt2Error as error:
            self._fail(f"a signature as JSON ({error})", back=1)
        return found

    def _role(self, argument: Argument, words: Mapping[str, str], make: Callable[..., Any]) -> Any:
        word = self._next("word")
        if word not in words:
            self._fail(f"one of {', '.join(words)}", back=1)
        rest = []
        while self._kinds[self.at] in ("string", "number") or self._tokens[self.at] in _CONSTANTS:
            rest.append(self._constant())
        try:
            return make(words[word], argument, rest)
        except (TypeError, ValueError) as error:
            self._fail(f"what {word} needs ({error})", back=1)

    def _node(self, held: dict[str, dict[str, Any]]) -> schema.Node:
        tokens = self._tokens
        outputs: list[Argument] = []
        if not (self._kinds[self.at] in ("word", "string") and tokens[self.at + 1] == "(" and self._is_call()):
            outputs.append(self._argument())
            while tokens[self.at] == ",":
                self.at += 1
                outputs.append(self._argument())
            self._sign("=")
        kind = self._kinds[self.at]
        target = self._string() if kind == "string" else self._next("word")
        inputs = self._listed("(", ")", self._named)
        self._defined(outputs, held)
        name: str | None = None
        if len(outputs) == 1 and isinstance(outputs[0].as_tensor, TensorArgument):
            name = outputs[0].as_tensor.name
        single: bool | None = None
        metadata: dict[str, str] = {}
        while True:
            token = tokens[self.at]
            if token == "named":
                self.at += 1
                name = self._string()
            elif token == "unnamed":
                self.at += 1
                name = None
            elif token == "single" and tokens[self.at + 1] in ("true", "false"):
                single = tokens[self.at + 1] == "true"
                self.at += 2
            elif token == "{":
                metadata = dict(self._listed("{", "}", self._pair))
            else:
                return schema.Node(target, inputs, outputs, metadata, single, name)

    def _is_call(self) -> bool:
        """Whether a word with brackets is an operator, and not a result such as `sym_int(%x)`."""
        return self._kinds[self.at] == "string" or self._tokens[self.at] not in _WORDS

    def _pair(self) -> tuple[str, str]:
        key = self._string()
        self._sign(":")
        return key, self._string()

    def _defined(self, defining: list[Argument], held: dict[str, dict[str, Any]]) -> None:
        """Read the types of the values that some arguments define, and enter them into the tables."""
        if not self._take(":"):
            return
        names = [name for argument in defining for name in arguments(argument)]
        for number, name in enumerate(names):
            if number:
                self._sign(",")
            kind, meta = self._type()
            if meta is not _UNKNOWN:
                held[kind][name] = meta

    def _type(self) -> tuple[str, Any]:
        kind, token = self._kinds[self.at], self._tokens[self.at]
        self.at += 1
        if kind == "type":
            found = self._types.get(token)
            if found is None:
                found = self._types[token] = self._tensor(token)
            return "tensor", found
        if token == "?":
            return "tensor", _UNKNOWN
        if token in ("int", "float", "bool"):
            classes = {"int": schema.SymInt, "float": schema.SymFloat, "bool": schema.SymBool}
            return f"sym_{token}", self._symbolic(classes[token], f"as_{token}")
        if token == "object":
            self._sign("(")
            name = self._name()
            self._sign(",")
            held = schema.CustomObjArgument(name, self._string())
            self._sign(")")
            return "custom_obj", held
        self._fail("a type such as f32[2, 3], int 4 or object(%x, \"class\")", back=1)

    def _symbolic(self, cls: type[Any], arm: str) -> Any:
        if self._kinds[self.at] == "expr":
            return cls(as_expr=self._known(self._next("expr")))
        return cls(**{arm: self._constant()})

    def _known(self, name: str) -> schema.SymExpr:
        found = self._expressions.get(name)
        if found is None:
            self._fail(f"an expression that is declared above, got {name},", back=1)
        return found

    def _tensor(self, text: str) -> schema.TensorMeta:
        """The type of a tensor, from the text of its token."""
        parts = _PART.findall(text)
        (dtype, inside), rest = parts[0], dict(parts[1:])
        number = _SHORT.get(dtype)
        if number is None:
            if dtype not in schema.ScalarType.__members__:
                self._fail(f"an element type ({', '.join(_SHORT)}), got {dtype!r},", back=1)
            number = schema.ScalarType[dtype]
        sizes = self._sizes(inside)
        if "strides" in rest:
            strides = self._sizes(rest["strides"])
        else:
            plain = [size.as_int for size in sizes]
            if not all(isinstance(size, int) for size in plain):
                self._fail("strides[…] where a size is an expression", back=1)
            strides = [schema.SymInt(as_int=step) for step in contiguous_strides(plain)]  # type: ignore[arg-type]
        offset = self._sizes(rest["offset"])[0] if rest.get("offset") else schema.SymInt(as_int=0)
        layout = rest.get("layout", "Strided")
        if layout not in schema.Layout.__members__:
            self._fail(f"a layout ({', '.join(schema.Layout.__members__)}), got {layout!r},", back=1)
        device = self._device_of(rest["on"]) if "on" in rest else schema.Device("cpu")
        return schema.TensorMeta(
            number, sizes, rest.get("grad") == "true", device, strides, offset, schema.Layout[layout]
        )

    def _sizes(self, text: str) -> list[schema.SymInt]:
        found = []
        for part in text.split(",") if text.strip() else ():
            word = part.strip()
            if word.startswith("#"):
                found.append(schema.SymInt(as_expr=self._known(word)))
            elif word.removeprefix("-").isdecimal():
                found.append(schema.SymInt(as_int=int(word)))
            else:
                self._fail(f"a size, got {word[:40]!r},", back=1)
        return found

    def _device_of(self, text: str) -> schema.Device:
        kind, _, index = text.rpartition(",") if '"' not in text.rpartition(",")[2] else (text, "", "")
        try:
            return schema.Device(json.loads(kind or text), int(index) if index else None)
        except ValueError:
            self._fail(f'a device such as "cuda", 0, got {text[:40]!r},', back=1)

    def _named(self) -> schema.NamedArgument:
        kind: schema.ArgumentKind | None = schema.ArgumentKind.POSITIONAL
        token = self._tokens[self.at]
        if token in _MARKS:
            kind = _MARKS[token]
            self.at += 1
        name = ""
        if self._tokens[self.at + 1] == "=" and self._kinds[self.at] in ("word", "string"):
            name = self._string() if self._kinds[self.at] == "string" else self._tokens[self.at]
            self.at += 1 if self._kinds[self.at] == "word" else 0
            self._sign("=")
        return schema.NamedArgument(name, self._argument(), kind)

    def _argument(self) -> Argument:
        kind, token = self._kinds[self.at], self._tokens[self.at]
        if kind == "value":
            self.at += 1
            found = self._tensors.get(token)
            if found is None:
                found = self._tensors[token] = Argument(as_tensor=TensorArgument(self._unquoted(token[1:])))
            return found
        if kind == "word" and token in _WORDS and self._tokens[self.at + 1] == "(":
            self.at += 1
            return _WORDS[token](self)
        if kind in ("string", "number", "word"):
            value = self._constant()
            return Argument(as_none=True) if value is None else Argument(**{_ARMS[type(value)]: value})
        if token == "[":
            return self._list()
        self._fail("an argument")

    def _list(self) -> Argument:
        items = self._listed("[", "]", self._argument)
        arms = {item.type for item in items}
        arm = next(iter(arms)) if len(arms) == 1 else ""
        if arm == "as_tensor" or arm in _ARMS.values():
            return Argument(**{f"{arm}s": [item.value for item in items]})
        self._fail("a list of values, numbers or texts of one kind", back=1)

    def _listed(self, first: str, last: str, one: Callable[[], Any]) -> list[Any]:
        self._sign(first)
        found: list[Any] = []
        tokens = self._tokens
        while tokens[self.at] != last or self._kinds[self.at] != "sign":
            if found:
                self._sign(",")
            found.append(one())
        self.at += 1
        return found

    def _constant(self) -> Any:
        kind, token = self._kinds[self.at], self._tokens[self.at]
        if kind == "string":
            return self._string()
        self.at += 1
        if kind == "number":
            return int(token) if token.removeprefix("-").isdecimal() else float(token)
        if kind == "word" and token in _CONSTANTS:
            return _CONSTANTS[token]
        self._fail("a number, a text, true, false or none", back=1)

    def _int(self) -> int:
        value = self._constant()
        if type(value) is not int:
            self._fail("an int", back=1)
        return value

    def _name(self) -> str:
        return self._unquoted(self._next("value")[1:])

    def _string(self) -> str:
        return self._unquoted(self._next("string"))

    def _unquoted(self, token: str) -> str:
        if token[0] != '"':
            return token
        found = self._strings.get(token)
        if found is None:
            try:
                found = self._strings[token] = json.loads(token)
            except ValueError:
                self._fail("a text as JSON writes it", back=1)
        return found

    def _is(self, token: str) -> bool:
        return self._tokens[self.at] == token and self._kinds[self.at] != "string"

    def _take(self, token: str) -> bool:
        if not self._is(token):
            return False
        self.at += 1
        return True

    def _word(self, word: str) -> None:
        if not self._take(word):
            self._fail(repr(word))

    _sign = _word

    def _next(self, kind: str) -> str:
        if self._kinds[self.at] != kind:
            self._fail({"end": "the end of the text", "value": "the name of a value, %x"}.get(kind, f"a {kind}"))
        self.at += 1
        return self._tokens[self.at - 1]

    def _fail(self, expected: str, back: int = 0) -> NoReturn:
        """Refuse the token at hand, or one before it; where it stands is found out only now."""
        number = max(self.at - back, 0)
        position = 0
        for _ in range(number + 1):
            found = _TOKENS.match(self._text, position)
            start, position = (found.start(found.lastgroup or 0), found.end()) if found else (position, position)
        line = self._text.count("\n", 0, start) + 1
        got = self._tokens[number][:60] or "the end"
        raise SchemaError(f"{self._where}: line {line}: expected {expected}, got {got!r}")


def _in_brackets(read: Callable[[_Reader], Argument]) -> Callable[[_Reader], Argument]:
    def parse_word(reader: _Reader) -> Argument:
        reader._sign("(")
        found = read(reader)
        reader._sign(")")
        return found

    return parse_word


def _symbolic_item(cls: type[Any], arm: str) -> Callable[[_Reader], Any]:
    def read(reader: _Reader) -> Any:
        if reader._kinds[reader.at] == "value":
            return cls(as_name=reader._name())
        return cls(**{arm: reader._constant()})

    return read


def _items(arm: str, one: Callable[[_Reader], Any]) -> Callable[[_Reader], Argument]:
    return lambda reader: Argument(**{arm: reader._listed("(", ")", lambda: one(reader))})


def _single(arm: str, one: Callable[[_Reader], Any]) -> Callable[[_Reader], Argument]:
    return _in_brackets(lambda reader: Argument(**{arm: one(reader)}))


def _member(cls: Any, names: Mapping[str, Any] | None = None) -> Callable[[_Reader], Any]:
    def read(reader: _Reader) -> Any:
        word = reader._next("word")
        found = (names or {}).get(word, cls.__members__.get(word))
        if found is None:
            reader._fail(f"one of {', '.join([*(names or {}), *cls.__members__])}", back=1)
        return found

    return read


def _optional(reader: _Reader) -> schema.OptionalTensorArgument:
    if reader._take("none"):
        return schema.OptionalTensorArgument(as_none=True)
    return schema.OptionalTensorArgument(as_tensor=TensorArgument(reader._name()))


def _device(reader: _Reader) -> schema.Device:
    kind = reader._string()
    return schema.Device(kind, reader._int() if reader._take(",") else None)


def _object(reader: _Reader) -> schema.CustomObjArgument:
    name = reader._name()
    reader._sign(",")
    return schema.CustomObjArgument(name, reader._string())


def _complex(reader: _Reader) -> schema.ComplexValue:
    real = float(reader._constant())
    reader._sign(",")
    return schema.ComplexValue(real, float(reader._constant()))


def _graph(reader: _Reader) -> schema.GraphArgument:
    name = reader._string()
    return schema.GraphArgument(name, reader._block()[0])


def _dict(reader: _Reader) -> Argument:
    def one() -> tuple[str, Argument]:
        key = reader._string()
        reader._sign(":")
        return key, reader._argument()

    reader._depth += 1
    if reader._depth > MAX_SUBGRAPH_DEPTH:
        reader._fail("dicts nested less deeply")
    found = dict(reader._listed("(", ")", one))
    reader._depth -= 1
    return Argument(as_string_to_argument=found)


def _row(one: Callable[[_Reader], Any]) -> Callable[[_Reader], list[Any]]:
    return lambda reader: reader._listed("[", "]", lambda: one(reader))


def _tensor_item(reader: _Reader) -> TensorArgument:
    return TensorArgument(reader._name())


def _constant_item(reader: _Reader) -> Any:
    return reader._constant()


_ARMS: Final[Mapping[type, str]] = MappingProxyType(
    {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
)
_INT = _symbolic_item(schema.SymIntArgument, "as_int")
_FLOAT = _symbolic_item(schema.SymFloatArgument, "as_float")
_BOOL = _symbolic_item(schema.SymBoolArgument, "as_bool")
_WORDS: Final[Mapping[str, Callable[[_Reader], Argument]]] = MappingProxyType(
    {
        "none": _single("as_none", _constant_item),
        "tensors": _items("as_tensors", _tensor_item),
        "ints": _items("as_ints", _constant_item),
        "floats": _items("as_floats", _constant_item),
        "strings": _items("as_strings", _constant_item),
        "bools": _items("as_bools", _constant_item),
        "sym_int": _single("as_sym_int", _INT),
        "sym_ints": _items("as_sym_ints", _INT),
        "sym_float": _single("as_sym_float", _FLOAT),
        "sym_floats": _items("as_sym_floats", _FLOAT),
        "sym_bool": _single("as_sym_bool", _BOOL),
        "sym_bools": _items("as_sym_bools", _BOOL),
        "dtype": _single("as_scalar_type", _member(schema.ScalarType, _SHORT)),
        "memory_format": _single("as_memory_format", _member(schema.MemoryFormat)),
        "layout": _single("as_layout", _member(schema.Layout)),
        "device": _single("as_device", _device),
        "optional_tensor": _single("as_optional_tensor", _optional),
        "optional_tensors": _items("as_optional_tensors", _optional),
        "nested_tensors": _items("as_nested_tensors", _row(_tensor_item)),
        "object": _single("as_custom_obj", _object),
        "operator": _single("as_operator", lambda reader: reader._string()),
        "complex": _single("as_complex", _complex),
        "int_lists": _items("as_int_lists", _row(_constant_item)),
        "float_lists": _items("as_float_lists", _row(_constant_item)),
        "graph": _single("as_graph", _graph),
        "dict": _dict,
    }
)
"""Word with brackets -> what reads the argument that it stands for."""

_HEADERS: Final[Mapping[str, Callable[[_Reader], Any]]] = MappingProxyType(
    {
        "opset": lambda reader: reader._int(),
        "range": lambda reader: reader._range(),
        "metadata": lambda reader: reader._string(),
        "namedtuple": lambda reader: schema.NamedTupleDef(reader._listed("[", "]", reader._string)),
    }
)
"""Word of the head that is followed by a name -> what reads the rest of the line."""
