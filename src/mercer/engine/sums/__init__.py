"""Sums: how a program is run over all pairs, and by which engine."""
