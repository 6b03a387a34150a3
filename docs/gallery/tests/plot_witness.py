"""
Where do two groups differ?
===========================

Benign and malignant tumours differ; the witness shows where. It is large where the
first sample outweighs the second: :func:`mercer.plot.plot_witness` draws it for one column as a
curve, for two in colours.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import mercer as mc
from mercer.plot import plot_witness

cancer = load_breast_cancer()
names = ["mean texture", "mean concave points"]
columns = [list(cancer.feature_names).index(name) for name in names]
benign, malignant = (cancer.data[cancer.target == t][::3, columns] for t in (1, 0))
scales = mc.Scales([4.0, 0.03])  # of the two columns

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
labels = ("benign", "malignant")
first = mc.methods.witness(mc.Gaussian(2.0), benign[:, :1], malignant[:, :1])
plot_witness(first, names=names[:1], labels=labels, ax=axes[0])
both = mc.methods.witness(mc.Gaussian(0.5).transform(scales), benign, malignant)
plot_witness(both, names=names, labels=labels, ax=axes[1])
plt.show()
