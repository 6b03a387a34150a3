"""An interactive page about a table: densities, modes, basins, ascents, and two samples compared.

`mercer explore data.csv` on the command line opens it.
"""

from mercer.explore._server import serve
from mercer.explore._table import Table

__all__ = ["Table", "serve"]
