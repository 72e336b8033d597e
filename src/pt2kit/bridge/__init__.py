"""Conversion between live torch programs and the format. The only subpackage that imports torch (2.9 to 2.15)."""

try:
    import torch
except ModuleNotFoundError as error:
    from pt2kit.front_door import instructions

    if error.name != "torch":
        raise
    raise ModuleNotFoundError(instructions(__name__, "torch"), name="torch") from None

from pt2kit.bridge.operators import warn_if_untested

warn_if_untested(torch.__version__)
