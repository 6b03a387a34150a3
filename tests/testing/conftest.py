"""Breaking a method on purpose."""

import pytest


@pytest.fixture
def spoil(monkeypatch):
    """Replace the method of a class by a function of its result."""

    def replace(cls, name, change):
        right = getattr(cls, name)
        monkeypatch.setattr(cls, name, lambda self, *a, **k: change(right(self, *a, **k)))

    return replace
