"""`python -m benchmarks [suite ...]`: run suites, print their tables, save their figures."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks import SUITES, _machine, _report
from benchmarks._harness import DATA, Settings

_RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen suites; return 1 if a full run missed a bar or had to leave a suite out."""
    chosen = _parser().parse_args(arguments)
    if chosen.list:
        for name in SUITES:
            print(f"{name:10}{importlib.import_module(f'benchmarks.{name}').TITLE}")
        return 0
    results = chosen.results or (None if chosen.quick else _RESULTS)
    machine = _machine.describe()
    print("\n".join(_machine.lines(machine)), end="\n\n", flush=True)
    if _machine.is_busy(machine):
        print("warning: other work is running here; do not trust the times", file=sys.stderr)
    if chosen.quick:
        print("quick run: small sizes, so the figures and verdicts mean nothing", file=sys.stderr)
    failures = left_out = 0
    for name in chosen.suites or SUITES:
        suite = importlib.import_module(f"benchmarks.{name}")
        absent = [file for file in getattr(suite, "NEEDS", ()) if not (DATA / file).exists()]
        if absent and not chosen.quick:
            where = f"{', '.join(absent)} not found in {DATA}"
            print(f"{name}: not run, its last results are kept: {where}", file=sys.stderr)
            left_out += 1
            continue
        outcome = suite.run(Settings(quick=chosen.quick))
        print(_report.text(outcome), flush=True)
        if results is not None:
            _report.save(name, outcome, machine, chosen.quick, results)
        failures += outcome.failures
    if failures:
        print(f"{failures} bar{'s' if failures > 1 else ''} missed", file=sys.stderr)
    return 1 if (failures or left_out) and not chosen.quick else 0


def _known(name: str) -> str:
    if name not in SUITES:
        raise argparse.ArgumentTypeError(f"no suite {name!r}; there are {', '.join(SUITES)}")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "suites",
        nargs="*",
        type=_known,
        metavar="suite",
        help=f"of {', '.join(SUITES)}; all by default",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything run?")
    parser.add_argument("--list", action="store_true", help="name the suites and stop")
    parser.add_argument(
        "--results",
        type=Path,
        help="directory for the results (benchmarks/results; a quick run keeps none by default)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
