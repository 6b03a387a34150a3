"""Numbers and lists as text for people."""

from __future__ import annotations

from collections.abc import Iterable


def number(value: float) -> str:
    """A number with four digits."""
    return f"{float(value):.4g}"


def percent(share: float) -> str:
    """A share in per cent, with three digits."""
    return f"{100.0 * float(share):.3g} %"


def counted(number: int, word: str) -> str:
    """1 row, 2 rows."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def listed(words: Iterable[object], most: int = 8) -> str:
    """Words separated by commas; long lists are cut with "and 7 more"."""
    texts = [str(word) for word in words]
    if len(texts) <= most:
        return ", ".join(texts)
    return ", ".join(texts[: most - 1]) + f" and {len(texts) - most + 1} more"
