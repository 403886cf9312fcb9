"""Strip Markdown prose of tags, images, badges and link targets."""

from __future__ import annotations

import html
import re

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|\{/\*.*?(?:\*/\}|\Z)", re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`{1,9})(?!`)(?:(?!\1).){1,400}?\1(?!`)")
_IMAGE = re.compile(
    r"!\[[^\[\]]{0,300}\](?:\(\s{0,9}[^()\s]{0,600}(?:\s{1,9}\"[^\"]{0,300}\")?\s{0,9}\)|\[[^\[\]]{0,100}\])"
)
_LINK = re.compile(
    r"\[([^\[\]]{0,400})\](?:\(\s{0,9}(?:[^()\s]|\([^()\s]{0,200}\)){0,600}"
    r"(?:\s{1,9}[\"'][^\"']{0,300}[\"'])?\s{0,9}\)|\[[^\[\]]{0,100}\])"
)
_AUTOLINK = re.compile(r"<(https?://[^<>\s]{1,500})>")
_TAG = re.compile(r"</?[A-Za-z][\w.:-]*(?:\s[^<>]{0,1000})?/?>|</?>")
_ANCHOR = re.compile(r"(?<![ \t])[ \t]*\{[ \t]*[#.:][^{}\n]{0,200}\}")
_ROLE = re.compile(r"\{[a-z:-]+\}(?=[`\0])")
_LINK_LINE = re.compile(r"^[ \t]*<a\s[^<>]{0,600}>[^<>]{0,30}</a>(?:&nbsp;|[ \t•|·])*$", re.MULTILINE)
_TARGET = re.compile(r"^\([\w .:-]+\)=[ \t]*$", re.MULTILINE)
_EMPTY_LINK = re.compile(r"\[[ \t]{0,9}\]\(\s{0,9}[^()\s]{0,600}\s{0,9}\)")
_PUNCTUATION_LINE = re.compile(r"^[-*_=>+·•— \t\xa0]+$", re.MULTILINE)
_PLACEHOLDER = re.compile("\0([0-9]+)\0")
_BLANKS = re.compile(r"\n{3,}")
_QUOTE = re.compile(r"^[ ]{0,3}>[ ]?(?:\[!(\w+)\][ ]*)?", re.MULTILINE)


def strip_markdown(markdown: str) -> str:
    """Return prose with emphasis, lists and tables; links become their text, code spans do not change."""
    uncommented = _COMMENT.sub("", markdown.replace("\0", ""))
    uncommented = _LINK_LINE.sub("", uncommented)
    uncommented = _QUOTE.sub(lambda note: f"{note[1].capitalize()}:" if note[1] else "", uncommented)
    spans: list[str] = []

    def save_span(span: re.Match[str]) -> str:
        spans.append(span[0])
        return f"\0{len(spans) - 1}\0"

    # numbered, because removing an image or a tag can also remove a placeholder inside it
    text = _remove_markup(_SPAN.sub(save_span, uncommented))
    text = _PLACEHOLDER.sub(lambda placeholder: spans[int(placeholder[1])], text)
    return trim_blank_lines(_PUNCTUATION_LINE.sub("", text))


def trim_blank_lines(text: str) -> str:
    """Remove trailing spaces and repeated empty lines."""
    return _BLANKS.sub("\n\n", "\n".join(map(str.rstrip, text.split("\n")))).strip()


def _remove_markup(text: str) -> str:
    text = _IMAGE.sub("", text)
    text = _EMPTY_LINK.sub("", text)
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _AUTOLINK.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = _TARGET.sub("", _ANCHOR.sub("", _ROLE.sub("", text)))
    return html.unescape(text)
