"""Address patterns in the schemas match the validation, as far as patterns can express it."""

# jsonschema is typed in part
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from centgate.catalog import all_services, published_input_schema
from centgate.errors import InvalidRequest
from centgate.request_body import RequestBody, parse_request
from centgate.service import AnyService
from centgate.settings import Settings

SERVICES: dict[str, AnyService] = {service.slug: service for service in all_services()}
LABEL = "a" * 63
PAGES = (
    "https://example.com",
    "HTTP://Example.COM:80/a?b=c#d",
    "https://user_name.github.io./x",
    "https://xn--bcher-kva.example/ü",
    "https://a.b-c.co.uk:443?q",
    f"https://{'.'.join([LABEL] * 3)}.{'b' * 61}/",
)
NO_PAGES = (
    f"https://{'.'.join([LABEL] * 3)}.{'b' * 62}/",
    f"https://{'.'.join(['0' * 63] * 4)}.com/",
    f"https://{'a' * 64}.com/",
    "https://example.com:8080/",
    "https://example.com:99999/",
    "https://localhost/",
    "https://printer.LOCAL/",
    "https://a.home.arpa:443",
    "https://db.internal./x",
    "https://a.1/",
    "https://0x7f.1/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://a..com/",
    "https://exa%zzmple.com/",
)
ADDRESSES = (
    "abc",
    "https://example.com/a b",
    "example.com:8080",
    "\u0430\u0440\u0440\u04cf\u0435.com",
    "münchen.de./?",
    "_xy",
    "-.東京",
    "http://1.2.3.4/login",
    "https://user:password@example.com:65535/x?y#z",
    "http://[::1]/",
    "[2001:db8::1]:80",
    "wss://example.com",
    "https://مثال.إختبار/",
    "हिन्दी.भारत",
    "ไทย.com",
)
NO_ADDRESSES = (
    "a b.com",
    "https://",
    "javascript:alert(1)",
    "ð\U000f8a44\x00",
    "a|b.com",
    "://x",
    "[::1",
    "[1::2::3]",
    "...",
    "https://example.com:65536/",
    "1.2.3.256",
)


def is_allowed(slug: str, body: dict[str, Any], settings: Settings | None = None) -> bool:
    schema = published_input_schema(SERVICES[slug], settings or Settings())
    return bool(Draft202012Validator(schema).is_valid(body))


def is_accepted(slug: str, body: dict[str, Any]) -> bool:
    try:
        parse_request(SERVICES[slug], RequestBody(json.dumps(body).encode()), {})
    except InvalidRequest:
        return False
    return True


@pytest.mark.parametrize(
    ("slug", "member", "good", "bad"),
    [
        ("crawler-scrape", "url", PAGES, NO_PAGES),
        ("crawler-map", "url", PAGES, NO_PAGES),
        ("neuralweb-contents", "urls", PAGES, NO_PAGES),
        ("phishing-check", "url", ADDRESSES, NO_ADDRESSES),
    ],
)
def test_allowed_addresses_are_accepted_and_refused_ones_forbidden(
    slug: str, member: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    for text in (*good, *bad):
        body = {member: [text] if member == "urls" else text}

        assert is_allowed(slug, body) is is_accepted(slug, body) is (text in good), text


def test_server_of_other_networks_allows_their_addresses() -> None:
    body = {"url": "http://10.0.0.7:8080/page"}

    assert not is_allowed("crawler-scrape", body)
    assert is_allowed("crawler-scrape", body, Settings(fetch_allowed=("10.0.0.0/8:8080",)))
