"""Fuzzing: random calls of everything public, and damaged files (`python -m tools.fuzz --help`)."""
