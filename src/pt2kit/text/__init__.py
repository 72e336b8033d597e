"""Programs, packages and problems -> text for people, and summaries as plain data for scripts.

    names.py quantities.py columns.py   names, numbers and tables that are safe and aligned on a terminal
    values.py arguments.py call.py      values, arguments, call signatures
    program.py nodes.py                 a whole program; one node with all that is known of it
    amounts.py payloads.py modules.py   tensors: how much of them there is, lists of them, in which modules they are
    summary.py report.py                a package at a glance, as data and as lines

Nothing here prints. Whatever a file holds, what comes out has no control characters in it.
"""
