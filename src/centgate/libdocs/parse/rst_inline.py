"""Strip reStructuredText prose of roles and link targets."""

from __future__ import annotations

import re

from centgate.libdocs.parse.text_split import trim_blank_lines

_ROLE = re.compile(r":(?:[A-Za-z][\w-]*:){0,2}[A-Za-z][\w+-]*:`([^`]{1,600})`(?:`?_{1,2})?")
_TITLED = re.compile(r"^(.*?)<[^<>]*>$", re.DOTALL)
_REFERENCE = re.compile(r"(?<!`)`([^`<>]{1,300}?)\s*<[^<>`]{1,500}>`_{1,2}")
_NAMED = re.compile(r"(?<!`)`([^`]{1,300})`_{1,2}(?![\w`])")
_LITERAL = re.compile(r"``([^`](?:[^`]|`(?!`)){0,600}?)``")
_SUBSTITUTION = re.compile(r"\|(\w(?:[\w .-]{0,58}\w)?)\|_{0,2}")
_BADGES = re.compile(r"^[ \t]*(?:\|\w(?:[\w .-]{0,58}\w)?\|_{0,2}[ \t]*)+$", re.MULTILINE)
_FIELD = re.compile(
    r"^[ \t]*:(param|parameter|arg|keyword|raises?|returns?|rtype|type|i?var)[ \t]*([^:\n]{0,120}):[ \t]*",
    re.MULTILINE,
)
_ESCAPED = re.compile(r"\\([*_`|])|(?<=[`*_|])\\([ \w])")
_RULE = re.compile(r"^[ \t]*([=\-~^\"'`#*+:.<>_])\1{3,}[ \t]*$", re.MULTILINE)
"""A line between paragraphs, or an underline where no heading is possible."""
_DOCINFO = re.compile(r"^:([A-Z][\w -]{0,30}):(?=[ \t]+\S)", re.MULTILINE)
_PAGE_ROLES = ("ref", "doc", "numref", "any")
_TEXT_ROLES = (
    "ref",
    "doc",
    "term",
    "emphasis",
    "strong",
    "pep",
    "rfc",
    "ticket",
    "issue",
    "pr",
    "numref",
    "any",
)


def strip_rst(text: str) -> str:
    """Return prose with literals as code spans and references as their visible text."""
    result = _BADGES.sub("", text)
    result = _ROLE.sub(_replace_role, result)
    result = _REFERENCE.sub(r"\1", result)
    result = _LITERAL.sub(r"`\1`", result)
    result = _NAMED.sub(r"\1", result)
    result = _SUBSTITUTION.sub(r"\1", result)
    result = _FIELD.sub(_replace_field, result)
    result = _ESCAPED.sub(lambda escaped: escaped[1] or escaped[2].strip(), result)
    result = _DOCINFO.sub(r"\1:", _RULE.sub("", result))
    return trim_blank_lines(result)


def _replace_role(role: re.Match[str]) -> str:
    """Replace a role: `:class:` and similar show the end of the name after `~`, page roles show the title."""
    name = role[0][1 : role[0].index("`") - 1].split(":")[-1]
    titled = _TITLED.match(role[1])
    target = (titled[1] if titled and titled[1] else role[1]).strip().lstrip("!")
    if name in _PAGE_ROLES and not (titled and titled[1]):
        return target.rsplit("/", 1)[-1].replace("_", " ").replace("-", " ")
    if name in _TEXT_ROLES:
        return target if name not in ("pep", "rfc") else f"{name.upper()} {target}"
    if target.startswith("~"):
        target = target[1:].rsplit(".", 1)[-1]
    # a first part that begins with an underscore only serves the documentation's own build
    target = re.sub(r"^\.?_\w+\.(?=\w)", "", target).lstrip(".")
    return f"`{target}`"


def _replace_field(field: re.Match[str]) -> str:
    """Format `:param size:` as a list item. Types are dropped because the signature has them."""
    kind, of = field[1], field[2].strip()
    if kind.startswith("r"):
        label = "Raises" if kind.startswith("rai") else "Returns"
        return f"- {label} `{of}`: " if of else f"- {label}: "
    return f"- `{of.split(' ')[-1]}`: " if of else ""
