"""Limits of the project's language: names, docstrings and the length of the README.

Usage: `python tools/check_language.py [--list]`; exits with 1 if a figure is over its limit, `--list` prints
every finding.
The limits are those that Starlette, Datasette, pydantic-ai and structlog keep.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "centgate"

LIMITS: Final[Mapping[str, tuple[float, str]]] = {
    "relative": (3.0, "% of docstrings that open with What, Whether, Who, Where, How, Why, Which or When"),
    "participle": (4.0, "% of functions named by a participle"),
    "one word": (50.0, "% of functions named by one word"),
    "same name": (15, "class names defined in more than one module"),
    "archaic": (0.2, "archaic words in comments and docstrings, per 1,000 words"),
    "gerund": (4, "modules named by a gerund that is no term of the field"),
    "small": (40.0, "% of modules under 60 lines"),
    "readme": (136, "lines of README.md without the rows of services"),
}
RELATIVE: Final = re.compile(
    r"(what|whether|who|whom|whose|where|how|why|which|when|whoever|whatever)\b", re.IGNORECASE
)
IRREGULAR: Final = re.compile(
    "told|taken|said|seen|shown|kept|given|written|made|known|led|sought|held|paid|sold|begun|meant|lost|met|bound"
    "|gone|built|bought|caught|drawn|hidden|heard"
)
VERBS_IN_ED: Final = frozenset(("embed", "feed", "need", "seed", "speed"))
ARCHAIC: Final = re.compile(
    r"\b(told|whoever|nobody|somebody|anew|dear|dearer|kin|riddle|lest|hitherto|therewith|(?:is|are) none"
    r"|could not be had|has no say|of (?:ours|theirs)|his own|let go of)\b"
)
GERUND_TERMS: Final = frozenset(
    ("pricing", "ranking", "routing", "parsing", "caching", "rendering", "signing", "string")
)
MINIMUM_LINES: Final = 60
SERVICE_ROW: Final = "| ["
"""Start of a row in the table of services, which grows with each service."""


@dataclass
class Counts:
    """Findings by figure, and the totals that shares refer to."""

    findings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    docstrings: int = 0
    functions: int = 0
    modules: int = 0
    words: int = 0

    def figure(self, name: str) -> float:
        """Return the figure that is compared with the limit."""
        if name == "readme":
            lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
            return sum(not line.startswith(SERVICE_ROW) for line in lines)
        found = len(self.findings[name])
        totals = {
            "relative": self.docstrings / 100,
            "participle": self.functions / 100,
            "one word": self.functions / 100,
            "small": self.modules / 100,
            "archaic": self.words / 1000,
        }
        return round(found / max(totals[name], 0.01), 2) if name in totals else found


def count_source() -> Counts:
    """Count the findings in the package, without generated modules and migrations."""
    counts = Counts()
    homes: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        if {"migrations", "_generated"}.isdisjoint(path.parts):
            _count_module(path, counts, homes)
    counts.findings["same name"] = [
        f"{name}: {', '.join(sorted(homes[name]))}" for name in sorted(homes) if len(homes[name]) > 1
    ]
    return counts


def _count_module(path: Path, counts: Counts, homes: Mapping[str, set[str]]) -> None:
    text, place = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
    counts.words += len(re.findall(r"[A-Za-z']+", text))
    if path.stem != "__init__":
        counts.modules += 1
        if text.count("\n") < MINIMUM_LINES:
            counts.findings["small"].append(place)
        if path.stem.endswith("ing") and path.stem not in GERUND_TERMS:
            counts.findings["gerund"].append(place)
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line or '"""' in line or not re.match(r"\s*[\w.\[\]]+\s*[=(:]", line):
            counts.findings["archaic"] += [f"{place}:{number}: {word}" for word in ARCHAIC.findall(line)]
    for node in ast.walk(ast.parse(text)):
        _count_docstring(node, place, counts)
        if isinstance(node, ast.ClassDef):
            homes[node.name.strip("_")].add(place)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            counts.functions += 1
            for figure in _function_findings(node.name):
                counts.findings[figure].append(f"{place}:{node.lineno}: {node.name}")


def _count_docstring(node: ast.AST, place: str, counts: Counts) -> None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    if docstring := ast.get_docstring(node):
        counts.docstrings += 1
        if RELATIVE.match(docstring):
            line = getattr(node, "lineno", 1)
            counts.findings["relative"].append(f"{place}:{line}: {docstring.splitlines()[0]}")


def _function_findings(name: str) -> Iterator[str]:
    """Yield the figures that a function's name counts for."""
    words = [word for word in re.split(r"[_\d]+", name.lower()) if word]
    if len(words) == 1:
        yield "one word"
    if words and (
        IRREGULAR.fullmatch(words[0])
        or (words[0].endswith("ed") and len(words[0]) > 4 and words[0] not in VERBS_IN_ED)
    ):
        yield "participle"


def main() -> int:
    """Print every figure, with what it counts if it is over its limit; return 1 if one is."""
    counts = count_source()
    over = False
    for name, (limit, meaning) in LIMITS.items():
        figure = counts.figure(name)
        is_over = figure > limit
        over |= is_over
        print(f"{'over' if is_over else 'ok':4}  {name:10}  {figure:>7g}  limit {limit:>4g}  {meaning}")
        if is_over or "--list" in sys.argv:
            print(
                *(f"      {finding}" for finding in counts.findings[name]),
                sep="\n",
                end="\n" if counts.findings[name] else "",
            )
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
