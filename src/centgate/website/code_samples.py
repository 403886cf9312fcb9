"""Code samples that call a service from a shell, Python, TypeScript and an agent; they run unchanged.

For a service whose price is above the default caps of clients, they raise those caps to the price shown.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from shlex import quote
from typing import Any, cast

from msgspec import Struct

from centgate.client.caps import DEFAULT_CAPS
from centgate.client.catalog import ServiceDetail
from centgate.client.shell_command import format_command
from centgate.schema import to_camel_case, to_snake_case
from centgate.signing.assets import NETWORK_ID
from centgate.website.api_snapshot import ApiSnapshot, parse_price

WALLET_PLACEHOLDER = "/path/to/wallet"
"""Placeholder for the path of the reader's wallet file."""


class CodeSample(Struct, frozen=True):
    """A code sample."""

    label: str
    language: str
    """Language of the code block: `sh`, `python`, `typescript`, `json`."""
    code: str
    """Ends with a line break."""


def build_samples(service: ServiceDetail, deployment: ApiSnapshot) -> tuple[CodeSample, ...]:
    """Return samples of the service's example for every way to call it on this deployment."""
    makers: tuple[Callable[[ServiceDetail, str], CodeSample], ...] = (
        _curl_sample,
        _python_sample,
        _typescript_sample,
        _shell_sample,
        partial(_mcp_stdio_sample, caps=_raise_caps(max(deployment.prices))),
        _mcp_http_sample,
    )
    return tuple(make(service, deployment.api) for make in makers)


def _raise_caps(price: Decimal) -> dict[str, Decimal]:
    """Return the caps, by their names in `Caps`, that must be raised to pay a price once."""
    defaults = {"per_call": DEFAULT_CAPS.per_call, "total": DEFAULT_CAPS.total}
    return {name: price for name, cap in defaults.items() if price > cap}


def _cap_variables(caps: Mapping[str, Decimal]) -> dict[str, str]:
    return {f"CENTGATE_CAP_{name.upper()}": str(cap) for name, cap in caps.items()}


def _curl_sample(service: ServiceDetail, api: str) -> CodeSample:
    """Return a request without payment that prints the terms."""
    code = f"""\
# a request without payment: the response is 402, and its header contains the terms
headers=$(curl -s -D - -o /dev/null {quote(api + service.path)} \\
  -H 'Content-Type: application/json' \\
  -d {quote(json.dumps(service.input_example))} | tr -d '\\r')
echo "$headers" | head -n 1
echo "$headers" | grep -i '^payment-required:' | cut -d ' ' -f 2 | base64 -d
"""
    return CodeSample("curl", "sh", code)


def _python_sample(service: ServiceDetail, api: str) -> CodeSample:
    call = _format_call(_method_name(service), service.input_example)
    caps = ", ".join(f'{name}=Decimal("{cap}")' for name, cap in _raise_caps(parse_price(service)).items())
    arguments = f"wallet=wallet{_network_argument(service)}{f', caps=Caps({caps})' if caps else ''}"
    decimal, names = ("from decimal import Decimal\n", "Caps, Centgate") if caps else ("", "Centgate")
    code = f"""\
# pip install centgate
import os
{decimal}
from centgate.client import {names}, Wallet

wallet = Wallet.from_file(os.environ["CENTGATE_WALLET"])
with Centgate({format_literal(api)}, {arguments}) as client:
    answer = client.{call}

print(answer.data.{to_snake_case(_informative_field(service))})
if answer.receipt:
    print("paid in", answer.receipt.transaction)
"""
    return CodeSample("Python", "python", code)


