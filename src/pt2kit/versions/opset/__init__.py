"""Operator-set versions: convert a program stamped with other versions than the expected ones, and back."""
