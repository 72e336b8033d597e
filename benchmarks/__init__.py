"""Benchmarks of pt2kit: one file per subject, one command (`python -m benchmarks`), one table."""
