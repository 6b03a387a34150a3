"""The functions of the demonstration, on a few digits."""

import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).resolve().parent.parent / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def split(demo):
    return demo.draw(0.3, seed=0, sizes=(80, 20, 60))


def test_noise_is_what_was_asked_for_and_rows_are_not_shared(demo, split):
    assert split.train.shape == (80, 64)
    assert split.clean.min() >= 0.0
    assert split.clean.max() <= 1.0
    assert np.std(split.test - split.clean) == pytest.approx(0.3, rel=0.05)
    everything = np.vstack([split.clean, split.clean_validation])
    assert len(np.unique(everything, axis=0)) == 80
    assert not np.array_equal(demo.draw(0.3, seed=1, sizes=(80, 20, 60)).clean, split.clean)


@pytest.mark.parametrize("name", ["pca_grid", "peer_grid", "our_grid"])
def test_every_grid_has_the_stated_size(demo, split, name):
    grid = list(getattr(demo, name)(split.train))
    assert len(grid) == demo.SETTINGS
    assert all(denoise(split.test[:3]).shape == (3, 64) for denoise in grid[:2])


def test_the_setting_is_chosen_on_the_validation_rows(demo, split):
    def grid(train):
        return iter([lambda Y: Y * 0.0, lambda Y: Y, lambda Y: Y + 5.0])

    errors = [demo.error(f(split.validation), split.clean_validation) for f in list(grid(None))]
    expected = list(grid(None))[int(np.argmin(errors))](split.test)
    np.testing.assert_array_equal(demo.denoised(grid, split), expected)


def test_ours_denoises_without_settings(demo, split):
    found = demo.denoised(demo.ours, split)
    assert demo.error(found, split.clean) < 0.6 * demo.error(split.test, split.clean)


def test_summary_is_mean_and_standard_error(demo):
    assert demo.summary([1.0, 2.0, 3.0], 2) == "2.00 +- 0.58"
    assert demo.summary([4.0]) == "4 +- 0"


def test_table_and_picture(demo, split, tmp_path, monkeypatch):
    few = {name: demo.CONTENDERS[name] for name in ("noisy", "mercer KernelDenoiser()")}
    monkeypatch.setattr(demo, "CONTENDERS", few)
    steps = []
    errors, seconds, images = demo.measure([split, split], lambda: steps.append(1))
    assert len(steps) == 4
    assert errors["noisy"][0] == demo.error(split.test, split.clean)
    text = demo.table({0.3: errors}, {0.3: seconds})
    assert f"{1e4 * errors['noisy'][0]:.1f}" in text
    assert len(text.splitlines()) == 4
    demo.contact_sheet({0.3: (split, images[0])}, tmp_path / "out" / "sheet.png")
    assert (tmp_path / "out" / "sheet.png").stat().st_size > 1000


def test_the_whole_of_it_on_one_split(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SPLITS", 1)
    monkeypatch.setattr(demo, "NOISE", (0.5,))
    monkeypatch.setattr(demo, "draw", partial(demo.draw, sizes=(120, 40, 40)))
    demo.main()
    printed = capsys.readouterr().out
    assert all(name in printed for name in demo.CONTENDERS)
    assert (tmp_path / demo.OUTPUT).stat().st_size > 1000


def test_progress_counts_on_stderr(demo, capsys):
    with demo.progress(10) as step:
        for _ in range(10):
            step()
    assert "10/10" in capsys.readouterr().err
