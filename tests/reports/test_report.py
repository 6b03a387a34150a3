"""Reports: what they say is true, user text is escaped, and their code repeats the result."""

import re
import subprocess
import sys
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline

import mercer as mc
from mercer import estimators
from mercer._status import Status
from mercer.methods import coco_test, dhsic_test
from mercer.preimages import Verdict
from mercer.reports._charts import draw_components

SCRIPT = "<script>alert('x')</script>"
X, y = load_iris(return_X_y=True)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
FRAME = pd.DataFrame(X, columns=[f"{SCRIPT}{j}" for j in range(4)])
LABELS = np.array([f"{SCRIPT}{k}" for k in range(3)])[y]
PSI = mc.mean_embedding(mc.Gaussian(0.5), X[:, :2])

# each public estimator, fitted, and what a report on it is given
FITTED = {
    "KernelDenoiser": (lambda m: m.set_params(noise=0.2).fit(FRAME), (FRAME,)),
    "KernelDensity": (lambda m: m.fit(X[:, :2]), ()),
    "KernelGradientDescent": (lambda m: m.fit(X[:, :3], X[:, 3]), (X[:, :3], X[:, 3])),
    "KernelImputer": (lambda m: m.fit(FRAME.mask(np.isnan(HOLES))), (HOLES,)),
    "KernelLogisticRegression": (lambda m: m.fit(FRAME, LABELS), (FRAME, LABELS)),
    "KernelMachine": (lambda m: m.fit(X[:, :3], X[:, 3]), (X[:, :3], X[:, 3])),
    "KernelNovelty": (lambda m: m.fit(FRAME), (FRAME,)),
    "KernelPCA": (lambda m: m.set_params(n_components=3).fit(FRAME), (FRAME, LABELS)),
    "KernelRidge": (lambda m: m.fit(X[:, :1], X[:, 3]), (X[:, :1], X[:, 3])),
    "KernelSGD": (lambda m: m.fit(X, LABELS), (X, LABELS)),
    "MeanShift": (lambda m: m.fit(FRAME), ()),
    "NuSVC": (lambda m: m.fit(FRAME, LABELS), (FRAME, LABELS)),
    "NuSVR": (lambda m: m.fit(X[:, :3], X[:, 3]), (X[:, :3], X[:, 3])),
    "Nystroem": (lambda m: m.set_params(n_components=20).fit(X), (X,)),
    "OneClassSVM": (lambda m: m.fit(X), (X,)),
    "RandomFeatures": (lambda m: m.fit(X), (X,)),
    "SVC": (lambda m: m.fit(FRAME, LABELS), (FRAME, LABELS)),
    "SVR": (lambda m: m.fit(X[:, :3], X[:, 3]), (X[:, :3], X[:, 3])),
}


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def fitted():
    """A function that fits each estimator once."""
    known = {}

    def fit(name):
        if name not in known:
            known[name] = FITTED[name][0](getattr(estimators, name)())
        return known[name]

    return fit


def test_every_estimator_is_tried():
    assert FITTED.keys() | {"KernelEstimator"} == set(estimators.__all__)


@pytest.mark.parametrize("name", FITTED)
def test_reports_of_estimators_are_complete_and_escaped(name, fitted):
    model = fitted(name)
    page = mc.report(model, *FITTED[name][1]).html()
    found = Tags(page)
    assert "script" not in [tag for tag, _ in found.tags]
    sources = [attrs["src"] for tag, attrs in found.tags if tag == "img"]
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    for heading in ("What was asked", "What was found", "Parameters", "How to repeat it"):
        assert heading in found.text
    assert all(parameter in found.text for parameter in model.get_params(deep=False))
    assert mc.__version__ in found.text


@pytest.mark.parametrize("name", FITTED)
def test_short_forms_of_estimators_follow_the_diagram(name, fitted):
    model = fitted(name)
    page = model._repr_html_()
    assert "sk-container" in page  # scikit-learn's diagram
    assert "<script>alert" not in page
    assert escape(model._summary().title) in page
    assert escape(model._summary().title) not in type(model)()._repr_html_()  # nothing is found yet


def test_pictures_are_drawn_without_pyplot_figures(fitted):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    assert mc.report(fitted("MeanShift")).pictures
    assert plt.get_fignums() == before


def test_names_of_columns_and_classes_are_shown_as_text(fitted):
    found = Tags(mc.report(fitted("SVC"), FRAME, LABELS).html())
    assert f"{SCRIPT}2" in found.text
    found = Tags(mc.report(fitted("KernelImputer"), HOLES).html())
    assert f"{SCRIPT}3" in found.text
    given = mc.report(mc.KernelImputer().fit(HOLES), HOLES, names=["a", "b", "c", "d<br>"])
    assert "d<br>" in Tags(given.html()).text


