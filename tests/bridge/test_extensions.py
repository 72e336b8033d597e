"""Extensions through the public API: the example of docs/extensions.md, and what names from a file can do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.bridge.zoo.handmade import Sketch
from tests.packages import bytes_of
from torch._export.verifier import Verifier

import pt2kit
from pt2kit.errors import OperatorError

PAGE = Path(__file__).parents[2] / "docs" / "extensions.md"


@pytest.fixture
def page() -> Iterator[dict[str, Any]]:
    """The names that the page's example defines, while its extension is registered."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: dict[str, Any] = {"__name__": "shop_operators"}
    exec(compile(code, str(PAGE), "exec"), found)  # noqa: S102 (the page of this repository)
    yield found
    pt2kit.unregister_extension("shop")


@pytest.fixture
def file(page: dict[str, Any]) -> bytes:
    """A program that calls one of the page's operators."""

    class ShopVerifier(Verifier):
        dialect = "SHOP"

        def allowed_op_types(self) -> Any:
            return (*super().allowed_op_types(), page["Scaled"])

    sketch = Sketch()
    x = sketch.input("x", torch.ones(2))
    call = sketch.call(page["Scaled"](3), (x,), sketch.fake(2))
    return bytes_of(pt2kit.save, sketch.program([call], verifiers=[ShopVerifier]))


def test_page(page: dict[str, Any], file: bytes) -> None:
    """A program with the page's operator is saved by name, loaded, and is the same when it is saved again."""
    stored = pt2kit.open(file).programs["model"].graph_module.graph.nodes[0]
    assert stored.target == "#shop:by_3"
    program = pt2kit.load(file)
    call = next(node for node in program.graph.nodes if node.op == "call_function")
    assert call.target is page["KNOWN"]["by_3"]
    (result,) = program.graph_module(torch.ones(2))
    assert torch.equal(result, torch.full((2,), 3.0))
    assert bytes_of(pt2kit.save, program) == file


BAD = {
    "lookup": ({}.__getitem__, r"expected '#shop:by_3' to name an operator of the extension, got: 'by_3'"),
    "nothing": (lambda name: None, r"expected '#shop:by_3' to name an operator of the type Scaled, got a NoneType"),
    "broken": (lambda name: name.missing, r"name an operator of the extension, got: .*missing"),
    "silent": (lambda name: 1 / 0 if name else None, r"name an operator of the extension, got: division by zero"),
}


@pytest.mark.parametrize(("from_name", "text"), BAD.values(), ids=BAD)
def test_bad_names(page: dict[str, Any], file: bytes, from_name: Any, text: str) -> None:
    """Whatever the extension makes of a name, loading ends in an error with the node."""
    pt2kit.unregister_extension("shop")
    known = pt2kit.Extension("shop", page["Scaled"], str, from_name, lambda operator: None)
    pt2kit.register_extension(known)
    with pytest.raises(OperatorError, match=rf"nodes\[0\]: node (scaled_3|nodes\[0\]).*{text}"):
        pt2kit.load(file)


def test_not_registered(page: dict[str, Any], file: bytes) -> None:
    """Without the registration the file is refused, by the namespace."""
    pt2kit.unregister_extension("shop")
    with pytest.raises(OperatorError, match=r"expected an extension registered under 'shop' .*register_extension"):
        pt2kit.load(file)
