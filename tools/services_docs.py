"""Write docs/services and the table of services in README.md from the declarations of the services.

.venv/bin/python tools/services_docs.py
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import Any

from centgate.api.openapi import openapi_document
from centgate.catalog import all_services, service_details
from centgate.crypto.token.citations import list_evidence_fields
from centgate.crypto.token.token_rule import RULES_VERSION
from centgate.crypto.token.token_rules import SEVERITY_LIMITS, TOKEN_RULES
from centgate.envelope import ERROR_SPECS
from centgate.json_schema import parse_schema
from centgate.lookups.token_on_chain import MAX_FACETS
from centgate.settings import Settings
from centgate.website.schema_tables import SchemaRow, build_schema_table

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "services"
README = ROOT / "README.md"
START, END = "<!-- services: start -->", "<!-- services: end -->"
"""Markers around the table in README.md."""
GENERATED = "This page is written by `make docs` from the service's declaration."
CATEGORIES = {"crypto-context": "crypto", "web-context": "web"}

Entry = Mapping[str, Any]
"""A service as `GET /services/<slug>` returns it."""


def render_pages() -> dict[str, str]:
    """Return all pages of docs/services by file name."""
    entries = read_catalogue()
    pages = {f"{entry['slug']}.md": render_service(entry) for entry in entries}
    return {"README.md": render_index(entries), **pages}


def render_readme(text: str) -> str:
    """Return README.md with the current table of services between its markers."""
    block = f"{START}\n{render_table(read_catalogue(), 'docs/services/')}{END}"
    return re.sub(f"{re.escape(START)}.*?{re.escape(END)}", lambda _: block, text, flags=re.DOTALL)


@cache
def read_catalogue() -> tuple[Entry, ...]:
    """Return the entries in catalogue order, as a deployment without settings and keys lists them."""
    settings = Settings()
    document = openapi_document(all_services(), settings)
    return tuple(
        service_details(service, settings) | {"responseExample": _response_example(document, service.path)}
        for service in all_services()
    )


def render_table(entries: tuple[Entry, ...], folder: str = "") -> str:
    """Return the table of services; `folder` is where their pages are."""
    rows = "".join(
        f"| [{entry['slug']}]({folder}{entry['slug']}.md) | {_cell(entry['summary'])} | {entry['price']} | "
        f"{_describe_key_need(entry)} |\n"
        for entry in entries
    )
    return f"| service | what it does | price | works without a key |\n| --- | --- | --- | --- |\n{rows}"


def render_index(entries: tuple[Entry, ...]) -> str:
    """Return docs/services/README.md: all services, the envelope of answers, the error codes."""
    errors = "".join(
        f"| `{code}` | {spec.status} | {_cell(spec.when)} | {spec.charged} | {_cell(spec.action)} |\n"
        for code, spec in ERROR_SPECS.items()
    )
    return (
        "# Services\n\nThis page is written by `make docs` from the declarations of the services.\n\n"
        f"{render_table(entries)}\n{entries[0]['pricingNote']}\n\n"
        "Every service is a `POST` with a JSON object. `GET /services` returns all of them with prices and "
        "examples,\n`GET /services/<slug>` one with its schemas, `GET /openapi.json` the OpenAPI document. "
        "All three are free.\n\n"
        "## Answers\n\n"
        "Every answer has the same members. `data` is described on the page of each service.\n\n"
        "| member | meaning |\n| --- | --- |\n"
        "| `service` | slug of the service |\n"
        "| `requestId` | id of the request that produced the answer |\n"
        "| `cache.hit` | true if the answer came from the cache |\n"
        "| `providers` | each provider with its `role`, `status` and `fetchedAt`; pool-snapshot adds "
        "`selection`, phishing-check `list`, `version` and `date` |\n"
        "| `warnings` | what is missing, old or uncertain, as sentences |\n"
        "| `data` | the answer itself |\n\n"
        "## Errors\n\n"
        "Every error is JSON with `error.code`. *redeemable*: if the buyer was charged, the same payment, "
        "sent again,\nbuys the answer and is not charged twice.\n\n"
        "| code | status | when | charged | what to do |\n| --- | --- | --- | --- | --- |\n"
        f"{errors}"
    )


def render_service(entry: Entry) -> str:
    """Return the page of one service."""
    return "\n".join(
        [
            f"# {entry['title']}: `{entry['slug']}`",
            "",
            GENERATED,
            "",
            entry["summary"],
            *([""] if entry["description"] != entry["summary"] else []),
            *([entry["description"]] if entry["description"] != entry["summary"] else []),
            "",
            "| | |",
            "| --- | --- |",
            f"| request | `{entry['method']} {entry['path']}` |",
            f"| price | {entry['price']} a call |",
            f"| category | {CATEGORIES[entry['category']]} |",
            f"| cache TTL | {_describe_ttl(entry['cacheSeconds'])} |",
            f"| works without a key | {_describe_key_need(entry)} |",
            "",
            *_render_sources(entry),
            *_render_request(entry),
            *_render_response(entry),
            *(render_token_rules() if entry["slug"] == "token-risk" else ()),
            "## Limits",
            "",
            *(f"- {guardrail}" for guardrail in entry["guardrails"]),
            "",
        ]
    )


TOKEN_LIMITS = (
    "Sources see a token as it is now: a power that exists and was not used raises a flag, and a token can "
    "change after the answer.",
    "A simulated sale proves that an ordinary account can sell a small amount in the pool that was tried. A "
    "token may treat single accounts, later blocks or larger amounts in another way; sales at real holders "
    "cover a sample.",
    "Simulated transactions look like those of a wallet, but trade on the pool itself and not by a router "
    "that people use, spend a fixed part of the pool, and have code at the holders that are tried. A token "
    "that recognises this can let the probes sell and refuse others. Code at the seller or at the sender, "
    "ample gas, and an approval of the exact amount are found where they make the difference: wallets of "
    "holders are also let send tokens to the pool, and a small sale is repeated as a wallet makes it.",
    "One trade is made as people make it: a wallet without code sends the transaction, a router takes its "
    "tokens by an allowance that is set in the token's storage, and the amounts are random. It needs a "
    "node that lists the storage which a call touches (`eth_createAccessList`), and a token that keeps "
    "each allowance in a slot of its own; a warning tells where it was not made. Not found are tokens "
    "that treat wallets' own sales in another way only after the block of their purchase, only after a "
    "call of `approve`, or only with allowances other than the largest number, and those that turn an "
    "unlimited approval into a trap in a later block.",
    "A sell tax is what the seller loses: what does not reach the pool, and what the pool pays less than it "
    "took for the same tokens, above 30 % for fees, its price, and a sale of collected fees within the sale.",
    "Where new accounts cannot sell, at least three holders must be able to, and at least half of those "
    "tried; to call it a honeypot without a reason that the token gives, three must fail. With fewer the "
    "sale is in doubt. At most eight holders are tried.",
    "Recent buyers are taken from the pool's own events of swaps, and up to three from the token's Transfer "
    "events, which it can make up; real purchases for show have the same effect. Only Transfer events tell "
    "the buyers in pools of Uniswap v4. Holdings that are dust beside the pool are not tried.",
    "Pools that are not of a listed exchange, or have fees or hooks that are not listed (those of the "
    "launchpad Clanker are), are not read; of very many pools those 24 are that hold most of the other "
    "token, and all of Uniswap v4.",
    "Branches that a selector does not show, such as a special amount or a computed account in a transfer, "
    "stay unseen in bytecode; so does a second account that may use a power beside the owner, if the code "
    "reads both.",
    "A function with a harmless name is believed if it writes only what such functions write. It may still "
    "write another amount: a withdrawal, a burn or a deposit that adds to a balance, and a fallback "
    "function, are not told from honest ones.",
    "A contract that is neither a known locker nor reported as one counts as free to take out what it holds, "
    "so that staking contracts of honest tokens raise `liquidity_in_one_contract`.",
    "Wallets that hold shares of the liquidity count as one hand, as one person can have many; "
    "`liquidity_in_wallets` is raised also where they are those of a community.",
    "Of a self-destruction no source says who can cause it, so that a renounced ownership does not excuse "
    "it.",
    "Bytecode shows that a function exists and who may call it, not what its author intends; what only "
    "source code shows is named as not checked.",
    "The functions of a diamond (EIP-2535) are those that its `facets()` lists, by the code of its facets: "
    f"at most {MAX_FACETS} of those that have powers, or the functions of a token, an owner or roles. A "
    "warning counts the ones beyond, whose powers stay unknown. Each function that is found is cited with "
    "its facet as `onchain:bytecode.<flag>.inferred`. A diamond can list other functions than it runs.",
    "The locker of a share is told by its address or by a source's tag; the end of a lock only where a "
    "source gives it.",
    "Percentages of holders count the ten largest at most. Without GoPlus no rule on holders of the token "
    "or on single holders of its liquidity applies; the answer's warnings say so.",
    "The owner is the account of `owner()`. The account that may replace a proxy's code can be another one, "
    "and is not judged by its kind.",
    "Powers of a Safe with several signatures are limited to high; those of a timelock or a governor are "
    "not limited, as its delay and its voters are not judged.",
    "Whether the source of the code behind a proxy or a clone is published is decided by Etherscan, Sourcify "
    "and Blockscout where the chain shows whose code runs: not published if each that covers the chain has "
    "none. One without a key or an answer is named and clears nothing; neither does the source of a proxy's "
    "implementation unless the node shows that calls to the proxy touch that contract and, but "
    "for a beacon, no other one (`eth_createAccessList`). Of other proxies, such as diamonds, the sources "
    "that simulate or analyse tell.",
    "A wallet's share of the liquidity that GoPlus calls locked counts as unlocked, unless GoPlus lists the "
    "lock.",
    "One list of trusted tokens is enough to limit the flags in the table above.",
)
"""Known limits of the token rules, as sentences."""


def render_token_rules() -> Iterator[str]:
    """Yield the section on the rules: each flag with its condition's subject, evidence and severity."""
    yield from (
        "## Rules",
        "",
        f"Version {RULES_VERSION}. The level is that of the worst flag; without enough",
        "evidence for a mild level it is `unknown`.",
        "",
        "Evidence is written as `source:field`. `liquidity` and `pairs` stand for the source whose figures",
        "on the token's pairs count, `registries` for Etherscan, Sourcify and Blockscout: answers cite them",
        "by the source's own name and field, such as `dexscreener:liquidity.usd` for `liquidity:totalUsd`.",
        "",
    )
    yield from ("| flag | severity | check | meaning | threshold | evidence |", "| --- |" + " --- |" * 5)
    for rule in TOKEN_RULES:
        evidence = ", ".join(f"`{name}`" for name in list_evidence_fields(rule))
        meaning = re.sub(r"\{.*?\}", "N", rule.message)
        cells = [f"`{rule.id}`", rule.severity, rule.subject, _cell(meaning), rule.threshold, evidence]
        yield f"| {' | '.join(cells)} |"
    yield from ("", "Of flags that say the same, only the strongest is raised:", "")
    yield from ("| flag | not raised beside |", "| --- | --- |")
    for rule in TOKEN_RULES:
        if rule.covered_by:
            yield f"| `{rule.id}` | {', '.join(f'`{each}`' for each in rule.covered_by)} |"
    yield from ("", "A flag's severity is limited where there is a reason:", "")
    yield from ("| kinds of flags | at most | reason |", "| --- | --- | --- |")
    for limit in SEVERITY_LIMITS:
        kinds = sorted(limit.kinds)
        flags = ", ".join(f"`{rule.id}`" for rule in TOKEN_RULES if rule.kind in kinds)
        yield f"| {flags} | {limit.max_severity} | {_cell(limit.message)} |"
    yield from ("", "### Known limits", "", *(f"- {limit}" for limit in TOKEN_LIMITS), "")


