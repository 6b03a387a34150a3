"""Print versions of mercer and of what it uses, for bug reports."""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import threadpoolctl

from mercer._threads import thread_count
from mercer.engine._compiled import core, instruction_set

_PACKAGES = (
    "mercer", "numpy", "scipy", "scikit-learn", "threadpoolctl", "narwhals",
    "pandas", "polars", "click", "pillow", "pyarrow", "openpyxl", "matplotlib", "jinja2", "finufft",
    "cvxpy-base", "clarabel", "dask", "distributed",
)  # fmt: skip


def show_versions() -> None:
    """Print the versions of mercer, Python and packages, the compiled core, BLAS and threads.

    Paste the output into a bug report.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.show_versions()  # doctest: +ELLIPSIS
    mercer           ...
    """
    facts = versions()
    width = max(map(len, facts)) + 2
    print("\n".join(f"{name:<{width}}{text}" for name, text in facts.items()))  # noqa: T201


def versions() -> dict[str, str]:
    """The versions of packages and of the core, and what else a computation may depend on."""
    facts = dict.fromkeys(_PACKAGES, "not installed")
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            facts[name] = version(name)
    facts["Python"] = f"{platform.python_version()} on {platform.platform()}"
    compiled = core()
    facts["compiled core"] = "not built; NumPy is used" if compiled is None else compiled.describe()
    if compiled is not None:
        facts["instruction set"] = instruction_set() or compiled.instruction_sets()[-1]
    facts["threads"] = str(thread_count())
    for library in threadpoolctl.threadpool_info():
        details = (library.get(key) for key in ("internal_api", "version", "architecture"))
        facts[f"{library['user_api']} of {library['prefix']}"] = (
            f"{', '.join(str(detail) for detail in details if detail)}, "
            f"{library['num_threads']} threads"
        )
    return facts
