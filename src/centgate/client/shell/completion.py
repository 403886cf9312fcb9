"""What a shell offers after `centgate call`: the services of the API, and what each may be given."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx2
import platformdirs
from pydantic import ValidationError

from centgate.client.errors import BuyerError
from centgate.client.origin import origin_of
from centgate.client.settings import BuyerSettings
from centgate.client.shell.arguments import Schema, spelt

SECONDS = 1.0
"""How long the shell waits for the API before an older copy is used."""
MOST_BYTES = 1 << 20

Offer = tuple[str, str]
"""What is offered, and what it means."""


def api_of(given: str | None) -> str:
    """The address of the API that is meant, as the command itself would call it; empty where it is none."""
    try:
        return origin_of(given or BuyerSettings().api_url)
    except (BuyerError, ValidationError):
        return ""


def slugs(api: str, incomplete: str) -> list[Offer]:
    """The services whose slug begins so."""
    found = [(each["slug"], each["summary"]) for each in _catalog(api, "services").get("services", [])]
    return _safe(offer for offer in found if offer[0].startswith(incomplete))


def pairs(api: str, slug: str, given: list[str], incomplete: str) -> list[Offer]:
    """What can follow: keys that are not given yet, with their values where the schema lists them.

    bash takes `=` for the end of a word: a value comes alone there, after the words `chain` and `=`, the last
    of which Typer leaves out while nothing follows it.
    """
    schema: Schema = _catalog(api, f"services/{slug}").get("inputSchema", {})
    if given and not incomplete and (values := _values(schema, given[-1])):
        return _safe((value, "") for value in values)
    if len(given) > 1 and given[-1] == "=":
        return _safe((value, "") for value in _values(schema, given[-2]) if value.startswith(incomplete))
    used = {pair.partition("=")[0] for pair in given}
    return _safe(offer for offer in _pairs(schema, used) if offer[0].startswith(incomplete))


def _safe(offers: Iterable[Offer]) -> list[Offer]:
    """What a shell may be given: zsh evaluates what it is offered, and an API may be anybody's."""
    plain = [(offer, re.sub(r"[^\w .,;:/-]", "", meaning)) for offer, meaning in offers]
    return [(offer, meaning) for offer, meaning in plain if re.fullmatch(r"[\w.=-]+", offer)]


def _pairs(schema: Schema, used: set[str]) -> Iterator[Offer]:
    for name, field in schema.get("properties", {}).items():
        if name in used and field.get("type") != "array":
            continue
        values = _values(schema, name)
        for text in [f"{name}={value}" for value in values] or [f"{name}="]:
            yield text, str(field.get("description", ""))


def _values(schema: Schema, key: str) -> list[str]:
    """The values that a key can have, where there are a few words to choose from."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    field = properties.get(spelt(key, properties) or "", {})
    words = ["true", "false"] if field.get("type") == "boolean" else field.get("enum", [])
    return [str(word) for word in words]


def _catalog(api: str, path: str) -> dict[str, Any]:
    """What a free path says now, or said when it was last asked; nothing where neither is known."""
    if not re.fullmatch(r"services(/[a-z0-9-]+)?", path):
        return {}
    kept = platformdirs.user_cache_path("centgate") / "catalog" / quote(api, safe="") / f"{path}.json"
    try:
        content = _fetched(f"{api}/{path}")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        with suppress(OSError, ValueError):
            return cast(dict[str, Any], json.loads(kept.read_bytes()))
        return {}
    with suppress(OSError):
        _keep(kept, content)
    return content


def _fetched(url: str) -> dict[str, Any]:
    """The JSON object at a URL; ValueError when it is another thing, too long or too late."""
    until, content = time.monotonic() + SECONDS, b""
    with httpx2.stream("GET", url, timeout=SECONDS, trust_env=False) as response:
        for chunk in response.raise_for_status().iter_bytes():
            content += chunk
            if time.monotonic() > until or len(content) > MOST_BYTES:
                raise ValueError(f"{url} takes too long")
    found: Any = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError(f"{url} is not a catalogue")
    return cast(dict[str, Any], found)


def _keep(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_text(json.dumps(content), encoding="utf-8")
    written.replace(path)
