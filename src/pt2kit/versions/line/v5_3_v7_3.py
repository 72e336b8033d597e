"""Schema 5.3 (torch 2.4) and 7.3 (torch 2.5): verifiers and torch_version for dialect, metadata of the graph module.

What changed, upwards:

- `dialect` became a list of verifiers; `torch_version` came, "<=2.4" for all before;
- the graph module got metadata;
- higher-order operators that are classes of their own moved to `torch.ops.higher_order`.

Nothing is lost upwards. Lost downwards: `torch_version`, metadata of the graph module. Blocked downwards: several
verifiers; the dialect of training (TRAINING) where operators change their arguments in place, since the one dialect of
2.4 is functional. Without those a program of either dialect is one of the other.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pt2kit.jsontext import Path
from pt2kit.versions.conversion_log import ConversionLog, Tree
from pt2kit.versions.fx_names import name_as_fx
from pt2kit.versions.line import hops
from pt2kit.versions.rewrite import arm, rewrite, values_of, without

_FIRST_TORCH: Final = "<=2.4"
_IN_PLACE: Final = re.compile(r"torch\.ops\.(?!higher_order\.)\w+\.\w*[^_]_\.\w+|torch\.ops\.\w+\.\w+\.(?:\w+_)?out")


def upgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Upgrade a 5.3 program to 7.3."""
    new = rewrite(tree, "5.3", _renaming(hops.from_2_4, log))
    return {
        **without(new, "dialect"),
        "graph_module": {**new["graph_module"], "metadata": dict(log.graph_metadata)},
        "verifiers": [new["dialect"]],
        "torch_version": _FIRST_TORCH,
    }


def downgrade(tree: Tree, log: ConversionLog) -> Tree:
    """Downgrade a 7.3 program to 5.3."""
    new = rewrite(tree, "7.3", _renaming(hops.to_2_4, log))
    if new["torch_version"] != _FIRST_TORCH:
        log.lost("torch_version", f"torch_version {new['torch_version']!r}", ("torch_version",))
    module = new["graph_module"]
    if module["metadata"]:
        log.graph_metadata = module["metadata"]
        log.lost("graph_metadata", "metadata of the graph module", ("graph_module", "metadata"))
    older = {
        **without(new, "verifiers", "torch_version"),
        "graph_module": without(module, "metadata"),
        "dialect": _dialect(new, log),
    }
    return name_as_fx(older, log, keeps_inputs=True)


def _renaming(rename: Any, log: ConversionLog) -> dict[str, Any]:
    """Return visitors that rename targets, also if an operator is an argument."""

    def node(value: Any, path: Path) -> Any:
        target = rename(value["target"])
        if target == value["target"]:
            return value
        log.changed(f"{value['target']} is called {target}", (*path, "target"))
        return {**value, "target": target}

    return {"Node": node, "Argument": arm("as_operator", rename)}


def _dialect(tree: Tree, log: ConversionLog) -> str:
    verifiers = tree["verifiers"]
    if len(verifiers) > 1:
        log.blocked(f"several verifiers ({', '.join(verifiers)})", ("verifiers",))
        return str(verifiers[0])
    if not verifiers:
        return ""
    if verifiers[0] != "TRAINING":
        return str(verifiers[0])
    for node, path in values_of(tree, "7.3", "Node"):
        if _IN_PLACE.fullmatch(node["target"]):
            message = f"{node['target']}, which changes its argument in place, in a program of the dialect TRAINING"
            log.blocked(message, path)
    log.changed("the dialect TRAINING became ATEN: no operator changes its arguments", ("verifiers",))
    return "ATEN"
