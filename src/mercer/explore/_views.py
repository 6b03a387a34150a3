"""Questions of the page (dictionaries from JSON) and their answers: numbers, words and arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._array import LARGEST, Array
from mercer.exceptions import InputError
from mercer.explore._model import (
    KERNELS,
    Grid,
    ascent,
    compare,
    landscape,
    make_kernel,
    projected,
    quick_landscape,
    usual_bandwidth,
)
from mercer.explore._table import Sample, Table, sample
from mercer.kernels import Kernel
from mercer.methods import kernel_density, witness

Question = dict[str, Any]
Answer = dict[str, Any]
Reader = Callable[[str, bytes], Table]  # from the name and the content of a second file

UPLOAD = 64 << 20  # bytes of a second file, at most
_COMPONENTS = 50  # at most, of a principal subspace


class Views:
    """Answers to the page about one table, and about a second one once it is loaded."""

    def __init__(self, table: Table, read: Reader) -> None:
        self.table, self.read = table, read
        self.second: Table | None = None

    def tables(self, _: Question) -> Answer:
        """The columns to choose from."""
        return {
            "tables": [_described(table) for table in self._tables],
            "columns": list(self.table.columns),
            "kernels": list(KERNELS),
            "upload": UPLOAD,
        }

    def load(self, name: str, content: bytes) -> Answer:
        """Read the second file."""
        self.second = self.read(name, content)
        sample.cache_clear()
        return self.tables({})

    def unload(self, _: Question) -> Answer:
        """Forget the second file."""
        self.second = None
        sample.cache_clear()
        return self.tables({})

    def rows(self, asked: Question) -> Answer:
        """The rows of some columns, the corners of the plot, and the usual bandwidths."""
        samples = self._samples(asked)
        grid = Grid.around(samples, fine=False)
        return {
            "samples": [_counts(rows) for rows in samples],
            "low": grid.low,
            "high": grid.high,
            "spread": samples[0].spread,
            "bandwidths": {name: usual_bandwidth(name, samples[0]) for name in KERNELS},
        }

    def landscape(self, asked: Question) -> Answer:
        """Density, modes and basins on a coarse grid, at once."""
        return self._landscape(asked, fine=False)

    def fine(self, asked: Question) -> Answer:
        """The same by mean shift, and on a finer grid."""
        return self._landscape(asked, fine=True)

    def _landscape(self, asked: Question, *, fine: bool) -> Answer:
        rows, kernel = self._chosen(asked)
        grid = Grid.around(self._samples(asked), fine)
        found = (landscape if fine else quick_landscape)(rows, kernel, grid)
        k = len(found.modes)
        return {
            "size": grid.size,
            "density": found.density,
            "basins": found.basins,
            "modes": found.modes,
            "heights": found.heights,
            "counts": np.bincount(found.rows[found.rows >= 0], minlength=k),
            "proved": int(found.proved.sum()),
            "exact": found.exact,
        }

    def ascent(self, asked: Question) -> Answer:
        """The path of mean shift from a point, and the density along it."""
        rows, kernel = self._chosen(asked)
        found = ascent(rows, kernel, _point(asked, rows))
        assert found.history is not None
        path = found.history.points[:, 0]
        return {
            "path": path,
            "heights": np.asarray(kernel_density(kernel, rows.X)(path)),
            "problem": "" if found.ok[0] else found.status[0].value,
        }

    def preimage(self, asked: Question) -> Answer:
        """The pre-image of the projection of a point."""
        rows, kernel = self._chosen(asked)
        components = asked.get("components")
        if type(components) is not int or not 1 <= components <= _COMPONENTS:
            raise InputError(f"components must be a whole number from 1 to {_COMPONENTS}")
        found = projected(rows, kernel, _point(asked, rows), components)
        return {
            "point": found.points[0],
            "height": float(kernel_density(kernel, rows.X)(found.points)[0]),
            "distance": float(found.distance[0]),
            "verdict": found.certificate.verdict[0].name,
        }

    def witness(self, asked: Question) -> Answer:
        """Where the two samples differ, on a grid."""
        first, second = self._both(asked)
        kernel = self._chosen(asked)[1]
        grid = Grid.around([first, second], fine=True)
        values = np.asarray(witness(kernel, first.X, second.X)(grid.nodes))
        return {"size": grid.size, "values": values}

    def test(self, asked: Question) -> Answer:
        """Whether the two samples differ."""
        self._both(asked)
        assert self.second is not None
        found = compare(self.table, self.second, _columns(asked, self.table))
        return found.to_dict() | {"how": found.how}

    @property
    def _tables(self) -> list[Table]:
        return [self.table] if self.second is None else [self.table, self.second]

    def _samples(self, asked: Question) -> list[Sample]:
        columns = _columns(asked, self.table)
        return [sample(table, columns) for table in self._tables]

    def _both(self, asked: Question) -> list[Sample]:
        if self.second is None:
            raise InputError("there is no second file; load one first")
        return self._samples(asked)

    def _chosen(self, asked: Question) -> tuple[Sample, Kernel]:
        """The rows and the kernel that are asked for."""
        rows = self._samples(asked)[0]
        name: Any = asked.get("kernel")
        bandwidth: Any = asked.get("bandwidth")
        if not isinstance(name, str) or name not in KERNELS:
            raise InputError(f"kernel must be one of {', '.join(KERNELS)}, got {name!r}")
        if not _is_number(bandwidth) or not 1e-6 < bandwidth < 1e6:
            raise InputError("bandwidth must be a number between 1e-6 and 1e6")
        return rows, make_kernel(name, float(bandwidth), rows)


def _described(table: Table) -> Answer:
    return {
        "name": table.name,
        "rows": len(table.values),
        "left_out": dict(table.left_out),
        "notes": list(table.notes),
    }


def _counts(rows: Sample) -> Answer:
    return {"points": rows.X, "complete": rows.complete, "missing": rows.missing}


def _columns(asked: Question, table: Table) -> tuple[int, ...]:
    columns = asked.get("columns")
    if not isinstance(columns, list) or len(columns) not in (1, 2):
        raise InputError("choose one or two columns")
    if any(type(c) is not int or not 0 <= c < len(table.columns) for c in columns):
        raise InputError(f"columns must be numbers from 0 to {len(table.columns) - 1}")
    if len(set(columns)) < len(columns):
        raise InputError("choose two different columns")
    return tuple(columns)


def _point(asked: Question, rows: Sample) -> Array:
    point = asked.get("point")
    d = rows.X.shape[1]
    if not isinstance(point, list) or len(point) != d or not all(map(_is_number, point)):
        raise InputError(f"point must be a list of {d} numbers")
    return np.array(point, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST  # also False for NaN