def _typescript_sample(service: ServiceDetail, api: str) -> CodeSample:
    """Return a paid call with the package `centgate`; plain JavaScript, so Node runs it too."""
    method, request = to_camel_case(_method_name(service)), json.dumps(service.input_example, indent=2)
    network = _payment_network(service)
    networks = f"\n  networks: {json.dumps([network])}," if network else ""
    limits = ", ".join(
        f'{to_camel_case(name)}: "{cap}"' for name, cap in _raise_caps(parse_price(service)).items()
    )
    caps = f"\n  caps: {{ {limits} }}," if limits else ""
    code = f"""\
// npm install centgate viem
import {{ readFileSync }} from "node:fs";
import {{ Centgate }} from "centgate";
import {{ privateKeyToAccount }} from "viem/accounts";

const key = readFileSync(process.env.CENTGATE_WALLET ?? "wallet", "utf8").trim().replace("0x", "");
const client = new Centgate({json.dumps(api)}, {{
  wallet: privateKeyToAccount(`0x${{key}}`),{networks}{caps}
}});

const answer = await client.{method}({request});

console.log(answer.data.{_informative_field(service)});
console.log("paid in", answer.transaction);
"""
    return CodeSample("TypeScript", "typescript", code)


def _shell_sample(service: ServiceDetail, api: str) -> CodeSample:
    caps = _cap_variables(_raise_caps(parse_price(service)))
    variables = "".join(f"{name}={value} " for name, value in caps.items())
    call = variables + format_command(service.slug, service.input_example)
    options = shlex.join(["--api", api, *network_option(service)])
    return CodeSample("Command line", "sh", f"{call} \\\n  {options}\n")


def _mcp_stdio_sample(service: ServiceDetail, api: str, *, caps: Mapping[str, Decimal]) -> CodeSample:
    """Return the configuration of a local MCP server that pays from a wallet within caps."""
    arguments = ["mcp", "--api", api, *network_option(service)]
    environment = {"CENTGATE_WALLET": WALLET_PLACEHOLDER, **_cap_variables(caps)}
    server = {"command": "centgate", "args": arguments, "env": environment}
    return CodeSample("MCP, paid from a wallet", "json", _mcp_configuration(server))


def _mcp_http_sample(_service: ServiceDetail, api: str) -> CodeSample:
    """Return the configuration for MCP clients that pay by x402 themselves."""
    return CodeSample("MCP over HTTP", "json", _mcp_configuration({"type": "http", "url": f"{api}/mcp"}))


def network_option(service: ServiceDetail) -> list[str]:
    """Return the option that allows the service's payment network; empty if it has no valid network."""
    return ["--network", network] if (network := _payment_network(service)) else []


def _network_argument(service: ServiceDetail) -> str:
    """Return the client's argument that allows the service's payment network, or ""."""
    return f", networks={format_literal([network])}" if (network := _payment_network(service)) else ""


def _payment_network(service: ServiceDetail) -> str | None:
    """Return the service's payment network; None if it is not a valid identifier."""
    return service.payment.network if re.fullmatch(NETWORK_ID, service.payment.network) else None


def _mcp_configuration(server: dict[str, Any]) -> str:
    return json.dumps({"mcpServers": {"centgate": server}}, indent=2) + "\n"


def _informative_field(service: ServiceDetail) -> str:
    """Return the first output field whose value does not repeat the request."""
    request = json.dumps(service.input_example).lower()
    output = service.output_example
    fields = (name for name in service.output_fields if str(output.get(name)).lower() not in request)
    return next(fields, service.output_fields[0])


def _method_name(service: ServiceDetail) -> str:
    """Return the name of the client's method for a service."""
    return service.slug.replace("-", "_")


def _format_call(method: str, arguments: dict[str, Any]) -> str:
    """Format a call of a client's method, on one line if it fits."""
    keywords = [f"{to_snake_case(name)}={format_literal(value)}" for name, value in arguments.items()]
    line = f"{method}({', '.join(keywords)})"
    if len(line) <= 70:
        return line
    lines = "".join(f"        {each},\n" for each in keywords)
    return f"{method}(\n{lines}    )"


def format_literal(value: Any) -> str:
    """Format JSON as a Python literal, in double quotes if that needs no escapes."""
    if isinstance(value, dict):
        members = cast(dict[str, Any], value).items()
        return f"{{{', '.join(f'{format_literal(name)}: {format_literal(each)}' for name, each in members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(format_literal(each) for each in cast(list[Any], value))}]"
    if isinstance(value, str) and value.isascii() and value.isprintable() and not {'"', "\\"} & set(value):
        return f'"{value}"'
    return ascii(value)
