"""Price, path, input and payee are the same in every interface."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from buyer import decode_header
from centgate_process import run_centgate

from centgate.catalog import all_services
from centgate.client._generated.methods import AsyncServices, Services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.json_schema import iterate_objects, without_field_rules
from centgate.schema import to_snake_case
from centgate.service import AnyService
from centgate.website.api_snapshot import read_snapshot
from centgate.website.files import build_files

pytestmark = pytest.mark.extended

SITE = "https://shop.example"
INTERFACES = {
    "price": {
        "GET /services",
        "GET /services/<slug>",
        "centgate services --json",
        "OpenAPI",
        "OpenAPI's example",
        "402 header",
        "402 body",
        "/.well-known/x402",
        "/.well-known/x402 of the website",
        "MCP tool",
        "MCP call",
        "llms.txt",
        "page as Markdown",
        "llms-full.txt",
        "page as HTML",
        "form of the page",
        "JSON-LD of the page",
        "typed method of Services",
        "typed method of AsyncServices",
    },
    "address": {
        "GET /services",
        "GET /services/<slug>",
        "centgate services --json",
        "OpenAPI",
        "402 header",
        "/.well-known/x402",
        "/.well-known/x402 of the website",
        "MCP call",
        "llms.txt",
        "page as Markdown",
        "llms-full.txt",
        "page as HTML",
        "JSON-LD of the page",
    },
    "payee": {
        "OpenAPI's example",
        "402 header",
        "402 body",
        "/.well-known/x402",
        "/.well-known/x402 of the website",
        "MCP call",
        "form of the page",
    },
    "schema": {"GET /services/<slug>", "centgate services --json", "OpenAPI", "Bazaar", "MCP tool"},
    "fields": {
        "GET /services/<slug>",
        "centgate services --json",
        "OpenAPI",
        "Bazaar",
        "MCP tool",
        "page as Markdown",
        "llms-full.txt",
        "page as HTML",
        "typed method of Services",
        "typed method of AsyncServices",
    },
}
"""Interfaces that publish each fact; a missing one fails the test."""

Json = dict[str, Any]


class Statement(NamedTuple):
    """One fact, as published by one interface."""

    interface: str
    fact: str
    value: Any


@dataclass(frozen=True)
class PublishedFacts:
    """Everything that the interfaces of one deployment publish about the services."""

    address: str
    catalogue: dict[str, Json]
    entries: dict[str, Json]
    command: list[Json]
    openapi: Json
    refusals: dict[str, tuple[Json, Json]]
    """The terms in the header of a 402 and the error in its body, by slug."""
    well_known: dict[str, Json]
    tools: dict[str, Json]
    calls: dict[str, Json]
    """Responses to unpaid tool calls, by slug."""
    site: dict[str, str]
    """The website's texts by path."""


