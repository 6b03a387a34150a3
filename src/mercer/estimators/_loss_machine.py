"""Machines whose loss determines whether they classify or regress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from mercer._array import Array
from mercer.estimators._supervised_machine import SupervisedMachine
from mercer.methods.machines._losses import Loss, as_convex_loss


def classifies(machine: Any) -> bool:
    """Whether the loss of a machine is a classification loss."""
    return machine.loss_.classifies  # type: ignore[no-any-return]


def set_loss_tags(tags: Any, machine: Any) -> Any:
    """The tags of a classifier or a regressor, depending on the loss of the machine."""
    tags.target_tags.required = True
    if classifies(machine):
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
    else:
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
    return tags


@dataclass(eq=False, repr=False, kw_only=True)
class LossMachine(SupervisedMachine):
    """A machine with a convex loss as parameter."""

    loss: Any = "square"

    @property
    def loss_(self) -> Loss:
        """The loss as a value."""
        return as_convex_loss(self.loss)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machine to rows X with targets or labels y.

        A `sample_weight` of 2 is the same as repeating the row.
        """
        if classifies(self):
            return self._fit_labels(X, y, sample_weight, None)
        return self._fit_targets(X, y, sample_weight)

    @available_if(classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return f(x) + c as `SVC` does; for classification losses."""
        return self._class_scores(X)

    def predict(self, X: Any) -> Array:
        """Return the class of each row of X, or f(x) + c for regression losses."""
        return self._predicted_classes(X) if classifies(self) else self._values(X)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, or the coefficient of determination R^2 for regression."""
        measure = accuracy_score if classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        return set_loss_tags(super().__sklearn_tags__(), self)
