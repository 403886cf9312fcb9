"""Normalise the names of languages in code fences and directives."""

from __future__ import annotations

_ALIASES = {
    "py": "python",
    "python3": "python",
    "pycon": "python",
    "py3": "python",
    "js": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "ts": "typescript",
    "mts": "typescript",
    "sh": "bash",
    "shell": "bash",
    "console": "bash",
    "zsh": "bash",
    "shell-session": "bash",
    "yml": "yaml",
    "rs": "rust",
    "golang": "go",
}
_NO_LANGUAGE = ("text", "txt", "plain", "plaintext", "none", "output", "")


def normalize_language(word: str | None) -> str | None:
    """Return the language of a fence or a directive in lower case; None if it names none."""
    name = (word or "").lower()
    return None if name in _NO_LANGUAGE else _ALIASES.get(name, name)
