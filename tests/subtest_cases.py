"""Cases of one test as subtests, for large tables whose cases would be slow as separate tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, cast

import pytest


def each_case(
    names: str | tuple[str, ...], values: Collection[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for each value, as `pytest.mark.parametrize` does, but as subtests of one test.

    Fixtures are shared by the cases, so it suits tests that change nothing. The keys of a mapping name its
    cases. `names` is a tuple if each value is a tuple of several arguments.
    """
    keys = (names,) if isinstance(names, str) else names
    cases = list(cast(dict[Any, Any], values).values()) if isinstance(values, dict) else list(values)
    labels = [_describe(value) for value in values]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run_cases(subtests: pytest.Subtests, **fixtures: Any) -> None:
            nested = {"subtests": subtests} if "subtests" in parameters else {}
            for label, case in zip(labels, cases, strict=True):
                arguments = (case,) if isinstance(names, str) else case
                with subtests.test(msg=label):
                    test(**nested, **fixtures, **dict(zip(keys, arguments, strict=True)))

        parameters = inspect.signature(test).parameters
        kept = [parameter for name, parameter in parameters.items() if name not in (*keys, "subtests")]
        subtests = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run_cases.__signature__ = inspect.Signature([subtests, *kept])  # type: ignore[attr-defined]
        return run_cases

    return decorate


def _describe(value: Any) -> str:
    """Return a case's name in the output: services by their slug, other values as they are written."""
    parts: tuple[Any, ...] = cast(tuple[Any, ...], value) if isinstance(value, tuple) else (value,)
    label = "-".join(str(getattr(part, "slug", part)) for part in parts)
    return label.encode("ascii", "backslashreplace").decode()[:200]
