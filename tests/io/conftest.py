"""What the tests of saving share: a way there and back, and a table of classes for each test."""

import pytest

from mercer.io import _registry, load, save


@pytest.fixture
def there_and_back(tmp_path):
    """Save a thing and load it."""

    def go(thing):
        save(thing, tmp_path / "thing.mercer")
        return load(tmp_path / "thing.mercer")

    return go


@pytest.fixture
def own_table(monkeypatch):
    """A table of mercer's classes alone; what a test registers is forgotten after it."""
    _registry.class_of("mercer.estimators.any")  # the table is filled once, on demand
    classes = {n: c for n, c in _registry._classes.items() if n.startswith(_registry.OWN)}
    names = {c: n for c, n in _registry._names.items() if n.startswith(_registry.OWN)}
    monkeypatch.setattr(_registry, "_classes", classes)
    monkeypatch.setattr(_registry, "_names", names)
