"""The graph signature without torch: which input of a graph is what, and what its outputs mean.

- `from_schema` reads it from a graph module and proves that it fits the graph; `to_schema` writes it back, exactly.
- `problems` lists all that does not fit, as data; `from_schema` raises the first error among it.
- `ExportGraphSignature` has the views: `parameters`, `user_inputs`, `buffers_to_mutate`, `backward_signature`, ….

Rules (`RULES` says what must hold):
    S1, S2 counts · S3 inputs as in the graph · S4 outputs as in the graph · S5, S6 order · S7 what is mutated exists
    S8 inputs with one target · S9 one loss · S10 targets are names · S11 a spec has what its kind needs
    S12 one value or constant · S13 tokens in and out · S14 placeholders of constants
"""

from pt2kit.signature.convert import argument_spec, schema_argument
from pt2kit.signature.export_signature import ExportBackwardSignature, ExportGraphSignature, FxNode
from pt2kit.signature.problems import problems
from pt2kit.signature.read import from_schema, to_schema
from pt2kit.signature.rules import RULES
from pt2kit.signature.specs import (
    ArgumentSpec,
    Constant,
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)

__all__ = [
    "ArgumentSpec",
    "Constant",
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "FxNode",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "RULES",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
    "argument_spec",
    "from_schema",
    "problems",
    "schema_argument",
    "to_schema",
]
