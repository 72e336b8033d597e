"""Texts of sample files as they are printed, kept in `golden/`. `python -m tests.text.golden` writes them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tests import samples

import pt2kit
from pt2kit.text.payloads import entries_of, payload_lines
from pt2kit.text.program import program_lines
from pt2kit.text.report import summary_lines
from pt2kit.text.summary import summarize

FOLDER = Path(__file__).with_name("golden")
Printer = Callable[[pt2kit.Package], Iterable[str]]


def _summary(package: pt2kit.Package) -> Iterable[str]:
    # The first line holds the path.
    return list(summary_lines(summarize(package)))[1:]


def _graph(package: pt2kit.Package) -> Iterable[str]:
    return program_lines(package.programs["model"])


def _weights(package: pt2kit.Package) -> Iterable[str]:
    return payload_lines(entries_of(package, "model", constants=True))


SUMMARIES = (
    "batchnorm_train__decomp",
    "buffer_mutation",
    "cond_params",
    "constants",
    "convnet",
    "custom_op",
    "dtypes",
    "dynamic_batch",
    "empty_graph",
    "extra_files",
    "input_mutation__decomp",
    "item_constrain_value",
    "kwargs_and_nested_inputs",
    "many_params",
    "multi_model_package",
    "nonpersistent_buffer",
    "odd_names",
    "print_effect__decomp",
    "scalar_inputs",
    "shared_weights",
    "training_loss_joint",
)
GRAPHS = ("cond_params", "scalar_inputs", "sym_ops", "inf_nan_floats", "int_list_and_optional_args", "map_hop")
CASES: dict[str, tuple[str, Printer]] = {
    **{f"{name}.summary": (name, _summary) for name in SUMMARIES},
    **{f"{name}.graph": (name, _graph) for name in GRAPHS},
    **{f"{name}.weights": (name, _weights) for name in ("constants", "odd_names", "shared_weights", "strided_weights")},
}
"""Name of the text -> the sample file of torch 2.13, and what prints it."""


def text(name: str) -> str:
    """Return what is printed today."""
    sample, printer = CASES[name]
    with pt2kit.open(samples.sample("2.13.0", sample)) as package:
        return "".join(f"{line}\n" for line in printer(package))


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name in CASES:
        (FOLDER / f"{name}.txt").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
