"""Parse DefiLlama's list of protocols, which has megabytes, and the page of a single protocol."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from centgate.chains import from_chain_seconds
from centgate.coercion import as_clean_name, as_list, as_number, as_object, as_text, as_usd
from centgate.crypto.protocol.directory import (
    MAX_CHAINS,
    MAX_SLUG_LENGTH,
    AuditStatus,
    DefiProtocol,
    DirectoryLink,
    Incident,
    ProtocolDetails,
    ProtocolDirectory,
    ProtocolListing,
    ProtocolToken,
    alphanumeric_key,
    is_safe_url,
    is_slug,
    select_links,
    to_slug,
)
from centgate.sanitize import clean_line

SLICE_BYTES = 256 * 1024
SLICE_ROWS = 250
"""Largest part of a list that is parsed before other tasks run on the event loop."""
MAX_DESCRIPTION = 300
"""Characters of a description that are kept."""
MAX_NAMES = 20
"""Oracles, governance spaces, and protocols that it was forked from, that are kept."""
MAX_PERCENT = 1e6
_TOKEN_ADDRESS = re.compile(r"(?:[a-z0-9_-]{1,40}:)?[A-Za-z0-9][A-Za-z0-9:._-]{5,129}")
_AUDIT_STATUSES: Mapping[str | None, AuditStatus] = {
    "0": "none",
    "1": "partial",
    "2": "audited",
    "3": "audited_origin",
}
"""Meaning of `audits`, which is no count.

