"""Upgrade and downgrade of programs between schema versions: a stored tree of any release to the current version, and
back.

    program.py         `upgrade_program`: a stored program -> the current version; `downgrade_program`: the way back
    steps.py           all steps as one line
    line/              the steps between releases, one file for each pair of versions, and what several of them need
    draft/             the design draft, which no release wrote, <-> schema 1; imported when one is met
    opset/             operator-set versions: `convert_opset`
    containers.py      `Program` and `Model` of schema 8.6
    identify.py        which version a program is of; names of targets
    encoding.py        how each release spelled its JSON
    conversion_log.py  what a conversion changed, lost, and stores outside of the tree
    check.py           what does not fit the table of a version; conforms.py: whether, quickly
    blockers.py        what an older version cannot express
    rewrite.py         a tree -> a new tree, sharing all that did not change

Errors carry the rules M1 to M5 of `pt2kit.rules`, those of operator sets O1 to O3.
"""
