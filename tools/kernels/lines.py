"""A file of evidence -> what was seen of each operator."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

SLOW = ("SIGPROF", "SIGKILL", "SIGALRM")


@dataclass
class Evidence:
    """The evidence for one operator.

    Args:
        deaths: "indices values all 2**40: SIGSEGV", of calls that die alone, too, and "target shape [0]: leak", of
            calls whose results follow what memory was filled with.
        succeeded: how many hostile calls went well.
        base: where its valid calls come from: "recorded", "relative", "made", "none".
        shared: a result may lie in an argument's memory without an alias in the schema.
    """

    deaths: list[str] = field(default_factory=list)
    succeeded: int = 0
    base: str = ""
    shared: bool = False


def read(path: Path) -> tuple[str, dict[str, Evidence]]:
    """The release, and operator with overload -> what was seen of it."""
    release = ""
    found: dict[str, Evidence] = {}
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if "release" in line:
            release = line["release"]
            continue
        item = found.setdefault(line["op"], Evidence())
        if "death" in line:
            if (
                line["signal"] not in SLOW
                and line["alone"] not in ("", *SLOW)
                and not _is_made_by_refused(line["death"])
            ):
                item.deaths.append(f"{' '.join(filter(None, line['death']))}: {line['alone']}")
        elif "leak" in line:
            if not _is_made_by_refused(line["leak"]):
                item.deaths.append(f"{' '.join(filter(None, line['leak']))}: leak")
        else:
            item.succeeded += max(line["ok"], 0)
            item.base = line["base"] or item.base
            item.shared |= line.get("shared", False)
    return release, found


def _text(label: list[str], end: str) -> list[str]:
    return [] if _is_made_by_refused(label) else [f"{' '.join(filter(None, label))}: {end}"]


def _is_made_by_refused(label: list[str]) -> bool:
    """Return whether a call got a tensor in MKL-DNN's layout, or one on `meta` together with real tensors.

    Operators that return such tensors are refused (`to_mkldnn`, `device="meta"` in a program with inputs
    elsewhere), so that no others have to be.
    """
    return (label[1] == "layout" and label[2].endswith(("mkldnn", "meta"))) or "layout meta" in label[2]
