"""Plugins for other tools (modelscan, MLflow); each is imported by its tool or its users only.

    modelscan.py   `Pt2Scan`, a scanner for modelscan
    mlflow.py      `check_model`, `load_model`, and a loader module for models of MLflow

docs/integrations.md says how each is used, and what it was tried with.
"""
