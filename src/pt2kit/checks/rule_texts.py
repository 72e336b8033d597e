"""The words of rules: texts of the families that have no table elsewhere, and what to do about a breach of each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CODEC: Final[Mapping[str, str]] = MappingProxyType(
    {
        "J1": "the bytes are one JSON document, UTF-8, without a byte-order mark, with numbers that fit",
        "J2": "no object has the same key twice",
        "J3": "nesting stays under the limit",
        "J4": "a union has exactly one key, one that the schema knows",
        "J5": "every value has the type that the schema gives it, and every required key is there",
    }
)
"""As the docstring of `pt2kit.codec` has them."""

VERSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "V1": "the versions of the schema and of tree specs are ones that this build reads",
        "V2": "torch_version is the version of a release of torch, one that writes the stated schema version",
        "V3": "verifiers are dialects that torch or ExecuTorch has: ATEN, TRAINING, EDGE",
        "V4": "the file has no keys that this build's schema does not have",
        "V5": "metadata of nodes has the form that torch reads: module stacks, functions, origins, custom values",
    }
)

CALLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "K1": "the module call graph begins with the root, which has a signature",
        "K2": "a tree spec is JSON of the form [1, node], nested no deeper than the limit",
        "K3": "a container in a tree spec has the children and the context that its type asks for",
        "K4": "a tree spec has as many leaves as there are inputs or outputs",
        "K5": "names of arguments are identifiers, distinct, one for each argument of the tree spec",
        "K6": "a kept call signature names values of the program",
        "K7": "containers are of types that torch knows by itself; others have to be registered before loading",
        "K8": "the root graph returns a list of outputs, and is called with positional and keyword arguments",
        "K9": "sample inputs have the sizes that the graph declares for its inputs",
    }
)

EXPRESSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "E1": "a symbolic expression can be read, and yields an int, a float or a bool as its place asks for",
        "E2": "a symbol that is used has a range",
        "E3": "a range has a least value that is not above the greatest",
        "E4": "the value that an expression had in the example lies in the range that its symbols allow",
        "E5": "a symbol has the same assumptions wherever it is used",
        "E6": "a guard names inputs of the program, and dimensions that they have",
        "E7": "a guard is true for some inputs of the declared sizes, and for those of the example",
        "E8": "a size, stride or offset can be from 0 to 2**63 - 1, and any other int can fit 64 bits",
        "E9": "the value that an expression had in the example is of the expression's kind",
    }
)

TARGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
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
    }
)

PAYLOADS: Final[Mapping[str, str]] = MappingProxyType(
    {
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
    }
)
"""P1 to P18 as the docstring of `pt2kit.tensors` has them."""

MIGRATION: Final[Mapping[str, str]] = MappingProxyType(
    {
        "M1": "a tree fits the frozen table of its version",
        "M2": "a tree is not nested deeper than the interpreter can walk",
        "M3": "the target version can express the program, and nothing is lost that was not allowed by name",
        "M4": "a version or target is one that a table describes",
        "M5": "a record is a program: an object that says its schema version",
        "O1": "a program's number is not newer than what the changes lead back from",
        "O2": "every namespace of a program has an expected number (a warning: its operators are taken as they are)",
        "O3": "every operator that a program uses has changes that begin and end at its numbers",
    }
)
"""As the docstrings of `pt2kit.versions` and of its `opset` have them."""

SAFETY: Final[Mapping[str, str]] = MappingProxyType(
    {
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
    }
)
"""Rule id -> what a safety finding of that rule says of the file."""

_EXPORT: Final = "export the program again, or restore the file from where it was written"
_EDITED: Final = "the program was changed after export; write it again from a program that torch accepts"

FAMILY_HINTS: Final[Mapping[str, str]] = MappingProxyType(
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
        "M": "the file is not what its release writes; save the program again",
        "O": "a newer torch wrote the program, or its operators are not torch's own: check who wrote it",
        "X": "load the file with pt2kit.load, which runs nothing from it, or do not load it",
    }
)

HINTS: Final[Mapping[str, str]] = MappingProxyType(
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
        "X1": "load it with pt2kit.load, which reads sample inputs as data and skips what is not",
        "X2": "store the tensor as raw bytes (pt2 sanitize), or pass trust= to pt2kit.load",
        "X3": "custom objects need trust= in pt2kit.load; ask who wrote the file",
        "X4": "pt2kit.load takes guards only as plain conditions on the inputs",
        "X8": "pt2kit never loads it; delete the records (pt2 sanitize) if you do not need them",
    }
)
"""Rule id -> what to do, where the family's hint would not help."""
