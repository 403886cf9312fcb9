"""Agreement with recorded verdicts of MetaMask's detectors, of their test suites and generated addresses."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from typing import Any

import pytest
from fake_upstreams import RECORDINGS
from subtest_cases import each_case

from centgate.phishing.collection import ListCollection
from centgate.phishing.detector import PhishingDetector, PhishingVerdict
from centgate.phishing.path_rules import PathTree, split_host_and_path
from centgate.phishing.rules import InvalidPhishingList, PhishingRules, is_array, parse_rules
from centgate.phishing.snapshot import load_shipped
from centgate.phishing.store import open_shipped
from centgate.phishing.url import InvalidAddress, parse_address

PHISHING = RECORDINGS / "phishing"

pytestmark = [pytest.mark.extended, pytest.mark.recorded]

STATUS = {
    "allowlist": "allowed",
    "whitelist": "allowed",
    "blocklist": "blocked",
    "blacklist": "blocked",
    "fuzzy": "lookalike",
    "all": "unknown",
}
LISTS = {"allowed": "allowlist", "blocked": "blocklist", "lookalike": "fuzzylist", "unknown": None}
WEB = ("http:", "https:", "ws:", "wss:", "ftp:")


def cases(name: str, *wanted: str, key: str = "") -> list[Any]:
    """Return recorded cases; none where the recordings are absent, since parameters are read on import."""
    if not PHISHING.is_dir():
        return []
    recorded: list[dict[str, Any]] = json.loads((PHISHING / name).read_text())["cases"]
    return [case for case in recorded if not wanted or case[key] in wanted]


def make_detector(options: Any) -> PhishingDetector:
    """Return a detector as the reference does, of one legacy object or of lists without invalid ones."""
    configs: list[Any] = [options] if isinstance(options, dict) else options
    lists: list[PhishingRules] = []
    for config in configs:
        try:
            lists.append(parse_rules(config))
        except InvalidPhishingList:
            continue
    return PhishingDetector(*lists)


@cache
def load_shipped_detector() -> PhishingDetector:
    return PhishingDetector(load_shipped().rules)


@cache
def load_shipped_name() -> str:
    return load_shipped().header.source


def find_verdict(detector: PhishingDetector, text: str) -> PhishingVerdict:
    try:
        return detector.check(parse_address(text))
    except InvalidAddress:
        return PhishingVerdict("")


def assert_same_verdict(ours: PhishingVerdict, theirs: dict[str, Any]) -> None:
    status = STATUS.get(theirs.get("type", ""), ours.status)
    assert ours.status == status
    assert ours.matched_list == LISTS[status]
    assert (ours.status in ("blocked", "lookalike")) == theirs["result"]
    if "match" in theirs:
        assert ours.match == theirs["match"]
    if theirs.get("name") and ours.rules and ours.rules.name != load_shipped_name():
        assert ours.rules.name == theirs["name"]
    if "version" in theirs and ours.rules:
        assert ours.rules.version == str(theirs["version"])


@each_case("case", cases("core-detector.json", "check", key="method"))
def test_current_detector_gives_same_verdict(case: dict[str, Any]) -> None:
    assert_same_verdict(find_verdict(make_detector(case["options"]), case["input"]), case["expected"])


@each_case("case", cases("core-detector.json", "blockingPath", key="method"))
def test_current_detector_finds_same_blocked_path(case: dict[str, Any]) -> None:
    [rules] = make_detector(case["options"]).lists

    assert rules.paths.match(parse_address(case["input"])) == case["expected"]


@each_case("case", cases("controller-origin.json"))
def test_wallet_gives_same_verdict_on_origin(case: dict[str, Any]) -> None:
    assert_same_verdict(find_verdict(make_detector(case["options"]), case["input"]), case["expectedSubset"])


@each_case("case", [case for case in cases("list-expectations.json") if "requiresNewerList" not in case])
def test_published_expectations_of_list_hold(case: dict[str, Any]) -> None:
    assert_same_verdict(find_verdict(load_shipped_detector(), case["input"]), case["expected"])


@each_case("case", [case for case in cases("npm-suite.json") if case["input"].isascii()])
def test_suite_of_npm_package_passes(case: dict[str, Any]) -> None:
    named = isinstance(case["config"], str)
    detector = load_shipped_detector() if named else make_detector(case["config"])

    assert_same_verdict(find_verdict(detector, case["input"]), case["expected"])


@each_case("case", [case for case in cases("npm-suite.json") if not case["input"].isascii()])
def test_accented_lookalikes_of_npm_package_are_homographs(case: dict[str, Any]) -> None:
    # the package compares the raw text, the current detector the host of the parsed URL, which is punycode
    verdict = ListCollection([open_shipped()]).check(parse_address(case["input"]))
    assert verdict.homograph_of == case["expected"]["match"]


@each_case("case", cases("workload-sample.json"))
@each_case("spelling", ["url", "domain"])
def test_generated_addresses_get_same_verdict(case: dict[str, Any], spelling: str) -> None:
    assert_same_verdict(find_verdict(load_shipped_detector(), case[spelling]), case["modern"])


def is_unchanged(case: dict[str, Any]) -> bool:
    return case["asIs"]["ok"] and case["asIs"]["protocol"] in WEB


def expected_host(case: dict[str, Any]) -> str | None:
    """Return the recorded host; None without one, or for a scheme that does not open a website."""
    if is_unchanged(case):
        host: str = case["asIs"]["hostname"]
        return host
    scheme = re.match(r"([a-z][a-z0-9+.-]*):", re.sub(r"[\t\r\n]", "", case["input"]).strip(), re.IGNORECASE)
    with_port = scheme and re.fullmatch(r"\d+[/?#\\].*|\d*", case["input"].partition(":")[2])
    if scheme and (f"{scheme[1].lower()}:" in WEB or not with_port):
        return None
    return case["withHttps"]["hostname"] if case["withHttps"]["ok"] else None


@cache
def load_trap_detector() -> PhishingDetector:
    return make_detector(json.loads((PHISHING / "url-traps.json").read_text())["config"])


@each_case("case", cases("url-traps.json"))
def test_address_is_parsed_as_by_browsers(case: dict[str, Any]) -> None:
    reading = expected_host(case)

    try:
        host = parse_address(case["input"]).host
    except InvalidAddress:
        host = None

    assert host == reading


@each_case("case", [case for case in cases("url-traps.json") if expected_host(case)])
def test_url_trap_gets_same_verdict(case: dict[str, Any]) -> None:
    expected = case["checkAsIs" if is_unchanged(case) else "checkWithHttps"]
    assert_same_verdict(find_verdict(load_trap_detector(), case["input"]), expected)


@each_case("case", cases("core-utils.json", "insertToTrie", "deleteFromTrie", key="fn"))
def test_changes_of_blocked_paths_give_same_tree(case: dict[str, Any]) -> None:
    text, before = case["args"]
    paths = PathTree(copy.deepcopy(before))

    (paths.add if case["fn"] == "insertToTrie" else paths.discard)(text)

    assert paths.tree == case["trieAfter"]


# a value that is not a list creates an empty tree there, and is an error here
@each_case(
    "case",
    [case for case in cases("core-utils.json", "convertListToTrie", key="fn") if is_array(case["args"][0])],
)
def test_list_of_paths_gives_same_tree(case: dict[str, Any]) -> None:
    assert PathTree.from_entries(case["args"][0]).tree == case["expected"]


@each_case("case", cases("core-utils.json", "matchedPathPrefix", key="fn"))
def test_path_matches_same_prefix(case: dict[str, Any]) -> None:
    text, tree = case["args"]

    assert PathTree(tree).match(parse_address(text)) == case["expected"]


@each_case("case", cases("core-utils.json", "getHostnameAndPathComponents", key="fn"))
def test_path_has_same_components(case: dict[str, Any]) -> None:
    host, components = split_host_and_path(case["args"][0])

    assert {"hostname": host, "pathComponents": components} == case["expected"]


@each_case("case", cases("core-utils.json", "getHostnameFromUrl", key="fn"))
def test_url_has_same_host(case: dict[str, Any]) -> None:
    try:
        host = parse_address(case["args"][0]).host
    except InvalidAddress:
        host = None

    assert host == case["expected"]
