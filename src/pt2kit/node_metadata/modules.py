"""Module stacks of nodes (`nn_module_stack`), parsed and printed, and the module tree of a program built from them.

A stack is parsed to the modules of the call, outermost first.

    key:(path,type);key:(path,type)         torch 2.1                                "paren"
    key,path,type;key,path,type             torch 2.2 and later                      "comma"
    the same, with percent escapes          pt2kit, only where a name needs them     "escaped"
    the same, at each comma of a name       pt2kit, for torch 2.2 to 2.6             "no_commas"

`key` identifies the module instance (`L__self___fc`, or a number that was an address), `path` is how the traced code
reached it (`L['self'].fc`, `getattr(L['fn'], '0')`, `fc`), `type` its class. torch escapes nothing: its reader splits
at ";" and at commas outside brackets (up to 2.6 at commas inside, too: always in 2.2 and 2.3, then in nested brackets)
and refuses a text that does not give three parts. This reader also takes names with separators apart, as far as the
text lets it; `dump_module_stack(entries, module_stack_style(text))` is the text again.

Names are escaped only if a separator is inside a name: one that contains "," or ";" would come back as two. pt2kit
writes such a character as "%" and its two hexadecimal digits ("," is %2C, ";" is %3B). Text without separators inside
names is unchanged, and torch reads the escaped text too (it shows the escape). A name that itself contains the letters
of an escape has "25" put after its percent sign, so that reading and writing are inverse to each other for every name.

The module tree is built from module stacks of nodes, module names and parameter names. The path in a stack differs by
release: `L['self'].mid.n`, `L['self'].d['a-b']`, `getattr(L['fn'], '0')`, `mid.n`, `_export_root`. `module_fqn` returns
the one dotted name for all of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pt2kit.errors import LimitError, SchemaError, attempt

_CODES = {",": "2C", ";": "3B", "(": "28", ")": "29", "[": "5B", "]": "5D"}
_CHARACTERS = {code: character for character, code in _CODES.items()}

Style = Literal["paren", "comma", "escaped", "no_commas"]

_SEPARATORS = ",;()[]"
_SPECIAL = re.compile(r"[\[\](),]")
_PAREN_ENTRY_END = re.compile(r"\);(?=[^;,()]*:\()")
_TYPE = re.compile(r"[\w.<>@$-]+")
_NOT_WORD = re.compile(r"\W")

# Limits of the search for entries in text with separators inside names; ordinary text is split without a search.
_MAX_SEARCHED_CHARACTERS = 65_536
_MAX_SEARCHED_PIECES = 512
_MAX_JOINED_PIECES = 8
_MAX_PARTS = 32

MAX_MODULE_DEPTH = 64  # real models nest about ten deep; deeper modules keep their dotted name as one name
MAX_MODULES = 200_000

# The path that torch gives nodes which it made itself, outside every module.
NO_MODULE = "_empty_nn_module_stack_from_metadata_hook"
_EXPORT_ROOT = "_export_root"

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_HEAD = re.compile(rf"((?:getattr\()*)L\[(?:{_STRING})\]")
_STEP = re.compile(rf"\.([^.\[\](),'\"]+)|\[(\d+|{_STRING})\]|, ?({_STRING})\)")
_REPEATED_CALL = re.compile(r"@\d+")


def _pattern(separators: str) -> re.Pattern[str]:
    codes = "|".join(_CODES[character] for character in separators)
    return re.compile(rf"%((?:25)*)({codes})|([{re.escape(separators)}])")


_PATTERNS = {separators: _pattern(separators) for separators in (";", ",;", ",;()[]")}
_ESCAPED = {separators: frozenset(f"%{separators}") for separators in _PATTERNS}


def encode_name(name: str, separators: str, *, only: str | None = None) -> str:
    """Return a name as text without separators.

    Args:
        name: any text.
        separators: the characters that structure the text around it: ";", ",;" or ",;()[]".
        only: the ones to escape, all by default; literal escapes are protected for all of them.
    """
    if _ESCAPED[only or separators].isdisjoint(name):
        return name

    def write(match: re.Match[str]) -> str:
        character = match.group(3)
        if character is None:
            return f"%25{match.group()[1:]}"
        return f"%{_CODES[character]}" if only is None or character in only else character

    return _PATTERNS[separators].sub(write, name)


def decode_name(text: str, separators: str) -> str:
    """Return the name that `encode_name` wrote with these separators; other text is its own name."""
    if "%" not in text:
        return text

    def read(match: re.Match[str]) -> str:
        protected, code, plain = match.groups()
        if plain is not None:
            return str(plain)
        return f"%{protected[2:]}{code}" if protected else _CHARACTERS[code]

    return _PATTERNS[separators].sub(read, text)


@dataclass(frozen=True, slots=True)
class ModuleEntry:
    """One module of a stack.

    Args:
        key: identity of the instance, as text.
        path: how traced code reached it; "" for the root.
        type: qualified name of its class.
    """

    key: str
    path: str
    type: str


@lru_cache(maxsize=256)  # neighboring nodes have equal texts, and each is asked for several times
def parse_module_stack(text: str, where: str = "nn_module_stack") -> tuple[ModuleEntry, ...]:
    """Return the entries of a stack, outermost first; () for an empty text.

    Raises:
        SchemaError: the text can't be divided into entries of three parts.

    Source: `deserialize_metadata` in torch/_export/serde/serialize.py (2.13); where it reads a text, the entries are
    the same.
    """
    if not text:
        return ()
    style = module_stack_style(text)
    if style == "paren":
        return tuple(_paren_entry(piece, where) for piece in _paren_pieces(text))
    return _entries(text, str if style == "comma" else _unescaped) or _search(text, where)


@lru_cache(maxsize=256)  # also of texts that cannot be read, of which a search is made
def stated_modules(text: str) -> tuple[ModuleEntry, ...]:
    """Return the modules that the stack of a node names, outermost first; () if it names none or cannot be read."""
    return tuple(entry for entry in attempt(parse_module_stack, text) or () if entry.path != NO_MODULE)


def module_of(metadata: Mapping[str, str]) -> str:
    """Return the dotted name of the innermost module of a node; "" for the root, or if its metadata names none."""
    entries = stated_modules(metadata.get("nn_module_stack", ""))
    return module_fqn(entries[-1].path) if entries else ""


def torch_reads(text: str) -> bool:
    """Return whether torch divides a stack into entries of three parts; otherwise it refuses the program.

    Texts of torch 2.1 ("paren") count as readable: their programs are upgraded before another release reads them.
    """
    return not text or _looks_paren(text) or _entries(text, str) is not None


def module_stack_style(text: str) -> Style:
    """Return the style a stack is written in, so that `dump_module_stack` can return the same text."""
    if _looks_paren(text):
        return "paren"
    if _unescaped(text) != text and (entries := _entries(text, _unescaped)) is not None:
        styles: tuple[Style, ...] = ("escaped", "no_commas")
        return next((style for style in styles if dump_module_stack(entries, style) == text), "comma")
    return "comma"


def dump_module_stack(entries: Sequence[ModuleEntry], style: Style = "escaped") -> str:
    """Write a stack.

    Args:
        entries: outermost first.
        style: "escaped" is what torch writes, except for names that torch could not read back, whose separators are
            escaped; in "no_commas" all commas of names are, which any torch from 2.2 on reads; "comma" and "paren" are
            exactly torch's texts and lose such names.
    """
    if style == "paren":
        return ";".join(f"{entry.key}:({entry.path},{entry.type})" for entry in entries)
    if style == "comma":
        return ";".join(f"{entry.key},{entry.path},{entry.type}" for entry in entries)
    only = ",;" if style == "no_commas" else ";"
    text = ";".join(_lightly_escaped(entry, only) for entry in entries)
    return ";".join(map(_fully_escaped, entries)) if _looks_paren(text) else text


def _looks_paren(text: str) -> bool:
    return text.endswith(")") and ":(" in text and "," not in text.partition(":(")[0]


def _lightly_escaped(entry: ModuleEntry, only: str) -> str:
    light = [encode_name(name, _SEPARATORS, only=only) for name in (entry.key, entry.path, entry.type)]
    if _split_outside_brackets(",".join(light)) == light:
        return ",".join(light)
    return _fully_escaped(entry)


def _fully_escaped(entry: ModuleEntry) -> str:
    return ",".join(encode_name(name, _SEPARATORS) for name in (entry.key, entry.path, entry.type))


def _entries(text: str, read: Callable[[str], str]) -> tuple[ModuleEntry, ...] | None:
    """Return the entries of a stack, each part read by a function; None if an entry has not three parts."""
    split = [_split_outside_brackets(piece) for piece in text.split(";")]
    if any(len(parts) != 3 for parts in split):
        return None
    return tuple(ModuleEntry(*map(read, parts)) for parts in split)


def _unescaped(part: str) -> str:
    return decode_name(part, _SEPARATORS)


def _paren_pieces(text: str) -> list[str]:
    pieces = _PAREN_ENTRY_END.split(text)
    return [*(f"{piece})" for piece in pieces[:-1]), pieces[-1]]


def _paren_entry(piece: str, where: str) -> ModuleEntry:
    key, opened, rest = piece.partition(":(")
    path, comma, kind = rest[:-1].rpartition(",")
    if not opened or not comma or not rest.endswith(")"):
        raise SchemaError(f"{where}: expected entries key:(path,type), got {piece[:80]!a}")
    return ModuleEntry(key, path, kind)


def _split_outside_brackets(text: str) -> list[str]:
    """Split at commas outside of brackets, counting all kinds of brackets alike, as torch's reader does."""
    if not ("[" in text or "(" in text or "]" in text or ")" in text):
        return text.split(",")
    parts = []
    start = depth = 0
    for match in _SPECIAL.finditer(text):
        character = match.group()
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return parts


