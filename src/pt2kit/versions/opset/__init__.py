"""Operator-set versions: a program stamped with other numbers than the expected ones -> one with those, and back."""
