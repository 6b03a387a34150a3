"""Image segmentation by mean shift."""
