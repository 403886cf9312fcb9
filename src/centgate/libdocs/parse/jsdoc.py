"""Convert JSDoc comments to Markdown."""

from __future__ import annotations

import re

_STAR = re.compile(r"^[ \t]*\*?[ ]?")
_TAG = re.compile(r"[ \t]*@([A-Za-z]+)\b[ \t]*(.*)")
_LINK = re.compile(r"\{@(?:link|linkcode|linkplain)[ \t]+([^{}|\s]+)(?:[ \t|]+([^{}| \t][^{}]*)?)?\}")
_TYPE = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}[ \t]*")
_PARAMETER = re.compile(r"(?:\[((?:[^\[\]]|\[[^\]]*\])+)\]|([\w$.]+))[ \t]*(?:[-:][ \t]*)?(.*)", re.DOTALL)
"""Name, in brackets with its default value, which may be an array, and description."""
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ ]")
_PRIVATE = re.compile(
    r"^[ \t]*(?:(?:/\*\*|\*)[ \t]*)?@(?:private|internal|hidden|ignore|api[ \t]+private)\b", re.MULTILINE
)
_WORDS = {
    "return": "Returns",
    "returns": "Returns",
    "throws": "Throws",
    "exception": "Throws",
    "deprecated": "Deprecated:",
    "see": "See",
    "default": "Default:",
    "defaultvalue": "Default:",
    "remarks": "",
    "description": "",
    "desc": "",
    "summary": "",
    "note": "Note:",
    "template": "Type parameter",
    "typeparam": "Type parameter",
}


def is_private(comment: str) -> bool:
    """True if a comment marks its symbol as private."""
    return bool(_PRIVATE.search(comment))


def render_jsdoc(comment: str, language: str) -> str:
    """Return the description, then a list of parameters and return values, then examples as fenced code."""
    description, tags = _split_tags(comment)
    entries: list[str] = []
    examples: list[str] = []
    for name, text in tags:
        if name == "example":
            examples.append(_format_example(text, language))
        else:
            entries.append(_format_tag(name, text))
    parts = [description, "\n".join(each for each in entries if each), *examples]
    return "\n\n".join(part for part in parts if part.strip())


def _split_tags(comment: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text before the first tag, and every tag with its text."""
    inner = comment.removeprefix("/**").removesuffix("*/")
    description: list[str] = []
    tags: list[tuple[str, list[str]]] = []
    is_fenced = False
    for line in (_STAR.sub("", each, count=1).rstrip() for each in inner.split("\n")):
        tag = None if is_fenced else _TAG.fullmatch(line)
        if line.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
        if tag:
            tags.append((tag[1].lower(), [tag[2]]))
        elif tags:
            tags[-1][1].append(line)
        else:
            description.append(line)
    text = _fence_indented_code(_replace_links("\n".join(description)).strip("\n"))
    return text, [(name, _replace_links("\n".join(lines)).strip("\n")) for name, lines in tags]


def _fence_indented_code(text: str) -> str:
    """Fence paragraphs that are indented by two or more spaces, which are code in older comments."""
    if "```" in text or "\n  " not in text:
        return text
    lines: list[str] = []
    code: list[str] = []
    for line in (*text.split("\n"), "."):
        above = code or not lines or not lines[-1].strip()
        is_indented = above and line.startswith("  ") and not _ITEM.match(line)
        if is_indented or (code and not line.strip()):
            code.append(line)
            continue
        if code:
            lines += ["```", *code, "```"] if any(each.strip() for each in code) else code
            code = []
        lines.append(line)
    return "\n".join(lines[:-1])


def _format_tag(name: str, text: str) -> str:
    type_match = _TYPE.match(text)
    description = text[type_match.end() :] if type_match else text
    if name in ("param", "arg", "argument", "property", "prop"):
        parameter = _PARAMETER.match(description)
        if parameter is None:
            return ""
        typed = f" ({type_match[1].strip()})" if type_match else ""
        about = " ".join(parameter[3].split())
        return f"- `{parameter[1] or parameter[2]}`{typed}" + (f": {about}" if about else "")
    if name not in _WORDS:
        return ""
    typed = f"`{type_match[1].strip()}`" if type_match else ""
    about = " ".join(description.split())
    entry = " ".join(part for part in (_WORDS[name], typed, about) if part)
    return f"- {entry}" if typed or about or name == "deprecated" else ""


def _format_example(text: str, language: str) -> str:
    body = re.sub(r"^\s*<caption>(.*?)</caption>", r"\1", text, flags=re.DOTALL).strip("\n")
    if "```" in body or "~~~" in body:
        return body
    lines = body.split("\n")
    indent = min((len(each) - len(each.lstrip()) for each in lines[1:] if each.strip()), default=0)
    code = "\n".join([lines[0].strip(), *(each[indent:] for each in lines[1:])]).strip("\n")
    return f"```{language}\n{code}\n```" if code.strip() else ""


def _replace_links(text: str) -> str:
    return _LINK.sub(lambda link: (link[2] or "").strip() or f"`{link[1]}`", text)
