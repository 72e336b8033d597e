"""Every operator that torch registers, called with hostile arguments in processes that may die -> evidence, as lines.

    python -m tools.kernels --minutes 25 --out evidence.jsonl      run; what is in the file already is not run again
    python -m tools.kernels --out evidence.jsonl --table           put what was found into the table of the checks

    samples.py    valid calls: what torch's own test databases call, forward and backward, and calls made from schemas
    by_hand.py    valid calls of what neither reaches
    packed.py     the same, on quantized, sparse, nested and packed tensors
    hostile.py    a valid call -> calls with one argument that lies
    runner.py     calls in forked processes, one process after the other, whose deaths are evidence
    guard.c       memory of tensors between pages that may not be touched; compiled and preloaded when the tool starts
    table.py      evidence -> `src/pt2kit/operators/data/kernels.json`

Needs torch, a C compiler and Linux. The calls of an operator depend on its name and on the release alone.
"""
