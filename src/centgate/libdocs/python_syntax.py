"""Python parsed, whoever wrote it."""

from __future__ import annotations

import ast
import warnings


def parsed(text: str) -> ast.Module:
    """A file's syntax, without the warnings that its literals may cause.

    Raises SyntaxError for all that cannot be parsed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        # nested too deeply, which the parser tells in either of the last two ways, or with NUL bytes in it
        raise SyntaxError(f"not Python: {type(error).__name__}") from error
