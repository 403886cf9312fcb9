"""The prose of Markdown without what is only for the eye: tags, images, badges, link targets."""

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
_LONE = re.compile(r"^[-*_=>+·•— \t\xa0]+$", re.MULTILINE)
_HELD = re.compile("\0([0-9]+)\0")
_BLANKS = re.compile(r"\n{3,}")
_QUOTE = re.compile(r"^[ ]{0,3}>[ ]?(?:\[!(\w+)\][ ]*)?", re.MULTILINE)


def plain(markdown: str) -> str:
    """Prose with its emphasis, lists and tables, links as their text, and spans of code untouched."""
    bare = _COMMENT.sub("", markdown.replace("\0", ""))
    bare = _LINK_LINE.sub("", bare)
    bare = _QUOTE.sub(lambda note: f"{note[1].capitalize()}:" if note[1] else "", bare)
    spans: list[str] = []

    def put_by(span: re.Match[str]) -> str:
        spans.append(span[0])
        return f"\0{len(spans) - 1}\0"

    # numbered, since an image or a tag may take a span away with it
    text = _without_markup(_SPAN.sub(put_by, bare))
    text = _HELD.sub(lambda held: spans[int(held[1])], text)
    return trimmed(_LONE.sub("", text))


def trimmed(text: str) -> str:
    """Without spaces at the ends of lines and more than one empty line at a time."""
    return _BLANKS.sub("\n\n", "\n".join(map(str.rstrip, text.split("\n")))).strip()


def _without_markup(text: str) -> str:
    text = _IMAGE.sub("", text)
    text = _EMPTY_LINK.sub("", text)
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _AUTOLINK.sub(r"\1", text)
    text = _TAG.sub("", text)
    text = _TARGET.sub("", _ANCHOR.sub("", _ROLE.sub("", text)))
    return html.unescape(text)