def _search(text: str, where: str) -> tuple[ModuleEntry, ...]:
    """Divide a text whose names contain separators: the cheapest division into entries, by `_candidate`."""
    pieces = text.split(";")
    if len(text) > _MAX_SEARCHED_CHARACTERS or len(pieces) > _MAX_SEARCHED_PIECES:
        raise SchemaError(f"{where}: expected entries key,path,type joined by ';', got {text[:80]!a}...")
    best: list[tuple[int, tuple[ModuleEntry, ...]] | None] = [None] * len(pieces) + [(0, ())]
    for i in reversed(range(len(pieces))):
        for j in range(i + 1, min(i + _MAX_JOINED_PIECES, len(pieces)) + 1):
            rest = best[j]
            candidate = None if rest is None else _candidate(";".join(pieces[i:j]))
            if rest is None or candidate is None:
                continue
            cost, entry = candidate
            known = best[i]
            if known is None or cost + rest[0] < known[0]:
                best[i] = (cost + rest[0], (entry, *rest[1]))
    cheapest = best[0]
    if cheapest is None:
        raise SchemaError(f"{where}: expected entries key,path,type joined by ';', got {text[:80]!a}")
    return cheapest[1]


def _candidate(text: str) -> tuple[int, ModuleEntry] | None:
    """Read a text as one entry, with a cost that says how unlikely that is; None where it can't be one."""
    parts = _split_outside_brackets(text)
    cost = 0
    if len(parts) < 3:
        parts = text.split(",")  # a bracket in a name that is never closed
        cost = 2
    if len(parts) < 3:
        return None
    if len(parts) > 3:
        cost = max(cost, 1)
    boundary = _boundary(parts)
    key, path, kind = ",".join(parts[:boundary]), ",".join(parts[boundary:-1]), parts[-1]
    if not _TYPE.fullmatch(kind):
        return None  # the one part that never has odd characters, and so the anchor of the search
    cost += 2 * (";" in key) + (not _related(key, path))
    return cost, ModuleEntry(key, path, kind)


