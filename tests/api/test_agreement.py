"""Price, path, input and payee are the same wherever they are told."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from buyer import decode_header

from centgate.catalog import all_services
from centgate.client._generated.methods import AsyncServices, Services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.json_schema import iterate_objects, without_field_rules
from centgate.schema import to_snake_case
from centgate.service import AnyService
from centgate.website.api_snapshot import read_snapshot
from centgate.website.files import build_files

SITE = "https://shop.example"
FACES = {
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


class Told(NamedTuple):
    """One fact, as one face tells it."""

    face: str
    fact: str
    value: Any


@dataclass(frozen=True)
class World:
    """Everything that is told of the services, by the faces of one deployment."""

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
def world(reader: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The faces of one deployment, each asked in its own way."""
    address = str(reader.base_url).rstrip("/")
    listed = reader.get("/services").json()["services"]
    site = build_files(read_snapshot(address, SITE))
    return World(
        address=address,
        catalogue={each["slug"]: each for each in listed},
        entries={each["slug"]: reader.get(f"/services/{each['slug']}").json() for each in listed},
        command=_command(address, tmp_path_factory.mktemp("home")),
        openapi=reader.get("/openapi.json").json(),
        refusals={service.slug: _refusal(reader, service) for service in all_services()},
        well_known={each["slug"]: each for each in reader.get("/.well-known/x402").json()["products"]},
        tools={each["name"]: each for each in _mcp(reader, "tools/list", {})["tools"]},
        calls={service.slug: _called(reader, service) for service in all_services()},
        site={
            path: file.content.decode()
            for path, file in site.items()
            if file.media_type.split("/")[0] not in ("image", "font")
        },
    )


def _command(address: str, home: Path) -> list[Json]:
    command = [sys.executable, "-m", "centgate", "services", "--api", address, "--json"]
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _refusal(reader: httpx.Client, service: AnyService) -> tuple[Json, Json]:
    response = reader.post(service.path, json=service.input_example)
    return decode_header(response.headers["PAYMENT-REQUIRED"]), response.json()["error"]


def _mcp(reader: httpx.Client, method: str, params: Json) -> Json:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accepted = {"Accept": "application/json, text/event-stream"}
    return reader.post("/mcp", json=message, headers=accepted).json()["result"]


def _called(reader: httpx.Client, service: AnyService) -> Json:
    return _mcp(reader, "tools/call", {"name": service.slug, "arguments": service.input_example})[
        "structuredContent"
    ]


def told(world: World, service: AnyService) -> Iterator[Told]:
    """Every fact of a service, by every face."""
    for face in (_by_catalogue, _by_openapi, _by_terms, _by_well_known, _by_mcp, _by_site, _by_client):
        yield from face(world, service)


def _by_catalogue(world: World, service: AnyService) -> Iterator[Told]:
    slug = service.slug
    by_command = {each["slug"]: each for each in world.command}
    for face, entry in (
        ("GET /services", world.catalogue[slug]),
        ("GET /services/<slug>", world.entries[slug]),
        ("centgate services --json", by_command[slug]),
    ):
        yield Told(face, "price", _dollars(entry["price"]))
        yield Told(face, "price", Decimal(str(entry["priceUsd"])))
        yield Told(face, "address", world.address + entry["path"])
        if "inputSchema" in entry:
            yield from _input(face, entry["inputSchema"])


def _by_openapi(world: World, service: AnyService) -> Iterator[Told]:
    (path, operation), *others = (
        (path, item["post"])
        for path, item in world.openapi["paths"].items()
        if item.get("post", {}).get("operationId") == service.slug.replace("-", "_")
    )
    assert not others
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    examples = world.openapi["components"]["responses"]["PaymentRequired"]["content"]["application/json"]
    example = examples["examples"]["payment_required"]["value"]["error"]
    yield Told("OpenAPI", "price", Decimal(operation["x-payment-info"]["price"]["amount"]))
    yield Told("OpenAPI", "address", world.openapi["servers"][0]["url"] + path)
    yield from _input("OpenAPI", _inlined(body, world.openapi))
    yield from _asked("OpenAPI's example", example["details"]["accepts"])


def _by_terms(world: World, service: AnyService) -> Iterator[Told]:
    offer, error = world.refusals[service.slug]
    bazaar = offer["extensions"]["bazaar"]["schema"]["properties"]["input"]["properties"]
    yield from _asked("402 header", offer["accepts"])
    yield from _asked("402 body", error["details"]["accepts"])
    yield Told("402 header", "address", offer["resource"]["url"])
    yield from _input("Bazaar", bazaar["body"])


