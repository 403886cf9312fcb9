"""Modules that may open connections without an import, and HTTP sessions; contracts cover the imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import centgate

SOURCE = Path(centgate.__file__).parent
CONNECTING = {"open_connection", "create_connection", "open_unix_connection", "urlopen", "getaddrinfo"}
ALLOWED = {
    "web/fetch": "fetches the pages that buyers name",
    "web/browser": "renders pages that buyers name, through a proxy with the same rules",
    "payments/facilitator/facilitator_http.py": "calls the facilitator",
    "server.py": "listens, and checks that it responds",
    "devchain": "runs a development chain on loopback",
    "cli": "runs the commands: demo, doctor and the buyer's",
}


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Every module of the package, by its path."""
    return {
        file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in SOURCE.rglob("*.py")
    }


def find_connecting_calls(module: ast.Module) -> set[str]:
    """Return the functions named in a module that can open a connection."""
    return {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute)} & CONNECTING


@pytest.mark.extended
def test_only_allowed_modules_open_connections(modules: dict[str, ast.Module]) -> None:
    allowed = tuple(path if path.endswith(".py") else f"{path}/" for path in ALLOWED)

    found = {
        name: find_connecting_calls(module)
        for name, module in modules.items()
        if not name.startswith(allowed)
    }

    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.extended
def test_http_sessions_are_opened_once_per_trust_level(modules: dict[str, ast.Module]) -> None:
    """The sessions for payment nodes and for upstreams differ in their limits."""
    opened_in = {
        name
        for name, module in modules.items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "ClientSession"
    }

    assert opened_in == {"upstream.py", "payments/chain/payment_node.py"}


def test_allowed_modules_exist() -> None:
    assert [path for path in ALLOWED if not (SOURCE / path).exists()] == []
