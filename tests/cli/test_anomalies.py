"""`mercer anomalies`: scores in every kind of file."""

import numpy as np
import pytest

from mercer.estimators import KernelNovelty

from .test_tables import rows_of


def test_a_strange_row_has_the_highest_score(run, files):
    path = files["folder"] / "measured.csv"
    lines = path.read_text().splitlines()
    lines[40] = '40,"point, 40",0.0,0.0'  # the centre of the circle
    path.write_text("\n".join(lines) + "\n")
    ran = run("anomalies", "measured.csv", "-o", "scored.csv", "--top", "3")
    assert ran.code == 0, ran.err
    header, *rows = rows_of(files["folder"] / "scored.csv")
    assert header == ["id", "name", "x", "y", "score", "is_anomaly"]
    assert [row[:4] for row in rows] == rows_of(path)[1:]
    assert max(rows, key=lambda row: float(row[4]))[0] == "40"
    assert [row[5] for row in rows].count("true") == 5  # floor(0.05 * 121) - 1
    listing = ran.out.split("highest scores (* anomaly)\n")[1].splitlines()
    assert len(listing) == 3
    assert listing[0].split()[:2] == ["line", "41"]
    assert listing[0].endswith("* x 0, y 0")


@pytest.mark.parametrize("rate", ["0.1", "0.03"])
def test_scoring_does_what_the_estimator_does(rate, run, files):
    X = np.load(files["folder"] / "complete.npy")
    model = KernelNovelty(false_alarm_rate=float(rate), scale_columns="std").fit(X)
    run("anomalies", "complete.npy", "-o", "out.npz", "--false-alarms", rate)
    with np.load("out.npz") as found:
        np.testing.assert_allclose(found["score"], -model.score_samples(X), rtol=1e-9)
        np.testing.assert_array_equal(found["is_anomaly"], model.predict(X) < 0)
        np.testing.assert_array_equal(found["array"], X)


def test_scores_of_arrays_and_images_as_tables(run, files):
    for source, first in (("complete.npy", "row"), ("scans", "file")):
        assert run("anomalies", source, "-o", f"{first}.csv").code == 0
        header, *rows = rows_of(files["folder"] / f"{first}.csv")
        assert header == [first, "score", "is_anomaly"]
        assert len(rows) == (60 if first == "row" else 30)
    assert rows[0][0] == "00.png"


def test_scores_in_parquet(run, files):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = np.load(files["folder"] / "complete.npy")
    parquet.write_table(pa.table({"a": X[:, 0], "score": X[:, 1]}), files["folder"] / "t.parquet")
    assert run("anomalies", "t.parquet", "-o", "out.parquet").code == 0
    table = parquet.read_table("out.parquet")
    assert table.column_names == ["a", "score", "score_2", "is_anomaly"]
    assert table["score"].to_numpy().tolist() == X[:, 1].tolist()
