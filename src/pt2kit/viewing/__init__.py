"""Viewer of packages: a page with the graphs of its programs, folded by modules, and details of every part.

    columns.py    what is drawn, as columns of numbers;  draw.py: a program as such columns
    modules.py    the modules of nodes;  repeats.py: equal ones in a row, put together
    compared.py   two programs in one picture
    details.py facts.py findings.py samples.py    a node, a program, what is wrong, the numbers of a tensor
    answers.py    requests of a page -> these, as JSON
    page.py       the built page, with its policy;  server.py: on this machine;  notebook.py: in a notebook

The page itself is in `viewer/`, in TypeScript; it knows nothing of the format.
"""
