"""Compare what two programs compute: the first node that differs, errors per module, the origin of NaN and infinity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pt2kit.front_door import front_door

if TYPE_CHECKING:
    from pt2kit.comparing.proving import prove as prove
    from pt2kit.comparing.proving import prove_joined as prove_joined
    from pt2kit.comparing.proving import prove_part as prove_part
    from pt2kit.comparing.runs import Error as Error
    from pt2kit.comparing.runs import NodeError as NodeError
    from pt2kit.comparing.runs import RunComparison as RunComparison
    from pt2kit.comparing.runs import compare_runs as compare_runs

__getattr__, __dir__, __all__ = front_door(__name__)
