"""Compression: nearly the same element with far fewer points."""
