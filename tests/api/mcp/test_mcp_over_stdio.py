"""`centgate mcp`: an agent buys over stdio, with the wallet and the caps of its user.

The official client starts the command itself where the tools are listed. Elsewhere it is connected to a
forked process by the same pipes, which costs less.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from buyer import QUESTION
from centgate_process import CentgateProcess, run_centgate
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_clients import MODES, PAIR, POOL, RECEIPT, result_meta, result_text, structured_content

from centgate.catalog import all_services
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.server import run_in_thread
from centgate.settings import Settings

pytestmark = pytest.mark.extended

SLUG = "phishing-check"
CENT = 10_000
PAYER = BUYER_ACCOUNTS[3]
COMMAND = [sys.executable, "-m", "centgate", "mcp"]
CALL = (
    '{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    '"params":{"name":"phishing-check","arguments":{"url":"URL"}}}'
)
INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
)
Open = Callable[..., Client]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder without a wallet."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def wallet(tmp_path: Path) -> str:
    """The key file of a payer with test money."""
    file = tmp_path / "wallet"
    file.write_text(PAYER.private_key + "\n")
    file.chmod(0o600)
    return str(file)


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CENTGATE_", "XDG_"))}
    return {**kept, "HOME": str(home), **{f"CENTGATE_{name}": value for name, value in more.items()}}


@pytest.fixture
def open_stdio(home: Path) -> Open:
    """Function that connects the official client to `centgate mcp`, in the current protocol version."""
    return partial(connect_stdio, home, "auto")


@pytest.fixture(params=list(MODES))
def open_each(request: pytest.FixtureRequest, home: Path) -> Open:
    """Function that connects the official client to `centgate mcp`, in each protocol version."""
    return partial(connect_stdio, home, MODES[request.param])


def connect_stdio(home: Path, mode: str, api: httpx.Client | str, **more: str) -> Client:
    """Connect the client to a forked command; `more` are settings as environment variables."""
    return Client(run_server(home, api, **more), mode=mode, read_timeout_seconds=60)


@asynccontextmanager
async def run_server(home: Path, api: httpx.Client | str, **more: str) -> AsyncGenerator[tuple[Any, Any]]:
    """Run the command, forked; yield the messages that its standard streams carry."""
    arguments = ["mcp", "--api", url_of(api)]
    with CentgateProcess(arguments, env=environment(home, **more), cwd=home, stdin=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        output, written = anyio.wrap_file(server.stdout), anyio.wrap_file(server.stdin)
        # both sides of a connection exchange lines alike
        async with stdio_server(output, written) as (read, write):
            try:
                yield read, write
            finally:
                await written.aclose()  # at which the server ends, and with it what it writes


def start_stdio(home: Path, mode: str, api: httpx.Client | str) -> Client:
    """Let the client start the command in an interpreter of its own."""
    command = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--api", url_of(api)], env=environment(home), cwd=home
    )
    return Client(command, mode=mode, read_timeout_seconds=60)


def url_of(api: httpx.Client | str) -> str:
    return api if isinstance(api, str) else str(api.base_url)


def list_issues_over_http(client: httpx.Client, slug: str, body: dict[str, Any]) -> Any:
    return client.post(f"/services/{slug}", json=body).json()["error"]["details"]["issues"]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
async def test_tools_are_those_of_api(home: Path, chain_client: httpx.Client, mode: str) -> None:
    local_client = start_stdio(home, mode, chain_client)
    async with Client(str(chain_client.base_url.join("/mcp"))) as remote, local_client as local:
        over_http, over_stdio = await remote.list_tools(), await local.list_tools()

    assert over_stdio.tools == over_http.tools
    assert len(over_stdio.tools) == len(all_services())


async def test_instructions_name_spending_caps(open_stdio: Open, chain_client: httpx.Client) -> None:
    async with open_stdio(chain_client, CAP_PER_CALL="0.015", CAP_TOTAL="0.5") as local:
        instructions = local.instructions or ""

    assert "at most $0.015 a call and $0.5 in all" in instructions


async def test_call_is_paid_from_wallet(
    open_each: Open, chain_client: httpx.Client, devchain: DevChain, wallet: str
) -> None:
    before = devchain.token_balance(PAYER.address), devchain.token_balance(DEFAULT_PAYEE)

    async with open_each(chain_client, WALLET=wallet) as local:
        result = await local.call_tool(SLUG, QUESTION)
        schemas = {tool.name: tool.output_schema for tool in (await local.list_tools()).tools}

    after = devchain.token_balance(PAYER.address), devchain.token_balance(DEFAULT_PAYEE)
    assert (before[0] - after[0], after[1] - before[1]) == (CENT, CENT)
    assert not result.is_error
    assert structured_content(result)["data"]["status"] == "blocked"
    assert json.loads(result_text(result)) == structured_content(result)
    Draft202012Validator(schemas[SLUG] or False).validate(structured_content(result))  # pyright: ignore[reportUnknownMemberType]
    assert result_meta(result)[RECEIPT]["transaction"].startswith("0x")
    assert result_meta(result)["centgate/paid"] == "$0.01"
    assert result_meta(result)["centgate/request-id"] == structured_content(result)["requestId"]


async def test_total_cap_holds_for_process(
    open_stdio: Open, chain_client: httpx.Client, devchain: DevChain, wallet: str
) -> None:
    before = devchain.token_balance(PAYER.address)

    async with open_stdio(chain_client, WALLET=wallet, CAP_TOTAL="0.01") as local:
        first = await local.call_tool(SLUG, QUESTION)
        second = await local.call_tool(SLUG, {"url": "https://example.org"})

    assert not first.is_error
    assert second.is_error
    error = structured_content(second)["error"]
    assert (error["code"], error["money"]) == ("cap_exceeded", "not_moved")
    assert "CENTGATE_CAP_TOTAL" in error["message"]
    assert before - devchain.token_balance(PAYER.address) == CENT


async def test_price_above_call_cap_is_not_paid(
    open_stdio: Open, chain_client: httpx.Client, devchain: DevChain, wallet: str
) -> None:
    before = devchain.token_balance(PAYER.address)

    async with open_stdio(chain_client, WALLET=wallet, CAP_PER_CALL="0.009") as local:
        result = await local.call_tool(SLUG, QUESTION)

    assert result.is_error
    assert structured_content(result)["error"]["code"] == "cap_exceeded"
    assert structured_content(result)["error"]["money"] == "not_moved"
    assert devchain.token_balance(PAYER.address) == before


async def test_call_without_wallet_explains_setup_and_price(
    open_each: Open, chain_client: httpx.Client
) -> None:
    async with open_each(chain_client) as local:
        listed = await local.list_tools()
        result = await local.call_tool(SLUG, QUESTION)

    assert len(listed.tools) == len(all_services())
    assert result.is_error
    error = structured_content(result)["error"]
    assert (error["code"], error["money"]) == ("no_wallet", "not_moved")
    assert "centgate wallet new" in error["message"]
    assert "$0.01" in error["message"]


async def test_wrong_arguments_are_listed_and_cost_nothing(
    open_stdio: Open, chain_client: httpx.Client, devchain: DevChain, wallet: str
) -> None:
    before = devchain.token_balance(PAYER.address)

    async with open_stdio(chain_client, WALLET=wallet) as local:
        result = await local.call_tool("token-risk", {"tokenAddress": 7})

    assert result.is_error
    assert structured_content(result)["error"]["issues"] == list_issues_over_http(
        chain_client, "token-risk", {"tokenAddress": 7}
    )
    assert devchain.token_balance(PAYER.address) == before


async def test_no_data_is_reported_with_its_cost(
    open_stdio: Open, no_data_client: httpx.Client, wallet: str
) -> None:
    async with open_stdio(no_data_client, WALLET=wallet) as local:
        result = await local.call_tool(POOL, PAIR)

    assert result.is_error
    error = structured_content(result)["error"]
    assert (error["code"], error["money"]) == ("no_data", "moved")
    assert structured_content(result)["requestId"].startswith("req_")


async def test_option_over_one_cent_is_named(
    open_stdio: Open, chain_client: httpx.Client, wallet: str
) -> None:
    async with open_stdio(chain_client, WALLET=wallet) as local:
        result = await local.call_tool("crawler-scrape", {"url": "https://example.org", "actions": []})

    error = structured_content(result)["error"]
    assert (error["code"], error["options"]) == ("unsupported_options", ["actions"])


async def test_empty_wallet_is_reported_and_not_charged(
    open_stdio: Open, chain_client: httpx.Client, tmp_path: Path
) -> None:
    poor = tmp_path / "poor"
    poor.write_text("0x" + "42" * 32)
    poor.chmod(0o600)

    async with open_stdio(chain_client, WALLET=str(poor)) as local:
        result = await local.call_tool(SLUG, QUESTION)

    error = structured_content(result)["error"]
    assert (error["code"], error["money"]) == ("insufficient_balance", "reported_not_moved")


async def test_unknown_tool_is_protocol_error(open_stdio: Open, chain_client: httpx.Client) -> None:
    async with open_stdio(chain_client) as local:
        with pytest.raises(MCPError, match="no tool 'token-rsik'; see tools/list") as failed:
            await local.call_tool("token-rsik", {})

    assert failed.value.code == -32602


async def test_unreachable_api_is_reported_on_list(open_stdio: Open, chain_settings: Settings) -> None:
    with run_in_thread(chain_settings) as url:
        local = open_stdio(url)
        await local.__aenter__()
    try:
        with pytest.raises(MCPError, match="cannot be reached"):
            await local.list_tools()
        result = await local.call_tool(SLUG, QUESTION)
    finally:
        await local.__aexit__(None, None, None)

    assert structured_content(result)["error"]["code"] == "unreachable"


def run_stdio(home: Path, *arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return run_centgate(["mcp", *arguments], input=stdin, env=environment(home, **more), cwd=home)


def test_standard_output_has_only_protocol_messages(
    chain_client: httpx.Client, home: Path, wallet: str
) -> None:
    who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]
    lines = "".join(json.dumps(message) + "\n" for message in messages)

    with subprocess.Popen(
        [*COMMAND, "--api", str(chain_client.base_url)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        cwd=home,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(lines)
        server.stdin.flush()
        answered = [server.stdout.readline() for _ in range(2)]  # the end of the input cancels open calls
        rest, errors = server.communicate("no json\n", timeout=60)

    said = [json.loads(line) for line in [*answered, *rest.splitlines()]]
    assert {message["jsonrpc"] for message in said} == {"2.0"}
    assert said[0]["result"]["serverInfo"]["name"] == "centgate"
    assert server.returncode == 0
    assert "no wallet found" in errors


@pytest.mark.parametrize(
    ("line", "reply_to", "code"),
    [
        (CALL.replace("URL", r"\ud800"), 7, -32700),
        (CALL.replace("URL", "\x00"), None, -32700),
        (CALL[:-1], None, -32700),
        ("no json", None, -32700),
        ('{"jsonrpc":"2.0","id":8}', 8, -32600),
        ('{"jsonrpc":"2.0","id":"a","method":5}', "a", -32600),
        ("[]", None, -32600),
    ],
    ids=["surrogate", "null byte", "half", "text", "no method", "method", "batch"],
)
def test_unreadable_line_gets_protocol_error(
    chain_client: httpx.Client, home: Path, line: str, reply_to: str | int | None, code: int
) -> None:
    ping = '{"jsonrpc":"2.0","id":3,"method":"ping"}'

    with CentgateProcess(
        ["mcp", "--api", url_of(chain_client)], env=environment(home), cwd=home, stdin=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(f"{INITIALIZE}\n{line}\n{ping}\n")
        server.stdin.flush()
        replies = [json.loads(server.stdout.readline()) for _ in range(3)]
        server.stdin.close()

    errors = [(reply["id"], reply["error"]["code"]) for reply in replies if "error" in reply]
    assert errors == [(reply_to, code)]
    assert {reply["id"] for reply in replies} == {1, 3, reply_to}


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"API_URL": "http://127.0.0.1:9"}, 1, "http://127.0.0.1:9 cannot be reached"),
        ({"API_URL": "nowhere"}, 2, "'nowhere' is not a valid API URL"),
        ({"CAP_TOTAL": "much"}, 2, "CENTGATE_CAP_TOTAL"),
        ({"PAYEE": "0x12"}, 2, "CENTGATE_PAYEE"),
        ({"PAYEE": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA029aa"}, 2, "is mistyped"),
        ({"WALLET": "/no/such/file"}, 4, "there is no key file /no/such/file"),
        ({"WALLET_KEY": "0x12"}, 4, "not one line of 64 hex digits"),
    ],
    ids=["unreachable", "no-address", "cap", "payee", "typo", "no-file", "no-key"],
)
def test_invalid_setting_ends_start_with_message(
    home: Path, given: dict[str, str], code: int, says: str
) -> None:
    done = run_stdio(home, **given)

    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_readable_key_file_ends_start(home: Path, wallet: str) -> None:
    Path(wallet).chmod(0o644)

    done = run_stdio(home, WALLET=wallet)

    assert done.returncode == 4
    assert "chmod 600" in done.stderr
    assert PAYER.private_key[2:] not in done.stderr
