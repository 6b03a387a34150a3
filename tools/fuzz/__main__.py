"""Run the fuzzer: `python -m tools.fuzz --seconds 600 --seed 0`.

A run continues where the last one with this seed ended. Findings are written to build/fuzz/findings
as programs, one for each kind of error and place; `--run FILE` runs one of them again.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path

from tools.fuzz.cases import case
from tools.fuzz.worker import Finding, Worker

FOLDER = Path("build/fuzz")


def main() -> int:
    """Run cases until the time is over; the exit code says whether there were findings."""
    options = _options()
    if options.run:
        found = Worker().run(options.run.read_text())
        print(found.text if found else "no finding")
        return int(found is not None)
    (FOLDER / "findings").mkdir(parents=True, exist_ok=True)
    state = FOLDER / f"{options.kinds}-{options.seed}.json"
    first = number = _next_case(state) if options.start is None else options.start
    worker, found_names, end = Worker(), set(), time.monotonic() + options.seconds
    try:
        while time.monotonic() < end:
            source = case(options.seed, number, options.kinds)
            if found := worker.run(source):
                name = _write(found, source, f"case {number} of seed {options.seed}")
                if name not in found_names:
                    print(f"{name}: {found.text.strip().splitlines()[-1][:150]}", flush=True)
                found_names.add(name)
            number += 1
            state.write_text(json.dumps({"seed": options.seed, "next": number}))
    except KeyboardInterrupt:
        pass
    finally:
        worker.stop()
    print(f"{number - first} cases, {len(found_names)} findings in {FOLDER / 'findings'}")
    return int(bool(found_names))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools.fuzz", description="Fuzz everything public.")
    parser.add_argument("--seconds", type=float, default=60.0, help="time to run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, help="first case; by default after the last one")
    parser.add_argument("--kinds", choices=["all", "native"], default="all", help=
                        "native: only kernel values and sums, for a sanitized core")  # fmt: skip
    parser.add_argument("--run", type=Path, metavar="FILE", help="run a finding again")
    return parser.parse_args()


def _next_case(state: Path) -> int:
    return int(json.loads(state.read_text())["next"]) if state.exists() else 0


def _write(found: Finding, source: str, origin: str) -> str:
    """Write a finding, unless one of its kind and place is there already."""
    place = re.sub(r"\W+", "_", found.place.replace(".py", ""))
    path = FOLDER / "findings" / f"{place.strip('_')[:80]}_{found.kind}.py"
    if not path.exists():
        comment = "".join(f"# {line}\n" for line in [origin, *found.text.splitlines()])
        path.write_text(comment + source)
    return path.name


if __name__ == "__main__":
    sys.exit(main())
