"""Rules of `check` for sound and harmless files. One rule, one small generator of problems, one id.

`check` goes through a file and lists every problem as data; `RULES` (of `pt2kit.rules`) describes each rule,
how much a breach weighs and what to do about it.

    run.py              `check`: all rules, each program, in order
    findings.py         `Report`, the result of `check`: a list with views of it
    versions.py         V2 to V5, O1, O2     versions, unknown keys, metadata that torch cannot read
    calls.py            K1 to K8, G8, S10    module call graph, tree specs, names; known targets of calls
    expressions.py      E1 to E5, E8, E9     symbolic expressions, ranges, hints, sizes of inputs
    guards.py           E6, E7               guards against the inputs
    growth.py           T9, T13              functions over numbers: growth, and declared against computed results
    operators.py        T1 to T6, T10, T14   calls against the operators of their release
    call_results.py     T8, T9, T11 to T13, T15   declared results against the operator table
    higher_order.py     T7, X14, G18         calls against the subgraphs that they carry, and regions
    storages.py         T8                   views of given strides against the storages that they look at
    stored_inputs.py    K9                   sample inputs against the inputs of the graph; constants as arrays
    payloads.py         P1 to P23, A25       weights and constants against records, signature and graph
                        B2 to B7             external files
    safety.py           X1 to X14            code that torch would run, or resolve by name, on loading it
    unchecked.py        X10, X11             arguments of unchecked kernels; returned memory that nothing was written to
    refusals.py                              errors of `load` and `load_module`, with the rule and place of `check`

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

__getattr__, __dir__, __all__ = front_door(__name__)
