"""Every rule that a file must keep, by id: what must hold, how much a breach weighs, and what to do about it.

The ids are those that errors and problems carry as `rule`, and that the documentation lists. An id keeps its meaning
for ever; a rule that is dropped leaves a hole in the numbering.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pt2kit.errors import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Args:
        id: "G3": a letter for the family, and a number in it.
        text: what must hold; for X rules, what a finding says of the file.
        severity: how much a breach weighs where the problem itself does not say ("safety" findings).
        hint: what to do about a breach.
    """

    id: str
    text: str
    severity: Severity
    hint: str


FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A": "archive",
        "J": "JSON",
        "V": "versions",
        "G": "graph",
        "S": "signature",
        "K": "calls and tree specs",
        "E": "expressions and ranges",
        "T": "targets of calls",
        "P": "payloads",
        "B": "payloads beside the archive",
        "M": "migration",
        "O": "operator versions",
        "X": "what torch would run on load",
        "Z": "what keeps a file from being sanitized",
    }
)
"""Letter -> what the rules with it are about, in the order in which problems are printed."""

_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A1": "every byte range that the directory points to can be read from the source, and only by byte ranges",
        "A2": "the file ends with one end record, whose comment ends exactly where the file ends",
        "A3": "ZIP64 end records, where present, stand right before the end record and agree with it",
        "A4": "the directory has exactly the stated offset, size and entry count, and ends where the end records begin",
        "A5": "every directory entry is well formed, its extra fields included",
        "A6": "a record name is a relative path in UTF-8: no NUL, backslash, drive letter or component '', '.' or '..'",
        "A7": "no two records have the same name, also when case or Unicode composition is ignored",
        "A8": "every record is a plain file; entries for folders are empty; links and devices are refused",
        "A9": "no record is encrypted or patched; the only flags are those for deflate levels, descriptors and UTF-8",
        "A10": "records are stored or deflated",
        "A11": "a stored record has one size; a deflated one claims no more than deflate can make of its bytes",
        "A12": "records follow one another from offset 0 to the directory without gap or overlap, on one disk",
        "A13": "a record's local header says what the directory says: name, flags, method, CRC-32, sizes",
        "A14": "a data descriptor stands exactly where flag 3 announces one and repeats CRC-32 and sizes",
        "A15": "a deflated record inflates to exactly its stated size and uses up exactly its bytes",
        "A16": "a record's bytes have the CRC-32 that the directory states",
        "A17": "a record that is asked for exists",
        "A18": "counts and sizes stay within the limits of `Limits`",
        "A19": "the records form one known layout: all under one root folder, or the plain zip of torch 2.1 to 2.7",
        "A20": "archive_format is exactly 'pt2'",
        "A21": "archive_version is a version that this build reads ('0')",
        "A22": ".data/version, where present, is a decimal number in the range that this build reads (1 to 10)",
        "A23": "byteorder, where present, is 'little'",
        "A24": "everything under models/ is models/<name>.json, and the archive holds a program or compiled code",
        "A25": "a program's weights and constants are both described, in one way: by config records, or as .pt files",
        "A26": "an archive holds the records of one layout only",
        "A27": "an archive that is closed, or whose writing failed, is not used any more",
        "J1": "the bytes are one JSON document, UTF-8, without a byte-order mark, with numbers that fit",
        "J2": "no object has the same key twice",
        "J3": "nesting stays under the limit",
        "J4": "a union has exactly one key, one that the schema knows",
        "J5": "every value has the type that the schema gives it, and every required key is there",
        "V1": "the versions of the schema and of tree specs are ones that this build reads",
        "V2": "torch_version is the version of a release of torch, one that writes the stated schema version",
        "V3": "verifiers are dialects that torch or ExecuTorch has: ATEN, TRAINING, EDGE",
        "V4": "the file has no keys that this build's schema does not have",
        "V5": "metadata of nodes has the form that torch reads: module stacks, functions, origins, custom values",
        "G1": "a value that is used is a graph input or the result of an earlier node, of the same graph",
        "G2": "a value is defined once",
        "G3": "a value has an entry in the value table of its kind",
        "G4": "a name has an entry in one value table only",
        "G5": "the value tables have no entry for a name that the graph does not define",
        "G6": "a tensor has as many sizes as strides, and none of them nor its storage offset is a negative number",
        "G7": "an argument that holds one value names a value of the kind that it says",
        "G8": "the name of a value is an identifier",
        "G9": "a graph input, or an output of a subgraph, is one value or one constant",
        "G10": "a subgraph stands among the arguments of a node, nowhere else",
        "G11": "subgraphs and dicts of arguments nest no deeper than the limits",
        "G12": "a graph that returns a single tensor has one output, and it is a value",
        "G13": "a higher-order node that returns a single tensor has one output, and it is a tensor",
        "G14": "a node has a name of its own, which no other node and no other node's result has",
        "G15": "names of nodes, arguments and subgraphs are identifiers, those of subgraphs no keywords",
        "G16": "subgraphs of one name in one graph are equal: the graph has one module of that name",
        "G17": "a tensor has a known element type and layout, numbers and elements below 2**63, at most 64 dimensions; "
        "of integers, it requires no gradient",
        "G18": "a value of a region of vmap is used in that region alone",
        "S1": "there are as many input_specs as graph inputs",
        "S2": "there are as many output_specs as graph outputs",
        "S3": "an input spec says of the graph input at its position what the graph says: name or constant, and kind",
        "S4": "an output spec says of the graph output at its position what the graph says",
        "S5": "inputs are tokens, then parameters, buffers, constants and custom objects, then user inputs",
        "S6": "outputs are tokens, then mutations, then user outputs and the loss, then gradients",
        "S7": "what is mutated or has a gradient is an input of that kind; no two mutations of one kind have one value",
        "S8": "inputs with one target are of one kind, and the graph says the same of each; no target is below another",
        "S9": "there is at most one loss",
        "S10": "a target is names with dots between them, without quotes, backslashes and control characters",
        "S11": "a spec has the kind of argument and the target that its kind needs, a buffer its persistent flag",
        "S12": "an input or output of the user is one value or one constant",
        "S13": "there are as many output tokens as input tokens",
        "S14": "the placeholder of a constant input has an identifier as its name, and one of its own",
        "K1": "the module call graph begins with the root, which has a signature; other entries have names",
        "K2": "a tree spec is JSON of the form [1, node], nested no deeper than the limit",
        "K3": "a container in a tree spec has the children and the context that its type asks for",
        "K4": "a tree spec has as many leaves as there are inputs or outputs",
        "K5": "names of arguments are identifiers, distinct, one for each argument of the tree spec",
        "K6": "a kept call signature names values of the program",
        "K7": "containers are of types that torch knows by itself; others have to be registered before loading",
        "K8": "the root graph returns a list of outputs, and is called with positional and keyword arguments",
        "K9": "sample inputs have the sizes that the graph declares for its inputs",
        "E1": "a symbolic expression can be read, and yields an int, a float or a bool as its place asks for",
        "E2": "a symbol that is used has a range",
        "E3": "a range has a least value that is not above the greatest",
        "E4": "the value that an expression had in the example lies in the range that its symbols allow",
        "E5": "a symbol has the same assumptions wherever it is used",
        "E6": "a guard names inputs of the program, and dimensions that they have",
        "E7": "a guard is true for some inputs of the declared sizes, and for those of the example",
        "E8": "a size, stride or offset can be from 0 to 2**63 - 1, and any other int can fit 64 bits; "
        "sizes of inputs are 0 or more by what earlier inputs and the ranges say",
        "E9": "the value that an expression had in the example is of the expression's kind",
        "T1": "an operator of torch is one that torch registers",
        "T2": "operators are ones whose signature ships with this build (others are not checked)",
        "T3": "an argument has a name that the operator's schema has, and is given once",
        "T4": "an argument without default is given",
        "T5": "an argument is of a kind that its parameter takes",
        "T6": "a node has as many results as its operator, each of its kind",
        "T7": "a higher-order operator passes as many values as its subgraphs take, and takes what they give",
        "T8": "sizes that a call states, joins or broadcasts agree with the sizes that the graph declares",
        "T9": "no call creates, out of numbers alone, more bytes than the limit",
        "T10": "an argument that is passed by place has that place among the operator's parameters",
        "T11": "the element type and layout that a call asks for, asserts or gives are those that the graph declares",
        "T12": "a dimension that a call names is one of its tensor, and so are those that a memory format needs",
        "T13": "a function over numbers gives what the graph declares, and a number that is read has no known value",
        "T14": "a program whose dialect is not TRAINING calls no operator that writes to its arguments",
        "P1": "a `path_name` is the plain name of a file beside the config, and not that of a config",
        "P2": "the record that a `path_name` names exists",
        "P3": "a payload that is not pickled has a `tensor_meta`",
        "P4": "the element type is known, and can be represented where it is asked for",
        "P5": "raw bytes are strided; other layouts come by their parts",
        "P6": "the device is of a type that torch has, its index 0 to 127; `meta` holds no bytes",
        "P7": "sizes, strides and offset are numbers from 0 to 2**63 - 1, one stride per size, at most 64 dimensions",
        "P8": "all elements together have fewer than 2**63 bytes; a size of 0 does not excuse the others",
        "P9": "the last element lies inside the storage, and the storage has the length that the directory states",
        "P10": "a record of raw bytes holds a whole number of elements",
        "P11": "all raw tensors in one record have one element type; an empty record has none",
        "P12": "only floating-point and complex tensors require a gradient; only complex ones are conjugated",
        "P13": "a bool is stored as 0 or 1",
        "P14": "element type, sizes and strides are those that the graph states",
        "P15": "a payload that takes code to rebuild is described, not rebuilt",
        "P16": "a copy takes at most 1 GiB, or as much as the bytes it is made from",
        "P17": "the parts of a sparse or nested tensor fit together, and its indices point inside it",
        "P18": "what is exported has a place in the format that it is exported to",
        "P19": "what the signature takes from the payloads is there, among the weights or constants as its kind asks",
        "P20": "every stored payload is used by some program",
        "P21": "stored numbers are finite, or infinite on purpose: none is NaN",
        "P22": "a record that is marked as pickled begins as what torch.save and pickle write",
        "P23": "where two inputs take one stored tensor, none of the same kind is left without an input",
        "B1": "the list of payloads beside the archive has its form, and names payload records that are not in it",
        "B2": "a file of weights is named by a relative URL, and lies in the folder of what names it",
        "B3": "a file of weights that is named is there, and can be read",
        "B4": "a file of weights is a whole safetensors file, or an index of such files",
        "B5": "a file of weights has the tensor that is named, of the element type and shape that are stated",
        "B6": "the bytes of a tensor beside the archive have the SHA-256 that the archive states",
        "B7": "payloads are in the archive, where every reader finds them",
        "M1": "a tree fits the frozen table of its version",
        "M2": "a tree is not nested deeper than the interpreter can walk",
        "M3": "the target version can express the program, and nothing is lost that was not allowed by name",
        "M4": "a version or target is one that a table describes",
        "M5": "a record is a program: an object that says its schema version",
        "O1": "a program's number is not newer than what the changes lead back from",
        "O2": "every namespace of a program has an expected number (a warning: its operators are taken as they are)",
        "O3": "every operator that a program uses has changes that begin and end at its numbers",
        "X1": "sample inputs are a pickle",
        "X2": "a tensor is stored as a pickle",
        "X3": "a custom object is stored as a pickle",
        "X4": "guards are source code",
        "X5": "an expression is evaluated as Python, and is more than an expression",
        "X6": "a name that is pasted into generated source is more than a name",
        "X7": "an operator is looked up outside the dispatcher and the usual functions",
        "X8": "compiled code is loaded into the process",
        "X9": "a tree spec names a class that is imported",
        "X10": "an operator reaches outside the program, or trusts its arguments with memory",
        "X11": "memory that nothing was written to is read or returned",
        "X12": "a text that is printed is more than a line of text",
        "X13": "an extension is asked for an operator by a name from the file",
        "X14": "a region of gradients, autocast, vmap or jvp is not closed, or not opened",
        "Z1": "every record belongs to something",
        "Z2": "extra files are text",
        "Z3": "every key is one that this build knows",
        "Z4": "weights and constants can be raw records",
        "Z5": "no path of a machine is left where it was asked to be scrubbed",
        "Z6": "a program stands alone, without a container that gives it more",
    }
)

