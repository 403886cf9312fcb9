"""Render a page's elements as Markdown: headings, lists, tables, code with its language, links.

Escapes only text that would begin a block or be read as a tag. Code keeps its lines unchanged; elsewhere
there is never more than one blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise

from centgate.sanitize import strip_invisible
from centgate.web.extract.code_blocks import detect_language, extract_code
from centgate.web.extract.dom import Element
from centgate.web.extract.elements import (
    BLOCK_TAGS,
    HEADING_LEVELS,
    MAX_DEPTH,
    NON_TEXT_TAGS,
    extract_text,
    has_blocks,
)
from centgate.web.extract.markdown_inline import (
    SPACE,
    InlineRenderer,
    escape_brackets,
    escape_text,
    format_code_span,
    join_inline,
    normalize_spaces,
    wrap_in_marks,
)
from centgate.web.extract.markdown_syntax import (
    escape_block_starts,
    format_code_block,
    indent_lines,
    normalize_markdown,
    trim_rules,
)

MAX_NESTED_TABLES = 3
"""Maximum number of nested tables in a data table."""
MAX_COLUMNS = 60
"""Columns up to which a table is filled to a grid; a row with more cells keeps them all."""
MAX_ROWS = 65_534
"""Rows that a cell spans at most, and to the end of its group if its `rowspan` is 0."""
_LIST_TAGS = frozenset({"ul", "ol", "menu", "dir"})
_OWN_CONTENT_TAGS = _LIST_TAGS | {"a", "li", "dl", "dt", "dd", "blockquote", "table", "pre"}
"""Elements that do not merely group the items in them."""


_RowGroup = list[list[Element]]
"""Rows of cells that `thead`, `tbody` or `tfoot` holds."""


def render_markdown(element: Element, base: str) -> str:
    """Render an element as Markdown; `base` is the URL that its links are relative to."""
    blocks = trim_rules(_MarkdownRenderer(base).render_blocks(element, 0))
    return normalize_markdown("\n\n".join(blocks))


class _MarkdownRenderer(InlineRenderer):
    """Renderer of block elements, on top of the inline ones."""

    def render_blocks(self, element: Element, depth: int) -> list[str]:
        """Render the children of an element as blocks without indentation."""
        if depth > MAX_DEPTH:
            return _to_paragraphs(extract_text(element))
        rendered: list[str] = []
        line: list[str] = [escape_text(element.text)]
        for child in element:
            tag = child.tag
            if tag not in NON_TEXT_TAGS:
                if tag in BLOCK_TAGS or has_blocks(child):
                    rendered += _to_paragraphs(join_inline(line))
                    line = []
                    rendered += self._render_block(child, tag, depth + 1)
                else:
                    line.append(self.render_element(child, tag, depth + 1))
            if child.tail:
                line.append(escape_text(child.tail))
        rendered += _to_paragraphs(join_inline(line))
        return rendered

    def _render_block(self, element: Element, tag: str, depth: int) -> list[str]:
        if tag in HEADING_LEVELS:
            text = self.render_inline(element, depth)
            return [f"{'#' * HEADING_LEVELS[tag]} {text}"] if text else []
        if tag == "pre":
            code = extract_code(element)
            return [format_code_block(code, detect_language(element))] if code.strip() else []
        if tag in _LIST_TAGS:
            return self._render_list(element, depth)
        if tag == "table":
            return self._render_table(element, depth)
        if tag == "blockquote":
            quoted = "\n\n".join(trim_rules(self.render_blocks(element, depth)))
            return ["\n".join(f"> {line}".rstrip() for line in quoted.split("\n"))] if quoted else []
        if tag == "dl":
            return self._render_definitions(element, depth)
        if tag == "hr":
            return ["---"]
        if tag == "a":
            return self._render_link_block(element, depth)
        if tag == "li":
            return _format_item("- ", self.render_blocks(element, depth))
        if tag in ("summary", "caption"):
            text = self.render_inline(element, depth)
            return [wrap_in_marks(text, "**")] if text else []
        return self.render_blocks(element, depth)

    def _render_link_block(self, element: Element, depth: int) -> list[str]:
        """Render a link around blocks: its first heading or its first line becomes the link."""
        blocks = self.render_blocks(element, depth)
        address = self.resolve_url(element.get("href"))
        for at, block in enumerate(blocks if address else ()):
            mark = re.match(r"(?:- )?(?:#{1,6} )?", block)
            line, end, rest = block.partition("\n") if block.startswith("- ") else (block, "", "")
            if "](" in line or "\n" in line:
                continue
            start = mark.end() if mark else 0
            blocks[at] = f"{line[:start]}[{escape_brackets(line[start:])}]({address}){end}{rest}"
            break
        return blocks

    def _render_list(self, element: Element, depth: int) -> list[str]:
        """Render a list; text and blocks beside its items become items and blocks of their own."""
        rendered: list[str] = []
        items: list[str] = []
        line: list[str] = []
        parts = list(_iter_parts(element, "li", depth))
        number, step = _number_items(element, parts)
        for part in parts:
            if isinstance(part, str) or _is_inline(part):
                line.append(self._render_part(part, depth + 1))
                continue
            items += _format_item("- ", _to_paragraphs(join_inline(line)))
            line = []
            if part.tag == "li":
                number = _parse_integer(part.get("value"), max(number, 0))
                mark = f"{number}. " if element.tag == "ol" else "- "
                item = _format_item(
                    mark + _checkbox_mark(part), self.render_blocks(part, depth + 1), len(mark)
                )
                number += step if item else 0
                items += item
            elif items and part.tag in _LIST_TAGS:  # a list inside a list, not inside its item
                items += [indent_lines(block, "  ") for block in self._render_list(part, depth + 1)]
            else:
                rendered += _join_items(items)
                items = []
                rendered += self._render_block(part, part.tag, depth + 1)
        items += _format_item("- ", _to_paragraphs(join_inline(line)))
        return rendered + _join_items(items)

    def _render_part(self, part: Element | str, depth: int) -> str:
        """Render text or an inline element, before spaces and breaks are normalised."""
        return escape_text(part) if isinstance(part, str) else self.render_element(part, part.tag, depth)

    def _render_definitions(self, element: Element, depth: int) -> list[str]:
        rendered: list[str] = []
        line: list[str] = []
        for part in _iter_parts(element, "dt", depth):
            if isinstance(part, str) or _is_inline(part):
                line.append(self._render_part(part, depth + 1))
                continue
            rendered += _to_paragraphs(join_inline(line))
            line = []
            if part.tag == "dt":
                rendered += self._render_term(part, depth + 1)
                continue
            blocks = (
                self.render_blocks(part, depth + 1)
                if part.tag == "dd"
                else self._render_block(part, part.tag, depth + 1)
            )
            if rendered and len(blocks) == 1 and "\n" not in blocks[0] and not blocks[0].startswith("#"):
                rendered[-1] += f"\n: {blocks[0]}"
            else:
                rendered += blocks
        return rendered + _to_paragraphs(join_inline(line))

    def _render_term(self, term: Element, depth: int) -> list[str]:
        text = self.render_inline(term, depth)
        if "sig" in (term.get("class") or "").split():
            text = format_code_span(SPACE.sub(" ", extract_text(term).replace("\xb6", "")).strip())
        return [text if "*" in text or "`" in text else wrap_in_marks(text, "**")] if text else []

    def _render_table(self, element: Element, depth: int) -> list[str]:
        groups = _group_rows(element)
        rows = [row for group in groups for row in group]
        caption = [
            block
            for each in element.iterchildren("caption")
            for block in self._render_block(each, "caption", depth)
        ]
        if _is_layout_table(element, rows):
            cells = (cell for row in rows for cell in row)
            return [*caption[:1], *(block for cell in cells for block in self.render_blocks(cell, depth + 1))]
        grid = [cells for group in groups for cells in self._render_rows(group, depth + 1)]
        width = max(map(len, grid), default=0)
        if not width:
            return caption[:1]
        if not _is_header_row(rows[0]) and len(grid) == len(rows):
            grid.insert(0, [""] * width) if rows[0] and rows[0][0].tag == "th" else None
        filled = width if width <= MAX_COLUMNS else 0
        lines = ["| " + " | ".join(row + [""] * (filled - len(row))) + " |" for row in grid]
        lines.insert(1, "|" + " --- |" * max(filled, len(grid[0])))
        return [*caption[:1], "\n".join(lines)]

    def _render_rows(self, group: _RowGroup, depth: int) -> Iterator[list[str]]:
        """Render the rows of a group that hold text; no cell spans rows of another group."""
        above: dict[int, int] = {}
        for row in group:
            cells = self._render_row(row, above, depth)
            if any(cells):
                yield cells

    def _render_row(self, row: list[Element], above: dict[int, int], depth: int) -> list[str]:
        """Render a row's cells, empty where spanned; `above` counts the rows still spanned, by column."""
        cells: list[str] = []
        spanned = {column for column, rows in above.items() if rows}
        for column in spanned:
            above[column] -= 1
        for cell in row:
            while len(cells) in spanned:
                cells.append("")
            first = len(cells)
            text = (
                normalize_spaces(escape_text(cell.text)) if not len(cell) else self._render_cell(cell, depth)
            )
            cells.append(text.replace("|", "\\|"))
            span = cell.get("colspan")
            end = min(first + _parse_integer(span, 1), MAX_COLUMNS) if span else first
            cells += [""] * (end - len(cells))
            if (rows := _parse_integer(cell.get("rowspan"), 1) or MAX_ROWS) > 1:
                above.update(dict.fromkeys(range(first, min(len(cells), MAX_COLUMNS)), rows - 1))
        return cells

    def _render_cell(self, cell: Element, depth: int) -> str:
        """Render a cell on one line: code becomes a span, list items follow one another."""
        if not has_blocks(cell):
            return self.render_inline(cell, depth)
        parts: list[str] = []
        for block in self.render_blocks(cell, depth):
            if block.startswith("```"):
                block = format_code_span(" ".join(block.split("\n")[1:-1]))
            elif block.startswith("| "):
                block = _flatten_table(block)
            parts.append(
                " ".join(re.sub(r"^[>\s]*[-*] ", "\u2022 ", line.strip()) for line in block.split("\n"))
            )
        return " ".join(parts)


