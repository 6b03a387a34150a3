"""Kernel density estimates, their bandwidths and samples."""
