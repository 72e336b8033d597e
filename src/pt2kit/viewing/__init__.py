"""Viewer of packages: a page with the graphs of its programs, folded by modules, and details of every part.

    columns.py   a drawing, as columns of numbers
    draw.py      a program -> its drawing
    modules.py   the modules of nodes; equal ones in a row, put together
    notes.py     labels of nodes
    compared.py  two programs in one drawing
    details.py   a node, facts of a program, findings of `check`
    samples.py   the numbers of a tensor
    answers.py   requests of a page -> all of these, as JSON
    page.py      the built page, with its policy
    server.py    the page, served on this machine
    notebook.py  the page in a notebook
    figure.py    SVG, PNG or PDF of the page, by a browser

The page itself is in `viewer/`, in TypeScript; it knows nothing of the format.
"""
