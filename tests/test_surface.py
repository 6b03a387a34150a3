"""What is public is what `mercer.__all__` says, documented, and light to import."""

import enum
import importlib
import importlib.metadata
import inspect
import json
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import mercer

SOURCE = Path(mercer.__file__).parent

# Everything else under mercer is private: `_x.py`, or a package that starts with an underscore.
PUBLIC_MODULES = {
    "engine", "kernels", "linalg", "space", "preimages", "methods", "theory", "estimators",
    "io", "plot", "reports", "datasets", "testing", "cli", "explore", "reproduce", "rigor",
    "exceptions",
}  # fmt: skip

THEORY = ("theory.duality", "theory.first_order", "theory.learning")

# Names that only the root has.
ROOT_ONLY = {"Options", "Status", "get_options", "options", "show_versions"}

# What `import mercer` may load besides the standard library, and what it must not.
LIGHT = {"mercer", "numpy", "scipy", "threadpoolctl", "cython_runtime"}
HEAVY = (
    "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.optimize",
    "scipy.signal", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.spatial",
    "scipy.special", "scipy.stats",
)  # fmt: skip


def public_objects():
    """Classes and functions in the `__all__` of the root and of the documented packages."""
    homes = (mercer, mercer.kernels, mercer.space, mercer.preimages, mercer.methods, mercer.linalg)
    found = {(name, getattr(home, name, None)) for home in homes for name in home.__all__}
    return [
        pytest.param(obj, id=name)
        for name, obj in sorted(found, key=lambda pair: (pair[0], repr(type(pair[1]))))
        if inspect.isclass(obj) or inspect.isroutine(obj)
    ]


def order(name: str) -> tuple[int, str]:
    """CONSTANTS, Classes, functions: the order that ruff's RUF022 keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_every_public_name_is_there():
    missing = [name for name in mercer.__all__ if not hasattr(mercer, name)]
    assert missing == []


def test_names_are_sorted_and_unique():
    assert list(mercer.__all__) == sorted(set(mercer.__all__), key=order)


def test_nothing_public_is_left_out():
    extra = [
        name
        for name, value in vars(mercer).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and name not in mercer.__all__
    ]
    assert extra == []


def test_dir_lists_the_surface():
    assert set(mercer.__all__) <= set(dir(mercer))


def test_unknown_names_raise_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        mercer.no_such_name  # noqa: B018


def test_modules_are_private():
    exposed = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if not _is_private(path.relative_to(SOURCE))
    ]
    assert exposed == []


def _is_private(path: Path) -> bool:
    first, *rest = path.with_suffix("").parts
    if not first.startswith("_") and first not in PUBLIC_MODULES:
        return False
    return all(part.startswith("_") for part in rest[-1:])


@pytest.mark.parametrize("obj", public_objects())
def test_public_objects_are_documented_with_an_example(obj):
    doc = inspect.getdoc(obj) or ""
    assert doc, "no docstring"
    if not (inspect.isclass(obj) and issubclass(obj, BaseException)):
        assert re.search(r"^Examples\n-{8}$", doc, re.MULTILINE), "no Examples section"
        assert ">>> " in doc, "the Examples section has no example"


def callables():
    """All that the reference lists with a signature of its own; not the engine and `rigor`."""
    homes = [*sorted(PUBLIC_MODULES - {"engine", "rigor"}), *THEORY]
    found = {}
    for home in (mercer, *(importlib.import_module(f"mercer.{home}") for home in homes)):
        for name in home.__all__:
            obj = getattr(home, name)
            no_signature = inspect.isclass(obj) and issubclass(obj, (BaseException, enum.Enum))
            if callable(obj) and not no_signature and not inspect.isabstract(obj):
                found[id(obj)] = pytest.param(obj, id=f"{home.__name__}.{name}")
    return list(found.values())


@pytest.mark.parametrize("obj", callables())
def test_every_parameter_is_documented(obj):
    """In the section Parameters; fields of results in Attributes."""
    sections = re.findall(
        r"^(?:Other Parameters|Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)",
        inspect.getdoc(obj) or "",
        re.MULTILINE | re.DOTALL,
    )
    entries = re.findall(r"^(\S.*?)(?: :|$)", "\n".join(sections), re.MULTILINE)
    documented = {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}
    parameters = {name for name in inspect.signature(obj).parameters if not name.startswith("_")}
    assert parameters - documented == set()


@pytest.mark.parametrize("package", sorted(PUBLIC_MODULES))
def test_public_objects_can_be_imported_under_their_name(package):
    """A name in a repr, an error or a traceback is one that users can import from the package."""
    home = importlib.import_module(f"mercer.{package}")
    objects = {name: getattr(home, name) for name in home.__all__}
    renamed = {
        name: f"{obj.__module__}.{obj.__qualname__}"
        for name, obj in objects.items()
        if (inspect.isclass(obj) or inspect.isfunction(obj))
        and (obj.__qualname__ != name or not obj.__module__.startswith("mercer."))
    }
    assert renamed == {}


def test_the_root_exports_the_objects_of_the_packages():
    homes = [importlib.import_module(f"mercer.{p}") for p in sorted(PUBLIC_MODULES)]
    public = {id(getattr(home, name)) for home in homes for name in home.__all__}
    own = {name for name in mercer.__all__ if id(getattr(mercer, name)) not in public}
    assert {name for name in own if getattr(mercer, name).__class__ is not str} <= ROOT_ONLY


def test_version_is_that_of_the_distribution():
    assert mercer.__version__ == importlib.metadata.version("mercer")


def test_citation_names_the_version():
    citation = Path(__file__).resolve().parent.parent / "CITATION.cff"
    assert f"\nversion: {mercer.__version__}\n" in citation.read_text(encoding="utf-8")


def test_package_is_typed():
    assert (SOURCE / "py.typed").exists()


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """Modules that `import mercer` adds to a fresh interpreter."""
    code = (
        "import json, sys; before = set(sys.modules); import mercer; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return set(json.loads(run.stdout))


def test_import_loads_only_light_packages(loaded):
    roots = {name.split(".")[0] for name in loaded}
    roots = {r for r in roots if not r.startswith("_cython")}  # come with numpy.random
    assert {r for r in roots if r not in sys.stdlib_module_names} - LIGHT == set()


def test_import_leaves_heavy_parts_of_scipy_alone(loaded):
    assert [name for name in loaded if name in HEAVY] == []


def test_import_leaves_estimators_and_edges_alone(loaded):
    edges = {"estimators", "plot", "reports", "datasets", "testing", "cli", "reproduce"}
    assert {name for name in loaded if name.startswith("mercer.")} & {
        f"mercer.{edge}" for edge in edges
    } == set()


def test_versions_are_shown(capsys):
    mercer.show_versions()
    shown = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert shown["numpy"].strip() == importlib.metadata.version("numpy")
    assert {"mercer", "Python", "scikit-learn", "compiled core", "threads"} <= shown.keys()
    assert any(name.startswith("blas of") for name in shown)


def test_the_extra_all_has_every_optional_package_of_users():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    for_developers = {"all", "test", "dev", "docs", "bench", "browser"}
    for_developers.add("torch")  # pip takes it with CUDA: only who asks for it gets it
    assert extras["all"] == [f"mercer[{','.join(sorted(extras.keys() - for_developers))}]"]
