"""How answers, terms and catalogues look in a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

# what would move the cursor, hide text or turn its direction: answers carry text of strangers
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NARROWEST = 40
"""Characters of a line: where there are said to be fewer (`COLUMNS=0`), nothing would be shown."""
SHORT = 100
"""Characters of a list that stands beside its name."""
LEVELS = 8
"""Tables within each other; each takes twice as long to lay out, and what is deeper is shown as JSON."""
_STYLES: Mapping[Any, str] = {
    None: "dim",
    **dict.fromkeys(("critical", "high", "blocked", "lookalike", "error", "timeout", "refused"), "red"),
    **dict.fromkeys(("medium", "warning", "rate_limited", "open"), "yellow"),
    **dict.fromkeys(("ok", "low", "allowed", "answered"), "green"),
}
"""Words that are worth a colour, whichever service says them."""


def plain(value: object) -> str:
    """A text without the characters that steer a terminal, which are shown instead."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))


def write_nowhere() -> None:
    """Standard output leads nowhere from now on, with what it still holds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_json(value: Any) -> str:
    """Indented JSON that is safe to look at and can be written: all else is escaped, as JSON allows."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return re.sub(
        "[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", text
    )


def console(*, stderr: bool = False) -> Console:
    """A console for text of strangers: no markup, no emoji codes, and no colours but our own."""
    made = _Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)
    made.width = max(made.width, NARROWEST)
    return made


class _Console(Console):
    """A console whose reader may go away."""

    def on_broken_pipe(self) -> None:
        """Who reads has seen enough: the command ends as it would have, and says nothing more."""
        self.quiet = True
        write_nowhere()


def line(text: str) -> Text:
    """A line of text, safe to show."""
    return Text(plain(text))


def styled(word: str) -> Text:
    """A word in the colour that it is worth."""
    return Text(plain(word), style=_STYLES.get(word, ""))


def words(name: str) -> str:
    """A name of the wire as words: `liquidityUsd` is `liquidity usd`."""
    return plain(re.sub(r"(?<=[a-z0-9])([A-Z])", lambda upper: f" {upper[1].lower()}", name))


def shown(value: Any, width: int, levels: int = LEVELS) -> RenderableType:
    """Anything JSON can hold, for people: names beside values, rows of one shape as a table."""
    if not isinstance(value, dict | list):
        return _scalar(value)
    if not levels:
        return Text(plain(json.dumps(value, ensure_ascii=False)))
    if isinstance(value, dict):
        return _object(cast(dict[str, Any], value), width, levels)
    return _list(cast(list[Any], value), width, levels)


def _object(value: Mapping[str, Any], width: int, levels: int) -> RenderableType:
    """Names beside values; what is long or has parts stands under its name."""
    if not value:
        return Text("nothing", style="dim")
    labels = max((len(words(name)) for name, each in value.items() if _is_short(each)), default=0)
    labels = min(labels, width // 2)  # or a long name leaves no room for any value
    members = (_member(words(name), each, labels, width=width, levels=levels) for name, each in value.items())
    return Group(*members)


def _member(name: str, value: Any, labels: int, *, width: int, levels: int) -> RenderableType:
    if not _is_short(value):
        inside = shown(value, width - 2, levels - 1)
        return Group(Text(name, style="cyan"), Padding(inside, (0, 0, 0, 2), expand=False))
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(style="cyan", overflow="fold", width=labels)
    row.add_column(overflow="fold")
    row.add_row(name, shown(value, width))
    return row


def _list(values: list[Any], width: int, levels: int) -> RenderableType:
    """Words in a line, rows in a table, anything else one under the other."""
    if _is_short(values):
        return Text(", ".join(_text(each) for each in values)) if values else Text("none", style="dim")
    if (table := _table(values, width)) is not None:
        return table
    items = Table.grid(padding=(0, 1, 0, 0))
    items.add_column(style="dim")
    items.add_column(overflow="fold")
    for each in values:
        items.add_row("-", shown(each, width - 2, levels - 1))
    return items


def _table(values: list[Any], width: int) -> RenderableType | None:
    """Objects of the same short members as rows, where they fit; None where they do not."""
    rows = [cast(dict[str, Any], each) for each in values if isinstance(each, dict)]
    if len(rows) < max(2, len(values)) or any(row.keys() != rows[0].keys() for row in rows):
        return None
    if not all(_is_short(cell) for row in rows for cell in row.values()):
        return None
    columns = {name: max(len(words(name)), *(len(_text(row[name])) for row in rows)) for name in rows[0]}
    if sum(columns.values()) + 2 * len(columns) > width:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for name in columns:
        table.add_column(words(name), justify="right" if _is_number(rows[0][name]) else "left")
    for row in rows:
        table.add_row(
            *(_scalar(cell) if not isinstance(cell, list) else _text(cell) for cell in row.values())
        )
    return table


def _is_short(value: Any) -> bool:
    """Whether a value can stand beside its name."""
    if isinstance(value, list):
        each = cast(list[Any], value)
        flat = not any(isinstance(one, dict | list) for one in each)
        return flat and len(_text(each)) <= SHORT
    return not isinstance(value, dict) and "\n" not in str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scalar(value: Any) -> Text:
    return Text(_text(value), style=_STYLES.get(value, "") if isinstance(value, str | bool | None) else "")


def _text(value: Any) -> str:
    """A value without parts as text: no exponents, and a dash for what is not known."""
    if isinstance(value, list):
        return ", ".join(_text(each) for each in cast(list[Any], value))
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else f"{Decimal(repr(value)):f}"
    return plain({True: "yes", False: "no", None: "-"}.get(value, value) if not _is_number(value) else value)
