"""Who reaches the network: upstreams by one module, what buyers name by another, and nobody else."""

from __future__ import annotations

import ast
from pathlib import Path

import centgate

SOURCE = Path(centgate.__file__).parent
NETWORK = {"aiohttp", "httptools", "httpx", "httpx2", "requests", "socket", "ssl", "urllib3", "playwright"}
CONNECTING = {"open_connection", "create_connection", "open_unix_connection", "urlopen", "getaddrinfo"}
ROOMS = {
    "upstream.py": "asks the operator's upstreams",
    "resources.py": "opens what that needs",
    "safefetch": "fetches what buyers name",
    "browser": "reads with a browser what buyers name, through a proxy that keeps to the same rules",
    "payments": "asks the facilitator and the chain",
    "runtime.py": "opens what that needs",
    "server.py": "listens, and asks itself whether it answers",
    "devchain": "is a development chain on loopback",
    "demo": "is a buyer, with a site of its own",
    "client": "is a buyer",
    "faces/site": "reads the API it tells of",
    "doctor": "asks whatever this deployment depends on whether it answers",
    "metrics": "listens, on a port of its own",
    "connection_limits.py": "bounds the connections that come in",
}


def reaching(file: Path) -> set[str]:
    """What a module imports or calls that can open a connection."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return (imported & NETWORK) | (named & CONNECTING)


def test_only_these_rooms_reach_the_network() -> None:
    files = {file.relative_to(SOURCE).as_posix(): file for file in SOURCE.rglob("*.py")}
    rooms = tuple(room if room.endswith(".py") else f"{room}/" for room in ROOMS)

    found = {name: reaching(file) for name, file in files.items() if not name.startswith(rooms)}

    assert {name: means for name, means in found.items() if means} == {}


def test_the_buyers_side_imports_nothing_of_the_server() -> None:
    words = {
        "centgate.client",
        "centgate.signing.assets",
        "centgate.signing.eip3009",
        "centgate.signing.evm",
        "centgate.signing.receipts",
    }

    imported = {
        module
        for file in (SOURCE / "client").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (module := node.module or "").startswith("centgate")
    }

    assert {module for module in imported if ".".join(module.split(".")[:2]) not in words} == set()


def test_each_of_these_rooms_is_there() -> None:
    assert [room for room in ROOMS if not (SOURCE / room).exists()] == []
