"""What `make demo` runs: pt2kit at work on files that real releases of PyTorch wrote, step by step.

Each step is a function with a heading; `STEPS` is the order. All but the last run without PyTorch; if it is not
installed, the last one prints how to install it.
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
NETWORK = SAMPLES / "2.13.0" / "mlp.pt2"
OLD_NETWORK = SAMPLES / "2.1.2" / "mlp.pt2"
HOSTILE = SAMPLES.parent / "hostile" / "011_eval_expr_size.pt2"
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
        weight = package.weights()["conv.weight"].dense()
        found = statistics(weight)
        print(f"{weight.name}: {weight.describe()}, first values {weight.numpy().ravel()[:3].tolist()}")
        print(f"min {found.min:.4f}, max {found.max:.4f}, mean {found.mean:.4f}, std {found.std:.4f}")


def check() -> None:
    """What is wrong with a file: with one that PyTorch wrote, and with one whose sizes are code for PyTorch to run."""
    run("check", CONVNET)
    run("check", HOSTILE, code=1)


def diff() -> None:
    """What differs between two networks: a file of 2023 and one of today, of the same model."""
    run("diff", OLD_NETWORK, NETWORK, code=1)


def sanitize() -> None:
    """Write a copy without pickles, and compare the digests: the program is the same."""
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / "clean.pt2"
        done = pt2kit.sanitize(CONVNET, clean)
        print(f"moved to raw records: sample inputs of {', '.join(done.moved)}")
        before, after = pt2kit.digest(CONVNET).program, pt2kit.digest(clean).program
        print(f"program before {before[:24]}…, after {after[:24]}…")
        print(f"problems left: {len(pt2kit.check(clean))}")


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


STEPS: tuple[Callable[[], None], ...] = (show, graph, weights, check, diff, sanitize, convert, save_and_load)


def run(*args: str | Path, code: int = 0) -> None:
    """Run a command of `pt2` as a user would, printing it first; `code` is the exit code it must have."""
    shown = [arg.relative_to(SAMPLES.parents[2]) if isinstance(arg, Path) else arg for arg in args]
    print(f"$ pt2 {' '.join(map(str, shown))}\n", flush=True)
    done = subprocess.run([sys.executable, "-m", "pt2kit", *map(str, shown)], cwd=SAMPLES.parents[2])
    if done.returncode != code:
        raise SystemExit(f"pt2 {args[0]}: expected exit code {code}, got {done.returncode}")
    print()


def main() -> None:
    """Run all steps."""
    for number, step in enumerate(STEPS, 1):
        title = f"{number}. {step.__doc__}"
        print(f"\n{title}\n{'=' * len(title)}\n", flush=True)
        step()
    print(f"\npt2kit {pt2kit.__version__}: PyTorch was {'' if 'torch' in sys.modules else 'not '}imported.")


if __name__ == "__main__":
    main()