def test_parameters_are_escaped():
    kernel = mc.Gaussian(1.0)
    model = mc.SVC(kernel, class_weight=dict.fromkeys(np.unique(LABELS), 2.0)).fit(X, LABELS)
    page = mc.report(model).html()
    assert "<script>" not in page
    assert f"{SCRIPT}0" in Tags(page).text


def test_the_code_of_an_estimator_repeats_it(fitted):
    model = mc.KernelRidge(2.0 * mc.Gaussian(1.5), penalty=0.1).fit(X[:, :3], X[:, 3])
    space = {"X": X[:, :3], "y": X[:, 3]}
    exec(mc.report(model).code, space)
    np.testing.assert_array_equal(space["model"].predict(X[:, :3]), model.predict(X[:, :3]))


@pytest.mark.parametrize(
    "result",
    [
        lambda: mc.mmd_test(X[:50], X[50:], n_permutations=49),
        lambda: mc.mmd_test(X[:50], X[50:100], X[100:], kernel="median", n_permutations=49),
        lambda: mc.mmd_test(X[:50], X[50:100], kernel=[mc.Gaussian(1.0), mc.Laplace(2.0)],
                            weights=[np.ones(50), np.ones(50)], paired=False, n_permutations=49),
        lambda: mc.mmd_test(X[:50], X[50:100], kernel=mc.Gaussian(1.0), null="gamma"),
        lambda: mc.hsic_test(X[:, :2], X[:, 2:], n_permutations=49, random_state=3),
        lambda: coco_test(X[:, :2], X[:, 2:], n_permutations=49),
        lambda: dhsic_test(X[:, :1], X[:, 1:2], X[:, 2:], n_permutations=49),
        lambda: mc.ksd_test(X[:, :1] - 5.0, lambda x: -x, n_permutations=49),
    ],
)  # fmt: skip
def test_the_code_of_a_test_repeats_it(result):
    result = result()
    page = mc.report(result)
    more = [X[100:]] if result.question.startswith("Do") else []
    a, b = (X[:50], X[50 : 50 + result.n[-1]] if len(result.n) == 2 else X[50:100])
    if "independent" in result.question:
        a, b = X[:, :2], X[:, 2:]
    if result.question.startswith("Does"):
        a = X[:, :1] - 5.0
    space = {
        "X": a, "Y": b, "more": more, "variables": (X[:, :1], X[:, 1:2], X[:, 2:]),
        "weights": [np.ones(50), np.ones(50)], "score": lambda x: -x,
    }  # fmt: skip
    exec(page.code, space)
    assert space["result"].pvalue == result.pvalue
    assert space["result"].statistic == result.statistic
    assert f"{result.pvalue:.4g}" in page.summary.found


def test_a_test_says_what_its_p_value_says():
    rng = np.random.default_rng(1)
    far = mc.report(mc.mmd_test(X[:50], X[100:], n_permutations=99, random_state=0))
    assert far.summary.found.startswith("The samples differ at the usual level of 0.05: p = 0.01.")
    assert "in about 1 of 100" in far.summary.found
    assert any("99 draws allow no smaller p-value" in check.text for check in far.summary.checks)
    same = rng.normal(size=(80, 2))
    near = mc.report(mc.mmd_test(same[:40], same[40:], n_permutations=99, random_state=0))
    assert near.summary.found.startswith("No difference was found")
    assert any("does not show" in check.text for check in near.summary.checks)


def test_pre_images_are_reported_with_their_certificate():
    found = mc.preimage(PSI, mc.FixedPoint(), start=X[:1, :2], history=True)
    assert found.certificate.verdict[0] is Verdict.PROVED_MINIMUM
    page = mc.report(found, PSI)
    kinds = {check.kind: check.text for check in page.summary.checks}
    assert Verdict.PROVED_MINIMUM.plain in kinds["good"]
    assert len(page.pictures) == 1
    space = {"psi": PSI}
    exec(page.code, space)
    assert space["found"].distance[0] <= found.distance[0] + 1e-12
    batch = mc.preimage(mc.feature(mc.Gaussian(1.0), X[:7]), mc.Newton(max_iter=1))
    summary = mc.report(batch).summary
    good = int(batch.ok.sum())
    assert summary.found == f"{good} of 7 searches found a point."
    assert any(check.text.startswith(f"{7 - good} of 7: ") for check in summary.checks) or good == 7


def test_every_status_and_verdict_has_plain_words():
    for member in (*Status, *Verdict):
        assert member.plain.endswith(".")
        assert "tol" not in member.plain.replace("tolerance", "")


