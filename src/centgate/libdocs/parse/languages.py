"""Normalise the names of languages in code fences and directives."""

from __future__ import annotations

_ALIASES = {
    **dict.fromkeys(("py", "py2", "py3", "python2", "python3", "pycon", "pycon3"), "python"),
    **dict.fromkeys(("ipython", "ipython2", "ipython3", "ipythonconsole"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs", "es", "es5", "es6", "ecmascript", "node", "nodejs"), "javascript"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    "javascriptreact": "jsx",
    "typescriptreact": "tsx",
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
