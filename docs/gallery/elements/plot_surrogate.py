"""
The surrogate of a fixed-point step
===================================

Each step of mean shift, and of the fixed point for pre-images, minimises a parabola that touches
the objective. If all coefficients are positive the parabola lies above the objective, so no step
can make it worse. :func:`mercer.plot.plot_surrogate` draws both: for one column along the axis,
for 64 along the line to the next iterate.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, load_iris

import mercer as mc
from mercer.plot import plot_surrogate

petals = load_iris().data[:, 2:3]
digits = load_digits().data[:200] / 16

fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
plot_surrogate(
    mc.mean_embedding(mc.Gaussian(0.5), petals), [3.0], names=["petal length"], ax=axes[0]
)
plot_surrogate(mc.mean_embedding(mc.Gaussian(1.5), digits), digits[0], ax=axes[1])
plt.show()
