"""Every code sample of every service runs unchanged, and buys the answer if it is one that pays."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from centgate_process import run_centgate
from example_deployment import PAYER, run_with_examples
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from node_runner import RUN_WITHIN, NodeRunner

from centgate.catalog import all_services
from centgate.client.catalog import ServiceDetail
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.code_samples import WALLET_PLACEHOLDER, CodeSample, build_samples
from centgate.website.guides import build_guides
from centgate.website.rendering import render_markdown

pytestmark = pytest.mark.extended

SLUGS = [service.slug for service in all_services()]
LABELS = ["curl", "Python", "TypeScript", "Command line", "MCP, paid from a wallet", "MCP over HTTP"]
CENT = 10_000

each_slug = pytest.mark.parametrize("slug", SLUGS)


def find_entry(deployment: ApiSnapshot, slug: str) -> ServiceDetail:
    (entry,) = (each for each in deployment.services if each.slug == slug)
    return entry


def find_sample(deployment: ApiSnapshot, slug: str, label: str) -> CodeSample:
    (found,) = (
        each for each in build_samples(find_entry(deployment, slug), deployment) if each.label == label
    )
    return found


def run_command(command: list[str], environment: Mapping[str, str], folder: Path) -> str:
    """Run a command, which must succeed, and return its output."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_WITHIN, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@each_slug
def test_service_has_each_kind_of_sample(deployment: ApiSnapshot, slug: str) -> None:
    found = build_samples(find_entry(deployment, slug), deployment)

    assert [each.label for each in found] == LABELS
    assert all(each.code.endswith("\n") and each.code.isascii() for each in found)
    assert all(len(each.code.splitlines()) <= 30 for each in found)


@each_slug
def test_curl_prints_terms_and_pays_nothing(
    deployment: ApiSnapshot, devchain: DevChain, environment: Mapping[str, str], tmp_path: Path, slug: str
) -> None:
    before = devchain.token_balance(PAYER.address)

    status, _, terms = run_command(
        ["bash", "-c", find_sample(deployment, slug, "curl").code], environment, tmp_path
    ).partition("\n")

    assert status == "HTTP/1.1 402 Payment Required"
    assert json.loads(terms)["accepts"][0]["amount"] == str(CENT)
    assert json.loads(terms)["resource"]["url"] == deployment.api + find_entry(deployment, slug).path
    assert devchain.token_balance(PAYER.address) == before


