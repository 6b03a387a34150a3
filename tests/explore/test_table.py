"""Rows that are used: complete ones, no more than a stated number."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.exceptions import InputError
from mercer.explore import Table
from mercer.explore._table import ROWS, sample


def table(values, names=("x", "y", "z")):
    values = np.asarray(values)
    return Table("a.csv", names[: values.shape[1]], values)


def test_rows_with_missing_values_are_left_out_and_counted(rng):
    values = rng.normal(size=(10, 3))
    values[2, 0] = values[5, 1] = values[7, 2] = np.nan
    found = sample(table(values), (1, 0))
    assert pytest.approx(np.delete(values, [2, 5], axis=0)[:, [1, 0]]) == found.X
    assert (found.complete, found.missing) == (8, 2)
    assert found.spread == pytest.approx(found.X.std(axis=0))


def test_many_rows_are_sampled_without_repetition(rng):
    values = rng.normal(size=(ROWS + 500, 1))
    found = sample(table(values), (0,))
    assert found.X.shape == (ROWS, 1)
    assert found.complete == ROWS + 500
    assert len(np.unique(found.X)) == ROWS
    assert np.isin(found.X, values).all()
    assert pytest.approx(found.X) == sample(table(values), (0,)).X


def test_single_precision_becomes_double(rng):
    assert sample(table(rng.normal(size=(5, 1)).astype(np.float32)), (0,)).X.dtype == np.float64


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match=r"a\.csv has 2 rows without missing values"):
        sample(table([[1.0], [np.nan], [2.0]]), (0,))


def test_constant_columns_are_refused_by_name():
    with pytest.raises(InputError, match=r"all values of 'y' in a\.csv are equal"):
        sample(table([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]), (0, 1))


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_the_spread_of_very_small_and_large_numbers(unit):
    rows = sample(Table("a.csv", ("x",), unit * np.array([[0.0], [1.0], [2.0]])), (0,))
    assert_allclose(rows.spread / unit, np.sqrt(2.0 / 3.0))
