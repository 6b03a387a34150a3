"""What mercer does today: where two samples differ, and what does not belong to a sample.

Prints a table and writes build/demo.png. Run with `make run`.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import mercer as mc

mpl.use("agg")
import matplotlib.pyplot as plt

OUTPUT = Path("build/demo.png")


def moons(rng, n, noise=0.15):
    """Two interleaved half circles."""
    t = rng.uniform(0, np.pi, n)
    upper = rng.random(n) < 0.5
    x = np.where(upper, np.cos(t), 1 - np.cos(t))
    y = np.where(upper, np.sin(t), 0.5 - np.sin(t))
    return np.column_stack([x, y]) + rng.normal(scale=noise, size=(n, 2))


def samples(rng):
    """P: two moons. Q: a normal sample with the same mean and covariance."""
    P = moons(rng, 600)
    Q = rng.multivariate_normal(P.mean(axis=0), np.cov(P.T), size=600)
    return P, Q


def witness_of(k, P, Q):
    return mc.mean_embedding(k, P) - mc.mean_embedding(k, Q)


def affine_hull(k, X, dim):
    """The plane through the mean feature that is spanned by the strongest directions."""
    mean = mc.mean_embedding(k, X)
    return mc.Subspace.span(mean, mc.feature(k, X) - mean).truncate(dim)


def table(P, Q, others):
    """The maximum mean discrepancy of P and Q, and of two samples that do not differ."""
    scale = mc.median_scale(np.vstack([P, Q]))
    kernels = {
        "Linear (means only)": mc.Linear(),
        "Polynomial(2) (means, covariances)": mc.Polynomial(2),
        "Gaussian, median scale": mc.Gaussian(scale),
        "Gaussian, a quarter of it": mc.Gaussian(scale / 4),
        "Laplace": mc.Laplace(scale),
        "Matern 3/2 + inverse multiquadric": mc.Matern(1.5, scale) + mc.InverseMultiquadric(),
    }
    print("How far apart are two samples? P: two moons; Q: normal, same mean and covariance;")
    print("P': more moons, mean of five draws. Distances of mean embeddings:\n")
    print(f"{'kernel':36}{'|P - Q|':>10}{'|P - P_|':>10}{'ratio':>8}".replace("P_", "P'"))
    for name, k in kernels.items():
        differ = witness_of(k, P, Q).norm()
        same = np.mean([witness_of(k, P, other).norm() for other in others])
        print(f"{name:36}{differ:10.4f}{same:10.4f}{differ / same:8.2f}")


def figure(P, Q):
    """Left: the witness of P against Q. Right: the distance of each feature to P's plane."""
    k = mc.Gaussian(mc.median_scale(P) / 4)
    axes_range = np.linspace(-2.7, 3.5, 240), np.linspace(-2.0, 2.4, 170)
    grid = np.stack(np.meshgrid(*axes_range), axis=-1)
    flat = grid.reshape(-1, 2)
    values = witness_of(k, P, Q)(flat).reshape(grid.shape[:2])
    distance = affine_hull(k, P, 25).distance(mc.feature(k, flat)).reshape(grid.shape[:2])

    fig, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.2), layout="constrained")
    top = np.abs(values).max()
    image = left.contourf(*axes_range, values, levels=np.linspace(-top, top, 21), cmap="RdBu_r")
    left.scatter(*P.T, s=3, color="#7f0000", alpha=0.7, label="P: two moons")
    left.scatter(*Q.T, s=3, color="#08306b", alpha=0.7, label="Q: normal, same covariance")
    left.set_title("Where P outweighs Q: the witness")
    left.legend(loc="upper right", fontsize=8, markerscale=3)
    fig.colorbar(image, ax=left, shrink=0.8, ticks=[-top, 0, top], format="%.2f")
    image = right.contourf(*axes_range, distance, levels=np.linspace(0, 1.1, 23), cmap="magma")
    right.scatter(*P.T, s=4, color="white", alpha=0.7)
    right.set_title("What does not belong to P: distance to its plane in H")
    fig.colorbar(image, ax=right, shrink=0.8, ticks=[0, 0.5, 1.0])
    for ax in (left, right):
        ax.set_aspect("equal")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set(xlim=axes_range[0][[0, -1]], ylim=axes_range[1][[0, -1]])
    OUTPUT.parent.mkdir(exist_ok=True)
    fig.savefig(OUTPUT, dpi=110)
    plt.close(fig)


def main() -> None:
    rng = np.random.default_rng(0)
    P, Q = samples(rng)
    table(P, Q, others=[moons(rng, 600) for _ in range(5)])
    figure(P, Q)
    print(f"\nPicture: {OUTPUT}")


if __name__ == "__main__":
    main()
