"""Sphinx configuration."""

import importlib
import importlib.util
import re
import shutil
import types
from pathlib import Path

import mercer

HERE = Path(__file__).parent

project = "mercer"
author = "the mercer developers"
copyright = "the mercer developers"
version = release = mercer.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = [
    "_templates",
    "gallery",
    "generated/gallery/**/*.ipynb",
    "reproductions/*.md",  # reproductions.md includes those
]
html_theme = "furo"
html_title = "mercer"
html_show_search_summary = False  # browsers refuse to read the pages found from a file

# Formulas are drawn without a network: one script with all extensions and glyphs.
_mathjax = importlib.util.find_spec("sphinx-mathjax-offline")
assert _mathjax is not None
assert _mathjax.origin is not None
_script = Path(_mathjax.origin).parent / "static" / "mathjax" / "tex-svg-full.js"
html_static_path = ["_static", str(_script)]
html_css_files = ["mercer.css", "gallery.css"]
mathjax_path = "tex-svg-full.js"

# Pages: Markdown; those with a kernel header are notebooks and are executed.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # a cache would not notice that mercer changed
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_render_markdown_format = "myst"
nb_code_prompt_show = "Show code"
nb_code_prompt_hide = "Hide code"

nitpicky = True  # a link to a name that has no page is a warning

# Gallery: the scripts of docs/gallery are run; their pages are written to generated/gallery.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "subsection_order": [
        f"gallery/{n}" for n in ("elements", "clusters", "tests", "kernels", "fits")
    ],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "abort_on_example_error": True,
    "capture_repr": (),  # axes print nothing of interest
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 3600,  # never: times of one machine are no documentation
    "write_computation_times": False,
}

# Reference: one page per public name, written from its docstring.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Sections by task. A name belongs to the longest prefix of the module that defines it.
SECTIONS = {
    "Denoise": ("estimators._denoiser", "methods.denoising", "methods.pca._filters"),
    "Fill in missing values": ("estimators._imputer", "methods.imputation"),
    "Find outliers": ("estimators._novelty", "estimators._one_class_svm"),
    "Cluster": ("estimators._mean_shift", "methods.modes"),
    "Segment images": ("methods.segmentation",),
    "Estimate densities": ("estimators._kernel_density", "methods.density"),
    "Test hypotheses": (
        "methods.hypothesis_tests",
    ),
    "Regress": ("estimators._kernel_ridge", "estimators._support_vector_regressors"),
    "Classify": ("estimators._support_vector_classifiers", "estimators._kernel_logistic"),
    "Regress and classify with other losses": (
        "estimators._kernel_machine", "estimators._kernel_gradient_descent",
        "estimators._kernel_sgd", "methods.machines",
    ),
    "Reduce dimensions, make features": (
        "estimators._kernel_pca", "estimators._features", "methods.pca",
    ),
    "Compress": ("preimages.compression",),
    "Pre-images": ("preimages", "rigor"),
    "Elements and subspaces": ("space",),
    "Kernels of vectors": ("kernels", "engine.programs", "_array"),
    "Kernels of strings, sets, labels and tables": ("kernels.structured",),
    "Linear algebra": ("linalg", "_progress"),
    "Pictures": ("plot",),
    "Reports": ("report", "reports"),
    "Data sets": ("datasets",),
    "Files": ("io",),
    "Check your own kernels": ("testing",),
    "Options, statuses, errors": ("_config", "_status", "exceptions", "engine", "estimators"),
    "Theory of kernels and distances of distributions": ("theory",),
    "Learning theory": ("theory.learning",),
    "First-order methods": ("theory.first_order",),
    "Convex duality": ("theory.duality", "builtins"),
    "Everything else": (),
}  # fmt: skip

PACKAGES = (
    "kernels", "space", "preimages", "methods", "estimators", "linalg", "theory",
    "theory.duality", "theory.first_order", "theory.learning", "exceptions", "plot", "datasets",
    "reports", "testing", "io",
)  # fmt: skip


LINKED = set()  # names that have a page


def list_public_names() -> str:
    """One table for each task; a name has one page, under the first path that it is found at."""
    tables: dict[str, list[str]] = {title: [] for title in SECTIONS}
    listed = set()
    for package in ("", *PACKAGES):
        module = importlib.import_module(f"mercer.{package}".rstrip("."))
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType) or name.startswith("__") or id(value) in listed:
                continue
            listed.add(id(value))
            LINKED.add(name)
            tables[_section(value)].append(f"{package}.{name}".lstrip("."))
    return "\n".join(line for title, names in tables.items() for line in _table(title, names))


def _section(value: object) -> str:
    """The section with the longest prefix of the module that defines the value."""
    home = getattr(value, "__module__", None) or type(value).__module__
    module = home.removeprefix("mercer.")
    fitting = [
        (len(prefix), title)
        for title, prefixes in SECTIONS.items()
        for prefix in prefixes
        if f"{module}.".startswith(f"{prefix}.")
    ]
    return max(fitting, default=(0, "Everything else"))[1]


def _table(title: str, names: list[str]) -> list[str]:
    if not names:
        return []
    lines = [f"## {title}", "", "```{eval-rst}", ".. currentmodule:: mercer", ""]
    lines += [".. autosummary::", "   :toctree: api", "   :nosignatures:", ""]
    return lines + [f"   {name}" for name in sorted(names, key=str.lower)] + ["```", ""]


# docs/api.md includes this page; docs/generated/ is not kept under version control.
shutil.rmtree(HERE / "generated", ignore_errors=True)
(HERE / "generated").mkdir()
(HERE / "generated" / "names.md").write_text(
    f"# Names by task\n\n{list_public_names()}", encoding="utf-8"
)


def mark_up(_app, _what, _name, _obj, _options, lines: list[str]) -> None:
    """In docstrings |x - y| is a norm, and `name` is code, with a link if the name has a page."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            parts = re.split(r"((?::\w+:)?`+[^`]*`+_?)", line)
            lines[i] = "".join(_marked_up(part) for part in parts)


def _marked_up(part: str) -> str:
    if "`" not in part:
        return _escaped(part)
    if not re.fullmatch(r"`[^`]*`", part):  # a role, a link or literal text
        return part
    name = part.strip("`")
    short = name.rpartition(".")[2] if name.startswith("mercer.") else name
    return f":obj:`{name}`" if short in LINKED else f"``{name}``"


def _escaped(text: str) -> str:
    """Bars, and the underscore of c_|l|, which would make c the name of a link."""
    return text.replace("_|", "\\_|").replace("|", "\\|")


def find_short_name(app, env, node, contnode):
    """See Also sections name a function without its package: take the shortest path to it."""
    domain, target = env.get_domain("py"), node.get("reftarget", "")
    paths = [path for path in domain.objects if path.endswith(f".{target}")]
    if not target or not paths:
        return None
    path, here = min(paths, key=len), node["refdoc"]
    return domain.resolve_xref(env, here, app.builder, "obj", path, node, contnode)


def setup(app) -> None:
    """Run after numpydoc, which listens to the same event."""
    app.connect("autodoc-process-docstring", mark_up, priority=900)
    app.connect("missing-reference", find_short_name)