def test_a_gap_is_called_small_only_if_it_is():
    def kind(model):
        return mc.report(model).summary.checks[0].kind

    assert kind(mc.SVC(C=10.0).fit(X[50:], y[50:])) == "good"
    with pytest.warns(mc.MercerWarning, match="max_iter"):
        early = mc.KernelLogisticRegression(C=1e4, max_iter=1).fit(X[50:], y[50:])
    assert kind(early) == "warning"
    odd = mc.SVC(mc.Sigmoid(0.1, 1.0)).fit(X[50:], y[50:])
    assert "not known to be positive definite" in mc.report(odd).summary.checks[0].text


def test_images_are_drawn_as_images():
    from sklearn.datasets import load_digits

    digits = load_digits().data[:60]
    model = mc.KernelDenoiser(noise=2.0).fit(digits)
    assert len(mc.report(model, digits, image_shape=(8, 8)).pictures) == 1
    pca = mc.KernelPCA(5).fit(digits)
    assert len(mc.report(pca, digits, image_shape=(8, 8)).pictures) == 3
    back = mc.preimage(mc.feature(mc.Gaussian(30.0), digits[:3]))
    assert len(mc.report(back, image_shape=(8, 8)).pictures) == 1


def test_reports_are_saved_and_shown(tmp_path, fitted):
    report = mc.report(fitted("KernelNovelty"))
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page == report.html()
    assert page.startswith("<!doctype html>")
    inside = report._repr_html_()  # of a notebook: no page in a page
    assert "<html" not in inside
    assert report.summary.asked in inside


def test_what_cannot_be_reported_is_refused(fitted):
    with pytest.raises(mc.InputError, match=r"obj must be a fitted estimator of mercer.*got int"):
        mc.report(3)
    with pytest.raises(mc.InputError, match="Pipeline; give one of its steps"):
        mc.report(make_pipeline(mc.KernelPCA(2)))
    with pytest.raises(ValueError, match="not fitted"):
        mc.report(mc.SVC())
    with pytest.raises(mc.InputError, match="got type"):
        mc.report(mc.SVC)
    model = fitted("KernelNovelty")
    with pytest.raises(mc.InputError, match="names must be a list of 4 names, got 1 of them"):
        mc.report(model, names=["a"])
    with pytest.raises(mc.InputError, match="target has 3 entries, data has 150 rows"):
        mc.report(model, X, [1, 2, 3])
    with pytest.raises(mc.InputError, match="shape"):
        mc.report(fitted("KernelDenoiser"), FRAME, image_shape=(3, 3))


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_missing_packages_are_named_with_the_cure(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import mercer; mercer.report(1)"
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert re.search(
        rf"ImportError: mercer\.\w+ needs {missing}: pip install 'mercer\[\w+\]'", run.stderr
    )


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_target_that_is_constant_is_predicted_without_error(rows, rng):
    """A logarithmic axis has no place for zero."""
    X = rng.normal(size=(rows, 2))
    assert (
        mc.report(mc.KernelRidge().fit(X, -np.ones(rows)), X).html().startswith("<!doctype html>")
    )


@pytest.mark.parametrize(
    ("labels", "target", "match"),
    [
        (True, np.full(30, np.nan), "contains NaN"),
        (True, np.full(30, 1e300), "Unknown label type: continuous"),
        (True, np.tile([0.5, 1.5], 15), "Unknown label type: continuous"),
        (True, np.ones((30, 2)), "1d array"),
        (False, np.full(30, np.nan), "contains NaN"),
        (False, np.array(["a", "b"] * 15), "must hold numbers"),
        (False, np.ones((30, 2)), "target has 2 columns, the model predicts 1"),
    ],
)
def test_targets_are_checked(labels, target, match, rng):
    X = rng.normal(size=(30, 2))
    model = mc.SVC().fit(X, X[:, 0] > 0.0) if labels else mc.KernelRidge().fit(X, X[:, 0])
    with pytest.raises(ValueError, match=match):
        mc.report(model, X, target)


def test_a_column_of_targets_is_a_vector(rng):
    """The difference of shapes (n,) and (n, 1) would have n x n entries."""
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + rng.normal(size=30)
    plain = mc.report(mc.KernelRidge().fit(X, y), X, y)
    for fitted, given in ((y, y[:, None]), (y[:, None], y), (y[:, None], y[:, None])):
        again = mc.report(mc.KernelRidge().fit(X, fitted), X, given)
        assert again.facts["on the given rows"] == plain.facts["on the given rows"]
        assert len(again.pictures) == len(plain.pictures)


def test_classes_whose_names_begin_with_an_underscore_have_a_legend(rng):
    """Matplotlib leaves such labels out, with a warning."""
    X = rng.normal(size=(30, 2))
    target = np.array(["_a", "_b"])[(X[:, 0] > 0).astype(int)]
    axis = Figure().subplots()
    draw_components(X, target, ax=axis)
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["_a", "_b"]
