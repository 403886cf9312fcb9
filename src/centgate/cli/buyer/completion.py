"""Shell completion of `centgate call`: service slugs, and the keys and values of their input."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx2
import platformdirs
from pydantic import ValidationError

from centgate.cli.buyer.arguments import match_key
from centgate.client.base_url import parse_origin
from centgate.client.errors import BuyerError
from centgate.client.settings import BuyerSettings
from centgate.coercion import as_list, as_text, get_path
from centgate.json_schema import InvalidSchema, Schema, parse_schema

FETCH_TIMEOUT = 1.0
"""Timeout in seconds before a cached copy of the catalogue is used."""
MAX_RESPONSE_BYTES = 1 << 20

Completion = tuple[str, str]
"""Completion and its description."""


def api_origin(api: str | None) -> str:
    """Return the origin of the API that the command would call; empty if it is invalid."""
    try:
        return parse_origin(api or BuyerSettings().api_url)
    except (BuyerError, ValidationError):
        return ""


def complete_slug(api: str, incomplete: str) -> list[Completion]:
    """Complete a service slug."""
    offers = [
        (as_text(get_path(each, "slug")) or "", as_text(get_path(each, "summary")) or "")
        for each in as_list(_load_catalog(api, "services").get("services"))
    ]
    return _sanitize(offer for offer in offers if offer[0].startswith(incomplete))


def complete_pair(api: str, slug: str, words: list[str], incomplete: str) -> list[Completion]:
    """Complete `key=value`: unused keys, with their values if the schema lists them.

    bash splits words at `=`: there a value is completed alone, after the words `chain` and `=`; Typer omits
    the latter while nothing follows it.
    """
    try:
        schema = parse_schema(_load_catalog(api, f"services/{slug}").get("inputSchema", {}))
    except InvalidSchema:
        return []
    if words and not incomplete and (values := _values_of(schema, words[-1])):
        return _sanitize((value, "") for value in values)
    if len(words) > 1 and words[-1] == "=":
        return _sanitize(
            (value, "") for value in _values_of(schema, words[-2]) if value.startswith(incomplete)
        )
    used = {pair.partition("=")[0] for pair in words}
    return _sanitize(offer for offer in _pair_offers(schema, used) if offer[0].startswith(incomplete))


def _sanitize(offers: Iterable[Completion]) -> list[Completion]:
    """Remove unsafe completions and characters: zsh evaluates completions, and an API is untrusted."""
    cleaned = [(offer, re.sub(r"[^\w .,;:/-]", "", meaning)) for offer, meaning in offers]
    return [(offer, meaning) for offer, meaning in cleaned if re.fullmatch(r"[\w.=-]+", offer)]


def _pair_offers(schema: Schema, used: set[str]) -> Iterator[Completion]:
    for name, field in schema.properties.items():
        if name in used and field.type != "array":
            continue
        values = _values_of(schema, name)
        for text in [f"{name}={value}" for value in values] or [f"{name}="]:
            yield text, field.description


def _values_of(schema: Schema, key: str) -> list[str]:
    """Return the values of a key, if the schema lists them or the key is a boolean."""
    name = match_key(key, schema.properties)
    if name is None:
        return []
    field = schema.properties[name]
    return ["true", "false"] if field.type == "boolean" else [str(value) for value in field.values]


def _load_catalog(api: str, path: str) -> dict[str, Any]:
    """Return the JSON of an unpaid path: fetched, else cached, else empty."""
    if not re.fullmatch(r"services(/[a-z0-9-]+)?", path):
        return {}
    cache_file = platformdirs.user_cache_path("centgate") / "catalog" / quote(api, safe="") / f"{path}.json"
    try:
        content = _fetch_json(f"{api}/{path}")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        with suppress(OSError, ValueError):
            return _parse_object(cache_file.read_bytes())
        return {}
    with suppress(OSError):
        _write_cache(cache_file, content)
    return content


def _fetch_json(url: str) -> dict[str, Any]:
    """Fetch a JSON object. Raises ValueError if it is not an object, too large or too slow."""
    deadline, content = time.monotonic() + FETCH_TIMEOUT, b""
    with httpx2.stream("GET", url, timeout=FETCH_TIMEOUT, trust_env=False) as response:
        for chunk in response.raise_for_status().iter_bytes():
            content += chunk
            if time.monotonic() > deadline or len(content) > MAX_RESPONSE_BYTES:
                raise ValueError(f"{url} takes too long")
    return _parse_object(content)


def _parse_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError."""
    try:
        parsed: Any = json.loads(content)
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    if not isinstance(parsed, dict):
        raise ValueError("the JSON is not an object")
    return cast(dict[str, Any], parsed)


def _write_cache(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)
