"""The text form: a large program read back."""

from __future__ import annotations

from benchmarks import measure, programs
from benchmarks.bench_open import open_program
from benchmarks.harness import Bench, Limit, Measured, Settings


def text_parse(settings: Settings) -> Measured:
    """The text form of a large program, read back."""
    from pt2kit.text import parse, print_program

    text = print_program(open_program(programs.path(programs.TRANSFORMER)))
    ours = measure.best(lambda: parse(text), rounds=settings.rounds(5))
    return Measured(ours, note=f"{len(text) / 1e6:.1f} MB of text")


BENCHES = (Bench("text_parse", "parse a program of 2,680 nodes", Limit(1, "s"), text_parse),)
