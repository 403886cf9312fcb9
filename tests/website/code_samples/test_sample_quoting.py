"""Quoting in code samples: any example and any URL means the same in every language."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from centgate.catalog import all_services, service_details
from centgate.cli.buyer.arguments import parse_pairs
from centgate.client.catalog import ServiceDetail
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.json_schema import parse_schema
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.code_samples import build_samples

NASTY = (
    "'; touch pwned; '",
    '"; touch pwned; "',
    "$(touch pwned)",
    "`touch pwned`",
    "${HOME} $HOME",
    "back\\slash \\' \\\" \\n",
    "a\nb\r\tc",
    "//comment /* */ # -- --api=x",
    "@/etc/passwd",
    "ünï © \u202e \u2028 \U0001f600",
    "</script>```",
    "%s {0} !! *?[]~",
    "=,=",
)
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=40)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SERVICES = {service.slug: service for service in all_services()}
SEARCH = ServiceDetail.model_validate(
    service_details(SERVICES["crawler-search"], Settings(pay_to=DEFAULT_PAYEE))
)
PLAIN = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}
API = "http://127.0.0.1:8402"


def build_codes(query: str, api: str = API) -> dict[str, str]:
    """Return the samples of a search with this query, by label."""
    service = SEARCH.model_copy(update={"input_example": {"query": query, "limit": 3}})
    return {snippet.label: snippet.code for snippet in build_samples(service, build_snapshot(service, api))}


def build_snapshot(service: ServiceDetail, api: str = API) -> ApiSnapshot:
    """Return the snapshot of an API with one service."""
    return ApiSnapshot(
        api=api,
        site=api,
        services=(service,),
        terms=None,
        health=None,
        openapi={},
        x402={},
        read_at=datetime.now(UTC),
    )


def parse_shell(code: str) -> list[list[str]]:
    """Return each command with its arguments, as bash reads them."""
    telling = "tell() { printf '%s\\0' \"$@\" >&2; printf '\\n\\0' >&2; }; curl() { tell curl \"$@\"; }; "
    done = subprocess.run(
        ["bash", "-c", f'{telling} centgate() {{ tell centgate "$@"; }}; {code}'],
        capture_output=True,
        timeout=30,
        check=False,
    )
    commands = done.stderr.decode().split("\0\n\0")[:-1]
    return [command.split("\0") for command in commands]


def try_hostile_texts(function: Any) -> Any:
    """Test a property with arbitrary text and with all known hostile examples."""
    for text in NASTY:
        function = example(text)(function)
    return FEW(given(TEXT)(function))


@pytest.mark.extended
@try_hostile_texts
def test_curl_sends_example(query: str) -> None:
    (command,) = parse_shell(build_codes(query)["curl"])

    assert json.loads(command[command.index("-d") + 1]) == {"query": query, "limit": 3}
    assert not command[command.index("-d") + 1].startswith("@")
    assert command.count("-H") == 1


@pytest.mark.extended
@try_hostile_texts
def test_command_line_passes_the_example(query: str) -> None:
    (command,) = parse_shell(build_codes(query)["Command line"])

    options = ["--api", API, "--network", SEARCH.payment.network]
    assert command == ["centgate", "call", "crawler-search", f"query={query}", "limit=3", *options]
    assert parse_pairs(command[3:5], parse_schema(PLAIN)) == {"query": query, "limit": 3}


@pytest.mark.extended
@try_hostile_texts
def test_python_passes_the_example(query: str) -> None:
    tree = ast.parse(build_codes(query)["Python"])

    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "client.crawler_search"
    )
    assert {each.arg: ast.literal_eval(each.value) for each in call.keywords} == {"query": query, "limit": 3}


@try_hostile_texts
def test_typescript_sends_the_example(query: str) -> None:
    code = build_codes(query)["TypeScript"]

    before, _, rest = code.partition("client.crawlerSearch(")
    body, end = json.JSONDecoder().raw_decode(rest)
    assert body == {"query": query, "limit": 3}
    assert "query" not in before + rest[end:]
    assert rest[end:].startswith(");\n")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on this machine")
def test_node_reads_hostile_text_unchanged() -> None:
    bodies = [
        build_codes(text)["TypeScript"].partition("client.crawlerSearch(")[2].partition("\n});")[0] + "}"
        for text in NASTY
    ]
    program = f"console.log(JSON.stringify([{', '.join(bodies)}].map((each) => each.query)))"

    done = subprocess.run(
        ["node", "--input-type=module"], input=program, capture_output=True, text=True, timeout=60, check=True
    )

    assert json.loads(done.stdout) == list(NASTY)


@pytest.mark.parametrize("api", ["https://x'; touch pwned; '", 'https://x"$(touch pwned)`touch pwned`\\'])
def test_url_is_never_code(api: str) -> None:
    found = build_codes("x", api)

    (command,) = parse_shell(found["curl"])
    (called,) = parse_shell(found["Command line"])
    assert api + SEARCH.path in command
    assert called[called.index("--api") + 1] == api
    assert api in [
        node.value for node in ast.walk(ast.parse(found["Python"])) if isinstance(node, ast.Constant)
    ]
    assert f"new Centgate({json.dumps(api)}, " in found["TypeScript"]
    assert json.loads(found["MCP, paid from a wallet"])["mcpServers"]["centgate"]["args"] == [
        "mcp",
        "--api",
        api,
        "--network",
        SEARCH.payment.network,
    ]
    assert json.loads(found["MCP over HTTP"])["mcpServers"]["centgate"]["url"] == f"{api}/mcp"


def test_network_of_the_payment_is_named() -> None:
    payment = SEARCH.payment.model_copy(update={"network": "eip155:8453"})
    service = SEARCH.model_copy(update={"payment": payment})
    found = {each.label: each.code for each in build_samples(service, build_snapshot(service))}

    (called,) = parse_shell(found["Command line"])
    (client,) = (
        node
        for node in ast.walk(ast.parse(found["Python"]))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Centgate"
    )
    named = {each.arg: each.value for each in client.keywords}
    server = json.loads(found["MCP, paid from a wallet"])["mcpServers"]["centgate"]

    assert called[-2:] == server["args"][-2:] == ["--network", "eip155:8453"]
    assert ast.literal_eval(named["networks"]) == ["eip155:8453"]


@pytest.mark.parametrize("network", ["", "base", "x'; touch pwned; '", 'x"$(touch pwned)`'])
def test_invalid_network_is_not_named(network: str) -> None:
    payment = SEARCH.payment.model_copy(update={"network": network})
    service = SEARCH.model_copy(update={"payment": payment})

    found = {each.label: each.code for each in build_samples(service, build_snapshot(service))}

    assert "network" not in found["Python"] + found["Command line"] + found["MCP, paid from a wallet"]


@try_hostile_texts
def test_sample_never_closes_its_code_block(query: str) -> None:
    """A Markdown fence ends at a line of its own."""
    for code in build_codes(query).values():
        assert not [line for line in code.splitlines() if line.lstrip().startswith(("```", "~~~"))]


@pytest.mark.parametrize("slug", SERVICES)
def test_command_line_is_parsed_back_by_the_command(slug: str) -> None:
    service = SERVICES[slug]
    entry = ServiceDetail.model_validate(service_details(service, Settings(pay_to=DEFAULT_PAYEE)))
    code = {each.label: each.code for each in build_samples(entry, build_snapshot(entry))}["Command line"]

    _, _, _, *pairs, _, _, _, _ = shlex.split(code.replace("\\\n", ""))

    assert parse_pairs(pairs, parse_schema(entry.input_schema)) == service.input_example
