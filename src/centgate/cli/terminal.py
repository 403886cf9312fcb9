"""Messages, JSON values and untrusted text in a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, NoReturn, cast

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

# characters that move the cursor, hide text or change its direction: answers contain untrusted text
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MIN_WIDTH = 40
"""Minimum line width: with a smaller one (`COLUMNS=0`), nothing would be visible."""
MAX_INLINE_LENGTH = 100
"""Maximum characters of a list shown beside its name."""
MAX_TABLE_DEPTH = 8
"""Maximum nesting of tables: each level doubles the layout time; deeper values are shown as JSON."""
_STYLES: Mapping[Any, str] = {
    None: "dim",
    **dict.fromkeys(("critical", "high", "blocked", "lookalike", "error", "timeout", "refused"), "red"),
    **dict.fromkeys(("medium", "warning", "rate_limited", "open"), "yellow"),
    **dict.fromkeys(("ok", "low", "allowed", "answered"), "green"),
}
"""Colours of status values, for all services."""


def escape_controls(value: object) -> str:
    """Escape the control characters of a text."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def print_message(message: str) -> None:
    """Print a message to the user on standard error, if it can be written: the exit code tells more."""
    with suppress(OSError):
        sys.stderr.write(f"centgate: {escape_controls(message)}\n")


def exit_with_error(message: str, code: int = 1) -> NoReturn:
    """Print a message and exit with a code."""
    print_message(message)
    raise typer.Exit(code)


def discard_stdout() -> None:
    """Redirect standard output to the null device, including buffered output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def format_json(value: Any) -> str:
    """Return indented JSON; unsafe and unencodable characters are written as JSON escapes."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return re.sub(
        "[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", text
    )


def create_console(*, stderr: bool = False) -> Console:
    """Create a console for untrusted text: no markup, no emoji codes, no automatic highlighting."""
    console = _PipeSafeConsole(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)
    console.width = max(console.width, MIN_WIDTH)
    return console


class _PipeSafeConsole(Console):
    """Console that tolerates a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Discard further output; the command still ends with its normal exit code."""
        self.quiet = True
        discard_stdout()


def text_line(text: str) -> Text:
    """Return a line of text with control characters escaped."""
    return Text(escape_controls(text))


def print_json(content: Any) -> None:
    """Print JSON to standard output."""
    create_console().print(text_line(format_json(content)), soft_wrap=True)


def render_status(word: str) -> Text:
    """Return a status value in its colour."""
    return Text(escape_controls(word), style=_STYLES.get(word, ""))


def split_field_name(name: str) -> str:
    """Split a JSON field name into words: `liquidityUsd` becomes `liquidity usd`."""
    return escape_controls(re.sub(r"(?<=[a-z0-9])([A-Z])", lambda upper: f" {upper[1].lower()}", name))


def render_value(value: Any, width: int, levels: int = MAX_TABLE_DEPTH) -> RenderableType:
    """Render a JSON value: names beside values, and objects with equal fields as a table."""
    if not isinstance(value, dict | list):
        return _render_scalar(value)
    if not levels:
        return Text(escape_controls(json.dumps(value, ensure_ascii=False)))
    if isinstance(value, dict):
        return _render_object(cast(dict[str, Any], value), width, levels)
    return _render_list(cast(list[Any], value), width, levels)


def _render_object(value: Mapping[str, Any], width: int, levels: int) -> RenderableType:
    """Render names beside values; long or nested values go under their names."""
    if not value:
        return Text("nothing", style="dim")
    labels = max((len(split_field_name(name)) for name, each in value.items() if _is_short(each)), default=0)
    labels = min(labels, width // 2)  # otherwise a long name leaves no room for values
    members = (
        _render_member(split_field_name(name), each, labels, width=width, levels=levels)
        for name, each in value.items()
    )
    return Group(*members)


def _render_member(name: str, value: Any, labels: int, *, width: int, levels: int) -> RenderableType:
    if not _is_short(value):
        inside = render_value(value, width - 2, levels - 1)
        return Group(Text(name, style="cyan"), Padding(inside, (0, 0, 0, 2), expand=False))
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(style="cyan", overflow="fold", width=labels)
    row.add_column(overflow="fold")
    row.add_row(name, render_value(value, width))
    return row


def _render_list(values: list[Any], width: int, levels: int) -> RenderableType:
    """Render short values in a line, rows in a table, other values one below the other."""
    if _is_short(values):
        return (
            Text(", ".join(_format_value(each) for each in values)) if values else Text("none", style="dim")
        )
    if (table := _render_table(values, width)) is not None:
        return table
    items = Table.grid(padding=(0, 1, 0, 0))
    items.add_column(style="dim")
    items.add_column(overflow="fold")
    for each in values:
        items.add_row("-", render_value(each, width - 2, levels - 1))
    return items


def _render_table(values: list[Any], width: int) -> RenderableType | None:
    """Render objects with equal short fields as rows; None if they do not fit."""
    rows = [cast(dict[str, Any], each) for each in values if isinstance(each, dict)]
    if len(rows) < max(2, len(values)) or any(row.keys() != rows[0].keys() for row in rows):
        return None
    if not all(_is_short(cell) for row in rows for cell in row.values()):
        return None
    columns = {
        name: max(len(split_field_name(name)), *(len(_format_value(row[name])) for row in rows))
        for name in rows[0]
    }
    if sum(columns.values()) + 2 * len(columns) > width:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for name in columns:
        table.add_column(split_field_name(name), justify="right" if _is_number(rows[0][name]) else "left")
    for row in rows:
        table.add_row(
            *(
                _render_scalar(cell) if not isinstance(cell, list) else _format_value(cell)
                for cell in row.values()
            )
        )
    return table


def _is_short(value: Any) -> bool:
    """Return True if a value fits beside its name."""
    if isinstance(value, list):
        values = cast(list[Any], value)
        is_flat = not any(isinstance(each, dict | list) for each in values)
        return is_flat and len(_format_value(values)) <= MAX_INLINE_LENGTH
    return not isinstance(value, dict) and "\n" not in str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _render_scalar(value: Any) -> Text:
    return Text(
        _format_value(value), style=_STYLES.get(value, "") if isinstance(value, str | bool | None) else ""
    )


def _format_value(value: Any) -> str:
    """Format a scalar or a flat list: no exponents, and a dash for None."""
    if isinstance(value, list):
        return ", ".join(_format_value(each) for each in cast(list[Any], value))
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{Decimal(repr(value)):f}"
    return escape_controls(
        {True: "yes", False: "no", None: "-"}.get(value, value) if not _is_number(value) else value
    )
