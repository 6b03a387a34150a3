"""
A principal component as a function
===================================

Kernel PCA of three clusters finds directions in the space of functions. A direction is an element,
and an element is a function of the plane: :func:`mercer.plot.plot_element` draws its values, with
a mark for each of its points. Here the first direction separates one cluster from the others.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs

import mercer as mc
from mercer.plot import plot_element

X, _ = make_blobs(90, centers=[(0, 0), (4, 1), (1, 4)], cluster_std=0.8, random_state=0)
plane = mc.kernel_pca(mc.Gaussian(1.5), X, 2)

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for k, ax in enumerate(axes):
    plot_element(plane.directions[k], ax=ax).set_title(f"direction {k}", fontsize=9)
plt.show()
