"""Find the names that code defines, imports and calls, by patterns: examples are often no complete code."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = r"[A-Za-z_$][\w$]*"
_DEFINITION = re.compile(
    rf"^[ \t]*(?:export[ ]+)?(?:default[ ]+)?(?:async[ ]+)?"
    rf"(?:def|class|function\*?|const|let|var|interface|type|func|fn)[ ]+({_NAME})"
    rf"|^[ \t]*({_NAME}(?:[ ]*,[ ]*{_NAME}){{0,5}})[ ]*:?=(?!=)"
    rf"|\bas[ ]+({_NAME})[ ]*:"
    rf"|\b(?:const|let|var)[ ]*[{{\[]([^{{}}\[\]=]{{1,200}})[}}\]][ ]*=",
    re.MULTILINE,
)
_BINDING = re.compile(
    rf"\bfor[ ]+(?:\(?(?:const|let)[ ]+)?({_NAME}(?:[ ]*,[ ]*{_NAME}){{0,5}})[ ]+(?:in|of)\b"
    rf"|\blambda[ ]+([^:\n]{{1,100}}):"
    rf"|\b(?:def|function)\b[ ]*(?:{_NAME})?\(([^()]{{1,400}})\)"
    rf"|\(([^()]{{1,200}})\)[ ]*=>|(?<![\w$])({_NAME})[ ]*=>"
)
"""Variables of loops and parameters of functions."""
_IMPORT = re.compile(
    r"^from[ ]+[\w.]+[ ]+import[ ]+(?:\([^()]{1,600}\)|[^\s(#][^\n(#]{0,199})(?=[ ]*(?:#.*)?$)"
    r"|^import[ ]+[\w.]+(?:[ ]+as[ ]+\w+)?(?=[ ]*(?:#.*)?$)"
    r"|^import[ ]+(?:[^\s;'\"][^;'\"]{0,599}?[ \n]from[ ]+)['\"][^'\"\n]{1,200}['\"];?(?=[ ]*(?://.*)?$)"
    r"|^(?:const|let|var)[ ]+[^\s;=][^;=]{0,299}=[ ]*require\(['\"][^'\"\n]{1,200}['\"]\);?(?=[ ]*(?://.*)?$)",
    re.MULTILINE,
)
_COMMENT_OR_STRING = re.compile(
    r"/\*.*?(?:\*/|\Z)|(?<![:\w])//[^\n]*|(?:^|(?<=\s))\#[^\n]*"
    r"|\"[^\"\n]*\"|'[^'\n]*'",
    re.DOTALL,
)
_IMPORTED_FROM = re.compile(r"^from[ ]+[\w.]+[ ]+import\b|\bfrom[ ]+['\"].*|=[ ]*require\(.*")
_WORD = re.compile(_NAME)
_FREE_NAME = re.compile(rf"(?<![\w$.])({_NAME})(?![\w$]|[ ]*(?:=(?![=>])|:(?!:)))")
"""A name that is no attribute, argument or key."""
_CREATION = re.compile(
    rf"^(?:(?:const|let|var)[ ]+)?({_NAME})[ ]*(?::[\w.\[\], |]+)?=[ ]*"
    rf"(?:await[ ]+)?(?:new[ ]+)?[A-Za-z_$][\w$.]*\(.*\);?(?=[ ]*(?:(?://|\#).*)?$)",
    re.MULTILINE,
)
_IMPORT_WORDS = frozenset(("import", "from", "as", "type", "const", "let", "var", "typeof"))
_TYPE = re.compile(r"(?<![\w$.])(?:[a-z]\w{0,20}\.)?([A-Z]\w{2,60})")
_CLASS_HEAD = re.compile(r"(?:export |declare |default |abstract )*(?:class|interface)\b")
MAX_MEMBER_LINES = 14
"""Lines of a declaration above which it is the outline of a type, not one member inside its type."""
_ALWAYS_KNOWN = frozenset(("console", "exports", "module", "process", "require", "self", "super", "this"))
_MODULE = re.compile(rf"(?<![\w$.)\]])({_NAME})(?:\.{_NAME})*\.$")
"""The name that the qualified name before a call begins with; the result of another call has none."""
_CLASS = re.compile(r"=[ ]*(?:await[ ]+)?(?:new[ ]+)?(?:[\w$]+\.)*([A-Z][\w$]*)\(")
_OBJECTS = _ALWAYS_KNOWN | {"Array", "Date", "JSON", "Math", "Number", "Object", "Promise", "String", "cls"}
"""Objects that code has without a definition."""
MAX_LINE = 120
"""Maximum characters of a line that creates something."""
MIN_NAME = 2
"""Minimum letters of a name that connects two pieces of code; one letter is used for anything."""


def find_defined(code: str, min_length: int = MIN_NAME) -> frozenset[str]:
    """Return the names of some length that code assigns, declares or imports."""
    groups = ["".join(found) for found in (*_DEFINITION.findall(code), *_BINDING.findall(code))]
    names = {name for group in groups for name in _WORD.findall(group)}
    names.update(name for line in find_imports(code) for name in imported_names(line))
    return frozenset(name for name in names if len(name) >= min_length)


def find_words(code: str) -> frozenset[str]:
    """Return the names in code without those in its comments and its strings of one line."""
    return frozenset(_WORD.findall(_COMMENT_OR_STRING.sub(" ", code)))


def find_free_names(code: str) -> frozenset[str]:
    """Return the names that code uses and does not define."""
    used = frozenset(_FREE_NAME.findall(_COMMENT_OR_STRING.sub(" ", code)))
    return used - find_defined(code, 1) - _ALWAYS_KNOWN


def find_creations(code: str) -> dict[str, str]:
    """Return the lines that create something, by the name that they give it: `client = Client("host")`."""
    lines = ((found[1], found[0].rstrip()) for found in _CREATION.finditer(code))
    return {name: line for name, line in lines if len(line) <= MAX_LINE and _is_closed(line)}


def find_imports(code: str) -> list[str]:
    """Return the statements of Python and JavaScript that import something, without indented ones."""
    return [found[0].rstrip() for found in _IMPORT.finditer(code)]


def imported_names(statement: str) -> frozenset[str]:
    """Return the names that a statement of `find_imports` makes known: `import a.b as c` gives `c`."""
    names = _IMPORTED_FROM.sub("", statement)
    if names == statement and "as" not in names.split():
        names = names.split(".", 1)[0]
    # of `a as b`, only b is known
    names = re.sub(rf"(?<![\w$*.])[\w$*.]+[ ]+as[ ]+({_NAME})", r"\1", names)
    return frozenset(_WORD.findall(names)) - _IMPORT_WORDS


def find_parameter_types(declaration: str) -> list[str]:
    """Return the names that may be types of parameters in a declaration of TypeScript, each once.

    Of a class, these are the parameters of its constructor; an interface has none.
    """
    if _CLASS_HEAD.match(declaration) and "constructor(" in declaration:
        declaration = f"{declaration.partition('constructor(')[2].partition(');')[0]})"
    elif _CLASS_HEAD.match(declaration) and declaration.count("\n") > MAX_MEMBER_LINES:
        return []
    return list(dict.fromkeys(_TYPE.findall(declaration.rpartition(")")[0])))


def has_call(code: str, name: str, *, member: bool = False) -> bool:
    """True if code calls a name, or uses it as component or decorator; a member also as key or argument.

    Of a name that is no member, a call on an object of the code is one of a namesake: `client.get()` is none
    of `httpx.get`.
    """
    escaped = re.escape(name)
    if member:
        return re.search(rf"(?<![\w$]){escaped}\??[ ]*(?:\(|<[^<>\n]*>\(|[:=](?!=))", code) is not None
    call = rf"(?<![\w$])(?<!def )(?<!function )(?<!class ){escaped}(?:<[^<>\n]*>)?(?:\(|`)"
    if re.search(rf"<{escaped}[\s/>]|@{escaped}\b|extends[ ]+{escaped}\b", code):
        return True
    before = [code[max(0, found.start() - MAX_LINE) : found.start()] for found in re.finditer(call, code)]
    if any(not each.endswith(".") for each in before):
        return True
    modules = {found[1] for each in before if (found := _MODULE.search(each))} - _OBJECTS
    return bool(modules) and not modules <= _find_objects(code)


def find_called_classes(code: str, member: str) -> frozenset[str]:
    """Return the classes of the objects whose member code calls; empty if that of any of them is not known.

    Of `desk = quill.Desk()` and `desk.open()`, this is `Desk`.
    """
    called = rf"(?<![\w$])(?:(?<!\.)({_NAME})\.)?{re.escape(member)}[ ]*\("
    creations = find_creations(code)
    found = [_CLASS.search(creations.get(each, "")) for each in re.findall(called, code)]
    return frozenset() if None in found else frozenset(each[1] for each in found if each)


def mentions(code: str, names: Iterable[str]) -> bool:
    """True if any of the names is in code."""
    return not find_words(code).isdisjoint(names)


def _find_objects(code: str) -> frozenset[str]:
    """Return the names that code assigns or takes as parameters, without imported ones."""
    imports = [imported_names(line) for line in find_imports(code)]
    return find_defined(code, 1).difference(*imports)


def _is_closed(line: str) -> bool:
    """True if a line closes all brackets and quotes that it opens."""
    is_quoted = all(line.count(quote) % 2 == 0 for quote in "\"'`")
    return is_quoted and all(
        line.count(opening) == line.count(closing) for opening, closing in ("()", "[]", "{}")
    )
