"""Run a command on thousands of files with Dask; write a dataset of the results. `docs/fleet.md` has its tables.

run.py          `run`: the stream, the window of batches, the parts that are written
work.py         what is done with each file
targets.py      what is worked on: patterns.py, listing.py
window.py       batches and how large they are; seen.py: what is left out
cluster.py      Dask;  batches.py: what its workers do
isolation.py    a process for reading, which a bad file may end;  child.py: that process;  reading.py: one file
tables.py       the columns;  dataset.py: parts in a folder.py
figures.py      a dataset -> what is to be said of it;  page.py: as a page
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.fleet.figures import Figures as Figures
    from pt2kit.fleet.figures import figures_of as figures_of
    from pt2kit.fleet.reading import WORKS as WORKS
    from pt2kit.fleet.running import Progress as Progress
    from pt2kit.fleet.running import run as run
    from pt2kit.fleet.tables import COLUMNS as COLUMNS
    from pt2kit.fleet.tables import OUTCOMES as OUTCOMES
    from pt2kit.fleet.tables import SCHEMA as SCHEMA

__getattr__, __dir__, __all__ = front_door(
    __name__,
    {
        "figures": "Figures figures_of",
        "running": "Progress run",
        "tables": "COLUMNS OUTCOMES SCHEMA",
        "reading": "WORKS",
    },
)
