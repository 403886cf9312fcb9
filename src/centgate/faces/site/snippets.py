"""How a service is called from a shell, Python, TypeScript and an agent: code that runs as it stands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from typing import Any, cast

from centgate.client.catalog import Entry
from centgate.client.shell.arguments import command
from centgate.faces.site.deployment import Deployment
from centgate.faces.typed_client import snake

WALLET = "/path/to/wallet"
"""Where the key file of the reader lies; to be replaced."""
_NETWORK = re.compile(r"eip155:[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of code that can be copied."""

    label: str
    language: str
    """What a code block is marked with: `sh`, `python`, `typescript`, `json`."""
    code: str
    """It ends with a line break."""


def snippets(service: Entry, deployment: Deployment) -> tuple[Snippet, ...]:
    """The service's own example, in every way it can be called on this deployment."""
    makers: tuple[Callable[[Entry, str], Snippet], ...] = (
        _curl,
        _python,
        _typescript,
        _command_line,
        _mcp_stdio,
        _mcp_http,
    )
    return tuple(make(service, deployment.api) for make in makers)


def _curl(service: Entry, api: str) -> Snippet:
    """Asks without paying, and shows the terms."""
    code = f"""\
# asks without paying: the answer is 402, its header holds the terms
headers=$(curl -s -D - -o /dev/null {quote(api + service.path)} \\
  -H 'Content-Type: application/json' \\
  -d {quote(json.dumps(service.input_example))} | tr -d '\\r')
echo "$headers" | head -n 1
echo "$headers" | grep -i '^payment-required:' | cut -d ' ' -f 2 | base64 -d
"""
    return Snippet("curl", "sh", code)


def _python(service: Entry, api: str) -> Snippet:
    call = _call(_method(service), service.input_example)
    code = f"""\
# pip install centgate
import os

from centgate.client import Centgate, Wallet

wallet = Wallet.from_file(os.environ["CENTGATE_WALLET"])
with Centgate({_literal(api)}, wallet=wallet{_named(service)}) as client:
    answer = client.{call}

print(answer.data.{snake(_telling(service))})
if answer.receipt:
    print("paid in", answer.receipt.transaction)
"""
    return Snippet("Python", "python", code)


def _typescript(service: Entry, api: str) -> Snippet:
    """As the documentation of `@x402/fetch` pays; nothing in it is TypeScript alone, so Node runs it too."""
    body = json.dumps(service.input_example, indent=2).replace("\n", "\n  ")
    code = f"""\
// npm install @x402/fetch @x402/evm viem
import {{ wrapFetchWithPayment, x402Client, x402HTTPClient }} from "@x402/fetch";
import {{ ExactEvmScheme }} from "@x402/evm/exact/client";
import {{ privateKeyToAccount }} from "viem/accounts";

const key = (process.env.CENTGATE_WALLET_KEY ?? "").replace("0x", "");
const client = new x402Client();
client.register({json.dumps(service.payment.network)}, new ExactEvmScheme(privateKeyToAccount(`0x${{key}}`)));
const pay = wrapFetchWithPayment(fetch, client);

const response = await pay({json.dumps(api + service.path)}, {{
  method: "POST",
  headers: {{ "Content-Type": "application/json" }},
  body: JSON.stringify({body}),
}});
const answer = await response.json();
if (!response.ok) throw new Error(JSON.stringify(answer.error));
const receipt = new x402HTTPClient(client).getPaymentSettleResponse((name) => response.headers.get(name));

console.log(answer.data.{_telling(service)});
console.log("paid in", receipt.transaction);
"""
    return Snippet("TypeScript", "typescript", code)


def _command_line(service: Entry, api: str) -> Snippet:
    called = command(service.slug, service.input_example)
    options = shlex.join(["--api", api, *network_option(service)])
    return Snippet("Command line", "sh", f"{called} \\\n  {options}\n")


def _mcp_stdio(service: Entry, api: str) -> Snippet:
    """A server of the reader's own, which pays from a wallet under caps."""
    arguments = ["mcp", "--api", api, *network_option(service)]
    server = {"command": "centgate", "args": arguments, "env": {"CENTGATE_WALLET": WALLET}}
    return Snippet("MCP, paid from a wallet", "json", _configuration(server))


def _mcp_http(_service: Entry, api: str) -> Snippet:
    """For clients that pay by x402 themselves."""
    return Snippet("MCP over HTTP", "json", _configuration({"type": "http", "url": f"{api}/mcp"}))


def network_option(service: Entry) -> list[str]:
    """Return the option that allows the network that a service is paid on; empty where none is told."""
    return ["--network", network] if (network := _network(service)) else []


def _named(service: Entry) -> str:
    """Return the argument of a client that allows the network that a service is paid on."""
    return f", networks={_literal([network])}" if (network := _network(service)) else ""


def _network(service: Entry) -> str | None:
    """Return the network that a service is paid on; None for what is not the name of one."""
    return service.payment.network if _NETWORK.fullmatch(service.payment.network) else None


def _configuration(server: dict[str, Any]) -> str:
    return json.dumps({"mcpServers": {"centgate": server}}, indent=2) + "\n"


def _telling(service: Entry) -> str:
    """The first field of an answer that does not just say the question again."""
    asked = json.dumps(service.input_example).lower()
    said = service.output_example
    fields = (name for name in service.output_fields if str(said.get(name)).lower() not in asked)
    return next(fields, service.output_fields[0])


def _method(service: Entry) -> str:
    """The client's method for a service."""
    return service.slug.replace("-", "_")


def _call(method: str, arguments: dict[str, Any]) -> str:
    """A call of a client's method, on one line where it fits."""
    given = [f"{snake(name)}={_literal(value)}" for name, value in arguments.items()]
    line = f"{method}({', '.join(given)})"
    if len(line) <= 70:
        return line
    lines = "".join(f"        {each},\n" for each in given)
    return f"{method}(\n{lines}    )"


def _literal(value: Any) -> str:
    """JSON as Python writes it; in double quotes where that needs no escapes."""
    if isinstance(value, list):
        return f"[{', '.join(_literal(each) for each in cast(list[Any], value))}]"
    if isinstance(value, str) and value.isascii() and value.isprintable() and not {'"', "\\"} & set(value):
        return f'"{value}"'
    return ascii(value)
