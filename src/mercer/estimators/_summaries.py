"""Summaries of fitted estimators in plain words, for notebooks and reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._certificate import FitCertificate
from mercer._html import Check, Summary
from mercer._status import Status
from mercer._words import counted, listed, number, percent
from mercer.kernels import Definiteness
from mercer.kernels._names import rounded
from mercer.methods.machines._gradient_descent import DescentCertificate
from mercer.methods.machines._support_vectors import SupportVectorCertificate

_NEW_ROWS = Check("note", "This is about the rows of the fit. Only other rows can tell how good "
                  "predictions are: cross-validate.")  # fmt: skip


def pca(model: Any) -> Summary:
    kept, r = float(np.sum(model.explained_variance_ratio_)), len(model.eigenvalues_)
    checks = []
    if model.neglected_ > 0.0:
        checks.append(Check("note", "Landmarks are used in place of all rows. They leave out "
                            f"{percent(model.neglected_)} of the variation."))  # fmt: skip
    return Summary(
        title="Kernel principal component analysis",
        asked="Which few numbers per row (components) keep most of the variation of the rows?",
        found=f"{counted(r, 'component')} hold{'s' if r == 1 else ''} {percent(kept)} of the "
        "variation in feature space.",
        facts={
            "rows": f"{model.mass_:,.10g}",
            "share of each component": listed(map(percent, model.explained_variance_ratio_), 6),
            "kernel": rounded(model.kernel_),
        },
        checks=tuple(checks),
        page="denoising",
    )


def denoiser(model: Any) -> Summary:
    noise, error, trust = model.noise_, model.noise_error_, model.trust_
    known = error < np.inf
    scaled = getattr(model.scaler_, "scale_", None) is not None
    unit = "" if not scaled else " (in standard deviations of the columns)"
    left = float(np.sqrt(max(model.risk_, 0.0)))
    if not known:
        found = "The rows do not tell how noisy they are, so nothing is changed."
    elif trust <= 0.0:
        found = "A change would do more harm than good, so nothing is changed."
    else:
        found = (
            f"The noise in a value is estimated to fall from {number(noise)} to {number(left)}"
            f"{unit}; both are root mean square errors."
        )
    how = "given" if error == 0.0 else f"estimated, with a standard error of {number(error)}"
    weights = model.denoiser_.weights
    note = (
        "The error is estimated without the clean rows, by Stein's method. That is right if the "
        "noise is normal, equally strong everywhere, and independent from value to value."
    )
    return Summary(
        title="Denoising with kernel principal components",
        asked="What would the rows be without their noise?",
        found=found,
        facts={
            "noise": f"{number(noise)} ({how})" if known else "unknown; give it as noise=...",
            "share of the change that is kept": percent(trust),
            "components": f"{counted(len(weights), 'component')}, weighted like "
            f"{weights.sum():.1f} whole ones",
            "kernel": rounded(model.kernel_),
        },
        checks=(Check("note" if known else "warning", note),),
        page="denoising",
    )


def imputer(model: Any) -> Summary:
    known = np.isfinite(model.error_)
    found = "Missing values are predicted from the other columns."
    facts = {"columns": f"{len(known):,}"}
    if known.any():
        middle = float(np.median(model.error_[known]))
        found += (
            f" On known values that were hidden for a test, the error in the middle column is "
            f"{middle:.2f} of its standard deviation; with the mean of the column it would be "
            "about 1."
        )
        facts |= hidden_errors(model, getattr(model, "feature_names_in_", None))
    ended = model.status_.plain
    if model.status_ is Status.MAX_ITER:
        ended = (
            f"Predicting was repeated {len(model.changes_)} times. In the last round filled values "
            f"still moved by {number(model.changes_[-1])} standard deviations (root mean square)."
        )
    return Summary(
        title="Filling in missing values",
        asked="What are the missing values, judging from the other columns and rows?",
        found=found,
        facts=facts | {"rounds": f"{len(model.changes_)}", "kernel": rounded(model.kernel_)},
        checks=(
            Check("note" if not model.status_.ok else "good", ended),
            Check("note", "If values are missing because they are large or small, the test error "
                  "is too optimistic."),
        ),
        page="imputation",
    )  # fmt: skip


def hidden_errors(model: Any, names: Any) -> dict[str, str]:
    """The errors of the columns of an imputer, the smallest first."""
    names = [f"x{j}" for j in range(len(model.error_))] if names is None else names
    order = [j for j in np.argsort(model.error_, kind="stable") if np.isfinite(model.error_[j])]
    errors = (f"{names[j]} {model.error_[j]:.2f}" for j in order)
    return {"test error, in standard deviations": listed(errors, 12)}


def clusters(model: Any) -> Summary:
    labels, count = model.labels_, len(model.cluster_centers_)
    facts = {"rows": f"{len(labels):,}"}
    if isinstance(labels, np.ndarray):  # those of Dask are lazy
        sizes, alone = np.bincount(labels[labels >= 0], minlength=count), int(np.sum(labels < 0))
        facts["rows of each cluster"] = listed((f"{s:,}" for s in sizes), 12)
        if alone:
            facts["rows in no cluster"] = f"{alone:,}"
    checks = []
    if model.significance_ is not None and model.significant_ is not None:
        t = f"t >= {model.significant_.critical:.2f}"
        text = f"A peak counts only if it clearly stands out from chance ({t})."
        checks.append(Check("good", text))
    else:
        text = "Every peak of the density is a cluster. That it is more than chance was not tested."
        checks.append(Check("note", text))
    if model.modes_ is not None:
        proved, of = int(np.sum(model.modes_.proved)), len(model.modes_)
        text = f"{proved} of {of} peaks are proved to be peaks of the density, rounding included."
        checks.append(Check("good" if proved == of else "note", text))
    one = "One cluster: the rows show no separate groups."
    return Summary(
        title="Mean shift clustering",
        asked="Do the rows form groups, that is, does their density have several peaks?",
        found=one if count == 1 else f"{count} clusters, each about a peak of the density.",
        facts=facts | {"kernel": rounded(model.kernel_)},
        checks=tuple(checks),
        page="mean_shift",
    )


def density(model: Any) -> Summary:
    return Summary(
        title="Kernel density estimate",
        asked="How likely is a new row at each place?",
        found="A smooth density: the average of one bump about each row.",
        facts={"columns": f"{model.n_features_in_:,}", "kernel": rounded(model.kernel_)},
        page="mean_shift",
    )


def novelty(model: Any) -> Summary:
    rate = percent(model.false_alarm_rate)
    return Summary(
        title="Novelty detection",
        asked="Which rows are unlike those of the fit?",
        found=f"Rows with a distance above {number(-model.offset_)} are flagged as outliers. Of "
        f"new rows like those of the fit, about {rate} are flagged, too.",
        facts={
            "threshold": number(-model.offset_),
            "rate of false alarms": rate,
            "kernel": rounded(model.kernel_),
        },
        checks=(
            Check("good", "For the threshold each row was scored as if it had been left out, so "
                  "the rate holds on average over new rows that come from the same source."),
        ),
        page="novelty",
    )  # fmt: skip


def ridge(model: Any) -> Summary:
    facts = {"rows": f"{model.n_samples_fit_:,}", "penalty": number(model.penalty_)}
    found = "A smooth function that predicts the target."
    if hasattr(model, "loo_path_"):
        at = int(np.argmin(np.abs(np.log(model.path_penalties_ / model.penalty_))))
        error = float(np.sqrt(np.mean(model.loo_path_[at])))
        found += f" Predicted from the others, a row is off by {number(error)} (root mean square)."
    return Summary(
        title="Kernel ridge regression",
        asked="How does the target depend on the columns, and what is it for a new row?",
        found=found,
        facts=facts | {"kernel": rounded(model.kernel_), "solver": model.solver_},
        checks=(gap(model),),
        page="ridge",
    )


def machine(model: Any) -> Summary:
    classes = getattr(model, "classes_", None)
    facts = {"rows": f"{model.n_samples_fit_:,}"} if hasattr(model, "n_samples_fit_") else {}
    if classes is not None:
        facts["classes"] = listed(classes.tolist())
    kinds = {type(c) for c in certificates(model)}
    title, page = _TITLES.get(type(model).__name__, ("Kernel machine", "support_vectors"))
    kind = "class" if classes is not None else "number"
    found = f"A function that tells the {kind} of a row."
    if kinds == {SupportVectorCertificate}:
        vectors, n = len(model.support_), model.n_samples_fit_
        found = f"{found[:-1]}, made of {vectors:,} of the {counted(n, 'row')} (support vectors)."
        found += " The other rows have no weight in it." if vectors < n else ""
    return Summary(
        title=title,
        asked=f"Which {kind} belongs to a new row?",
        found=found,
        facts=facts | {"kernel": rounded(model.kernel_)},
        checks=(gap(model), _NEW_ROWS),
        page=page,
    )


def one_class(model: Any) -> Summary:
    share = certificates(model)[0].at_bound  # type: ignore[attr-defined]
    return Summary(
        title="One-class support vector machine",
        asked="Which rows are unlike those of the fit?",
        found=f"Rows with a value below {number(model.offset_)} are outliers. Of the rows of the "
        f"fit, at most {percent(share)} are.",
        facts={
            "threshold": number(model.offset_),
            "support vectors": f"{len(model.support_):,}",
            "kernel": rounded(model.kernel_),
        },
        checks=(gap(model),),
        page="novelty",
    )


def features(model: Any) -> Summary:
    share = hasattr(model, "component_indices_")  # Nystroem; random features have another error
    error = f"{percent(model.error_)} of it" if share else f"{number(model.error_)} (typical)"
    return Summary(
        title="Kernel features",
        asked="Which new columns make a linear method behave like one with the kernel?",
        found=f"{counted(model.n_components_, 'column')}, whose inner products are approximately "
        "the values of the kernel.",
        facts={"error of the kernel": error, "kernel": rounded(model.kernel_)},
        page="kernels",
    )


_TITLES = {
    "SVC": ("Support vector classification", "support_vectors"),
    "NuSVC": ("Support vector classification", "support_vectors"),
    "SVR": ("Support vector regression", "support_vectors"),
    "NuSVR": ("Support vector regression", "support_vectors"),
    "KernelLogisticRegression": ("Kernel logistic regression", "logistic"),
    "KernelGradientDescent": ("Gradient descent in a kernel's space", "first_order"),
    "KernelSGD": ("Stochastic gradient descent in a kernel's space", "first_order"),
}


def certificates(model: Any) -> tuple[FitCertificate, ...]:
    """The certificates of all problems of a machine."""
    found = getattr(model, "certificate_", ())
    return found if isinstance(found, tuple) else (found,)


def gap(model: Any) -> Check:
    """What the duality gap says."""
    several = len(certificates(model))
    found = max(certificates(model), key=lambda c: c.relative_gap, default=None)
    if found is None:
        return Check("note", "Steps were taken; how far the fit is from the best one is unknown.")
    if isinstance(found, DescentCertificate):
        text = "It was stopped early on purpose, so that it does not follow the noise."
        return Check("note", f"The mean loss of the fitted rows is {number(found.primal)}. {text}")
    where = f"In the worst of {several} problems of two classes it" if several > 1 else "It"
    text = (
        "The fit minimises a cost: errors on the rows, and a penalty against wiggles. "
        f"{where} is {found.primal:.6g}"
    )
    if model.kernel_.flags.definiteness is not Definiteness.POSITIVE:
        unknown = "The kernel is not known to be positive definite, so there is no lower bound."
        return Check("warning", f"{text}. {unknown}")
    gain = f"could gain at most {percent(found.relative_gap)}"
    if found.relative_gap < 1e-12:  # rounding of the two sums
        gain = "could gain nothing beyond rounding"
    text += f", and no function of this kernel can have less than {found.dual:.6g}."
    # ridge regression has a tolerance of residuals, whose square is the gap
    kind = "good" if found.relative_gap <= max(model.tol, 1e-6) else "warning"
    return Check(kind, f"{text} So a better solver {gain}.")