def _by_well_known(world: World, service: AnyService) -> Iterator[Told]:
    for face, product in (
        ("/.well-known/x402", world.well_known[service.slug]),
        (
            "/.well-known/x402 of the website",
            next(
                each
                for each in json.loads(world.site["/.well-known/x402"])["products"]
                if each["slug"] == service.slug
            ),
        ),
    ):
        yield Told(face, "price", _dollars(product["price"]))
        yield Told(face, "address", product["endpoint"])
        yield from _asked(face, product["accepts"])


def _by_mcp(world: World, service: AnyService) -> Iterator[Told]:
    tool, offer = world.tools[service.slug], world.calls[service.slug]
    yield from (Told("MCP tool", "price", price) for price in _prices(tool["description"]))
    yield Told("MCP call", "address", offer["resource"]["url"])
    yield from _asked("MCP call", offer["accepts"])
    yield from _input("MCP tool", tool["inputSchema"])


def _by_site(world: World, service: AnyService) -> Iterator[Told]:
    page = f"/services/{service.slug}"
    yield from _of_llms("llms.txt", world.site["/llms.txt"], world, service)
    yield from _of_markdown("page as Markdown", world.site[f"{page}.md"])
    yield from _of_markdown("llms-full.txt", _chapter(world.site["/llms-full.txt"], service))
    yield from _of_html("page as HTML", world.site[page])


def _of_llms(face: str, text: str, world: World, service: AnyService) -> Iterator[Told]:
    """A line that begins with a link to the service's page, and names path and price in one code span."""
    found = re.findall(rf"/services/{service.slug}\.md\).*?`POST (/\S+) (\$[0-9.]+)`", text)
    for path, price in found:
        yield Told(face, "address", world.address + path)
        yield Told(face, "price", _dollars(price))


def _chapter(text: str, service: AnyService) -> str:
    """The service's own part of the file of all pages."""
    _, _, rest = text.partition(f"\n# {service.title}\n")
    return rest.partition("\n# ")[0]


def _of_markdown(face: str, text: str) -> Iterator[Told]:
    prices = re.findall(r"^(\$[0-9.]+) a call", text, re.MULTILINE)
    (table,) = re.findall(r"^## (?:[^\n]+: )?Input$(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (yes|no) \|", table, re.MULTILINE)
    yield from (Told(face, "price", _dollars(price)) for price in prices)
    yield from (Told(face, "address", url) for url in re.findall(r"^POST (http\S+)$", text, re.MULTILINE))
    yield Told(face, "fields", dict(rows))


def _of_html(face: str, text: str) -> Iterator[Told]:
    main = text.partition("<main")[2]
    yield from (Told(face, "price", _dollars(price)) for price in re.findall(r">(\$[0-9.]+) a call", main))
    yield from (
        Told("form of the page", "price", Decimal(price))
        for price in re.findall(r"<dt>Amount</dt><dd>([0-9.]+) USDC</dd>", main)
    )
    called = re.findall(r"<dt>For</dt><dd>one POST to (http[^\s<]+)</dd>", main)
    called += re.findall(r"curl -s -D - -o /dev/null (http\S+)", main)
    yield from (Told(face, "address", url) for url in called)
    yield from (
        Told("form of the page", "payee", each)
        for each in re.findall(r"<dt>Paid to</dt><dd>(0x[0-9a-fA-F]{40})</dd>", main)
    )
    linked: Json = json.loads(
        text.partition('<script type="application/ld+json">')[2].partition("</script>")[0]
    )
    (product,) = (each for each in linked["@graph"] if each["@type"] == "WebAPI")
    yield Told("JSON-LD of the page", "price", Decimal(product["offers"]["price"]))
    yield Told("JSON-LD of the page", "address", product["url"])
    table = main.partition('<h2 id="input">')[2].partition("</section>")[0]
    rows = re.findall(
        r'<li><code class="field-name">(\w+)</code> <span class="field-type">[^<]*</span>'
        r'( <span class="[^"]*">required</span>)?',
        table,
    )
    yield Told(face, "fields", {name: "yes" if mark else "no" for name, mark in rows})


