"""Rules that a sound and harmless file keeps. One rule, one small generator of problems, one id.

Safety findings (`safety.py`): what torch would run, or resolve by a name from the file, when it loads the file.
    X1  sample inputs are a pickle
    X2  a tensor is stored as a pickle
    X3  a custom object is stored as a pickle
    X4  guards are source code
    X5  an expression is evaluated as Python, and is more than an expression
    X6  a name that is pasted into generated source is more than a name
    X7  an operator is looked up outside the dispatcher and the usual functions
    X8  compiled code is loaded into the process
    X9  a tree spec names a class that is imported
"""

from pt2kit.check.safety import safety_findings

__all__ = ["safety_findings"]