@each_slug
def test_python_buys_answer(
    deployment: ApiSnapshot,
    devchain: DevChain,
    environment: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    slug: str,
) -> None:
    """In this process; an interpreter of its own runs the samples at another price."""
    before = devchain.token_balance(PAYER.address)
    home = Path(environment["HOME"])
    (home / "snippet.py").write_text(find_sample(deployment, slug, "Python").code)
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)
    for name in ("HOME", "CENTGATE_WALLET"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.chdir(home)

    runpy.run_path("snippet.py", run_name="__main__")

    printed = capsys.readouterr().out.splitlines()
    assert printed[0]
    assert printed[-1].startswith("paid in 0x")
    assert before - devchain.token_balance(PAYER.address) == CENT


@each_slug
def test_typescript_buys_answer(
    deployment: ApiSnapshot, devchain: DevChain, node_runner: NodeRunner, slug: str
) -> None:
    before = devchain.token_balance(PAYER.address)

    printed = node_runner.run(slug, find_sample(deployment, slug, "TypeScript").code)

    assert printed[0] != "undefined"
    assert printed[-1].startswith("paid in 0x")
    assert before - devchain.token_balance(PAYER.address) == CENT


def test_mcp_program_of_agents_page_buys_answer(
    deployment: ApiSnapshot, devchain: DevChain, environment: Mapping[str, str], tmp_path: Path
) -> None:
    before = devchain.token_balance(PAYER.address)
    (guide,) = (each for each in build_guides(deployment) if each.path == "/agents")
    page = render_markdown(guide, deployment)
    (program,) = [each.partition("```")[0] for each in page.split("```python\n")[1:] if "mcp import" in each]

    printed = run_command([sys.executable, "-c", program], environment, tmp_path).splitlines()

    assert printed[0].startswith("{'")
    assert printed[-1].startswith("paid in 0x")
    assert before - devchain.token_balance(PAYER.address) == CENT


def read_command(code: str, environment: Mapping[str, str], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Let a shell run code that starts `centgate`; return the arguments and variables that it gives.

    A script of that name writes them down; the caller runs the command, forked.
    """
    script = folder / "bin" / "centgate"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nprintf '%s\\0' $# \"$@\"\nenv -0\n")
    script.chmod(0o755)
    path = f"{script.parent}{os.pathsep}{environment['PATH']}"
    written = run_command(["bash", "-c", code], {**environment, "PATH": path}, folder)
    count, *rest = written.removesuffix("\0").split("\0")
    variables = (each.split("=", 1) for each in rest[int(count) :])
    return rest[: int(count)], dict(variables)


@each_slug
def test_command_buys_the_answer(
    deployment: ApiSnapshot, devchain: DevChain, environment: Mapping[str, str], tmp_path: Path, slug: str
) -> None:
    before = devchain.token_balance(PAYER.address)

    arguments, variables = read_command(
        find_sample(deployment, slug, "Command line").code, environment, tmp_path
    )
    done = run_centgate(arguments, env=variables, cwd=tmp_path, timeout=RUN_WITHIN)

    assert done.returncode == 0, done.stderr
    assert "0x" in done.stdout
    assert before - devchain.token_balance(PAYER.address) == CENT


@pytest.mark.parametrize(
    ("label", "command"),
    [
        ("Python", [sys.executable]),
        ("Command line", ["bash"]),
    ],
)
def test_sample_buys_at_price_above_default_caps(
    devchain: DevChain, environment: Mapping[str, str], tmp_path: Path, label: str, command: list[str]
) -> None:
    price = Decimal("1.25")
    settings = devchain_settings(devchain, Settings(port=0), tmp_path).model_copy(update={"price": price})
    before = devchain.token_balance(PAYER.address)
    with run_with_examples(settings) as url:
        (tmp_path / "sample").write_text(find_sample(read_snapshot(url, None), "phishing-check", label).code)

        run_command([*command, "sample"], environment, tmp_path)

    assert before - devchain.token_balance(PAYER.address) == price * 1_000_000


def read_mcp_server(deployment: ApiSnapshot, label: str) -> dict[str, Any]:
    """Return the only server that the samples of all services configure."""
    codes = {find_sample(deployment, slug, label).code for slug in SLUGS}
    (code,) = codes
    server: dict[str, Any] = json.loads(code)["mcpServers"]["centgate"]
    return server


async def test_mcp_configuration_starts_paying_server(
    deployment: ApiSnapshot, devchain: DevChain, environment: Mapping[str, str]
) -> None:
    server = read_mcp_server(deployment, "MCP, paid from a wallet")
    before = devchain.token_balance(PAYER.address)
    given = {
        name: environment["CENTGATE_WALLET"] if each == WALLET_PLACEHOLDER else each
        for name, each in server["env"].items()
    }
    around = {name: environment[name] for name in ("PATH", "HOME")}
    parameters = StdioServerParameters(
        command=server["command"], args=server["args"], env={**around, **given}
    )

    with open(os.devnull, "w") as unread:  # noqa: ASYNC230, PTH123 - what the server says besides
        async with (
            stdio_client(parameters, errlog=unread) as (read, write),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            example = find_entry(deployment, "phishing-check").input_example
            answer = await session.call_tool("phishing-check", example)

    assert [tool.name for tool in listed.tools] == SLUGS
    assert not answer.is_error
    assert before - devchain.token_balance(PAYER.address) == CENT


async def test_mcp_over_http_configuration_lists_the_tools(deployment: ApiSnapshot) -> None:
    server = read_mcp_server(deployment, "MCP over HTTP")

    async with (
        streamable_http_client(server["url"]) as (read, write, *_),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        listed = await session.list_tools()

    assert server["type"] == "http"
    assert [tool.name for tool in listed.tools] == SLUGS