def _by_client(_world: World, service: AnyService) -> Iterator[Told]:
    name = service.slug.replace("-", "_")
    for kind in (Services, AsyncServices):
        method = getattr(kind, name)
        face = f"typed method of {kind.__name__}"
        parameters = list(inspect.signature(method).parameters.values())[1:]
        needed = {each.name: "yes" if each.default is each.empty else "no" for each in parameters}
        wire = {to_snake_case(field): field for field in service.input_schema(None)["properties"]}
        yield Told(face, "fields", {wire[each]: needed[each] for each in needed})
        yield from (Told(face, "price", price) for price in _prices(method.__doc__))


def _asked(face: str, accepts: list[Json]) -> Iterator[Told]:
    """Price and payee of x402's requirements; USDC has six decimals."""
    for each in accepts:
        yield Told(face, "price", Decimal(each["amount"]).scaleb(-6))
        yield Told(face, "payee", each["payTo"])


def _input(face: str, schema: Json) -> Iterator[Told]:
    """The schema without its prose and hidden rules of fields, which not every face has; its fields."""
    bare = without_field_rules(schema)
    for node in iterate_objects(bare):
        if isinstance(node.get("description"), str):
            del node["description"]
    bare.pop("$schema", None)
    yield Told(face, "schema", bare)
    yield Told(face, "fields", {name: _needed(name, bare) for name in bare["properties"]})


def _needed(field: str, schema: Json) -> str:
    return "yes" if field in schema.get("required", ()) else "no"


def _inlined(schema: Json, document: Json) -> Json:
    """A component where it is referred to; what it refers to itself is none of the requests' doing."""
    name = schema["$ref"].rpartition("/")[2]
    component: Json = document["components"]["schemas"][name]
    assert "$ref" not in json.dumps(component)
    return component


def _dollars(text: str) -> Decimal:
    assert text.startswith("$")
    return Decimal(text[1:])


def _prices(text: str) -> list[Decimal]:
    """Every amount of dollars in a text."""
    return [Decimal(each) for each in re.findall(r"\$([0-9]+\.[0-9]+)", text)]


def _spelt(value: Any) -> str:
    """A value in its one spelling."""
    return str(value.normalize()) if isinstance(value, Decimal) else json.dumps(value, sort_keys=True)


def disagreements(found: list[Told]) -> dict[str, dict[str, list[str]]]:
    """The facts that are told in more than one way: each way, with the faces that tell it so."""
    ways: dict[str, dict[str, list[str]]] = {}
    for face, fact, value in found:
        ways.setdefault(fact, {}).setdefault(_spelt(value), []).append(face)
    return {fact: each for fact, each in ways.items() if len(each) > 1}


each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.mark.extended
@each_service
def test_every_face_tells_the_same(world: World, service: AnyService) -> None:
    found = list(told(world, service))

    assert disagreements(found) == {}
    assert {fact: {each.face for each in found if each.fact == fact} for fact in FACES} == FACES


@pytest.mark.extended
@each_service
def test_what_is_told_is_what_is_meant(world: World, service: AnyService) -> None:
    found = [(each.fact, each.value) for each in told(world, service)]

    assert ("price", service.price) in found
    assert ("address", world.address + service.path) in found
    assert ("payee", DEFAULT_PAYEE) in found
    schema = service.input_schema(84532)
    assert ("fields", {name: _needed(name, schema) for name in schema["properties"]}) in found


def _swapped(words: dict[str, str]) -> Callable[[Any], Any]:
    """Another version of what a face tells, with some words changed."""

    def change(told_: Any) -> Any:
        text = json.dumps(told_)
        for old, new in words.items():
            assert old in text
            text = text.replace(old, new)
        return json.loads(text)

    return change


@pytest.mark.extended
@pytest.mark.parametrize(
    "face", ["catalogue", "entries", "command", "openapi", "well_known", "tools", "calls", "site"]
)
def test_a_face_that_lies_is_noticed(world: World, face: str) -> None:
    """Each face in turn tells another price, or another field, than all the others."""
    service = all_services()[0]
    lie = {"tokenAddress": "tokenAdress"} if face in ("entries", "tools") else {"0.01": "0.02"}
    if face in ("calls", "well_known"):
        lie = {'"10000"': '"20000"'}
    lying = replace(world, **{face: _swapped(lie)(getattr(world, face))})

    assert disagreements(list(told(lying, service)))


def test_another_payee_is_noticed(world: World) -> None:
    service = all_services()[0]
    offer, error = world.refusals[service.slug]
    other = _swapped({offer["accepts"][0]["payTo"]: "0x" + "1" * 40})(offer)
    lying = replace(world, refusals={**world.refusals, service.slug: (other, error)})

    assert set(disagreements(list(told(lying, service)))) == {"payee"}
