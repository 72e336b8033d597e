"""The text form: a large program read back."""

from __future__ import annotations

from benchmarks import measure, programs
from benchmarks.harness import Bench, Limit, Measured, Settings


def text_parse(settings: Settings) -> Measured:
    """The text form of a large program, read back."""
    from pt2kit.package.open import open_package
    from pt2kit.text import parse, print_program

    with open_package(programs.path("transformer_2700")) as package:
        text = print_program(package.programs["model"])
    ours = measure.best(lambda: parse(text), rounds=settings.rounds(5))
    return Measured(ours, note=f"{len(text) / 1e6:.1f} MB of text")


BENCHES = (Bench("text_parse", "parse a program of 2,680 nodes", Limit(1, "s"), text_parse),)
