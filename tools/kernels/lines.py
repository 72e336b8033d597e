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
    """

    deaths: list[str] = field(default_factory=list)
    succeeded: int = 0


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
        if label := line.get("death") or line.get("leak"):
            end = "leak" if "leak" in line else line["alone"]
            if line.get("signal") not in SLOW and end not in ("", *SLOW) and not _is_made_by_refused(label):
                item.deaths.append(f"{' '.join(filter(None, label))}: {end}")
        else:
            item.succeeded += max(line["ok"], 0)
    return release, found


def _is_made_by_refused(label: list[str]) -> bool:
    """Return whether a call got a tensor in MKL-DNN's layout, or one on `meta` together with real tensors.

    Operators that return such tensors are refused (`to_mkldnn`, `device="meta"` in a program with inputs
    elsewhere), so that no others have to be.
    """
    return (label[1] == "layout" and label[2].endswith(("mkldnn", "meta"))) or "layout meta" in label[2]
