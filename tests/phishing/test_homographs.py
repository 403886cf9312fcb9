"""Homograph warnings for names that read like a protected one; they contain letters of other alphabets."""

from __future__ import annotations

import pytest

from centgate.phishing.collection import CollectionVerdict, ListCollection, load_list
from centgate.phishing.homograph import mixes_scripts
from centgate.phishing.rules import PhishingRules
from centgate.phishing.snapshot import make_snapshot
from centgate.phishing.url import parse_address
from centgate.provider import RequestTrace
from centgate.providers.phishinglist import PhishingList
from centgate.settings import Settings

RULES = PhishingRules(
    ["metamask.io", "opensea.io", "makerdao.com", "b\u00fccher.example", "xn--bcher-kva.de"],
    fuzzylist=["metamask.io", "opensea.io"],
    tolerance=2,
)


def find_homograph(text: str) -> str | None:
    return check(text).homograph_of


def check(text: str) -> CollectionVerdict:
    snapshot = make_snapshot(RULES, source="test", date=None)
    return ListCollection([load_list("metamask", snapshot)]).check(parse_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "https://metam\N{CYRILLIC SMALL LETTER A}sk.io/login",
        "xn--metamsk-6fg.io",
        "www.metam\N{CYRILLIC SMALL LETTER A}sk.io",
        "m\N{GREEK SMALL LETTER EPSILON}tamask.io",
        "metamas\N{LATIN SMALL LETTER K WITH HOOK}.io",
        "m\N{LATIN SMALL LETTER E WITH ACUTE}tamask.com",
        "m\N{LATIN SMALL LETTER E WITH ACUTE}tamaskk.com",
    ],
)
def test_name_that_reads_like_protected_one_is_homograph(text: str) -> None:
    assert find_homograph(text) == "metamask.io"


def test_allowed_name_is_protected_as_a_whole() -> None:
    assert find_homograph("makerda\N{CYRILLIC SMALL LETTER O}.com") == "makerdao.com"
    assert find_homograph("makerda\N{CYRILLIC SMALL LETTER O}.org") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("c\N{CYRILLIC SMALL LETTER O}inbase.com", "coinbase.com"),
        ("https://app.ph\N{CYRILLIC SMALL LETTER A}ntom.app/", "phantom.app"),
        ("g\N{CYRILLIC SMALL LETTER O}\N{CYRILLIC SMALL LETTER O}gle.com", "google.com"),
    ],
)
def test_best_known_names_are_protected_without_list(text: str, name: str) -> None:
    verdict = check(text)

    assert (verdict.homograph_of, verdict.risk) == (name, "high")


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("b\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}nance.example", True),
        ("shop.payp\N{GREEK SMALL LETTER ALPHA}l.example", True),
        ("\u0442\u0435\u043b\u0435\u0433\u0440\u0430\u043c-24.\u0440\u0444", False),
        ("shop.\u0442\u0435\u043b\u0435\u0433\u0440\u0430\u043c.example", False),
        ("m\u00fcnchen.de", False),
        ("\u65e5\u672cshop.jp", False),
        ("plain.example", False),
    ],
)
def test_label_of_two_resembling_scripts_is_found(domain: str, *, expected: bool) -> None:
    assert mixes_scripts(domain) is expected


def test_mixed_scripts_are_warned_of_without_protected_name() -> None:
    provider = PhishingList(Settings())
    provider.store.reload()
    provider = provider.bind(RequestTrace.start())

    verdict = provider.check_address(parse_address("b\N{CYRILLIC SMALL LETTER A}nnana-seller.example"))

    assert (verdict.homograph_of, verdict.risk) == (None, "unknown")
    assert provider.trace.warnings[-1] == (
        "b\N{CYRILLIC SMALL LETTER A}nnana-seller.example (xn--bnnana-seller-w1k.example) "
        "mixes letters of scripts that look alike, as names do that imitate others"
    )


@pytest.mark.parametrize("text", ["metamask.io", "metamask.org", "metamasc.io", "1.2.3.4"])
def test_ascii_name_is_no_homograph(text: str) -> None:
    assert find_homograph(text) is None


def test_name_unlike_protected_ones_is_no_homograph() -> None:
    assert find_homograph("caf\u00e9.example") is None


def test_allowed_name_is_no_homograph_of_itself() -> None:
    assert find_homograph("b\u00fccher.de") is None


def test_subdomain_in_other_letters_is_no_homograph() -> None:
    assert find_homograph("\u00fcber.metamask.io") is None


def test_homograph_does_not_change_verdict() -> None:
    assert check("xn--metamsk-6fg.io").status == "unknown"
