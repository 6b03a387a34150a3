"""Colours and colour maps of all plots; readers who confuse red and green can tell them apart.

The colours are those of Okabe and Ito (2008), https://jfly.uni-koeln.de/color/.
"""

from __future__ import annotations

try:
    from matplotlib.colors import LinearSegmentedColormap
except ImportError as error:
    raise ImportError("mercer.plot needs matplotlib: pip install 'mercer[plot]'") from error

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
YELLOW, SKY, GREY, DARK = "#E69F00", "#56B4E9", "#8c8c8c", "#404040"
COLOURS = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY)
MARKERS = ("o", "s", "^", "D", "v")

# White is zero, orange negative, blue positive. An odd number of colours has a middle one.
DIVERGING = LinearSegmentedColormap.from_list("orange-white-blue", [ORANGE, "white", BLUE], N=257)
LOW_IS_DARK = LinearSegmentedColormap.from_list("blue-white", [BLUE, "white"])