def _boundary(parts: Sequence[str]) -> int:
    """Return how many parts are the key: several if the key repeats the path, as from torch 2.8 on; else one."""
    if 3 < len(parts) <= _MAX_PARTS:
        for i in range(1, len(parts) - 1):
            path = ",".join(parts[i:-1])
            if path and _related(",".join(parts[:i]), path):
                return i
    return 1


def _related(key: str, path: str) -> bool:
    return key.isdecimal() or _NOT_WORD.sub("_", key).endswith(_NOT_WORD.sub("_", path))


@dataclass(frozen=True, slots=True)
class ModuleNode:
    """One module of the tree.

    Args:
        name: its name in its parent; "" for the root.
        fqn: its dotted name from the root.
        type: qualified name of its class, None where no stack shows it.
        children: its submodules, in first-seen order.
        parameters: full names of the parameters and buffers that it holds itself, in the given order.
        nodes: how many nodes were traced directly in it.
    """

    name: str
    fqn: str
    type: str | None
    children: tuple[ModuleNode, ...] = ()
    parameters: tuple[str, ...] = ()
    nodes: int = 0


def module_fqn(path: str) -> str:
    """Return the dotted name of a module from the path in a stack entry; "" for the root.

    A path that is no expression of traced code is a dotted name already. Repeated calls of one module ("mid@1") count
    as it.
    """
    names = _expression_names(path)
    fqn = path if names is None else ".".join(names)
    if fqn == _EXPORT_ROOT:
        return ""
    return _REPEATED_CALL.sub("", fqn.removeprefix(f"{_EXPORT_ROOT}."))