def _flatten_table(table: str) -> str:
    """Flatten a nested table: cells separated by commas, rows by semicolons."""
    rows = (line.strip("| ") for line in table.split("\n") if not line.startswith("| ---"))
    return "; ".join(row.replace(" | ", ", ") for row in rows if row)


def _to_paragraphs(text: str) -> list[str]:
    text = normalize_spaces(text)
    return [escape_block_starts(text)] if strip_invisible(text).strip() else []


def _format_item(mark: str, blocks: list[str], width: int = 2) -> list[str]:
    """Format a list item: further blocks go under its text, without a blank line before a list."""
    if not blocks:
        return []
    item = mark + indent_lines(blocks[0], " " * width).lstrip(" ")
    for before, block in pairwise(blocks):
        is_tight = _starts_list(block) and not before.startswith("```")
        item += ("\n" if is_tight else "\n\n") + indent_lines(block, " " * width)
    return [item]


def _number_items(element: Element, parts: list[Element | str]) -> tuple[int, int]:
    """Return the number of a list's first item, and the step from one to the next."""
    if element.get("reversed") is None:
        return _parse_integer(element.get("start"), 1), 1
    items = sum(1 for part in parts if not isinstance(part, str) and part.tag == "li")
    return _parse_integer(element.get("start"), items), -1


