"""A folder with files of every kind, and a way to run commands in it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click")
Image = pytest.importorskip("PIL.Image")

from mercer.cli import main  # noqa: E402


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capfd, tmp_path, monkeypatch):
    """Run a command in the folder; nothing but its own exit code may come out of it."""
    monkeypatch.chdir(tmp_path)

    def words(*args):
        code = main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return words


@pytest.fixture
def spawn(tmp_path):
    """Run a command in a process of its own."""

    def words(*args):
        found = subprocess.run(
            [sys.executable, "-m", "mercer.cli", *map(str, args)],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return Ran(found.returncode, found.stdout, found.stderr)

    return words


def circle(rng, n, noise=0.1):
    t = rng.uniform(0.0, 2.0 * np.pi, n)
    clean = np.column_stack([np.cos(t), 10.0 * np.sin(t)])
    return clean, clean + noise * np.array([1.0, 10.0]) * rng.normal(size=(n, 2))


def write_circle(path, rng, n, first=1):
    clean, noisy = circle(rng, n)
    lines = [f'{i},"point, {i}",{x:.4f},{y:.3f}' for i, (x, y) in enumerate(noisy, first)]
    path.write_text("id,name,x,y\n" + "\n".join(lines) + "\n")
    return clean


def write_image(path, pixels, **options):
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def files(tmp_path, rng):
    """What the examples in the help pages name."""
    clean = write_circle(tmp_path / "measured.csv", rng, 120)
    write_circle(tmp_path / "new.csv", rng, 12, first=121)
    rows = (tmp_path / "measured.csv").read_text().splitlines()
    rows = [row.rsplit(",", 1)[0] + "," if i % 9 == 4 else row for i, row in enumerate(rows)]
    (tmp_path / "gaps.csv").write_text("\n".join(rows) + "\n")
    X = rng.normal(size=(60, 1)) * np.arange(1.0, 5.0) + 0.1 * rng.normal(size=(60, 4))
    np.save(tmp_path / "complete.npy", X)
    holes = X[:40].copy()
    holes[::7, 1] = np.nan
    np.save(tmp_path / "gaps.npy", holes)
    write_images(tmp_path / "scans", rng, 30)
    half = np.where(np.arange(20)[:, None, None] < 10, [200, 40, 30], [20, 60, 180])
    photo = half + rng.integers(-10, 10, size=(20, 24, 3))
    write_image(tmp_path / "photo.png", photo.astype(np.uint8))
    write_circle(tmp_path / "after.csv", rng, 120)
    return {"clean": clean, "folder": tmp_path}


def write_images(folder: Path, rng, count, shape=(6, 5)):
    """Blobs that move along the image."""
    folder.mkdir()
    rows, columns = np.indices(shape[:2])
    for i in range(count):
        centre = rng.uniform(1.0, 4.0)
        blob = np.exp(-0.4 * ((rows - centre) ** 2 + (columns - 2.0) ** 2))
        noisy = np.clip(blob + 0.1 * rng.normal(size=blob.shape), 0.0, 1.0)
        pixels = np.rint(255.0 * noisy).astype(np.uint8)
        if len(shape) == 3:
            pixels = np.stack([pixels] * shape[2], axis=2)
        write_image(folder / f"{i:02d}.png", pixels)
