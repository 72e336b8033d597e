"""Run a command on thousands of files with Dask; write a dataset of the results. `docs/fleet.md` has its tables.

running.py    `run`: a stream of batches to a cluster, and results written as they arrive
targets.py    the files of a run, without those processed before
listing.py    files that match a pattern: local, in S3, or in a file system of fsspec
cluster.py    clients of Dask
batches.py    tasks of Dask's workers: a batch of files
isolation.py  a child process for reading, which a bad file may end
reading.py    commands and their options; one file
dataset.py    a dataset in a folder: a manifest and parts; its columns
figures.py    figures and report tables of a dataset, also as an HTML page
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.fleet.dataset import COLUMNS as COLUMNS
    from pt2kit.fleet.dataset import OUTCOMES as OUTCOMES
    from pt2kit.fleet.dataset import SCHEMA as SCHEMA
    from pt2kit.fleet.figures import Figures as Figures
    from pt2kit.fleet.figures import figures_of as figures_of
    from pt2kit.fleet.reading import WORKS as WORKS
    from pt2kit.fleet.running import Progress as Progress
    from pt2kit.fleet.running import run as run

__getattr__, __dir__, __all__ = front_door(__name__)
