"""mercer.report: what was asked, what was found and how to repeat it, as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mercer._frames import names_of
from mercer._html import Summary, docs_address
from mercer.engine._versions import versions
from mercer.exceptions import InputError
from mercer.plot._panels import as_names
from mercer.reports._pictures import Asked, Picture, pictures
from mercer.reports._repeat import code_of, parameters_of
from mercer.reports._rows import checked_target, on_rows

try:
    from jinja2 import Environment, StrictUndefined, Template
except ImportError as error:
    raise ImportError("mercer.report needs jinja2: pip install 'mercer[report]'") from error


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A written report, made by `mercer.report`.

    Notebooks show it. `save` writes it to a file that needs only a browser, and no network; it has
    no scripts, and contains its pictures.

    Attributes
    ----------
    name : str
        The class of the object.
    summary : Summary
        What was asked and found.
    facts : dict
        Those of the summary, and those of the rows that were given.
    pictures : list of Picture
    given, others : dict
        Parameters that were given, and the others: defaults, or what was chosen automatically.
    code : str
        How to repeat it.

    Examples
    --------
    >>> import mercer as mc
    >>> written = mc.report(mc.KernelDensity().fit([[0.0], [1.0], [3.0]]))
    >>> written
    <Report on KernelDensity: 1 picture>
    >>> written.html().startswith("<!doctype html>")
    True
    """

    name: str
    summary: Summary
    facts: dict[str, str]
    pictures: list[Picture] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    code: str = ""

    def html(self) -> str:
        """Return the whole page."""
        return self._rendered(whole=True)

    def save(self, path: Any) -> None:
        """Write the page to a file, such as report.html; an existing file is replaced."""
        # names of files need not be Unicode
        Path(path).write_text(self.html(), encoding="utf-8", errors="backslashreplace")

    def _repr_html_(self) -> str:
        return self._rendered(whole=False)

    def _rendered(self, *, whole: bool) -> str:
        installed = {k: v for k, v in versions().items() if v != "not installed"}
        link = docs_address(self.summary.page)
        return _template().render(vars(self), versions=installed, link=link, whole=whole)

    def __repr__(self) -> str:
        count = len(self.pictures)
        return f"<Report on {self.name}: {count} picture{'' if count == 1 else 's'}>"


@cache
def _template() -> Template:
    """The page; text is escaped wherever it comes from."""
    source = files("mercer.reports").joinpath("page.html").read_text("utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)


def report(
    obj: Any,
    data: Any = None,
    target: Any = None,
    *,
    names: Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Report:
    """Write a report on a fitted estimator, a test or a pre-image.

    It says what was asked, what was found, how far to trust it in plain words, the parameters, and
    the code that repeats it, with pictures. Needs jinja2 and matplotlib (extra `report`).

    Parameters
    ----------
    obj : fitted estimator of mercer, TestResult or PreImage
    data : optional
        For an estimator, rows to apply it to, such as those of the fit or held-out ones, for more
        facts and pictures. For a pre-image, the element.
    target : array_like, optional
        Classes or numbers of the rows, for estimators that predict them; colours for others.
    names : sequence of str, optional
        Names of the columns; by default those of the frame that was fitted.
    image_shape : pair of int, optional
        Height and width, if rows are images.

    Returns
    -------
    Report
        `.save("report.html")` writes it to a file.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer as mc
    >>> X = np.random.default_rng(0).normal(size=(50, 1))
    >>> written = mc.report(mc.mmd_test(X, X + 2.0, random_state=0))
    >>> print(written.summary.found)  # doctest: +NORMALIZE_WHITESPACE
    The samples differ at the usual level of 0.05: p = 0.0004998. Chance alone would give a result
    at least this clear about once in 2,001 repetitions.
    """
    summary = _summary(obj)
    names = _names(obj, data, names)
    target = checked_target(obj, data, target)
    given, others = parameters_of(obj)
    return Report(
        name=type(obj).__name__,
        summary=summary,
        facts=summary.facts | on_rows(obj, data, target, names),
        pictures=pictures(obj, Asked(data, target, names, image_shape)),
        given=given,
        others=others,
        code=code_of(obj),
    )


def _summary(obj: Any) -> Summary:
    summarise = getattr(obj, "_summary", None)
    if summarise is None or isinstance(obj, type):
        steps = "; give one of its steps" if hasattr(obj, "steps") else ""
        raise InputError(
            "obj must be a fitted estimator of mercer, the result of a test or a pre-image, got "
            f"{type(obj).__name__}{steps}"
        )
    if hasattr(obj, "get_params"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(obj)
    found: Summary = summarise()
    return found


def _names(obj: Any, data: Any, names: Any) -> list[str] | None:
    """The names of columns that are known."""
    if names is None:
        known = getattr(obj, "header", None)
        names = names_of(data) if known is None else known.names
        names = getattr(obj, "feature_names_in_", names)
    count = getattr(obj, "n_features_in_", None)
    if names is None or count is None:
        return None if names is None else [str(name) for name in names]
    return as_names(names, count)
