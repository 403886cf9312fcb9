"""Who reaches the network: upstreams by one module, what buyers name by another, and nobody else."""

from __future__ import annotations

import ast
from pathlib import Path

import centgate

SOURCE = Path(centgate.__file__).parent
NETWORK = {"aiohttp", "httptools", "httpx", "requests", "socket", "ssl", "urllib3", "playwright"}
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
    found = {
        file.relative_to(SOURCE).parts[0]: reaching(file)
        for file in SOURCE.rglob("*.py")
        if reaching(file) and file.relative_to(SOURCE).parts[0] not in ROOMS
    }

    assert found == {}


def test_each_of_these_rooms_is_there() -> None:
    assert [room for room in ROOMS if not (SOURCE / room).exists()] == []
