"""Which operators write, against the schemas of all operators that torch has."""

from __future__ import annotations

import torch

from pt2kit import schema
from pt2kit.canonical import writes
from pt2kit.canonical.form import KNOWN

TENSORS = ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]")
NOT_EXPORTED = {"aten::remove.Tensor", "aten::sort.Tensor"}
"""Methods of lists in TorchScript."""

VIEWS = {"prims::as_strided"}
"""Operators whose schema says that they write, though they give a view."""

HIDDEN = {
    *("aten::__is__", "aten::__isnot__"),  # TorchScript; their names look like those of operators in place.
    "aten::_no_grad_embedding_renorm_",  # It writes into the weight.
    "aten::_native_batch_norm_legit.no_stats",  # A sibling of one that writes.
    "aten::flatten.named_out_dim",  # The name of a dimension; up to 2.12.
}
"""Operators that count as writing, but have no schema that declares it."""


def test_operators_write_where_their_schemas_say_so() -> None:
    """Every operator of torch's own namespaces that writes into a tensor counts as writing, and hardly any other."""
    missing, unexpected, count = [], [], 0
    for found in torch._C._jit_get_all_schemas():
        namespace, _, name = found.name.partition("::")
        label = f"{found.name}.{found.overload_name}" if found.overload_name else found.name
        if namespace not in KNOWN or label in NOT_EXPORTED | VIEWS:
            continue
        count += 1
        says = any(
            argument.alias_info is not None and argument.alias_info.is_write and str(argument.type) in TENSORS
            for argument in found.arguments
        )
        target = f"torch.ops.{namespace}.{name}.{found.overload_name or 'default'}"
        ours = writes(schema.Node(target, [], [], {}))
        if says and not ours:
            missing.append(label)
        if ours and not found.is_mutable and label not in HIDDEN:
            unexpected.append(label)
    assert count > 3000
    assert (missing, unexpected) == ([], [])
