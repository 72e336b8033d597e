"""Upgrade and downgrade of programs between schema versions: a stored tree of any release to the current version, and
back.

    program.py         `upgrade_program`: a stored program -> the current version; `downgrade_program`: the way back
    steps.py           all steps as one line
    line/              the steps between releases, one file for each pair of versions, and what several of them need
    draft/             the design draft, which no release wrote, <-> schema 1; imported when one is met
    opset_changes.py   operator-set versions: `convert_opset`
    operator_calls.py  the calls of a program, adapted to a release of torch
    containers.py      `Program` and `Model` of schema 8.6
    identify.py        the version of a program; names of targets
    encoding.py        the JSON of each release
    check.py           mismatches of a tree with the table of a version
    conversion_log.py  changes and losses of a conversion, places that block it, values stored outside of the tree
    reader_limits.py   what the readers of older releases do not read
    fx_names.py        names of nodes that the readers of 2.3 and 2.4 create
    rewrite.py         a tree -> a new tree, sharing all that did not change

Errors carry the rules M1 to M5 of `pt2kit.rules`, those of operator sets O1 to O3.
"""
