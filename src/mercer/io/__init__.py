"""Saving and loading without pickle: arrays plus a description, and no code."""

from mercer._registry import register
from mercer.io._load import load
from mercer.io._save import save

__all__ = ["load", "register", "save"]
