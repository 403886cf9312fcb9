"""Table of recorded tokens: risk level and flags of token-risk, with all sources and with each one alone.

    PYTHONPATH=src:tests:tests/payments .venv/bin/python bench/token_levels.py FOLDER

FOLDER has recorded responses of the upstreams (`<upstream>/<case>.json` with `request` and `body`). Run it
before and after a change of the rules: each line that differs needs a reason.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from facilitators import build_settings
from fake_upstreams import FakeUpstreams, fake_upstreams

from centgate.coercion import as_list, get_path
from centgate.provider_settings import ProviderSettings
from centgate.providers.dexscreener import CHAIN_NAMES
from centgate.providers.geckoterminal import CHAIN_NAMES as GECKO_NAMES
from centgate.providers.goplus import GoPlus
from centgate.resources import open_resources
from centgate.services.token_risk import TokenRiskRequest, token_risk

NAMES = ("goplus", "honeypotis", "dexscreener", "geckoterminal")
NO_TOKEN = "0x" + "0" * 40


@dataclass
class RecordedToken:
    """Recorded response bodies about one token on one chain, by source."""

    chain_id: int
    address: str
    label: str = ""
    bodies: dict[str, Any] = field(default_factory=dict[str, Any])


def main(folder: Path) -> None:
    """Print the table for the recordings of a folder."""
    tokens = collect_tokens(folder)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    GoPlus.RETRY_PAUSE = 0.0
    with fake_upstreams() as upstreams, tempfile.TemporaryDirectory() as data_folder:
        asyncio.run(print_levels(tokens, upstreams, Path(data_folder)))


def collect_tokens(folder: Path) -> list[RecordedToken]:
    """Return all tokens of the recordings, with the response bodies of each source."""
    tokens: dict[tuple[int, str], RecordedToken] = {}
    for source, chain_id, address, label, body in _iter_bodies(folder):
        token = tokens.setdefault((chain_id, address), RecordedToken(chain_id, address))
        token.label = token.label or label
        if isinstance(token.bodies.get(source), list):
            token.bodies[source] += body
        else:
            token.bodies[source] = body
    return list(tokens.values())


def _iter_bodies(folder: Path) -> Iterator[tuple[str, int, str, str, Any]]:
    """Yield source, chain id, address, label and body of each recorded token."""
    for path in sorted((folder / "goplus_token_security").glob("*.json")):
        recording = json.loads(path.read_text())
        chain_id = int(recording["request"]["url"].rsplit("/", 1)[1])
        rows: dict[str, Any] = recording["body"].get("result") or {}
        for address, row in rows.items():
            yield "goplus", chain_id, address.lower(), row.get("token_symbol", ""), row
    for path in sorted((folder / "honeypot_is").glob("*.json")):
        recording = json.loads(path.read_text())
        body, params = recording["body"], recording["request"]["params"]
        if "simulationSuccess" in body:
            token: dict[str, Any] = body.get("token") or {}
            address: str = (token.get("address") or params["address"]).lower()
            # the documented example has a precompiled contract's address, which is refused as a token
            address = "0x" + "ab" * 20 if int(address, 16) < 100 else address
            yield "honeypotis", int(params["chainID"]), address, token.get("symbol") or "documented", body
    for path in sorted((folder / "dexscreener").glob("*.json")):
        yield from _iter_dexscreener_bodies(json.loads(path.read_text())["body"])
    for path in sorted((folder / "geckoterminal").glob("*pool*.json")):
        yield from _iter_geckoterminal_bodies(json.loads(path.read_text())["body"])


def _iter_dexscreener_bodies(body: Any) -> Iterator[tuple[str, int, str, str, Any]]:
    ids = {name: chain_id for chain_id, name in CHAIN_NAMES.items()}
    rows = as_list(body) or as_list(get_path(body, "pairs"))
    for row in rows:
        for side in ("baseToken", "quoteToken"):
            token = row[side]
            if row.get("chainId") in ids:
                yield "dexscreener", ids[row["chainId"]], token["address"].lower(), token["symbol"], [row]


def _iter_geckoterminal_bodies(body: Any) -> Iterator[tuple[str, int, str, str, Any]]:
    data: Any = body.get("data")
    ids = {name: chain_id for chain_id, name in GECKO_NAMES.items()}
    rows = as_list(data) or [each for each in [data] if each]
    for row in rows:
        for side in ("base_token", "quote_token"):
            network, _, address = row["relationships"][side]["data"]["id"].rpartition("_")
            if network in ids:
                yield "geckoterminal", ids[network], address.lower(), "", [row]


async def print_levels(tokens: list[RecordedToken], upstreams: FakeUpstreams, data_folder: Path) -> None:
    """Print two lines for each token with all its sources, and with each source of flags or trades alone."""
    sources = {name: ProviderSettings(url=upstreams.url_of(name), per_minute=10**6) for name in NAMES}
    nodes = {f"rpc_{chain_id}": ProviderSettings(enabled=False) for chain_id in CHAIN_NAMES}
    settings = build_settings(data_folder, "http://127.0.0.1:9", providers={**sources, **nodes})
    async with open_resources(settings) as resources:
        providers = {source.info.name: source.provider(settings, resources) for source in token_risk.sources}
        for token in tokens:
            main_sources = [name for name in ("goplus", "honeypotis") if name in token.bodies]
            cases = [tuple(token.bodies)]
            if len(token.bodies) > 1:
                cases += [(name,) for name in main_sources]
            for case in cases:
                set_responses(upstreams, token, {name: token.bodies[name] for name in case})
                request = TokenRiskRequest(chain_id=token.chain_id, token_address=token.address)
                name = f"{token.chain_id:<5} {token.address} {token.label:<12} {'+'.join(case)}"
                sys.stdout.write(f"{name}\n       {await assess_token(request, providers)}\n")


def set_responses(upstreams: FakeUpstreams, token: RecordedToken, bodies: Mapping[str, Any]) -> None:
    """Set the responses of the upstreams to these bodies by source, and to empty ones for other sources."""
    chain, address = token.chain_id, token.address
    rows = {address: bodies["goplus"]} if "goplus" in bodies else {}
    goplus = {"code": 1, "message": "OK", "result": rows}
    upstreams.set_response("goplus", f"/api/v1/token_security/{chain}", goplus)
    if "honeypotis" in bodies:
        upstreams.set_response("honeypotis", "/v2/IsHoneypot", bodies["honeypotis"])
    else:
        missing = {"code": 404, "error": "No pairs found"}
        upstreams.set_response("honeypotis", "/v2/IsHoneypot", missing, status=404)
    pairs = bodies.get("dexscreener", [])
    upstreams.set_response("dexscreener", f"/token-pairs/v1/{CHAIN_NAMES[chain]}/{address}", pairs)
    pools = {"data": bodies.get("geckoterminal", [])}
    path = f"/api/v2/networks/{GECKO_NAMES[chain]}/tokens/{address}/pools"
    upstreams.set_response("geckoterminal", path, pools)


async def assess_token(request: TokenRiskRequest, providers: Mapping[str, Any]) -> str:
    """Return level, score and flags of a token as text, or the error."""
    try:
        result = await token_risk.run(request, providers)
    except Exception as error:  # noqa: BLE001 - an error is a line of the table
        return f"{type(error).__name__}: {error}"
    data = json.loads(result.data)
    flags = ", ".join(f"{flag['id']}:{flag['severity']}" for flag in data["riskFlags"])
    score = data["riskScore"]["score"] if data.get("riskScore") else "-"
    return f"-> {data['riskLevel']} | {score} | {flags or 'no flag'}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
