"""The names that subgraphs cannot have are those that torch's own graph modules have."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
import torch
from tests import samples

import pt2kit
from pt2kit.errors import GraphError
from pt2kit.schema.names import MODULE_ATTRIBUTES


def test_every_attribute_is_in_the_table() -> None:
    """Whatever the installed torch gives a graph module."""
    module = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    assert set(dir(module)) - MODULE_ATTRIBUTES == set()


@pytest.mark.parametrize("name", ["forward", "training", "_modules", "__dict__", "half", "add_module", "state_dict"])
def test_check_and_load_agree(name: str) -> None:
    """A subgraph of such a name is an error for both."""
    changed = io.BytesIO()
    with zipfile.ZipFile(samples.sample("2.13.0", "cond")) as old, zipfile.ZipFile(changed, "w") as new:
        for record in old.infolist():
            data = old.read(record)
            if record.filename.endswith("models/model.json"):
                data = data.replace(b'"true_graph_0"', json.dumps(name).encode())
            new.writestr(record.filename, data)
    [problem] = [one for one in pt2kit.check(changed.getvalue()).errors if one.rule == "G15"]
    assert problem.message == f"expected a free name for a subgraph, got '{name}', which modules of torch have"
    with pytest.raises(GraphError, match=rf"expected a free name for a subgraph, got {name}, which modules have"):
        pt2kit.load(io.BytesIO(changed.getvalue()))
