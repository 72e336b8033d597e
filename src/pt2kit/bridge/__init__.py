"""Live torch programs <-> schema objects and archives. The only room that imports torch (2.9 to 2.15)."""

import torch

from pt2kit.bridge.tested import warn_if_untested

warn_if_untested(torch.__version__)
