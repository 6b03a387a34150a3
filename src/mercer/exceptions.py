"""Exceptions and warnings. Every message states the condition that failed and the cure."""

__all__ = [
    "DerivativeError",
    "DomainError",
    "InputError",
    "MercerError",
    "MercerWarning",
    "SpaceError",
    "UnavailableError",
]


class MercerError(Exception):
    """Base of everything mercer raises on purpose."""


class InputError(MercerError, ValueError):
    """An argument is not valid."""


class DomainError(InputError):
    """Points lie outside the set on which a kernel is defined."""


class SpaceError(InputError):
    """Two elements, or an element and a subspace, live in different spaces."""


class DerivativeError(MercerError, TypeError):
    """The kernel does not have this derivative."""


class UnavailableError(MercerError, NotImplementedError):
    """The quantity exists, but there is no closed form or no implementation for this kernel."""


class MercerWarning(UserWarning):
    """Base of the warnings that mercer issues."""
