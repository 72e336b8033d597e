"""A long fuzzing campaign: changed bytes and texts into every parser; only pt2kit's own errors may come out.

    python tools/fuzz.py --minutes 10 [--seed 1] [--only archive]

Prints a line per parser. A finding is written to `fuzz-findings/` with what is needed to repeat it; exit code 1.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.samples import CURRENT_LAYOUT, corpus  # noqa: E402

from pt2kit import codec, node_metadata, schema, symbols, treespec  # noqa: E402
from pt2kit.errors import Pt2Error  # noqa: E402
from pt2kit.graph import problems  # noqa: E402
from pt2kit.package.open import open_package  # noqa: E402
from pt2kit.pickles.reader import globals_in, read_payload  # noqa: E402
from pt2kit.zip.reader import open_archive  # noqa: E402
from pt2kit.zip.writer import ArchiveWriter  # noqa: E402

Damage = Callable[[bytes, random.Random], bytes]
SLOW = 10.0
"""Seconds one input may take before it counts as a finding."""


def damage(data: bytes, dice: random.Random) -> bytes:
    """Change a few bytes: flips, cuts, repeats, numbers at their limits."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        if not out:
            break
        at = dice.randrange(len(out))
        match dice.randrange(6):
            case 0:
                out[at] ^= 1 << dice.randrange(8)
            case 1:
                out[at] = dice.randrange(256)
            case 2:
                del out[at : at + dice.randint(1, 64)]
            case 3:
                out[at:at] = out[at : at + dice.randint(1, 64)]
            case 4:
                out[at : at + 4] = dice.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\1\0\0\0"])
            case _:
                out[at : at + 2] = dice.choice([b"{}", b"[]", b'""', b"-1", b"1e", b"\\u", b"((", b"))", b";,"])
    return bytes(out)


def damage_record(data: bytes, dice: random.Random) -> bytes:
    """Change one record of an archive and pack it again soundly, so that its content is what gets read."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    chosen = dice.choice([name for name in records if records[name]])
    records[chosen] = damage(records[chosen], dice)
    out = io.BytesIO()
    with ArchiveWriter(out, root="") as writer:
        for name, content in records.items():
            writer.write(name, content)
    return out.getvalue()


def read_everything(data: bytes) -> None:
    """Open a file and read all that can be read without torch."""
    with open_package(data) as opened:
        for model in opened.layout.models:
            list(problems(opened.programs[model]))
            for payload in (*opened.weights(model).values(), *opened.constants(model).values()):
                payload.buffer()
            opened.sample_inputs(model)
        for name in opened.extra_files:
            opened.extra_files[name]


def read_records(data: bytes) -> None:
    """Open an archive and read all records."""
    with open_archive(data) as archive:
        for name in archive.records:
            archive.read(name)


def read_pickle(data: bytes) -> None:
    """List a payload's globals and read it."""
    globals_in(data, "fuzz")
    read_payload(data, "fuzz")


def on_text(parse: Callable[[str], object]) -> Callable[[bytes], None]:
    """A text parser as a parser of bytes."""
    return lambda data: (parse(data.decode("utf-8", "replace")), None)[1]


def materials() -> dict[str, tuple[Callable[[bytes], Any], list[bytes], Damage]]:
    """Parser name -> the parser, sound inputs for it, and how they are damaged."""
    files = [path.read_bytes() for path in corpus(*CURRENT_LAYOUT) if path.stat().st_size < 60_000]
    models, pickles = [], []
    for data in files:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            models += [archive.read(name) for name in archive.namelist() if "/models/" in name]
            pickles += [archive.read(name) for name in archive.namelist() if name.endswith(".pt")]
    trees = [json.loads(model) for model in models]
    expressions, specs, stacks = set(), set(), set()
    for tree in trees:
        module = tree["graph_module"]
        for entry in module["module_call_graph"]:
            if entry["signature"]:
                specs |= {entry["signature"]["in_spec"], entry["signature"]["out_spec"]}
        for meta in module["graph"]["tensor_values"].values():
            expressions |= {size["as_expr"]["expr_str"] for size in meta["sizes"] if "as_expr" in size}
        stacks |= {
            node["metadata"]["nn_module_stack"]
            for node in module["graph"]["nodes"]
            if "nn_module_stack" in node["metadata"]
        }
    guards = {guard for tree in trees for guard in tree.get("guards_code", [])}

    def encoded(texts: set[str]) -> list[bytes]:
        return [text.encode() for text in sorted(texts)]

    return {
        "file": (read_everything, files, damage_record),
        "archive": (read_records, files, damage),
        "program": (lambda data: codec.decode(data, schema.ExportedProgram, "fuzz"), models, damage),
        "pickle": (read_pickle, pickles, damage_record),
        "expression": (on_text(symbols.parse), encoded(expressions), damage),
        "guard": (on_text(symbols.parse_guard), encoded(guards), damage),
        "tree spec": (on_text(lambda text: treespec.parse(text, "fuzz")), encoded(specs), damage),
        "module stack": (on_text(node_metadata.parse_module_stack), encoded(stacks), damage),
    }


def campaign(
    name: str, parse: Callable[[bytes], Any], sound: list[bytes], spoil: Damage, dice: random.Random, until: float
) -> list[str]:
    """Feed damaged inputs to one parser until a time; what else than our errors came out, in words."""
    findings: list[str] = []
    tried = refused = 0
    while time.monotonic() < until:
        data = spoil(dice.choice(sound), dice)
        started = time.monotonic()
        try:
            parse(data)
        except Pt2Error:
            refused += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
            findings.append(keep(name, data, f"{type(error).__name__}: {error}"))
        if time.monotonic() - started > SLOW:
            findings.append(keep(name, data, f"took {time.monotonic() - started:.1f} s"))
        tried += 1
    print(f"{name:<14}{tried:>9,} inputs, {refused:,} refused, {len(findings)} findings", flush=True)
    return findings


def keep(name: str, data: bytes, what: str) -> str:
    """Write an input that made trouble to a file; its path and the trouble."""
    folder = Path("fuzz-findings")
    folder.mkdir(exist_ok=True)
    path = folder / f"{name.replace(' ', '-')}-{abs(hash(data)):x}.bin"
    path.write_bytes(data)
    return f"{path}: {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one parser's name")
    options = parser.parse_args()
    chosen = {name: row for name, row in materials().items() if options.only in (None, name)}
    findings: list[str] = []
    for name, (parse, sound, spoil) in chosen.items():
        until = time.monotonic() + options.minutes * 60 / len(chosen)
        findings += campaign(name, parse, sound, spoil, random.Random(f"{options.seed} {name}"), until)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
