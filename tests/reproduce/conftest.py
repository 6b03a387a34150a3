"""The pages and tables of experiments that the documentation shows."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from mercer.reproduce import EXPERIMENTS

NOT_SHOWN = {"power"}  # takes half an hour; `make bench` has the same simulations
SHOWN = [experiment for experiment in EXPERIMENTS if experiment.name not in NOT_SHOWN]
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reproductions"


@pytest.fixture(scope="session")
def committed() -> dict[str, str]:
    """The page of each experiment."""
    return {e.name: (FOLDER / f"{e.name}.md").read_text("utf-8") for e in SHOWN}
