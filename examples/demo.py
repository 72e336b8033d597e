"""What `make demo` runs: pt2kit at work on files that real releases of PyTorch wrote, step by step.

Each step is a function with a heading; `STEPS` is the order. All but the last run without PyTorch; where it is not
installed, the last one says so.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pt2kit
from pt2kit.tensors import statistics

SAMPLES = Path(__file__).parents[1] / "tests" / "data" / "corpus"
CONVNET = SAMPLES / "2.13.0" / "convnet.pt2"
CONTROL_FLOW = SAMPLES / "2.15.0" / "cond.pt2"
TWO_MODELS = SAMPLES / "2.9.1" / "multi_model_package.pt2"


def show() -> None:
    """Three files of three releases: a network, one with control flow, and a package of two programs."""
    for path in (CONVNET, CONTROL_FLOW, TWO_MODELS):
        run("show", path)


def graph() -> None:
    """The same program, node by node."""
    run("show", CONTROL_FLOW, "--graph")


def weights() -> None:
    """The tensors of a file; one of them read, and what its numbers are like."""
    run("weights", CONVNET)
    with pt2kit.open(CONVNET) as package:
        weight = package.weights()["conv.weight"]
        found = statistics(weight)
        print(f"{weight.name}: {weight.describe()}, first values {weight.numpy().ravel()[:3].tolist()}")
        print(f"min {found.min:.4f}, max {found.max:.4f}, mean {found.mean:.4f}, std {found.std:.4f}")


def convert() -> None:
    """The same network as torch 2.5 writes it, and back: what changes on the way, and that its weights stay."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "old.pt2", Path(folder) / "new.pt2"
        print(pt2kit.convert(CONVNET, old, target="torch==2.5"))
        print(pt2kit.convert(old, new, target="torch==2.13"))
        with pt2kit.open(CONVNET) as package, pt2kit.open(new) as again:
            old_weights, new_weights = (pt2kit.digest(one).weights for one in (package, again))
            print(f"weights before {old_weights[:24]}…, after {new_weights[:24]}…")


def save_and_load() -> None:
    """A live program: exported, saved, opened without PyTorch, loaded, run, and compared."""
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed here: pip install 'pt2kit[torch]' brings it.")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention.pt2"
        code = (Path(__file__).parent / "live.py").read_text()
        # A process of its own: the other steps promise that PyTorch is not imported.
        subprocess.run([sys.executable, "-c", code, "save", str(path)], check=True)
        with pt2kit.open(path) as package:
            nodes = package.programs["model"].graph_module.graph.nodes
            print(f"opened without PyTorch: {len(nodes)} nodes, {len(package.weights())} weights, {package.producer}")
        subprocess.run([sys.executable, "-c", code, "load", str(path)], check=True)


STEPS: tuple[Callable[[], None], ...] = (show, graph, weights, convert, save_and_load)


def run(*args: str | Path) -> None:
    """Run a command of `pt2` as a user would, printing it first."""
    shown = [arg.relative_to(SAMPLES.parents[2]) if isinstance(arg, Path) else arg for arg in args]
    print(f"$ pt2 {' '.join(map(str, shown))}\n", flush=True)
    subprocess.run([sys.executable, "-m", "pt2kit", *map(str, shown)], check=True, cwd=SAMPLES.parents[2])
    print()


def main() -> None:
    """Run all steps."""
    for number, step in enumerate(STEPS, 1):
        title = f"{number}. {step.__doc__}"
        print(f"{title}\n{'=' * len(title)}\n", flush=True)
        step()
    print(f"\npt2kit {pt2kit.__version__}: PyTorch was {'' if 'torch' in sys.modules else 'not '}imported.")


if __name__ == "__main__":
    main()
