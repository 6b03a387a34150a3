"""Modes of densities: mean shift, all modes with proof, scale space."""
