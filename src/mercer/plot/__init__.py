"""Pictures: what one would rather look at than read. Needs matplotlib (extra `plot`)."""

from mercer.plot._kernel import plot_kernel

__all__ = ["plot_kernel"]
