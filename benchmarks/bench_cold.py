"""A user's first script: CPU seconds of whole processes above `import torch`, imports included; against torch's own."""

from __future__ import annotations

import sys
from functools import partial

from benchmarks import measure, programs
from benchmarks.harness import Bench, Limit, Measured, Settings, TimesBetter
from benchmarks.programs import WHAT

IMPORT = "import torch"
LOAD = "import torch, sys, pt2kit; pt2kit.load(sys.argv[1])"
MODULE = "import torch, sys, pt2kit; pt2kit.load(sys.argv[1]).module()"
LOAD_MODULE = "import torch, sys, pt2kit; pt2kit.load_module(sys.argv[1])"
THEIR_LOAD = "import torch, sys; torch.export.load(sys.argv[1])"
THEIR_MODULE = "import torch, sys; torch.export.load(sys.argv[1]).module()"


def cold(name: str, ours: str, theirs: str, settings: Settings) -> Measured:
    """The best CPU time of a process, less the best of `import torch` alone; the three kinds run in turn."""
    file = str(programs.path(name))
    best = dict.fromkeys((IMPORT, ours, theirs), float("inf"))
    for _ in range(settings.rounds(5)):
        for code in best:
            best[code] = min(best[code], measure.command([sys.executable, "-c", code, file], warmup=0).cpu_s)
    torch_s = best[IMPORT]
    return Measured(best[ours] - torch_s, best[theirs] - torch_s, note=f"above {torch_s:.2f} s of import torch")


FILES = (
    ("bert", "bert_12", 0.65, 0.25),
    ("vit", "vit_12", 0.75, 0.25),
    ("transformer", "transformer_28", 0.75, 0.35),
)
BENCHES = tuple(
    bench
    for short, name, load_s, module_s in FILES
    for bench in (
        Bench(
            f"cold_load_{short}",
            f"whole process: load of {WHAT[name]} : torch.export.load",
            Limit(load_s, "s"),
            partial(cold, name, LOAD, THEIR_LOAD),
        ),
        Bench(
            f"cold_load_module_{short}",
            f"whole process: load_module of {WHAT[name]} : torch.export.load and module()",
            Limit(module_s, "s"),
            partial(cold, name, LOAD_MODULE, THEIR_MODULE),
        ),
        Bench(
            f"cold_run_{short}",
            f"whole process: load and module() of {WHAT[name]} : the same with torch",
            TimesBetter(2),
            partial(cold, name, MODULE, THEIR_MODULE),
        ),
    )
)
