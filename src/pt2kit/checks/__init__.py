"""Rules that a sound and harmless file keeps. One rule, one small generator of problems, one id.

Safety findings (`safety.py`): what torch would run, or resolve by a name from the file, when it loads the file.

Rules (`RULES` says what each means):
    X1 sample inputs · X2 pickled tensors · X3 pickled objects · X4 guards · X5 expressions · X6 names in source
    X7 operators outside the dispatcher · X8 compiled code · X9 classes that tree specs name
"""

from pt2kit.checks.rules import RULES
from pt2kit.checks.safety import safety_findings

__all__ = ["RULES", "safety_findings"]