def _starts_list(block: str) -> bool:
    return re.match(r"(- |\d+\. )", block) is not None


def _checkbox_mark(item: Element) -> str:
    for box in item.iter("input"):
        if box.get("type") == "checkbox":
            return "[x] " if box.get("checked") is not None else "[ ] "
    return ""


def _iter_parts(element: Element, item: str, depth: int) -> Iterator[Element | str]:
    """Yield the texts and children of a list, with those of other elements around its items."""
    if element.text:
        yield element.text
    for child in element:
        if child.tag not in NON_TEXT_TAGS:
            if depth < MAX_DEPTH and _is_wrapper(child, item):
                yield from _iter_parts(child, item, depth + 1)
            else:
                yield child
        if child.tail:
            yield child.tail


def _is_wrapper(element: Element, item: str) -> bool:
    """True if an element only groups items of the list around it, such as `div` or `turbo-frame`."""
    if element.tag in _OWN_CONTENT_TAGS:
        return False
    tags = ("dt", "dd") if item == "dt" else (item,)
    return next(element.iterchildren(*tags), None) is not None


def _is_inline(element: Element) -> bool:
    return element.tag not in BLOCK_TAGS and not has_blocks(element)


def _join_items(items: list[str]) -> list[str]:
    return ["\n".join(items)] if items else []


def _group_rows(table: Element) -> list[_RowGroup]:
    """Return the rows of each row group, without those of nested tables, in the order that browsers show.

    That is the first `thead` at the top and the first `tfoot` at the bottom, wherever they stand.
    """
    groups: dict[str, list[_RowGroup]] = {"thead": [], "tbody": [[]], "tfoot": []}
    for part in table:
        if part.tag == "tr":
            groups["tbody"][-1].append(_row_cells(part))
        elif part.tag in groups:
            rows = [_row_cells(row) for row in part if row.tag == "tr"]
            groups["tbody" if groups[part.tag] else part.tag].append(rows)
    return [group for placed in groups.values() for group in placed]


def _row_cells(row: Element) -> list[Element]:
    return [cell for cell in row if cell.tag in ("td", "th")]


def _is_header_row(row: list[Element]) -> bool:
    """True if a row names the columns."""
    return bool(row) and all(cell.tag == "th" for cell in row)


def _is_layout_table(table: Element, rows: list[list[Element]]) -> bool:
    """True if a table is only layout: it holds headings, code blocks or tables, or is one cell wide.

    So is a single row with blocks in it, such as a post beside its votes. A table with named columns is a
    data table, even with a few nested tables.
    """
    if table.get("role") in ("presentation", "none") or max(map(len, rows), default=0) < 2:
        return True
    if next(table.iterdescendants("pre", "h1", "h2", "h3"), None) is not None:
        return True
    if len(rows) == 1 and not _is_header_row(rows[0]) and any(map(has_blocks, rows[0])):
        return True
    nested = sum(1 for _ in islice(table.iterdescendants("table"), MAX_NESTED_TABLES + 1))
    return nested > (MAX_NESTED_TABLES if _is_header_row(rows[0]) else 0)


def _parse_integer(text: str | None, default: int) -> int:
    """Parse the non-negative integer of an attribute."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else default
