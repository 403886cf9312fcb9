"""Centgate: facts for software agents at one cent a call, paid by x402."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    """Read the version on first access: it takes longer than importing the package."""
    if name == "__version__":
        globals()[name] = import_module("importlib.metadata").version("centgate")
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
