"""What can go wrong: a sentence with the cure, and an exit code."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar


class Problem(Exception):  # noqa: N818
    """A sentence for the user."""

    exit_code: ClassVar[int] = 1


class DataProblem(Problem):
    """What was read cannot be worked on."""

    exit_code = 1


class UsageProblem(Problem):
    """The command cannot be run as it was given."""

    exit_code = 2


def needed(module: str, what: str) -> Any:
    """Import an optional package, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("PIL", "pillow")
        raise UsageProblem(f"{what} need {package}: pip install 'mercer[cli]'") from error


def counted(number: int, word: str) -> str:
    """1 row, 2 rows."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(words: Any, most: int = 8) -> str:
    """Words with commas between them; of many, the first few and how many more there are."""
    words = [str(word) for word in words]
    if len(words) <= most:
        return ", ".join(words)
    return ", ".join(words[: most - 1]) + f" and {len(words) - most + 1} more"
