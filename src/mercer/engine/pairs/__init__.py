"""Pairs: how the variables of a program are measured between two sets of points."""
