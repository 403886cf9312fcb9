"""The official MCP inspector lists the tools and calls one; it validates every result against its schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import QUESTION, Buyer, decode_header, encode_header, fetch_terms, sign_payload
from node_packages import install_packages

from centgate.catalog import all_services
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain

pytestmark = pytest.mark.extended

PACKAGE = "@modelcontextprotocol/inspector"
RELEASE = "2.12.0"
SLUG = "phishing-check"
ANSWER_WITHIN = 90
CALL = ["--method", "tools/call", "--tool-name", SLUG, "--tool-arg", f"url={QUESTION['url']}"]
ERAS = ["legacy", "modern"]


@pytest.fixture(scope="session")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The inspector's command; skips the test if it cannot be installed."""
    wanted = tmp_path_factory.mktemp("wanted") / "package.json"
    wanted.write_text(json.dumps({"dependencies": {PACKAGE: RELEASE}}))
    package = install_packages(tmp_path_factory, "inspector", [wanted], "install") / "node_modules" / PACKAGE
    declared = json.loads((package / "package.json").read_text())
    return ["node", str(package / declared["bin"]["mcp-inspector"]), "--cli"]


def run_inspector(command: list[str], home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the inspector; return its exit code and result."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("CENTGATE_", "XDG_"))
    }
    done = subprocess.run(
        [*command, *arguments, "--format", "json"],
        cwd=home,
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=ANSWER_WITHIN,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["result"]


@pytest.mark.parametrize("era", ERAS)
def test_inspector_lists_tools_over_http(
    inspector: list[str], client: httpx.Client, tmp_path: Path, era: str
) -> None:
    url = str(client.base_url.join("/mcp"))

    code, result = run_inspector(inspector, tmp_path, url, "--protocol-era", era, "--method", "tools/list")

    assert code == 0
    assert len(result["tools"]) == len(all_services())


def test_strict_linter_has_no_warning(inspector: list[str], client: httpx.Client, tmp_path: Path) -> None:
    command = [*inspector, str(client.base_url.join("/mcp")), "--method", "tools/list", "--strict"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=ANSWER_WITHIN,
    )

    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stdout + done.stderr


@pytest.mark.parametrize("era", ERAS)
def test_inspector_gets_terms_and_pays_over_http(
    inspector: list[str], client: httpx.Client, buyer: Buyer, tmp_path: Path, era: str
) -> None:
    target = [str(client.base_url.join("/mcp")), "--protocol-era", era]
    header = encode_header(sign_payload(client, buyer))

    _, unpaid = run_inspector(inspector, tmp_path, *target, *CALL)
    code, paid = run_inspector(
        inspector, tmp_path, *target, *CALL, "--tool-metadata", f"x402/payment={header}"
    )

    assert unpaid["isError"] is True
    assert unpaid["structuredContent"] == decode_header(fetch_terms(client))
    assert code == 0
    assert paid["structuredContent"]["data"]["status"] == "blocked"
    assert paid["_meta"]["x402/payment-response"]["success"] is True


@pytest.mark.parametrize("era", ERAS)
def test_inspector_buys_over_stdio(
    inspector: list[str], chain_client: httpx.Client, devchain: DevChain, tmp_path: Path, era: str
) -> None:
    payer = BUYER_ACCOUNTS[4]
    before = devchain.token_balance(payer.address)
    given = ["-e", f"CENTGATE_WALLET_KEY={payer.private_key}", "--protocol-era", era]
    served = [sys.executable, "-m", "centgate", "mcp", "--api", str(chain_client.base_url)]

    code, result = run_inspector(inspector, tmp_path, *given, *served, *CALL)

    assert code == 0
    assert result["structuredContent"]["data"]["status"] == "blocked"
    assert before - devchain.token_balance(payer.address) == 10_000
