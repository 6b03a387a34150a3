"""Questions of the page: good answers, and sentences about bad questions."""

import numpy as np
import pytest

from mercer.exceptions import InputError
from mercer.explore import Table
from mercer.explore._views import Views

ASKED = {"columns": [0, 1], "kernel": "gaussian", "bandwidth": 0.4}


@pytest.fixture
def views(rng):
    X = rng.normal(size=(60, 3)) + np.where(np.arange(60) < 30, 0.0, 5.0)[:, None]
    X[7, 1] = np.nan
    first = Table("a.csv", ("x", "y", "z"), X, {"name": "text"}, ("a note",))
    return Views(first, lambda name, content: Table(name, ("x", "y", "z"), X[:20] + len(content)))


def test_tables_are_described(views):
    (table,) = views.tables({})["tables"]
    assert table == {"name": "a.csv", "rows": 60, "left_out": {"name": "text"}, "notes": ["a note"]}


def test_rows_and_their_frame(views):
    found = views.rows({"columns": [1]})
    (rows,) = found["samples"]
    assert (len(rows["points"]), rows["complete"], rows["missing"]) == (59, 59, 1)
    assert found["low"] < rows["points"].min()
    assert found["bandwidths"].keys() == {"gaussian", "laplace", "matern"}


@pytest.mark.parametrize("columns", [[0], [2, 0]])
def test_landscapes_have_one_shape(views, columns):
    quick, fine = (q(ASKED | {"columns": columns}) for q in (views.landscape, views.fine))
    for found in (quick, fine):
        nodes = found["size"] ** len(columns)
        assert found["density"].shape == found["basins"].shape == (nodes,)
        assert found["modes"].shape == (len(found["heights"]), len(columns))
        assert found["counts"].sum() == 60
    assert len(quick["modes"]) == len(fine["modes"]) == 2
    assert (quick["exact"], fine["exact"], fine["proved"]) == (False, True, 2)


def test_a_point(views):
    found = views.ascent(ASKED | {"point": [1.0, 1]})
    assert found["path"][0] == pytest.approx([1.0, 1.0])
    assert found["heights"][-1] == pytest.approx(found["heights"].max())
    assert found["problem"] == ""
    back = views.preimage(ASKED | {"point": [1.0, 1], "components": 5})
    assert back["distance"] > 0.0
    assert back["point"].shape == (2,)


def test_a_second_file_comes_and_goes(views):
    with pytest.raises(InputError, match="no second file"):
        views.witness(ASKED)
    with pytest.raises(InputError, match="no second file"):
        views.test(ASKED)
    assert [t["name"] for t in views.load("b.csv", b"12")["tables"]] == ["a.csv", "b.csv"]
    found = views.rows(ASKED)
    assert len(found["samples"]) == 2
    assert (found["high"] > [s["points"].max() for s in found["samples"]]).all()
    assert views.witness(ASKED)["values"].shape == (80 * 80,)
    assert views.test(ASKED)["rows"] == [59, 19]
    assert len(views.unload({})["tables"]) == 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"columns": []}, "one or two columns"),
        ({"columns": [0, 1, 2]}, "one or two columns"),
        ({"columns": "01"}, "one or two columns"),
        ({"columns": [0, 0]}, "two different columns"),
        ({"columns": [0, 3]}, "from 0 to 2"),
        ({"columns": [-1]}, "from 0 to 2"),
        ({"columns": [True]}, "from 0 to 2"),
        ({"kernel": "cubic"}, "kernel must be one of gaussian"),
        ({"kernel": ["gaussian"]}, "kernel must be one of gaussian"),
        ({"bandwidth": 0}, "bandwidth must be a number"),
        ({"bandwidth": "1"}, "bandwidth must be a number"),
        ({"bandwidth": float("nan")}, "bandwidth must be a number"),
        ({"bandwidth": 10**400}, "bandwidth must be a number"),
        ({"point": [1.0]}, "point must be a list of 2 numbers"),
        ({"point": [1.0, None]}, "point must be a list of 2 numbers"),
        ({"point": [1.0, float("inf")]}, "point must be a list of 2 numbers"),
        ({"point": [1.0, 10**400]}, "point must be a list of 2 numbers"),
        ({"components": 0}, "components must be a whole number from 1 to 50"),
        ({"components": 2.5}, "components must be a whole number from 1 to 50"),
        ({"components": True}, "components must be a whole number from 1 to 50"),
    ],
)  # fmt: skip
def test_bad_questions(views, wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        views.preimage(ASKED | {"point": [0.0, 0.0], "components": 3} | wrong)
