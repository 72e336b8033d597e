"""Rules of `check` for sound and harmless files. One rule, one small generator of problems, one id.

`check` goes through a file and lists every problem as data; `RULES` (of `pt2kit.rules`) describes each rule,
how much a breach weighs and what to do about it.

    run.py            `check`: all rules, each program, in order
    report.py         `Report`, what `check` gives: a list with views of it
    versions.py       V2 to V4, O1, O2     where the file says it comes from
    calls.py          K1 to K8             module call graph, tree specs, names of arguments
    expressions.py    E1 to E5, E8, E9     symbolic expressions, ranges, hints
    input_sizes.py    E8                   sizes of inputs that torch cannot tell to be sizes
    value_names.py    G8                   names of values that no variable can have
    vmap_regions.py   G18                  values of regions of vmap that are used behind them
    guards.py         E6, E7               guards against the inputs
    node_metadata.py  V5                   metadata that torch cannot read
    operators.py      T1 to T6, T10, T14   calls against the operators of their release (schemas.py, parameter_kinds.py)
    call_results.py   T8, T9, T11 to T13, T15   declared results against the operator table
    refusals.py       what `load` and `load_module` refuse, with the rule and place of `check`
    symbolic_numbers.py  T13               functions over numbers against the expressions of their results
    samples.py        K9                   sample inputs against the inputs of the graph
    higher_order.py   T7                   calls against the subgraphs that they carry
    devices.py        P6                   devices that torch does not have
    payloads.py       P1 to P23            weights and constants against records, signature and graph
    safety.py         X1 to X14            what torch would run, or resolve by a name from the file, on loading it
    unchecked.py      X10                  calls of unchecked kernels, against what the file shows of them
    uninitialized.py  X11                  returned memory that nothing was written to

The A, J, G and S rules are in the subpackages that read archives, JSON, graphs and signatures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.checks.findings import Report as Report
    from pt2kit.checks.run import check as check
    from pt2kit.checks.safety import safety_findings as safety_findings
    from pt2kit.errors import Severity as Severity
    from pt2kit.rules import FAMILIES as FAMILIES
    from pt2kit.rules import RULES as RULES
    from pt2kit.rules import Rule as Rule

__getattr__, __dir__, __all__ = front_door(
    __name__,
    {
        "pt2kit.errors": "Severity",
        "pt2kit.rules": "FAMILIES RULES Rule",
        "findings": "Report",
        "run": "check",
        "safety": "safety_findings",
    },
)
