"""Run exported programs with NumPy, without torch.

- `Session(file)` reads a program; calling it runs the program with arrays.
- `run(file, *args)` does so once.
- `register("corpus::addmul")` adds the kernel of a custom operator.
- `supported()` lists the operators that have kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.runtime.session import DEFAULT_RUN_LIMITS as DEFAULT_RUN_LIMITS
    from pt2kit.runtime.session import RunLimits as RunLimits
    from pt2kit.runtime.session import Session as Session
    from pt2kit.runtime.session import run as run
    from pt2kit.runtime.table import register as register
    from pt2kit.runtime.table import supported as supported
    from pt2kit.runtime.table import unregister as unregister

__getattr__, __dir__, __all__ = front_door(__name__)
