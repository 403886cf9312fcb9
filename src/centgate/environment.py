"""Variables `CENTGATE_*` of the environment and of `.env`, and the files that `<NAME>_FILE` name."""

from __future__ import annotations

import os
from collections.abc import Collection
from io import StringIO
from pathlib import Path

from dotenv.main import resolve_variables
from dotenv.parser import parse_stream

PREFIX = "CENTGATE_"


def node_variable(network: str) -> str:
    """Return the name of the variable with the addresses of a network's nodes; `network` is CAIP-2."""
    return f"{PREFIX}RPC_{network.removeprefix('eip155:')}_URL"


def read_variables(excluded: tuple[str, ...], own_files: Collection[str]) -> dict[str, str]:
    """Return all non-empty `CENTGATE_` variables without prefix; `X_FILE` sets X to its content.

    Left out are variables that begin with one of `excluded`: those of a buyer on the same machine.
    `own_files` are settings that end in `_FILE` themselves. Raises ValueError if a file cannot be read.
    """
    merged = {**{name: value or "" for name, value in read_env_file().items()}, **os.environ}
    variables = {
        name.removeprefix(PREFIX): value
        for name, value in merged.items()
        if name.startswith(PREFIX) and value and not name.startswith(excluded)
    }
    files = {
        name: path for name, path in variables.items() if name.endswith("_FILE") and name not in own_files
    }
    for name, path in files.items():
        variables.setdefault(name.removesuffix("_FILE"), _read_secret_file(name, path))
        del variables[name]
    return variables


def read_env_file() -> dict[str, str | None]:
    """Return the variables of `.env` in the working directory.

    A folder of that name is none: virtual environments often have it. Nor is there one in a working directory
    that this user may not search, as after `sudo -u`. Raises ValueError if the file or a line of it cannot be
    read.
    """
    try:
        text = Path(".env").read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except OSError as error:
        if not os.access(".", os.X_OK):
            return {}
        raise ValueError(f".env: cannot read it: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(".env is not text in UTF-8") from error
    bindings = list(parse_stream(StringIO(text)))
    for binding in bindings:
        # python-dotenv would leave such a line out, and the default of a price or a network would apply
        if binding.error:
            statement = binding.original.string
            blank = statement[: len(statement) - len(statement.lstrip())]
            line = binding.original.line + blank.count("\n")
            raise ValueError(f".env, line {line}: write NAME=value, and close its quotes")
    values = [(binding.key, binding.value) for binding in bindings if binding.key is not None]
    return dict(resolve_variables(values, override=True))


def _read_secret_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{PREFIX}{name}: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{PREFIX}{name}: {path} is not text in UTF-8") from error
