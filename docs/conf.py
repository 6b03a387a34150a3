"""Sphinx configuration."""

import importlib
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
exclude_patterns = ["_templates", "gallery", "generated/gallery/**/*.ipynb"]
html_theme = "furo"
html_title = "mercer"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]

# Pages: Markdown; those with a kernel header are notebooks and are executed.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # a cache would not notice that mercer changed
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_render_markdown_format = "myst"

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

GROUPS = {
    "kernels": "Kernels",
    "space": "Elements and subspaces",
    "preimages": "Pre-images",
    "methods": "Methods",
    "estimators": "Estimators",
    "linalg": "Linear algebra",
    "engine": "Kernel sums",
    "theory": "Theory",
    "": "Everything else",
}

PACKAGES = (
    "kernels", "space", "preimages", "methods", "estimators", "linalg", "theory",
    "theory.duality", "theory.first_order", "theory.learning", "exceptions", "plot", "datasets",
    "testing",
)  # fmt: skip


def list_public_names() -> str:
    """Tables of the names at the root, by the layer that defines them, and of each package's."""
    tables: dict[str, list[str]] = {key: [] for key in GROUPS}
    for name in mercer.__all__:
        if name.startswith("__"):
            continue
        parts = (getattr(getattr(mercer, name), "__module__", None) or "").split(".")
        layer = parts[1] if len(parts) > 1 and parts[1] in GROUPS else ""
        tables[layer].append(name)
    lines: list[str] = []
    for key, names in tables.items():
        lines += _table(GROUPS[key], "mercer", names)
    listed = {id(getattr(mercer, name)) for name in mercer.__all__}
    for module in PACKAGES:
        package = importlib.import_module(f"mercer.{module}")
        values = {name: getattr(package, name) for name in package.__all__}
        own = [
            name
            for name, value in values.items()
            if id(value) not in listed and not isinstance(value, types.ModuleType)
        ]
        listed |= {id(getattr(package, name)) for name in own}  # a name has one page
        lines += _table(f"mercer.{module}", f"mercer.{module}", own)
    return "\n".join(lines)


def _table(title: str, module: str, names: list[str]) -> list[str]:
    if not names:
        return []
    lines = [f"## {title}", "", "```{eval-rst}", f".. currentmodule:: {module}", ""]
    lines += [".. autosummary::", "   :toctree: api", ""]
    return lines + [f"   {name}" for name in names] + ["```", ""]


# docs/api.md includes this page; docs/generated/ is not kept under version control.
shutil.rmtree(HERE / "generated", ignore_errors=True)
(HERE / "generated").mkdir()
(HERE / "generated" / "names.md").write_text(f"# Names\n\n{list_public_names()}", encoding="utf-8")


def escape_bars(_app, _what, _name, _obj, _options, lines: list[str]) -> None:
    """In docstrings |x - y| is a norm, never a reStructuredText substitution."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            parts = re.split(r"(`+[^`]*`+)", line)  # leave `code` alone
            lines[i] = "".join(p if p.startswith("`") else _escaped(p) for p in parts)


def _escaped(text: str) -> str:
    """Bars, and the underscore of c_|l|, which would make c the name of a link."""
    return text.replace("_|", "\\_|").replace("|", "\\|")


def setup(app) -> None:
    """Run after numpydoc, which listens to the same event."""
    app.connect("autodoc-process-docstring", escape_bars, priority=900)