Source: legend in `defi/src/protocols/data4.ts` of https://github.com/DefiLlama/defillama-server.
"""
_HARMLESS_ORACLES = {"RNG", "Reference"}
"""Kinds of oracles on which no funds depend."""
_NOT_CHAINS = {
    *("borrowed", "dcandlsoverlap", "doublecounted", "liquidstaking", "masterchef", "offers", "owntokens"),
    *("pool2", "staking", "treasury", "vesting"),
}
"""Keys of `chainTvls` that are no chains, in lower case; with a hyphen (`Base-borrowed`) per chain."""


async def parse_directory(body: bytes) -> ProtocolDirectory:
    """Parse the list of protocols; ValueError if it is not one.

    Finding the boundaries of the rows takes about a millisecond for 2 MB, without a pause. Rows are parsed in
    slices, and other tasks run in between. Rows that cannot be parsed are left out.
    """
    await asyncio.sleep(0)
    try:
        rows = _ROWS.decode(body)
    except RecursionError:
        raise ValueError("the list is nested too deeply to parse") from None
    directory = ProtocolDirectory(_parse_row)
    for batch in split_rows(rows):
        await asyncio.sleep(0)
        for row in batch:
            if listing := _parse_listing(row):
                directory.add_listing(listing)
    if not directory.by_slug:
        raise ValueError("the list contains no protocol")
    return directory


def split_rows(rows: Sequence[msgspec.Raw]) -> Iterator[Sequence[msgspec.Raw]]:
    """Yield the rows in slices of at most SLICE_BYTES and SLICE_ROWS; a larger row is a slice of its own."""
    start = size = 0
    for index, row in enumerate(rows):
        size += len(row)
        if index > start and (size > SLICE_BYTES or index - start >= SLICE_ROWS):
            yield rows[start:index]
            start, size = index, len(row)
    if rows:
        yield rows[start:]


def parse_protocol(slug: str, body: bytes) -> DefiProtocol | None:
    """Parse `/protocol/{slug}`; None if it has no name, ValueError if it is no object.

    Such an answer is mostly daily figures, tens of megabytes of them, which are skipped.
    """
    try:
        answer = _BODY.decode(body)
    except RecursionError:
        raise ValueError("the answer is nested too deeply to parse") from None
    name = _parse_text(answer.name)
    if name is None:
        return None
    tvls = _parse_chain_tvls(answer.current_chain_tvls)
    return _build_protocol(slug, name, answer, _sum_tvls(tvls), tvls)


_NULL = msgspec.Raw(b"null")


class _NameFields(
    Struct,
    rename={
        "chain_tvls": "chainTvls",
        "current_chain_tvls": "currentChainTvls",
        "parent_protocol": "parentProtocol",
        "exclude_tvl_from_parent": "excludeTvlFromParent",
        "listed_at": "listedAt",
        "forked_from": "forkedFrom",
        "forked_from_ids": "forkedFromIds",
        "oracles_breakdown": "oraclesBreakdown",
        "governance_ids": "governanceID",
        "parent_protocol_slug": "parentProtocolSlug",
    },
):
    """Members that name a protocol, each parsed by itself, so that a broken one is only missing."""

    id: msgspec.Raw = _NULL
    name: msgspec.Raw = _NULL
    symbol: msgspec.Raw = _NULL
    gecko_id: msgspec.Raw = _NULL
    parent_protocol: msgspec.Raw = _NULL
    parent_protocol_slug: msgspec.Raw = _NULL


class _ListingRow(_NameFields):
    """Members of a row that every row of a list is parsed for; the others cost time for thousands of rows."""

    slug: msgspec.Raw = _NULL
    tvl: msgspec.Raw = _NULL
    chain_tvls: msgspec.Raw = _NULL
    exclude_tvl_from_parent: msgspec.Raw = _NULL


class _ProtocolFields(_NameFields):
    """Members of a protocol in a row or on its own page."""

    url: msgspec.Raw = _NULL
    category: msgspec.Raw = _NULL
    chain: msgspec.Raw = _NULL
    chains: msgspec.Raw = _NULL
    audit_links: msgspec.Raw = _NULL
    twitter: msgspec.Raw = _NULL
    github: msgspec.Raw = _NULL
    description: msgspec.Raw = _NULL
    address: msgspec.Raw = _NULL
    mcap: msgspec.Raw = _NULL
    change_1d: msgspec.Raw = _NULL
    change_7d: msgspec.Raw = _NULL
    listed_at: msgspec.Raw = _NULL
    forked_from: msgspec.Raw = _NULL
    forked_from_ids: msgspec.Raw = _NULL
    oracles: msgspec.Raw = _NULL
    oracles_breakdown: msgspec.Raw = _NULL
    audits: msgspec.Raw = _NULL
    governance_ids: msgspec.Raw = _NULL


class _ProtocolRow(_ProtocolFields):
    chain_tvls: msgspec.Raw = _NULL


class _ProtocolBody(_ProtocolFields):
    current_chain_tvls: msgspec.Raw = _NULL


_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
_LISTING = msgspec.json.Decoder(_ListingRow)
_ROW = msgspec.json.Decoder(_ProtocolRow)
_BODY = msgspec.json.Decoder(_ProtocolBody)
_VALUE = msgspec.json.Decoder()


def _parse_listing(raw: msgspec.Raw) -> ProtocolListing | None:
    """Parse what a row is found by; None if it cannot be parsed or has no usable slug."""
    try:
        row = _LISTING.decode(raw)
    except (ValueError, RecursionError):
        return None
    name, slug = _parse_text(row.name), (_parse_text(row.slug) or "").lower()
    if not is_slug(slug):
        slug = to_slug(name or "")
    if not is_slug(slug):
        return None
    symbol, gecko_id = _parse_text(row.symbol), _parse_text(row.gecko_id)
    return ProtocolListing(
        slug,
        name or slug,
        symbol.upper() if symbol and alphanumeric_key(symbol) else None,
        gecko_id.lower() if gecko_id else None,
        _parse_parent_slug(row),
        _parse_tvl(row),
        _parse_value(row.exclude_tvl_from_parent) is not True,
        raw,
        _parse_id(_parse_value(row.id)),
    )


def _parse_row(listing: ProtocolListing) -> DefiProtocol:
    row = _ROW.decode(listing.row)
    return _build_protocol(
        listing.slug, listing.name, row, listing.tvl_usd, _parse_chain_tvls(row.chain_tvls)
    )


def _build_protocol(
    slug: str, name: str, fields: _ProtocolFields, tvl_usd: float | None, tvls: dict[str, float]
) -> DefiProtocol:
    names = [*_parse_texts(fields.chains)] or [*tvls] or [*_parse_texts(fields.chain)]
    chains = (clean_line(chain) for chain in names[:MAX_CHAINS] if chain.lower() != "multi-chain")
    return DefiProtocol(
        slug,
        clean_line(name) or slug,
        clean_line(_parse_text(fields.category)),
        tuple(dict.fromkeys(chain for chain in chains if chain)),
        tvl_usd,
        select_links(_parse_links(fields)),
        _parse_details(fields, tvls),
    )


def _parse_details(fields: _ProtocolFields, tvls: dict[str, float]) -> ProtocolDetails:
    identifier = _parse_id(_parse_value(fields.id))
    return ProtocolDetails(
        ids=frozenset({identifier} if identifier else ()),
        description=clean_line(_parse_text(fields.description), MAX_DESCRIPTION),
        tvl_by_chain=tuple((name, tvl) for chain, tvl in tvls.items() if (name := clean_line(chain)))[
            :MAX_CHAINS
        ],
        tvl_change_day=_parse_percent(fields.change_1d),
        tvl_change_week=_parse_percent(fields.change_7d),
        token=_parse_token(fields),
        listed_at=from_chain_seconds(_parse_value(fields.listed_at), None),
        forked_from=_parse_names(_parse_texts(fields.forked_from)),
        forked_from_ids=_parse_ids(fields.forked_from_ids),
        oracles=_parse_names([*_parse_texts(fields.oracles), *_parse_oracles(fields.oracles_breakdown)]),
        audit_status=_AUDIT_STATUSES.get(_parse_id(_parse_value(fields.audits))),
        governance_ids=_parse_names(_parse_texts(fields.governance_ids)),
        parent_slug=_parse_parent_slug(fields),
        parent_id=_parse_id(_parse_value(fields.parent_protocol)),
    )


def _parse_token(fields: _ProtocolFields) -> ProtocolToken | None:
    """Parse the token; None without a symbol, which the directory writes as a hyphen."""
    symbol, address = clean_line(_parse_text(fields.symbol)), _parse_text(fields.address) or ""
    if symbol is None or not alphanumeric_key(symbol):
        return None
    return ProtocolToken(
        symbol,
        address if _TOKEN_ADDRESS.fullmatch(address) else None,
        clean_line(_parse_text(fields.gecko_id)),
        as_usd(_parse_value(fields.mcap)),
    )


def _parse_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(clean_line, names))))[:MAX_NAMES]


def _parse_oracles(raw: msgspec.Raw) -> Iterator[str]:
    """Yield the names of the oracles that a protocol uses now and that its funds depend on.

    `oraclesBreakdown` replaces `oracles`, which DefiLlama calls deprecated and leaves empty in newer rows.
    """
    for row in map(as_object, as_list(_parse_value(raw))):
        name = as_text(row.get("name"))
        if name and row.get("type") not in _HARMLESS_ORACLES and not row.get("endDate"):
            yield name


def _parse_ids(raw: msgspec.Raw) -> tuple[str, ...]:
    ids = map(_parse_id, as_list(_parse_value(raw)))
    return tuple(each for each in ids if each)[:MAX_NAMES]


def _parse_percent(raw: msgspec.Raw) -> float | None:
    """Parse a change in percent; None if it cannot be one."""
    percent = as_number(_parse_value(raw))
    return percent if percent is not None and -100 <= percent <= MAX_PERCENT else None


def _parse_parent_slug(fields: _NameFields) -> str | None:
    """Parse the parent's slug; older rows have only its identifier, which differs if it was renamed."""
    identifier = (_parse_text(fields.parent_protocol) or "").rpartition("#")[2]
    slug = (_parse_text(fields.parent_protocol_slug) or "").lower() if identifier else ""
    return next(filter(is_slug, (slug, to_slug(identifier))), None)


