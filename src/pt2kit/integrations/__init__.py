"""What other tools ask for, in the form in which they ask: nothing here is imported but by them, or by who uses them.

    modelscan.py   `Pt2Scan`, a scanner for modelscan
    mlflow.py      `check_model`, `load_model`, and a loader module for models of MLflow

docs/integrations.md says how each is used, and what it was tried with.
"""
