"""Data files of the experiments: how they are read, and where they come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mercer._array import Array

# what to say if a file is missing
ORIGINS = {
    "faithful.csv": "Old Faithful: write the data set faithful of R as CSV, with a header and the "
    "columns eruptions and waiting",
    "seeds.csv": "the Seeds data of the UCI repository as CSV, with a header, seven measurements "
    "and the class in each row",
    "mnist_small.npz": "MNIST: an .npz file with the array X_two of shape (3000, 28, 28), the "
    'first 3,000 images of a "2" among the training images, values 0 to 255',
    "usps.npz": "USPS digits (zip.train and zip.test of Hastie, Tibshirani and Friedman): an .npz "
    "file with X_train and X_test, integer images of 16 x 16 pixels, y_train, y_test, and the "
    "scale that divides them into [-1, 1]",
}


def read_faithful(data: Path) -> Array:
    """Old Faithful: length of an eruption and wait for the next, in minutes, shape (272, 2)."""
    return np.loadtxt(data / "faithful.csv", delimiter=",", skiprows=1)


def read_seeds(data: Path) -> tuple[Array, Array]:
    """Seven measurements of 210 wheat seeds, and their varieties."""
    table = np.loadtxt(data / "seeds.csv", delimiter=",", skiprows=1)
    return table[:, :7], table[:, 7].astype(int)


def read_iris() -> tuple[Array, Array]:
    """Four measurements of 150 flowers, and their species."""
    from sklearn.datasets import load_iris

    found = load_iris()
    return found.data, found.target


def read_twos(data: Path) -> Array:
    """Images of the digit 2 as rows of 784 pixels in [0, 1], shape (3000, 784)."""
    with np.load(data / "mnist_small.npz", allow_pickle=False) as file:
        return np.asarray(file["X_two"].reshape(-1, 784) / 255.0)


def read_usps(data: Path) -> tuple[Array, Array, Array, Array]:
    """Training images and labels, test images and labels; 256 pixels in [-1, 1]."""
    with np.load(data / "usps.npz", allow_pickle=False) as file:
        X, Y = (file[f"X_{part}"].reshape(-1, 256) / file["scale"] for part in ("train", "test"))
        return X, file["y_train"], Y, file["y_test"]


def standardised(X: Array) -> Array:
    """Columns with mean 0 and variance 1."""
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))
