"""The modules that may open connections, and the imports of the client."""

from __future__ import annotations

import ast
from pathlib import Path

import centgate

SOURCE = Path(centgate.__file__).parent
NETWORK = {"aiohttp", "httptools", "httpx", "httpx2", "requests", "socket", "ssl", "urllib3", "playwright"}
CONNECTING = {"open_connection", "create_connection", "open_unix_connection", "urlopen", "getaddrinfo"}
ALLOWED = {
    "upstream.py": "calls the operator's upstreams",
    "resources.py": "opens their sessions",
    "web/fetch": "fetches the pages that buyers name",
    "web/browser": "renders pages that buyers name, through a proxy with the same rules",
    "payments": "calls the facilitator and the nodes",
    "runtime.py": "opens their sessions",
    "server.py": "listens, and checks that it responds",
    "devchain": "runs a development chain on loopback",
    "client": "is the buyer",
    "cli": "runs the commands: demo, doctor and the buyer's",
    "website": "reads the API that it describes",
    "metrics": "listens, on a port of its own",
    "connection_limits.py": "limits incoming connections",
}


def find_network_use(file: Path) -> set[str]:
    """Return the imports and calls of a module that can open a connection."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return (imported & NETWORK) | (named & CONNECTING)


def test_only_allowed_modules_use_the_network() -> None:
    files = {file.relative_to(SOURCE).as_posix(): file for file in SOURCE.rglob("*.py")}
    allowed = tuple(path if path.endswith(".py") else f"{path}/" for path in ALLOWED)

    found = {name: find_network_use(file) for name, file in files.items() if not name.startswith(allowed)}

    assert {name: means for name, means in found.items() if means} == {}


def test_client_imports_nothing_of_the_server() -> None:
    allowed = {"centgate.client", "centgate.signing"}

    imported = {
        module
        for file in (SOURCE / "client").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (module := node.module or "").startswith("centgate")
    }

    assert {module for module in imported if ".".join(module.split(".")[:2]) not in allowed} == set()


def test_allowed_modules_exist() -> None:
    assert [path for path in ALLOWED if not (SOURCE / path).exists()] == []
