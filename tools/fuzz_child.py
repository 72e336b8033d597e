"""One harness under libFuzzer, in a process of its own: `python -m tools.fuzz_child NAME FINDINGS [its options]`.

What is no error of pt2kit is written to the folder FINDINGS, once for each place it comes from, and the run goes on.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import traceback
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["pt2kit"]):
    from tools.fuzz_targets import HARNESSES

    from pt2kit.errors import Pt2Error

NUMBERS: tuple[Any, ...]
NUMBERS = (0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**64), 10**30, 0.5, 1e308, True, None, "", "x", [], {})


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) of a tree."""
    found: list[tuple[Any, Any]] = []
    stack = [tree]
    while stack:
        holder = stack.pop()
        pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, child in pairs:
            found.append((holder, key))
            if isinstance(child, dict | list):
                stack.append(child)
    return found


def change_tree(data: bytes, size: int, seed: int) -> bytes:
    """Change a JSON text in one or two places: drop, repeat, exchange, another value; or any bytes of it."""
    dice = random.Random(seed)
    try:
        tree = json.loads(data)
        if not isinstance(tree, dict | list) or dice.random() < 0.2:
            raise ValueError
        for _ in range(dice.randint(1, 2)):
            (holder, key), (other, where) = dice.choice(all_places := places(tree)), dice.choice(all_places)
            match dice.randrange(5):
                case 0:
                    del holder[key]
                case 1 if isinstance(holder, list):
                    holder.insert(key, holder[key])
                case 2:
                    holder[key] = json.loads(json.dumps(other[where]))
                case 3 if isinstance(holder[key], str):
                    holder[key] = atheris.Mutate(holder[key].encode(), 2 * len(holder[key]) + 8).decode(
                        "utf-8", "replace"
                    )
                case _:
                    holder[key] = dice.choice(NUMBERS)
        return json.dumps(tree).encode()[:size]
    except (ValueError, RecursionError, IndexError, KeyError):
        return bytes(atheris.Mutate(data, size))


PIECES = (
    *(
        'File "',
        '", line ',
        ", in ",
        "<module>",
        "    ",
        "  ",
        "^^^^",
        "0",
        "12",
        "1234567890",
        "\\",
        "/",
        '"',
        "\t",
        "\r",
    ),
    *(
        "/home/x/",
        "C:\\\\Users\\\\x\\\\",
        "/usr/lib/python3.11/",
        "/site-packages/",
        "<eval_with_key>.1 from /a/b.py:1 in w",
    ),
    *("  [Previous line repeated 3 more times]", "0:12;3:40", "=0:12", "0:12;", "NoneType: None", '  File "'),
)


def change_lines(data: bytes, size: int, seed: int) -> bytes:
    """Change a text by its lines: drop, repeat, exchange them; put a piece of a stack trace somewhere; or any bytes."""
    dice = random.Random(seed)
    if dice.random() < 0.2:
        return bytes(atheris.Mutate(data, size))
    lines = data.decode("utf-8", "replace").split("\n")
    for _ in range(dice.randint(1, 3)):
        at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(5):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at].removeprefix("  ") if dice.random() < 0.5 else "  " + lines[at]
            case _:
                place = dice.randint(0, len(lines[at]))
                lines[at] = lines[at][:place] + dice.choice(PIECES) + lines[at][place + dice.randrange(3) :]
    return "\n".join(lines).encode()[:size]


CHANGES = {"json": change_tree, "lines": change_lines}


def main() -> None:
    name, folder, *options = sys.argv[1:]
    harness, findings = HARNESSES[name], Path(folder)
    seen: set[str] = set()

    def run(data: bytes) -> None:
        try:
            harness.run(data)
        except Pt2Error:
            pass
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
            frames = [step for step in traceback.extract_tb(error.__traceback__) if "pt2kit" in step.filename]
            place = f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}" if frames else repr(error)
            if place not in seen:
                seen.add(place)
                findings.mkdir(parents=True, exist_ok=True)
                path = findings / f"{name}-{hashlib.sha256(place.encode()).hexdigest()[:12]}"
                path.write_bytes(data)
                path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))

    custom = {"custom_mutator": CHANGES[harness.form]} if harness.form in CHANGES else {}
    atheris.Setup([name, *options], run, **custom)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
