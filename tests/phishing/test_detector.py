"""Verdicts: the list and the entry that decide, compared with a linear search."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from centgate.phishing.detector import PhishingDetector, PhishingVerdict
from centgate.phishing.path_rules import PathTree
from centgate.phishing.rules import InvalidPhishingList, PhishingRules, parse_rules
from centgate.phishing.snapshot import load_shipped
from centgate.phishing.url import parse_address

CID = "bafybeifx7yeb55armcsxwwitkymga5xf53dxiarykms3ygqic223w5sk3m"
CID_V0 = "QmUDBVyGwqKdSayk7kDKUaj9J41Ft1DWizcKUx5UmgMgGy"


def check(text: str, *lists: PhishingRules) -> PhishingVerdict:
    return PhishingDetector(*lists).check(parse_address(text))


def test_entry_covers_subdomains() -> None:
    rules = PhishingRules(blocklist=["evil.com"])

    assert check("https://a.b.evil.com", rules) == ("a.b.evil.com", "blocked", "blocklist", "evil.com", rules)


def test_entry_covers_neither_parent_nor_longer_name() -> None:
    rules = PhishingRules(blocklist=["sub.evil.com"])

    assert check("evil.com", rules).status == "unknown"
    assert check("notsub.evil.com", rules).status == "unknown"


def test_unlisted_domain_is_unknown_without_list() -> None:
    assert check("example.com", PhishingRules()) == PhishingVerdict("example.com", "unknown", None, None)


def test_allowlist_precedes_blocklist() -> None:
    assert check("bad.github.io", PhishingRules(["github.io"], ["bad.github.io"])).match == "github.io"


def test_allowlist_of_later_list_precedes_earlier_blocklist() -> None:
    assert (
        check("both.com", PhishingRules(blocklist=["both.com"]), PhishingRules(["both.com"])).status
        == "allowed"
    )


def test_lookalike_of_earlier_list_precedes_later_blocklist() -> None:
    first, second = (
        PhishingRules(fuzzylist=["metamask.io"], tolerance=2),
        PhishingRules(blocklist=["metamask.org"]),
    )

    assert check("metamask.org", first, second).status == "lookalike"


def test_blocking_list_is_named() -> None:
    first, second = PhishingRules(name="first"), PhishingRules(blocklist=["evil.com"], name="second")

    assert check("evil.com", first, second).rules is second


def test_allowing_list_is_named() -> None:
    first, second = PhishingRules(["a.com", "b.com"], name="first"), PhishingRules(["c.com"], name="second")

    assert check("c.com", first, second).rules is second


def test_first_covering_entry_is_named() -> None:
    assert check("a.b.com", PhishingRules(blocklist=["b.com", "a.b.com"])).match == "b.com"


def test_one_trailing_dot_is_removed() -> None:
    assert check("evil.com.", PhishingRules(blocklist=["evil.com"])).domain == "evil.com"
    assert check("evil.com..", PhishingRules(blocklist=["evil.com"])).status == "unknown"


@pytest.mark.parametrize(
    "text", ["metamask.org", "www.metamask.org", "metamaskkk.io", "mtamsk.io", "netamask.app"]
)
def test_name_within_tolerance_is_lookalike(text: str) -> None:
    verdict = check(text, PhishingRules(fuzzylist=["metamask.io"], tolerance=2))

    assert (verdict.status, verdict.matched_list, verdict.match) == ("lookalike", "fuzzylist", "metamask.io")


@pytest.mark.parametrize(
    "text", ["wallet.metamask.org", "metamask.co.uk", "xwww.metamask.org", "mtmsk.io", "localhost"]
)
def test_name_beyond_tolerance_is_unknown(text: str) -> None:
    assert check(text, PhishingRules(fuzzylist=["metamask.io"], tolerance=2)).status == "unknown"


def test_swapped_letters_count_twice() -> None:
    assert check("opensae.io", PhishingRules(fuzzylist=["opensea.io"], tolerance=1)).status == "unknown"


def test_first_protected_name_within_tolerance_is_named() -> None:
    assert (
        check("maskmata.org", PhishingRules(fuzzylist=["maskmeta.org", "maskmata.io"], tolerance=2)).match
        == "maskmeta.org"
    )


def test_zero_tolerance_finds_no_lookalikes() -> None:
    assert check("metamask.org", PhishingRules(fuzzylist=["metamask.io"], tolerance=0)).status == "unknown"


@pytest.mark.parametrize(
    "text", [f"https://{CID}.ipfs.dweb.link/", f"ipfs.io/ipfs/{CID}/a", f"a.com/?next={CID}"]
)
def test_blocked_content_identifier_is_found_anywhere(text: str) -> None:
    verdict = check(text, PhishingRules(["ipfs.io", "dweb.link", "a.com"], [CID]))

    assert (verdict.status, verdict.matched_list, verdict.match) == ("blocked", "blocklist", CID)


def test_only_first_content_identifier_counts() -> None:
    assert check(f"ipfs.io/ipfs/{CID_V0}/{CID}", PhishingRules(blocklist=[CID])).status == "unknown"


def test_content_identifier_is_case_sensitive() -> None:
    assert check(f"ipfs.io/ipfs/{CID.upper()}", PhishingRules(blocklist=[CID])).status == "unknown"


PATHS = PhishingRules(["x.com"], paths=PathTree.from_entries(["x.com/scam/status", "cdpn.io/bad pen"]))


@pytest.mark.parametrize(
    "text",
    ["x.com/scam/status", "x.com/scam/status/1?a#b", "https://X.com//scam/%73tatus/", r"x.com\scam\.\status"],
)
def test_blocked_path_precedes_allowlist(text: str) -> None:
    verdict = check(text, PATHS)

    assert (verdict.status, verdict.match) == ("blocked", "x.com/scam/status")


@pytest.mark.parametrize(
    "text", ["x.com/scam", "x.com/SCAM/status", "x.com/scam/status2", "x.com/scam%2Fstatus"]
)
def test_paths_are_compared_by_components(text: str) -> None:
    assert check(text, PATHS).status == "allowed"


def test_path_of_subdomain_is_distinct() -> None:
    assert check("a.x.com/scam/status", PATHS).status == "allowed"


def test_undecodable_path_is_no_match() -> None:
    assert check("x.com/scam/status/%zz", PATHS).status == "allowed"


def test_trailing_dot_does_not_hide_blocked_path() -> None:
    assert check("https://x.com./scam/status", PATHS).match == "x.com/scam/status"


def test_matched_path_is_returned_decoded() -> None:
    assert check("cdpn.io/bad%20pen", PATHS).match == "cdpn.io/bad pen"


def test_domain_of_1000_labels_is_checked() -> None:
    assert check("a." * 990 + "evil.com", PhishingRules(blocklist=["evil.com"])).match == "evil.com"


def test_list_in_old_format_is_parsed() -> None:
    rules = parse_rules({"whitelist": ["a.com"], "blacklist": ["b.com"], "fuzzylist": [], "tolerance": 1})

    assert (rules.allowlist, rules.blocklist, rules.tolerance) == (("a.com",), ("b.com",), 1)


def test_default_tolerance_is_three() -> None:
    assert parse_rules({"fuzzylist": ["metamask.io"]}).tolerance == 3


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ([], "the list is not a JSON object"),
        ({"tolerance": 2}, "the list has a tolerance and no fuzzylist"),
        ({"tolerance": "2", "fuzzylist": []}, "the tolerance '2' is not a whole number of 0 or more"),
        ({"blocklist": "evil.com"}, "'blocklist' is not an array"),
        ({"version": ""}, "the version '' is neither a number nor a text"),
        ({"name": ""}, "the name '' is not a text"),
        (
            {"blocklistPaths": {"x.com": {"a": 1}}},
            "'blocklistPaths' is neither an array nor an object of objects",
        ),
    ],
)
def test_unknown_list_format_is_refused_with_reason(config: object, sentence: str) -> None:
    with pytest.raises(InvalidPhishingList) as refusal:
        parse_rules(config)

    assert str(refusal.value) == sentence


def test_shipped_list_allows_blocks_and_finds_lookalikes() -> None:
    detector = PhishingDetector(load_shipped().rules)

    assert detector.check(parse_address("https://www.metamask.io/")).status == "allowed"
    assert detector.check(parse_address("azukishop.live")).status == "blocked"
    assert detector.check(parse_address("metmask.io")).match == "metamask.io"


def test_shipped_allowlist_precedes_shipped_blocklist() -> None:
    assert PhishingDetector(load_shipped().rules).check(parse_address("spi.club")).status == "allowed"


LABELS = st.sampled_from(["", "a", "b", "ab", "www", "abc", "abcd", "abxd"])
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
LISTS = st.builds(
    PhishingRules,
    st.lists(NAMES, max_size=2),
    st.lists(NAMES, max_size=4),
    st.lists(NAMES, max_size=3),
    st.integers(0, 2),
)


@settings(deadline=None)
@given(NAMES, st.lists(LISTS, max_size=3))
def test_lookup_equals_linear_search(domain: str, lists: list[PhishingRules]) -> None:
    assert PhishingDetector(*lists).check_domain(domain)[:4] == check_by_scan(domain, lists)[:4]


def check_by_scan(domain: str, lists: list[PhishingRules]) -> PhishingVerdict:
    for rules in lists:
        for entry in rules.allowlist:
            if covers(entry, domain):
                return PhishingVerdict(domain, "allowed", "allowlist", entry)
    for rules in lists:
        for entry in rules.blocklist:
            if covers(entry, domain):
                return PhishingVerdict(domain, "blocked", "blocklist", entry)
        for entry in rules.fuzzylist if rules.tolerance else ():
            imitation, target = ".".join(domain.split(".")[:-1]), ".".join(entry.split(".")[:-1])
            if edit_distance(imitation.removeprefix("www."), target) <= rules.tolerance:
                return PhishingVerdict(domain, "lookalike", "fuzzylist", entry)
    return PhishingVerdict(domain)


def covers(entry: str, domain: str) -> bool:
    parts, wanted = domain.split("."), entry.split(".")
    return parts[-len(wanted) :] == wanted


@cache
def edit_distance(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return edit_distance(a[1:], b[1:])
    return 1 + min(edit_distance(a[1:], b), edit_distance(a, b[1:]), edit_distance(a[1:], b[1:]))
