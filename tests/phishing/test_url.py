"""Addresses are parsed as browsers parse them: by the host that they open."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from centgate.phishing.url import SCHEMES, InvalidAddress, parse_address

pytestmark = pytest.mark.extended

SAME_HOST = [
    "evil.com",
    "EVIL.com",
    "https://evil.com",
    "HTTPS://Evil.Com/login?next=metamask.io#top",
    "ws://evil.com",
    "ftp://evil.com/x",
    "//evil.com",
    r"\\evil.com",
    "https:evil.com",
    "https:////evil.com",
    r"http:\/\/evil.com",
    "  https://evil.com\n",
    "ht\ntps://ev\til.com",
    "evil.com:443",
    "evil.com:8080/path",
    "evil.com:",
    "https://user:secret@evil.com:8443/",
    "https://metamask.io@evil.com",
    "metamask.io@evil.com",
    r"https://evil.com\@metamask.io",
    "https://%65vil.com",
    "https://evil。com",
    "https://ⓔⓥⓘⓛ.com",
    "https://evi\u00adl.com",
    "evil.com/https://metamask.io",
]


@pytest.mark.parametrize("text", SAME_HOST)
def test_spellings_have_the_same_host(text: str) -> None:
    assert parse_address(text).host == "evil.com"


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("16909060", "1.2.3.4"),
        ("http://0x01020304", "1.2.3.4"),
        ("01.02.03.04", "1.2.3.4"),
        ("http://1.2.772", "1.2.3.4"),
        ("http://[0:0::1]:80/", "[::1]"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("httpbin.org", "httpbin.org"),
        ("http.evil.com/x", "http.evil.com"),
        ("a..b", "a..b"),
        ("a_b.evil.com", "a_b.evil.com"),
    ],
)
def test_host_is_in_canonical_form(text: str, host: str) -> None:
    assert parse_address(text).host == host


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the address is empty"),
        (" \t\n ", "the address is empty"),
        ("mailto:a@evil.com", "'mailto:a@evil.com' has the scheme 'mailto', which does not open a website"),
        (
            "javascript:alert(1)",
            "'javascript:alert(1)' has the scheme 'javascript', which does not open a website",
        ),
        ("ipfs://bafybei", "'ipfs://bafybei' has the scheme 'ipfs', which does not open a website"),
        ("evil.com:99999", "'evil.com:99999' is not a valid address"),
        ("www.194.87.74.167", "'www.194.87.74.167' is not a valid address"),
        ("https://ex|mple.com", "'https://ex|mple.com' is not a valid address"),
        ("https://", "'https://' is not a valid address"),
        ("https://..", "'https://..' has no host"),
        ("xn--a.com", "'xn--a.com' has the label 'xn--a', which is not valid punycode"),
        ("evil\ud800.com", "the address contains an unpaired surrogate, which is not a character"),
        ("https://evil.com/\udfff", "the address contains an unpaired surrogate, which is not a character"),
    ],
)
def test_address_without_host_is_refused_with_reason(text: str, sentence: str) -> None:
    with pytest.raises(InvalidAddress) as refusal:
        parse_address(text)

    assert str(refusal.value) == sentence


def test_refusal_does_not_repeat_long_address() -> None:
    with pytest.raises(InvalidAddress) as refusal:
        parse_address("mailto:" + "a" * 1900)

    assert len(str(refusal.value)) < 150


def test_domain_has_no_trailing_dot() -> None:
    assert parse_address("https://evil.com..").domain == "evil.com."


def test_path_is_canonical() -> None:
    assert parse_address(r"x.com\a\..\b%2D c").pathname == "/b%2D%20c"


def test_only_web_pages_have_a_path() -> None:
    assert parse_address("wss://x.com/a").pathname == ""


def test_punycode_domain_is_displayed_as_unicode() -> None:
    assert parse_address("https://xn--bcher-kva.example.").unicode_domain == "bücher.example"


def test_domain_of_1000_labels_is_parsed() -> None:
    assert parse_address("a." * 999 + "com").host.count(".") == 999


# fmt: off
PIECES = st.sampled_from([
    "evil", "com", "EVIL", ".xn--pple-43d.", ".", ".", "..", "/", "//", "\\", ":", "@", "?", "#", "%", "%2e",
    "%00", "http", "https:", "https://", "wss://", "ftp:", "foo:", "443", "0x7f", "1.2.3.4", "08", "[::1]",
    "[", "]", "_", "-", "*", "|", "^", " ", "\t", "\n", "\x00", "\u00e9", "\u00df", "\u0430", "\u3002",
    "\uff0e", "\uff25", "\u200d", "\u00ad",
])
# fmt: on
# Latin, Greek and Cyrillic: what other scripts allow in a label depends on the age of a parser's
# tables, and so does the capital palochka, which older ones refuse and newer ones convert to lower case
KNOWN = st.characters(
    max_codepoint=0x52F,
    exclude_categories=["Cf", "Cn", "Mn"],
    exclude_characters="\N{CYRILLIC LETTER PALOCHKA}",
)
TEXTS = st.lists(PIECES | KNOWN, min_size=1, max_size=10).map("".join)


@settings(deadline=None)
@given(TEXTS)
def test_any_text_gives_host_or_refusal(text: str) -> None:
    try:
        address = parse_address(text)
    except InvalidAddress:
        return

    assert address.host.isascii()
    assert address.host == address.host.lower()
    assert parse_address(f"https://{address.host}/").host == address.host


NODE = shutil.which("node")
HOSTS = """
const ask = require("node:readline").createInterface({ input: process.stdin });
ask.on("line", (line) => {
  try { console.log(JSON.stringify(new URL(JSON.parse(line)).hostname)); } catch { console.log("null"); }
});
"""


@pytest.mark.skipif(NODE is None, reason="node is not on the PATH")
def test_node_parses_same_hosts() -> None:
    texts: list[str] = []

    @settings(max_examples=4000, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.sampled_from(sorted(SCHEMES)), TEXTS)
    def collect(scheme: str, text: str) -> None:
        texts.append(f"{scheme}://{text}")

    collect()
    ours = [host_or_none(text) for text in texts]

    theirs = parse_with_node(texts)
    assert [pair for pair in zip(texts, ours, theirs, strict=True) if differ(pair[1], pair[2])] == []


def host_or_none(text: str) -> str | None:
    try:
        return parse_address(text).host
    except InvalidAddress:
        return None


def parse_with_node(texts: list[str]) -> list[Any]:
    lines = "\n".join(map(json.dumps, texts))
    done = subprocess.run(
        [NODE or "node", "-e", HOSTS], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def differ(ours: str | None, theirs: str | None) -> bool:
    return ours != theirs and not (ours is None and theirs is not None and not theirs.strip("."))
