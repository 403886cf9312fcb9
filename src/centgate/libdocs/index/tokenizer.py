"""Split documentation and questions into words: identifiers are kept whole and also split."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+")
MAX_WORD_LENGTH = 60
"""Maximum characters of an indexed word; longer ones are data."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_ENDING = re.compile(r"(?:ies|y|ing|ed|es|s|e)$")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1$")
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
FUNCTION_WORDS = frozenset((
    "a", "an", "and", "at", "by", "for", "from", "how", "in", "is", "it", "its", "of", "on", "or", "the",
    "this", "to", "with", "your",
))
"""Words that say nothing about the subject of a heading; `set`, `get` and `all` do, unlike in a text."""
GENERAL_WORDS = frozenset((
    "basic", "basics", "beginner", "first", "getting", "hello", "install", "installation", "installing",
    "intro", "introduction", "overview", "quick", "quickstart", "readme", "setup", "start", "started",
    "starting", "steps", "usage", "world",
))
"""Words of questions about a library as a whole."""
# fmt: on
SYNONYMS = {
    "abort": ("cancel",),
    "allow": ("permit", "enable"),
    "append": ("add",),
    "args": ("arguments",),
    "ask": ("prompt",),
    "async": ("asynchronous", "asyncio"),
    "asynchronous": ("async", "asyncio"),
    "asynchronously": ("async", "asyncio", "await"),
    "attribute": ("attr", "property"),
    "auth": ("authentication", "authorization"),
    "automatic": ("auto",),
    "automatically": ("auto",),
    "average": ("mean",),
    "background": ("worker", "async"),
    "build": ("create",),
    "before": ("pre",),
    "bulk": ("batch", "many"),
    "cache": ("memoize",),
    "callback": ("handler",),
    "cancel": ("abort",),
    "change": ("modify", "update"),
    "check": ("validate", "verify"),
    "choose": ("select",),
    "clear": ("reset",),
    "clone": ("copy",),
    "color": ("colour",),
    "colour": ("color",),
    "combine": ("merge", "concat"),
    "compare": ("diff",),
    "compose": ("composite",),
    "concurrent": ("gather", "parallel"),
    "condition": ("when", "conditional"),
    "config": ("configuration", "settings"),
    "configuration": ("config", "settings"),
    "connect": ("connection",),
    "convert": ("transform",),
    "copy": ("clone",),
    "create": ("new",),
    "db": ("database",),
    "deeply": ("deep",),
    "define": ("declare", "create"),
    "delete": ("remove",),
    "derive": ("computed",),
    "derived": ("computed",),
    "deserialize": ("load", "parse"),
    "dict": ("dictionary",),
    "dictionary": ("dict",),
    "difference": ("diff",),
    "dir": ("directory",),
    "directory": ("dir", "folder"),
    "disconnect": ("close",),
    "display": ("show",),
    "download": ("get",),
    "draw": ("plot",),
    "duplicates": ("unique", "uniq", "distinct"),
    "edit": ("update", "change"),
    "emit": ("dispatch", "trigger"),
    "env": ("environment",),
    "error": ("exception",),
    "every": ("interval", "timer"),
    "exception": ("error",),
    "execute": ("run",),
    "expire": ("ttl", "expiration"),
    "expires": ("ttl", "expiration"),
    "fetch": ("get", "load"),
    "find": ("query",),
    "finish": ("complete", "done"),
    "folder": ("directory", "dir", "path"),
    "handler": ("callback", "hook", "listener"),
    "ignore": ("skip", "exclude"),
    "injection": ("inject",),
    "insert": ("add",),
    "iterate": ("loop",),
    "join": ("concat", "concatenate"),
    "keep": ("persist", "preserve"),
    "language": ("locale",),
    "limit": ("max", "maximum"),
    "link": ("url",),
    "listen": ("subscribe", "listener"),
    "load": ("read", "fetch"),
    "login": ("authentication",),
    "lookup": ("find",),
    "loop": ("iterate",),
    "many": ("multiple", "bulk", "batch"),
    "maximum": ("max",),
    "memoize": ("cache",),
    "minimum": ("min",),
    "mock": ("stub", "fake"),
    "modify": ("update", "change"),
    "multiple": ("many", "several"),
    "nested": ("deep", "recursive"),
    "newest": ("latest",),
    "number": ("integer",),
    "open": ("read",),
    "order": ("sort",),
    "own": ("custom",),
    "pages": ("paginate", "pagination", "paginator"),
    "pagination": ("paginate", "limit", "offset"),
    "parallel": ("concurrent",),
    "param": ("parameter",),
    "parameter": ("param",),
    "params": ("parameters",),
    "pattern": ("regex", "regexp"),
    "periodically": ("schedule", "periodic", "interval"),
    "pick": ("select",),
    "picture": ("image",),
    "print": ("show", "display"),
    "property": ("attribute",),
    "publish": ("emit", "send"),
    "raise": ("throw",),
    "react": ("listen", "listener", "event"),
    "read": ("load", "parse", "fetch"),
    "receive": ("consume",),
    "reject": ("forbid",),
    "relate": ("relation", "relationship", "association"),
    "relation": ("relationship", "association"),
    "remove": ("delete",),
    "replace": ("patch", "override", "substitute"),
    "repo": ("repository",),
    "reset": ("clear", "restore"),
    "restore": ("reset", "revert"),
    "retries": ("retry",),
    "retry": ("retries",),
    "run": ("execute",),
    "save": ("store",),
    "search": ("find",),
    "send": ("post",),
    "serialize": ("dump", "encode"),
    "several": ("multiple", "many"),
    "show": ("display",),
    "skip": ("ignore",),
    "sort": ("order",),
    "sse": ("eventsource",),
    "stop": ("shutdown", "close", "cancel", "kill"),
    "store": ("save",),
    "string": ("str", "text"),
    "temporary": ("tmp", "temp"),
    "text": ("string",),
    "throw": ("raise",),
    "throwing": ("raise",),
    "timezone": ("tz",),
    "transform": ("convert",),
    "translate": ("translation", "locale"),
    "turn": ("convert", "transform"),
    "undo": ("rollback", "revert", "downgrade"),
    "unique": ("distinct",),
    "update": ("modify",),
    "upload": ("put",),
    "url": ("link", "uri"),
    "validate": ("validator", "validation"),
    "wait": ("await",),
    "watch": ("monitor", "observe"),
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
    """Return the stems of the words of a heading or a question but function words.

    Similar words mostly share a stem: `file` and `files`, `plug`, `plugs` and `plugging`.
    """
    words = (part for word in WORD.findall(text) for part in split_identifier(word))
    return [_stem(word) for word in words if word not in FUNCTION_WORDS]


def _stem(word: str) -> str:
    return _DOUBLED.sub(r"\1", _ENDING.sub("", word) if len(word) > 3 else word)