def _render_sources(entry: Entry) -> Iterator[str]:
    yield from ("## Sources", "", "Roles are those of a deployment on which no key and no URL is set.", "")
    yield from ("| source | role | configured by default | terms of use |", "| --- | --- | --- | --- |")
    states = {source["name"]: source for source in entry["sources"]}
    for provider in entry["providers"]:
        state = states[provider["name"]]
        label = f"[{provider['label']}]({provider['docsUrl']})"
        ready = "yes" if state["configured"] else "no"
        yield f"| {label} | {provider['role']} | {ready} | {_cell(state['terms'])} |"
    yield ""


def _render_request(entry: Entry) -> Iterator[str]:
    fields = build_schema_table(parse_schema(entry["inputSchema"]))
    yield from ("## Request", "", " ".join(["A JSON object.", *fields.rules]), "")
    yield from ("| field | type | required | limits | default | meaning |", "| --- |" + " --- |" * 5)
    for row in fields.rows:
        default = f"`{row.default}`" if row.default else ""
        limits = _cell("; ".join(row.limits))
        required = "yes" if row.required else "no"
        yield f"| `{row.name}` | {_type(row)} | {required} | {limits} | {default} | {_cell(row.meaning)} |"
    yield from ("", "```json", _format_json(entry["inputExample"]), "```", "")


