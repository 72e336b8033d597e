"""Viewer of packages: a page with the graphs of its programs, folded by modules, and details of every part.

    columns.py   a drawing, as columns of numbers
    draw.py      a program -> its drawing
    modules.py   the modules of nodes; equal ones in a row, put together
    compared.py  two programs in one drawing
    details.py   labels of nodes, a node, facts of a program, findings of `check`
    answers.py   requests of a page -> all of these and the numbers of a tensor, as JSON
    page.py      the built page, with its policy; in a notebook; as SVG, PNG or PDF by a browser
    server.py    the page, served on this machine

The page itself is in `viewer/`, in TypeScript; it knows nothing of the format.
"""
