"""Split documentation and questions into words: identifiers are kept whole and also split."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+")
MAX_WORD_LENGTH = 60
"""Maximum characters of an indexed word; longer ones are data."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_ENDING = re.compile(r"(?:ies|y|ing|ed|es|s|e)$")
# fmt: off
STOP_WORDS = frozenset((
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "do", "docs", "documentation", "does", "example", "examples", "for", "from", "get", "give", "guide",
    "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "let", "like", "make", "me",
    "my", "need", "not", "of", "on", "or", "our", "out", "please", "set", "should", "show", "so", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
    "tutorial", "up", "us", "use", "used", "using", "want", "was", "way", "we", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
))
GENERAL_WORDS = frozenset((
    "basic", "basics", "beginner", "first", "getting", "hello", "install", "installation", "installing",
    "intro", "introduction", "overview", "quick", "quickstart", "readme", "setup", "start", "started",
    "starting", "steps", "usage", "world",
))
"""Words of questions about a library as a whole."""
# fmt: on
SYNONYMS = {
    "args": ("arguments",),
    "async": ("asynchronous", "asyncio"),
    "auth": ("authentication", "authorization"),
    "build": ("create",),
    "bulk": ("batch", "many"),
    "check": ("validate", "verify"),
    "color": ("colour",),
    "colour": ("color",),
    "compose": ("composite",),
    "concurrent": ("gather", "parallel"),
    "condition": ("when", "conditional"),
    "config": ("configuration", "settings"),
    "configuration": ("config", "settings"),
    "db": ("database",),
    "define": ("declare", "create"),
    "delete": ("remove",),
    "dict": ("dictionary",),
    "dictionary": ("dict",),
    "dir": ("directory",),
    "directory": ("dir", "folder"),
    "download": ("get",),
    "env": ("environment",),
    "error": ("exception",),
    "exception": ("error",),
    "expire": ("ttl", "expiration"),
    "expires": ("ttl", "expiration"),
    "folder": ("directory", "dir", "path"),
    "injection": ("inject",),
    "limit": ("max", "maximum"),
    "listen": ("subscribe", "listener"),
    "login": ("authentication",),
    "maximum": ("max",),
    "minimum": ("min",),
    "pagination": ("paginate", "limit", "offset"),
    "param": ("parameter",),
    "params": ("parameters",),
    "pattern": ("regex", "regexp"),
    "periodically": ("schedule", "periodic", "interval"),
    "picture": ("image",),
    "repo": ("repository",),
    "retries": ("retry",),
    "retry": ("retries",),
    "sse": ("eventsource",),
    "temporary": ("tmp", "temp"),
    "upload": ("put",),
    "validate": ("validator", "validation"),
    "write": ("create", "custom"),
    "ws": ("websocket",),
}
"""Words that documentation uses for those of a question: for abbreviations, tasks and other spellings."""


def split_identifier(word: str) -> list[str]:
    """Split a word into lower-case parts: `useEffect` into use and effect, `create_engine` into create and
    engine.
    """
    return [part.lower() for part in _PARTS.findall(word)] or [word.lower()]


def append_identifier_parts(text: str) -> str:
    """Return a text with the parts of its identifiers appended, each once."""
    found = {word for word in WORD.findall(text) if len(word) <= MAX_WORD_LENGTH and is_compound(word)}
    extra = [part for word in sorted(found) for part in split_identifier(word)]
    return f"{text} {' '.join(extra)}" if extra else text


def is_compound(word: str) -> bool:
    """True if a word consists of several words, by capitals or underscores."""
    if word.islower() or word.isupper():
        return "_" in word.strip("_")
    return "_" in word.strip("_") or word[1:] != word[1:].lower()


def normalize_name(name: str) -> str:
    """Normalise a name: `create_engine`, `createEngine` and `create engine` become equal."""
    return re.sub(r"[\W_]+", "", name).lower()


def path_words(path: str) -> str:
    """Return the words of a path, without numbers that only order it."""
    stem = re.sub(r"(?:\.d)?\.\w+$", "", path)
    found = (
        part for word in WORD.findall(stem) for part in dict.fromkeys((word.lower(), *split_identifier(word)))
    )
    return " ".join(part for part in found if not part.isdigit())


def stem_words(text: str) -> list[str]:
    """Return the stems of the words of a heading or a question; similar words mostly share a stem."""
    words = (part for word in WORD.findall(text) for part in split_identifier(word))
    return [_ENDING.sub("", word) if len(word) > 4 else word for word in words]
