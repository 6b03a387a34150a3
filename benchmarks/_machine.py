"""The machine and the versions that a run was measured on, without paths and host names."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401  so that its BLAS is loaded and can be described

from benchmarks._harness import threads

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "pykeops", "finufft", "mercer")
_FEATURES = ("sse2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "asimd")


def describe() -> dict[str, Any]:
    """CPU, caches, instruction sets, versions, and the load before anything was measured."""
    cpu = _cpuinfo()
    return {
        "cpu": cpu.get("model name", platform.processor() or platform.machine()),
        "cores": threads(),
        "caches": _caches(),
        "instruction_sets": [f for f in _FEATURES if f in cpu.get("flags", "").split()],
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "blas": _blas(),
        "core": _core(),
        "commit": _commit(),
        "load_at_start": _load(),
    }


def lines(machine: dict[str, Any]) -> list[str]:
    """The description as text."""
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; {caches}",
        f"instruction sets: {' '.join(machine['instruction_sets']) or 'unknown'}",
        f"Python {machine['python']}, {versions}",
        f"BLAS: {'; '.join(machine['blas']) or 'unknown'}",
        f"compiled core: {machine['core'] or 'none'}",
        f"commit {machine['commit'] or 'unknown'}, load at start {machine['load_at_start']}",
    ]


def is_busy(machine: dict[str, Any]) -> bool:
    """Whether other work was running: a tenth of the cores, over the last minute."""
    load = machine["load_at_start"]
    return bool(load) and load[0] > 0.1 * machine["cores"]


def _cpuinfo() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    info = {name.strip(): value.strip() for name, value in pairs}
    info.setdefault("flags", info.get("Features", ""))  # as ARM calls them
    return info


def _caches() -> dict[str, str]:
    """Sizes as the first core sees them."""
    found = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (cache / part).read_text().strip() for part in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}{'d' if kind == 'Data' else ''}"] = size
    return found


def _memory() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return round(total / 2**30, 1)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _blas() -> list[str]:
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    fields = ("internal_api", "version", "architecture", "threading_layer")
    texts = [" ".join(str(pool.get(f)) for f in fields if pool.get(f)) for pool in pools]
    return sorted(set(texts))


def _core() -> str | None:
    try:
        return str(importlib.import_module("mercer._core").describe())
    except ImportError:
        return None


def _commit() -> str | None:
    """The commit that is checked out, with a + if files differ from it."""
    here = Path(__file__).parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=here,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        changed = subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=here, check=False)
    except (OSError, subprocess.CalledProcessError):
        return None
    return name + ("+" if changed.returncode else "")


def _load() -> list[float]:
    try:
        return [round(x, 2) for x in os.getloadavg()]
    except OSError:
        return []
