"""The pages and tables of experiments that the documentation shows."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from mercer.reproduce import EXPERIMENTS

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reproductions"


@pytest.fixture(scope="session")
def committed() -> dict[str, str]:
    """The page of each experiment."""
    return {e.name: (FOLDER / f"{e.name}.md").read_text("utf-8") for e in EXPERIMENTS}
