"""JSDoc comments made into Markdown."""

from __future__ import annotations

import re

_STAR = re.compile(r"^[ \t]*\*?[ ]?")
_TAG = re.compile(r"[ \t]*@([A-Za-z]+)\b[ \t]*(.*)")
_LINK = re.compile(r"\{@(?:link|linkcode|linkplain)[ \t]+([^{}|\s]+)(?:[ \t|]+([^{}| \t][^{}]*)?)?\}")
_TYPE = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}[ \t]*")
_PARAMETER = re.compile(r"(\[[^\]]*\]|[\w$.]+)[ \t]*(?:[-:][ \t]*)?(.*)", re.DOTALL)
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
    """Whether a comment keeps what it stands above from the library's users."""
    return bool(_PRIVATE.search(comment))


def markdown(comment: str, language: str) -> str:
    """The description, then parameters and what is returned as a list, then examples as fenced code."""
    description, tags = _divided(comment)
    told: list[str] = []
    examples: list[str] = []
    for name, text in tags:
        if name == "example":
            examples.append(_example(text, language))
        else:
            told.append(_told(name, text))
    parts = [description, "\n".join(each for each in told if each), *examples]
    return "\n\n".join(part for part in parts if part.strip())


def _divided(comment: str) -> tuple[str, list[tuple[str, str]]]:
    """The text before the first tag, and every tag with its text."""
    inner = comment.removeprefix("/**").removesuffix("*/")
    description: list[str] = []
    tags: list[tuple[str, list[str]]] = []
    fenced = False
    for line in (_STAR.sub("", each, count=1).rstrip() for each in inner.split("\n")):
        tag = None if fenced else _TAG.fullmatch(line)
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if tag:
            tags.append((tag[1].lower(), [tag[2]]))
        elif tags:
            tags[-1][1].append(line)
        else:
            description.append(line)
    text = _fenced(_linked("\n".join(description)).strip("\n"))
    return text, [(name, _linked("\n".join(lines)).strip("\n")) for name, lines in tags]


def _fenced(text: str) -> str:
    """With paragraphs that are set in by two spaces or more made fenced code, as older comments mean it."""
    if "```" in text or "\n  " not in text:
        return text
    lines: list[str] = []
    code: list[str] = []
    for line in (*text.split("\n"), "."):
        above = code or not lines or not lines[-1].strip()
        set_in = above and line.startswith("  ") and not _ITEM.match(line)
        if set_in or (code and not line.strip()):
            code.append(line)
            continue
        if code:
            lines += ["```", *code, "```"] if any(each.strip() for each in code) else code
            code = []
        lines.append(line)
    return "\n".join(lines[:-1])


def _told(name: str, text: str) -> str:
    kind = _TYPE.match(text)
    said = text[kind.end() :] if kind else text
    if name in ("param", "arg", "argument", "property", "prop"):
        parameter = _PARAMETER.match(said)
        if parameter is None:
            return ""
        typed = f" ({kind[1].strip()})" if kind else ""
        about = " ".join(parameter[2].split())
        return f"- `{parameter[1].strip('[]')}`{typed}" + (f": {about}" if about else "")
    if name not in _WORDS:
        return ""
    typed = f"`{kind[1].strip()}`" if kind else ""
    about = " ".join(said.split())
    told = " ".join(part for part in (_WORDS[name], typed, about) if part)
    return f"- {told}" if typed or about or name == "deprecated" else ""


def _example(text: str, language: str) -> str:
    body = re.sub(r"^\s*<caption>(.*?)</caption>", r"\1", text, flags=re.DOTALL).strip("\n")
    if "```" in body or "~~~" in body:
        return body
    lines = body.split("\n")
    indent = min((len(each) - len(each.lstrip()) for each in lines[1:] if each.strip()), default=0)
    code = "\n".join([lines[0].strip(), *(each[indent:] for each in lines[1:])]).strip("\n")
    return f"```{language}\n{code}\n```" if code.strip() else ""


def _linked(text: str) -> str:
    return _LINK.sub(lambda link: (link[2] or "").strip() or f"`{link[1]}`", text)
