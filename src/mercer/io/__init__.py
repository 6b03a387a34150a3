"""Files: objects saved without pickle, rows read in pieces, and checkpoints of long fits."""

from mercer.io._archive import load, save
from mercer.io._checkpoint import checkpoint
from mercer.io._registry import register
from mercer.io._rows import open_rows

__all__ = ["checkpoint", "load", "open_rows", "register", "save"]
