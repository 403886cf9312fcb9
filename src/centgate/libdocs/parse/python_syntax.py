"""Parse untrusted Python source without emitting warnings."""

from __future__ import annotations

import ast
import warnings


def parse_source(text: str) -> ast.Module:
    """Return the syntax tree of a file, without the warnings that its literals may cause.

    Raises SyntaxError for everything that cannot be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes raise ValueError; too deep nesting raises either of the other two
        raise SyntaxError(f"not Python: {type(error).__name__}") from error