@pytest.fixture(scope="session")
def published(reader: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> PublishedFacts:
    """The facts of one deployment, read from each of its interfaces."""
    address = str(reader.base_url).rstrip("/")
    listed = reader.get("/services").json()["services"]
    site = build_files(read_snapshot(address, SITE))
    return PublishedFacts(
        address=address,
        catalogue={each["slug"]: each for each in listed},
        entries={each["slug"]: reader.get(f"/services/{each['slug']}").json() for each in listed},
        command=_run_command(address, tmp_path_factory.mktemp("home")),
        openapi=reader.get("/openapi.json").json(),
        refusals={service.slug: _read_refusal(reader, service) for service in all_services()},
        well_known={each["slug"]: each for each in reader.get("/.well-known/x402").json()["products"]},
        tools={each["name"]: each for each in _call_mcp(reader, "tools/list", {})["tools"]},
        calls={service.slug: _call_tool(reader, service) for service in all_services()},
        site={
            path: file.content.decode()
            for path, file in site.items()
            if file.media_type.split("/")[0] not in ("image", "font")
        },
    )


def _run_command(address: str, home: Path) -> list[Json]:
    done = run_centgate(["services", "--api", address, "--json"], env={**os.environ, "HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _read_refusal(reader: httpx.Client, service: AnyService) -> tuple[Json, Json]:
    response = reader.post(service.path, json=service.input_example)
    return decode_header(response.headers["PAYMENT-REQUIRED"]), response.json()["error"]


def _call_mcp(reader: httpx.Client, method: str, params: Json) -> Json:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accepted = {"Accept": "application/json, text/event-stream"}
    return reader.post("/mcp", json=message, headers=accepted).json()["result"]


def _call_tool(reader: httpx.Client, service: AnyService) -> Json:
    return _call_mcp(reader, "tools/call", {"name": service.slug, "arguments": service.input_example})[
        "structuredContent"
    ]


def list_statements(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    """Yield every fact of a service from every interface."""
    for interface in (
        _read_catalogue,
        _read_openapi,
        _read_terms,
        _read_well_known,
        _read_mcp,
        _read_site,
        _read_client,
    ):
        yield from interface(published, service)


def _read_catalogue(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    slug = service.slug
    by_command = {each["slug"]: each for each in published.command}
    for interface, entry in (
        ("GET /services", published.catalogue[slug]),
        ("GET /services/<slug>", published.entries[slug]),
        ("centgate services --json", by_command[slug]),
    ):
        yield Statement(interface, "price", _parse_dollars(entry["price"]))
        yield Statement(interface, "price", Decimal(str(entry["priceUsd"])))
        yield Statement(interface, "address", published.address + entry["path"])
        if "inputSchema" in entry:
            yield from _read_input(interface, entry["inputSchema"])


def _read_openapi(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    (path, operation), *others = (
        (path, item["post"])
        for path, item in published.openapi["paths"].items()
        if item.get("post", {}).get("operationId") == service.slug.replace("-", "_")
    )
    assert not others
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    examples = published.openapi["components"]["responses"]["PaymentRequired"]["content"]["application/json"]
    example = examples["examples"]["payment_required"]["value"]["error"]
    yield Statement("OpenAPI", "price", Decimal(operation["x-payment-info"]["price"]["amount"]))
    yield Statement("OpenAPI", "address", published.openapi["servers"][0]["url"] + path)
    yield from _read_input("OpenAPI", _resolve_reference(body, published.openapi))
    yield from _read_requirements("OpenAPI's example", example["details"]["accepts"])


def _read_terms(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    offer, error = published.refusals[service.slug]
    bazaar = offer["extensions"]["bazaar"]["schema"]["properties"]["input"]["properties"]
    yield from _read_requirements("402 header", offer["accepts"])
    yield from _read_requirements("402 body", error["details"]["accepts"])
    yield Statement("402 header", "address", offer["resource"]["url"])
    yield from _read_input("Bazaar", bazaar["body"])


def _read_well_known(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    for interface, product in (
        ("/.well-known/x402", published.well_known[service.slug]),
        (
            "/.well-known/x402 of the website",
            next(
                each
                for each in json.loads(published.site["/.well-known/x402"])["products"]
                if each["slug"] == service.slug
            ),
        ),
    ):
        yield Statement(interface, "price", _parse_dollars(product["price"]))
        yield Statement(interface, "address", product["endpoint"])
        yield from _read_requirements(interface, product["accepts"])


def _read_mcp(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    tool, offer = published.tools[service.slug], published.calls[service.slug]
    yield from (Statement("MCP tool", "price", price) for price in _find_prices(tool["description"]))
    yield Statement("MCP call", "address", offer["resource"]["url"])
    yield from _read_requirements("MCP call", offer["accepts"])
    yield from _read_input("MCP tool", tool["inputSchema"])


def _read_site(published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    page = f"/services/{service.slug}"
    yield from _read_llms("llms.txt", published.site["/llms.txt"], published, service)
    yield from _read_markdown("page as Markdown", published.site[f"{page}.md"])
    yield from _read_markdown("llms-full.txt", _extract_chapter(published.site["/llms-full.txt"], service))
    yield from _read_html("page as HTML", published.site[page])


def _read_llms(
    interface: str, text: str, published: PublishedFacts, service: AnyService
) -> Iterator[Statement]:
    """Find a line that begins with a link to the service's page, and has path and price in one code span."""
    found = re.findall(rf"/services/{service.slug}\.md\).*?`POST (/\S+) (\$[0-9.]+)`", text)
    for path, price in found:
        yield Statement(interface, "address", published.address + path)
        yield Statement(interface, "price", _parse_dollars(price))


def _extract_chapter(text: str, service: AnyService) -> str:
    """Return the service's own part of the file of all pages."""
    _, _, rest = text.partition(f"\n# {service.title}\n")
    return rest.partition("\n# ")[0]


def _read_markdown(interface: str, text: str) -> Iterator[Statement]:
    prices = re.findall(r"^(\$[0-9.]+) a call", text, re.MULTILINE)
    (table,) = re.findall(r"^## (?:[^\n]+: )?Input$(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (yes|no) \|", table, re.MULTILINE)
    yield from (Statement(interface, "price", _parse_dollars(price)) for price in prices)
    yield from (
        Statement(interface, "address", url) for url in re.findall(r"^POST (http\S+)$", text, re.MULTILINE)
    )
    yield Statement(interface, "fields", dict(rows))


def _read_html(interface: str, text: str) -> Iterator[Statement]:
    main = text.partition("<main")[2]
    yield from (
        Statement(interface, "price", _parse_dollars(price))
        for price in re.findall(r">(\$[0-9.]+) a call", main)
    )
    yield from (
        Statement("form of the page", "price", Decimal(price))
        for price in re.findall(r"<dt>Amount</dt><dd>([0-9.]+) USDC</dd>", main)
    )
    called = re.findall(r"<dt>For</dt><dd>one POST to (http[^\s<]+)</dd>", main)
    called += re.findall(r"curl -s -D - -o /dev/null (http\S+)", main)
    yield from (Statement(interface, "address", url) for url in called)
    yield from (
        Statement("form of the page", "payee", each)
        for each in re.findall(r"<dt>Paid to</dt><dd>(0x[0-9a-fA-F]{40})</dd>", main)
    )
    linked: Json = json.loads(
        text.partition('<script type="application/ld+json">')[2].partition("</script>")[0]
    )
    (product,) = (each for each in linked["@graph"] if each["@type"] == "WebAPI")
    yield Statement("JSON-LD of the page", "price", Decimal(product["offers"]["price"]))
    yield Statement("JSON-LD of the page", "address", product["url"])
    table = main.partition('<h2 id="input">')[2].partition("</section>")[0]
    rows = re.findall(
        r'<li><code class="field-name">(\w+)</code> <span class="field-type">[^<]*</span>'
        r'( <span class="[^"]*">required</span>)?',
        table,
    )
    yield Statement(interface, "fields", {name: "yes" if mark else "no" for name, mark in rows})


def _read_client(_published: PublishedFacts, service: AnyService) -> Iterator[Statement]:
    name = service.slug.replace("-", "_")
    for kind in (Services, AsyncServices):
        method = getattr(kind, name)
        interface = f"typed method of {kind.__name__}"
        parameters = list(inspect.signature(method).parameters.values())[1:]
        needed = {each.name: "yes" if each.default is each.empty else "no" for each in parameters}
        wire = {to_snake_case(field): field for field in service.input_schema(None)["properties"]}
        yield Statement(interface, "fields", {wire[each]: needed[each] for each in needed})
        yield from (Statement(interface, "price", price) for price in _find_prices(method.__doc__))


def _read_requirements(interface: str, accepts: list[Json]) -> Iterator[Statement]:
    """Yield price and payee of x402's requirements; USDC has six decimals."""
    for each in accepts:
        yield Statement(interface, "price", Decimal(each["amount"]).scaleb(-6))
        yield Statement(interface, "payee", each["payTo"])


def _read_input(interface: str, schema: Json) -> Iterator[Statement]:
    """Yield the schema and its fields, without prose and field rules, which not every interface has."""
    bare = without_field_rules(schema)
    for node in iterate_objects(bare):
        if isinstance(node.get("description"), str):
            del node["description"]
    bare.pop("$schema", None)
    yield Statement(interface, "schema", bare)
    yield Statement(interface, "fields", {name: _is_required(name, bare) for name in bare["properties"]})


def _is_required(field: str, schema: Json) -> str:
    return "yes" if field in schema.get("required", ()) else "no"


def _resolve_reference(schema: Json, document: Json) -> Json:
    """Return the referenced component, which must contain no references."""
    name = schema["$ref"].rpartition("/")[2]
    component: Json = document["components"]["schemas"][name]
    assert "$ref" not in json.dumps(component)
    return component


def _parse_dollars(text: str) -> Decimal:
    assert text.startswith("$")
    return Decimal(text[1:])


def _find_prices(text: str) -> list[Decimal]:
    """Return every amount of dollars in a text."""
    return [Decimal(each) for each in re.findall(r"\$([0-9]+\.[0-9]+)", text)]


def _normalize(value: Any) -> str:
    """Return the canonical spelling of a value."""
    return str(value.normalize()) if isinstance(value, Decimal) else json.dumps(value, sort_keys=True)


def find_disagreements(found: list[Statement]) -> dict[str, dict[str, list[str]]]:
    """Return the facts with more than one value: each value, with its interfaces."""
    ways: dict[str, dict[str, list[str]]] = {}
    for interface, fact, value in found:
        ways.setdefault(fact, {}).setdefault(_normalize(value), []).append(interface)
    return {fact: each for fact, each in ways.items() if len(each) > 1}


each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@each_service
def test_every_interface_states_same_facts(published: PublishedFacts, service: AnyService) -> None:
    found = list(list_statements(published, service))

    assert find_disagreements(found) == {}
    assert {
        fact: {each.interface for each in found if each.fact == fact} for fact in INTERFACES
    } == INTERFACES


@each_service
def test_stated_facts_are_those_of_service(published: PublishedFacts, service: AnyService) -> None:
    found = [(each.fact, each.value) for each in list_statements(published, service)]

    assert ("price", service.price) in found
    assert ("address", published.address + service.path) in found
    assert ("payee", DEFAULT_PAYEE) in found
    schema = service.input_schema(84532)
    assert ("fields", {name: _is_required(name, schema) for name in schema["properties"]}) in found


def _replace_words(words: dict[str, str]) -> Callable[[Any], Any]:
    """Return a function that replaces words in what an interface states."""

    def change(told_: Any) -> Any:
        text = json.dumps(told_)
        for old, new in words.items():
            assert old in text
            text = text.replace(old, new)
        return json.loads(text)

    return change


@pytest.mark.parametrize(
    "interface", ["catalogue", "entries", "command", "openapi", "well_known", "tools", "calls", "site"]
)
def test_wrong_interface_is_detected(published: PublishedFacts, interface: str) -> None:
    """Each interface in turn states another price, or another field, than all the others."""
    service = all_services()[0]
    lie = {"tokenAddress": "tokenAdress"} if interface in ("entries", "tools") else {"0.01": "0.02"}
    if interface in ("calls", "well_known"):
        lie = {'"10000"': '"20000"'}
    lying = replace(published, **{interface: _replace_words(lie)(getattr(published, interface))})

    assert find_disagreements(list(list_statements(lying, service)))


def test_other_payee_is_detected(published: PublishedFacts) -> None:
    service = all_services()[0]
    offer, error = published.refusals[service.slug]
    other = _replace_words({offer["accepts"][0]["payTo"]: "0x" + "1" * 40})(offer)
    lying = replace(published, refusals={**published.refusals, service.slug: (other, error)})

    assert set(find_disagreements(list(list_statements(lying, service)))) == {"payee"}
