"""Save objects to files and load them, without pickle: plain arrays and a description in JSON."""

from mercer.io._registry import register
from mercer.io._save_load import load, save

__all__ = ["load", "register", "save"]
