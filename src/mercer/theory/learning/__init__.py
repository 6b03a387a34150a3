"""Learning theory: concentration, bounds for classes of functions, stability, risks."""

from mercer.theory.learning._bound import RiskBound, bound
from mercer.theory.learning._concentration import (
    chebyshev,
    chernoff,
    hoeffding,
    hoeffding_lemma,
    markov,
    mcdiarmid,
    popoviciu,
)
from mercer.theory.learning._covering import covering_bound, covering_number
from mercer.theory.learning._finite_class import (
    Thresholds,
    finite_class_bound,
    finite_class_expectation,
    finite_class_mean_bound,
)
from mercer.theory.learning._risk import (
    RiskDecomposition,
    deviation_bound,
    empirical_risk,
    memorise,
    overfits,
    risk_difference_bound,
)
from mercer.theory.learning._stability import (
    early_stopping_stability,
    effective_dimension,
    stability_bound,
    stopping_time,
    tikhonov_largest_loss,
    tikhonov_rate,
    tikhonov_stability,
)

__all__ = [
    "RiskBound", "RiskDecomposition", "Thresholds", "bound", "chebyshev", "chernoff",
    "covering_bound", "covering_number", "deviation_bound", "early_stopping_stability",
    "effective_dimension", "empirical_risk", "finite_class_bound", "finite_class_expectation",
    "finite_class_mean_bound", "hoeffding", "hoeffding_lemma", "markov", "mcdiarmid", "memorise",
    "overfits", "popoviciu", "risk_difference_bound", "stability_bound", "stopping_time",
    "tikhonov_largest_loss", "tikhonov_rate", "tikhonov_stability",
]  # fmt: skip
