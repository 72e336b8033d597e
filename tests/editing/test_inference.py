"""Inference without torch: what it says of a call is what torch said when it exported the program, or nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.samples import corpus

import pt2kit
from pt2kit.editing import sizes as arithmetic
from pt2kit.editing.metas import infer_meta
from pt2kit.editing.sizes import parsed
from pt2kit.errors import GraphError

NOT_THE_SAME = {"_operator.ge"}
"""torch knew more of an unbacked symbol than its expression says, and wrote down the answer."""


def _differs(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return True
    if isinstance(a, pt2kit.schema.TensorMeta):
        # Dimensions of one element have any stride.
        steps = zip(a.sizes, a.strides, b.strides, strict=True)
        return (
            (a.dtype, a.device, a.layout) != (b.dtype, b.device, b.layout)
            or not arithmetic.all_same(a.sizes, b.sizes)
            or not all(arithmetic.same(x, y) for size, x, y in steps if size.as_int not in (0, 1))
        )
    return isinstance(a, pt2kit.schema.SymInt) and not arithmetic.same(a, b)


@pytest.mark.parametrize("release", ["2.2.2", "2.5.1", "2.8.0", "2.13.0", "2.15.0"])
def test_inference_agrees_with_what_was_exported(release: str) -> None:
    """Every call of the sample programs: inferred as it was recorded, or not inferred; most of them are."""
    counts: Counter[str] = Counter()
    wrong = []
    for path in corpus(release):
        with pt2kit.open(path) as package:
            for program in package.programs.values():
                for node in pt2kit.edit(program).nodes:
                    try:
                        found = infer_meta(node.target, node.plain_arguments, None, "edit")
                    except GraphError:
                        counts["not inferred"] += 1
                        continue
                    listed = list(found) if isinstance(found, list | tuple) else [found]
                    stated = [value.meta for value in node.outputs]
                    counts["inferred"] += 1
                    if len(listed) != len(stated) or any(map(_differs, listed, stated)):
                        wrong.append((path.stem, node.target))
    assert [row for row in wrong if row[1] not in NOT_THE_SAME] == []
    assert counts["inferred"] > 2 * counts["not inferred"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("2*s0", "s0 + s0"),
        ("(s0 + 1)*(s0 - 1)", "s0**2 - 1"),
        ("s1*s0", "s0*s1"),
        ("s0*4", "4*s0"),
        ("s0 - s0 + 3", "3"),
    ],
)
def test_sizes_are_the_same_if_their_polynomials_are(a: str, b: str) -> None:
    """Sums and products in any order, with their numbers gathered."""
    assert arithmetic.same(parsed(a), parsed(b))
    assert not arithmetic.same(parsed(a), parsed(f"{b} + 1"))
