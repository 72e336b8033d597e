"""The exported programs that are measured, as files: a name -> the path of a `.pt2`, built on first use.

The files lie in benchmarks/.cache. A missing one is built in a process of its own, because the process that measures
must not have torch's heap before it asks for it. Build some by hand, or list them all, with

    python -m benchmarks.programs [NAME…]

A name is a recipe of `models.py`, an underscore and a size: `chain_10000` has ten thousand nodes. `grown_100000` is the
chain of that length, made of a small one without torch.
The names in NAMED carry the number that matters about them instead of the recipe's size.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(__file__).resolve().parent / ".cache"
BUILD_TIMEOUT_S = 3600
SMALL_CHAIN = "chain_1000"
"""The base of longer chains."""

TRANSFORMER = "transformer_2700"
CHAIN = "chain_10000"
LARGE = "weights_2gb"
"""The archive that is mostly weights."""
WHAT = {
    TRANSFORMER: "a 2,700-node dynamic transformer",
    "transformer_28": "a 28-layer transformer",
    "bert_12": "BERT with 12 layers",
    "vit_12": "a vision transformer with 12 layers",
    CHAIN: "a 10,000-node chain",
}
"""Programs in words."""

# name -> (recipe, size)
NAMED = {
    TRANSFORMER: ("transformer", 37),  # 2,680 nodes
    "transformer_2mb": ("transformer", 5),  # about half of the file is the graph's JSON
    "bert_12": ("bert", 12),
    "vit_12": ("vit", 12),
    "mlp_small": ("mlp", 2000),  # a 2 MB file that is nearly all weights
    LARGE: ("weights", 2048),
    "weights_256mb": ("weights", 256),
}


def recipe_of(name: str) -> tuple[str, int]:
    """The recipe and the size that a program's name stands for.

    Raises: ValueError when the name is neither in NAMED nor a recipe with a size.
    """
    if name in NAMED:
        return NAMED[name]
    if match := re.fullmatch(r"(transformer|bert|vit|chain|grown|weights|mlp)_([1-9][0-9]*)", name):
        return match[1], int(match[2])
    raise ValueError(f"program {name!r}: expected one of {', '.join(NAMED)} or RECIPE_SIZE such as chain_1000")


def path(name: str) -> Path:
    """The program's file, built first if it is not there yet. Cost: seconds to minutes the first time.

    Raises: RuntimeError when the builder fails.
    """
    recipe_of(name)
    out = CACHE / f"{name}.pt2"
    if not (out.exists() and out.with_suffix(".json").exists()):
        print(f"building {out.relative_to(ROOT)} …", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "benchmarks.programs", name]
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=BUILD_TIMEOUT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"building {name}: exit status {done.returncode}; its own messages are above")
        print(f"  {done.stdout.strip()}", file=sys.stderr, flush=True)
    return out


def facts(name: str) -> dict[str, Any]:
    """Read the builder's facts about the program: nodes, bytes, export_s, save_s (see `models.build`)."""
    read: dict[str, Any] = json.loads(path(name).with_suffix(".json").read_text())
    return read


def _build(name: str) -> str:
    CACHE.mkdir(exist_ok=True)
    recipe, size = recipe_of(name)
    out = CACHE / f"{name}.pt2"
    if recipe == "grown":
        from benchmarks import grown

        return json.dumps(grown.build(path(SMALL_CHAIN), size, out))
    from benchmarks import models  # imports torch

    return json.dumps(models.build(recipe, size, out))


def main() -> None:
    """Build the named programs in this process, or list the cache."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description="Build benchmark programs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMED)} or RECIPE_SIZE")
    names = parser.parse_args().names
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # every model is made from its config; nothing is fetched
    for name in names:
        print(_build(name), flush=True)
    if not names:
        for file in sorted(CACHE.glob("*.pt2")):
            print(f"{file.stem:20} {file.stat().st_size / 1e6:10.1f} MB")


if __name__ == "__main__":
    main()
