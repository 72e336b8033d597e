"""Kernels of operators in NumPy, one module per family; `pt2kit.runtime.table` has the table of them."""