def module_tree(
    stacks: Iterable[Sequence[ModuleEntry]], fqns: Iterable[str] = (), parameters: Iterable[str] = ()
) -> ModuleNode:
    """Build the module tree of a program.

    Args:
        stacks: the module stack of every node, in graph order.
        fqns: names from the module call graph.
        parameters: full names of parameters and buffers.

    Returns:
        The root. Every name's parents are in the tree, seen or not.

    Raises:
        LimitError: more than `MAX_MODULES` modules.

    Cost: linear in nodes times stack depth; names of one path are worked out once.
    """
    children: dict[str, list[str]] = {"": []}
    types: dict[str, str] = {}
    held: dict[str, list[str]] = defaultdict(list)
    nodes: Counter[str] = Counter()
    names: dict[str, str] = {}
    keys: dict[str, str] = {}
    for stack in stacks:
        innermost = None
        for entry in stack:
            if entry.path == NO_MODULE:
                continue
            if entry.path not in names:
                names[entry.path] = _ensure(children, module_fqn(entry.path))
            innermost = names[entry.path]
            keys.setdefault(entry.key, innermost)
            types.setdefault(innermost, entry.type)
        if innermost is not None:
            nodes[innermost] += 1
    for fqn in fqns:
        _ensure(children, module_fqn(fqn))
    for name in parameters:
        owner = name.rpartition(".")[0]
        held[keys[owner] if owner in keys and owner not in children else _ensure(children, owner)].append(name)
    made: dict[str, ModuleNode] = {}
    for fqn, inner in reversed(children.items()):  # children stand after their parents
        below = tuple(made[child] for child in inner)
        made[fqn] = ModuleNode(_parts(fqn)[-1], fqn, types.get(fqn), below, tuple(held[fqn]), nodes[fqn])
    return made[""]


def _parts(fqn: str) -> list[str]:
    return fqn.split(".", MAX_MODULE_DEPTH - 1)


def _ensure(children: dict[str, list[str]], fqn: str) -> str:
    """Add a module and its parents to the children of each module, and return its name."""
    if fqn in children:
        return fqn
    parts = _parts(fqn)
    parent = ""
    for count in range(1, len(parts) + 1):
        full = ".".join(parts[:count])
        if full not in children:
            if len(children) >= MAX_MODULES:
                raise LimitError(f"module tree: expected at most {MAX_MODULES} modules, got more (at {full[:80]!a})")
            children[full] = []
            children[parent].append(full)
        parent = full
    return fqn


def _expression_names(path: str) -> list[str] | None:
    """Return the names along an expression like `getattr(L['self'].blocks, '0').mlp`; None if the path is none."""
    head = _HEAD.match(path)
    if head is None:
        return None
    unclosed = head.group(1).count("getattr(")
    names: list[str] = []
    position = head.end()
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        attribute, item, closing = step.groups()
        if closing is not None:
            unclosed -= 1
        if unclosed < 0:
            return None
        names.append(attribute or _unquoted(item or closing))
        position = step.end()
    return names if unclosed == 0 else None


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "'\"" else text
