"""
Do two groups differ?
=====================

Do the two sexes in the diabetes study differ in body mass index and blood pressure? The test
compares an observed statistic with those after random relabelling. :func:`mercer.plot.plot_null`
shows both; the share of draws beyond the observed one is the p-value.
"""

from sklearn.datasets import load_diabetes

import mercer as mc
from mercer.plot import plot_null

diabetes = load_diabetes(scaled=False)
sex, measured = diabetes.data[:, 1], diabetes.data[:, 2:4]
result = mc.mmd_test(measured[sex == 1][:40], measured[sex == 2][:40], random_state=0)
plot_null(result)
