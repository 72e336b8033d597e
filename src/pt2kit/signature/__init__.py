"""Graph signature without torch: the kind and target of each input and output of a graph.

- `from_schema` reads it from a graph module and proves that it fits the graph; `to_schema` writes it back, exactly.
- `problems` lists all that does not fit, as data; `from_schema` raises the first error among it.
- `ExportGraphSignature` has the views: `parameters`, `user_inputs`, `buffers_to_mutate`, `backward_signature`, ….

Problems and errors carry the rules S1 to S14 of `pt2kit.rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.signature.consistency import problems as problems
    from pt2kit.signature.export_signature import ExportBackwardSignature as ExportBackwardSignature
    from pt2kit.signature.export_signature import ExportGraphSignature as ExportGraphSignature
    from pt2kit.signature.export_signature import FxNode as FxNode
    from pt2kit.signature.export_signature import from_schema as from_schema
    from pt2kit.signature.export_signature import to_schema as to_schema
    from pt2kit.signature.specs import ArgumentSpec as ArgumentSpec
    from pt2kit.signature.specs import Constant as Constant
    from pt2kit.signature.specs import ConstantArgument as ConstantArgument
    from pt2kit.signature.specs import CustomObjArgument as CustomObjArgument
    from pt2kit.signature.specs import InputKind as InputKind
    from pt2kit.signature.specs import InputSpec as InputSpec
    from pt2kit.signature.specs import OutputKind as OutputKind
    from pt2kit.signature.specs import OutputSpec as OutputSpec
    from pt2kit.signature.specs import SymBoolArgument as SymBoolArgument
    from pt2kit.signature.specs import SymFloatArgument as SymFloatArgument
    from pt2kit.signature.specs import SymIntArgument as SymIntArgument
    from pt2kit.signature.specs import TensorArgument as TensorArgument
    from pt2kit.signature.specs import TokenArgument as TokenArgument
    from pt2kit.signature.specs import argument_spec as argument_spec
    from pt2kit.signature.specs import schema_argument as schema_argument

__getattr__, __dir__, __all__ = front_door(__name__)