async def parse_incidents(body: bytes) -> Mapping[str, Sequence[Incident]]:
    """Parse `/hacks`: incidents by identifier of a protocol or parent; ValueError if it is no such list.

    Incidents without an identifier, two of five in 2026, belong to no protocol of the directory, and are left
    out. Rows are parsed in slices, as those of the directory.
    """
    try:
        rows = _ROWS.decode(body)
    except RecursionError:
        raise ValueError("the list is nested too deeply to parse") from None
    by_id: dict[str, list[Incident]] = {}
    has_incidents = False
    for batch in split_rows(rows):
        await asyncio.sleep(0)
        for row in map(as_object, map(_parse_value, batch)):
            has_incidents = has_incidents or "date" in row
            owners = {_parse_id(row.get("defillamaId")), _parse_id(row.get("parentProtocolId"))}
            for owner in owners - {None}:
                by_id.setdefault(cast(str, owner), []).append(_parse_incident(row))
    if not has_incidents:
        raise ValueError("a list without an incident")
    return by_id


def _parse_id(value: Any) -> str | None:
    """Parse an identifier, which is a number or a text; `parent#<name>` for a parent."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value).strip()[:MAX_SLUG_LENGTH] or None


def _parse_incident(row: dict[str, Any]) -> Incident:
    source = as_text(row.get("source")) or ""
    return Incident(
        at=from_chain_seconds(row.get("date"), None),
        amount_usd=as_usd(row.get("amount")),
        returned_usd=as_usd(row.get("returnedFunds")),
        classification=as_clean_name(row.get("classification")),
        technique=as_clean_name(row.get("technique")),
        url=source if is_safe_url(source) else None,
        name=as_clean_name(row.get("name")),
        chains=_parse_names(filter(None, map(as_text, as_list(row.get("chain"))))),
    )


def _parse_tvl(row: _ListingRow) -> float | None:
    tvl = as_usd(_parse_value(row.tvl))
    return tvl if tvl is not None else _sum_tvls(_parse_chain_tvls(row.chain_tvls))


def _parse_chain_tvls(raw: msgspec.Raw) -> dict[str, float]:
    """Return US dollars by chain, the largest first, without the keys that are not chains."""
    value = _parse_value(raw)
    tvls = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    chains = [key for key in tvls if "-" not in key and key.lower() not in _NOT_CHAINS]
    valid = {chain: tvl for chain in chains if (tvl := as_usd(tvls[chain])) is not None}
    return dict(sorted(valid.items(), key=lambda item: -item[1]))


def _sum_tvls(tvls: dict[str, float]) -> float | None:
    return as_usd(math.fsum(tvls.values())) if tvls else None


def _parse_links(fields: _ProtocolFields) -> Iterator[DirectoryLink]:
    for url in _parse_texts(fields.url):
        yield DirectoryLink("website", url)
    for handle in _parse_texts(fields.twitter):
        if re.fullmatch(r"@?[A-Za-z0-9_]{1,15}", handle):
            yield DirectoryLink("social", f"https://x.com/{handle.removeprefix('@')}")
    for owner in _parse_texts(fields.github):
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[\w-][\w.-]{0,99})?", owner, re.ASCII):
            yield DirectoryLink("code", f"https://github.com/{owner}")
    for url in _parse_texts(fields.audit_links):
        yield DirectoryLink("audit", url)


def _parse_value(raw: msgspec.Raw) -> Any:
    """Parse a member's value; None if it cannot be parsed."""
    try:
        return _VALUE.decode(raw)
    except (ValueError, RecursionError):
        return None


def _parse_text(raw: msgspec.Raw) -> str | None:
    """Parse a text, the first of a list of them, without spaces around it; None if it is blank."""
    value = _parse_value(raw)
    if isinstance(value, str):
        return value.strip() or None
    return next(_list_texts(value), None)


def _parse_texts(raw: msgspec.Raw) -> Iterator[str]:
    """Yield the texts of a member that is a text or a list of them, without blank ones."""
    return _list_texts(_parse_value(raw))


def _list_texts(value: Any) -> Iterator[str]:
    values = cast(list[Any], value) if isinstance(value, list) else [value]
    return (each.strip() for each in values if isinstance(each, str) and each.strip())