def _render_response(entry: Entry) -> Iterator[str]:
    yield from ("## Response", "", "Fields of `data`. A field is null if no source knew its value.", "")
    yield from ("| field | type | meaning |", "| --- | --- | --- |")
    for row in build_schema_table(parse_schema(entry["outputSchema"])).rows:
        limits = "; ".join(row.limits)
        meaning = f"{row.meaning} ({limits})" if row.meaning and limits else row.meaning or limits
        yield f"| `{row.name}` | {_type(row)} | {_cell(meaning)} |"
    yield from ("", "An example, not a live answer:", "", "```json")
    yield from (_format_json(entry["responseExample"]), "```", "")


def _response_example(document: Mapping[str, Any], path: str) -> Any:
    """Return the example of a service's answer from the OpenAPI document."""
    success = document["paths"][path]["post"]["responses"]["200"]
    return success["content"]["application/json"]["example"]


def _describe_key_need(entry: Entry) -> str:
    """Return "yes", or "no" with the sources of which one must be configured."""
    ready = {source["name"] for source in entry["sources"] if source["configured"]}
    able = [provider for provider in entry["providers"] if provider["role"] in ("primary", "fallback")]
    if any(provider["name"] in ready for provider in able):
        return "yes"
    *others, last = (provider["label"] for provider in able)
    return f"no: needs {', '.join(others)} or {last}"


def _describe_ttl(seconds: int) -> str:
    return f"{seconds} s" if seconds else "not cached"


def _type(row: SchemaRow) -> str:
    return f"{_cell(row.type)} or null" if row.nullable else _cell(row.type)


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the pages, remove those of deleted services, and update README.md."""
    for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # without the .env of this folder
        pages, readme = render_pages(), render_readme(README.read_text(encoding="utf-8"))
    FOLDER.mkdir(exist_ok=True)
    for page in FOLDER.glob("*.md"):
        if page.name not in pages:
            page.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    README.write_text(readme, encoding="utf-8")


if __name__ == "__main__":
    main()
