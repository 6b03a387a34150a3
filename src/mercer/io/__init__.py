"""Save objects to files and load them, without pickle: plain arrays and a description in JSON."""

from mercer.io._archive import load, save
from mercer.io._checkpoint import checkpoint
from mercer.io._registry import register

__all__ = ["checkpoint", "load", "register", "save"]