_WARNINGS: Final = frozenset(
    (
        *("G5", "G14", "K6", "E2", "V2", "V4", "O1", "O2", "P20", "P21"),
        *("X8", "X9", "X13"),
    )
)
_NOTES: Final = frozenset(("K7", "T2", "B7"))

_EXPORT: Final = "export the program again, or restore the file from where it was written"
_EDITED: Final = "the program was changed after export; write it again from a program that torch accepts"

_FAMILY_HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A": "the file is damaged or was rewritten by another tool; fetch it again, or save the program again",
        "J": "the record is damaged or was edited by hand; save the program again",
        "V": "check which release wrote the file; a newer one asks for a newer pt2kit",
        "G": _EDITED,
        "S": _EDITED,
        "K": "the call signature does not belong to this graph; export the program again",
        "E": _EXPORT,
        "T": "the call does not fit the operator; check which torch wrote the file and who changed it since",
        "P": "the weights do not belong to this program, or were cut; save the program again",
        "B": "put the files of weights back beside the archive as they were when it was written",
        "M": "the file is not what its release writes; save the program again",
        "O": "a newer torch wrote the program, or its operators are not torch's own: check who wrote it",
        "X": "load the file with pt2kit.load, which runs nothing from it, or do not load it",
        "Z": "name what may be given up: drop= in Python, --drop on the command line",
    }
)

_HINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A16": "the bytes changed since they were written: fetch the file again",
        "A18": "raise the limit if you trust the file: pt2kit.open(file, limits=...)",
        "A23": "save the program again on a little-endian machine",
        "G5": "drop the entries; they do no harm",
        "G14": "torch renames the node on load; nothing to do unless something refers to it by name",
        "V1": "upgrade pt2kit, or save the program with a release of torch that this build reads",
        "V4": "a newer release wrote them; they are kept when the file is rewritten. Upgrade pt2kit to read them",
        "K7": "import the module that registers the container type before loading",
        "E2": "add a range for the symbol to range_constraints, or export the program again",
        "E3": "exchange the two ends of the range, or drop it",
        "T1": "check the spelling and the overload; the release that wrote the file may have an operator of that name",
        "T2": "import the library that registers the operators before loading; nothing here says whether calls fit",
        "M4": "upgrade pt2kit, or save the program with a release of torch that this build reads",
        "P14": "the weights belong to another program: pack those of this one",
        "P19": "pack the missing tensors, or drop the input from the signature",
        "P20": "the payload only costs space; rewriting the program from torch drops it",
        "P21": "find out where the NaN came from before using the weights",
        "B1": "write the file again with pt2kit.write(..., external=...)",
        "B2": "pass weights_root= with the folder that the file may lie in, if you trust who wrote the archive",
        "B6": "put the old file back, or put the new numbers in: pt2 weights FILE --from NEW -o OUT",
        "B7": "pt2 convert writes a file that has all of it",
        "X1": "load it with pt2kit.load, which reads sample inputs as data and skips what is not",
        "X2": "store the tensor as raw bytes (pt2 sanitize), or pass trust= to pt2kit.load",
        "X3": "custom objects need trust= in pt2kit.load; ask who wrote the file",
        "X4": "pt2kit.load takes guards only as plain conditions on the inputs",
        "X8": "pt2kit never loads it; delete the records (pt2 sanitize) if you do not need them",
    }
)
"""Rule id -> what to do, where the family's hint would not help."""


def _rule(id: str, text: str) -> Rule:
    severity: Severity = "warning" if id in _WARNINGS else "note" if id in _NOTES else "error"
    return Rule(id, text, severity, _HINTS.get(id, _FAMILY_HINTS[id[0]]))


RULES: Final[Mapping[str, Rule]] = MappingProxyType({id: _rule(id, text) for id, text in _TEXTS.items()})
"""Rule id -> rule, family by family."""
