"""Pre-images: the way back from feature space to data space."""
