"""Logging set-up: one line per request, as JSON or for terminals; never a signature, a key or a body."""

from __future__ import annotations

import logging
import sys
from typing import Any, TextIO, cast

import orjson
import structlog


def configure_logging(level: str) -> None:
    """Write log lines to standard error: readable on a terminal, JSON elsewhere."""
    renderers: list[structlog.typing.Processor] = (
        # rich's tracebacks would show local variables, keys among them
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if sys.stderr.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_serialize_line)]
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, _StandardError())),
        cache_logger_on_first_use=True,
    )


def _serialize_line(line: dict[str, Any], **_: Any) -> str:
    return orjson.dumps(line, default=str).decode()


class _StandardError:
    """Writes to the current `sys.stderr`, which may be replaced after logging is set up."""

    def write(self, text: str) -> None:
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()
