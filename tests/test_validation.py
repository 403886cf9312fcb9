"""Validation of request bodies: every problem is reported before payment, and nothing is charged.

Every request here carries a valid payment, so that an invalid body that is accepted would be charged for.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import httpx
import pytest
from buyer import Buyer, sign_payment
from facilitators import StubFacilitator, open_stub_facilitator
from subtest_cases import each_case

from centgate.catalog import all_services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.errors import InvalidRequest
from centgate.request_body import MAX_BODY_BYTES, parse_json_object
from centgate.server import run_in_thread
from centgate.service import AnyService
from centgate.settings import Settings

SERVICES = all_services()
STRICT = [service for service in SERVICES if service.category == "web-context"]
LENIENT = [service for service in SERVICES if service.category == "crypto-context"]
CAPPED = [service for service in SERVICES if service.refused_options.names]
NUMBERED = [
    (service, name)
    for service in SERVICES
    for name, field in service.input_schema(None)["properties"].items()
    if field.get("type") == "integer"
]
FIELDS = [(service, name) for service in SERVICES for name in service.input_schema(None)["properties"]]
LARGE = "9" * 300

# beside valid members, as the value of an unknown key
BROKEN_VALUES: dict[str, bytes] = {
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "a number beyond all": b"1e999",
    "a number of 5,000 digits": b"9" * 5000,
    "a byte that is not UTF-8": b'"\xff"',
    "a character spelled too long": b'"\xc0\xaf"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "half of a surrogate pair": b'"\\ud800"',
    "the other half": b'"\\udc00"',
    "a raw null byte": b'"\x00"',
    "a raw line feed": b'"\n"',
    "an unknown escape": b'"\\x41"',
    "single quotes": b"'a'",
    "a comment": b"1 /* one */",
    "a trailing comma": b"[1,]",
    "a leading zero": b"01",
    "a hexadecimal number": b"0x10",
    "no value": b"",
    "1,100 lists in lists": b"[" * 1100 + b"]" * 1100,
    "1,100 objects in objects": b'{"a":' * 1100 + b"1" + b"}" * 1100,
    "10,000 lists that never end": b"[" * 10000,
    "a key twice inside": b'{"a":1,"a":2}',
}
NO_OBJECTS: dict[str, bytes] = {
    "a list": b"[]",
    "a list of objects": b'[{"url":"https://metamask.io"}]',
    "null": b"null",
    "true": b"true",
    "a number": b"0",
    "a string": b'"text"',
    "white space": b" \r\n\t",
    "half an object": b"{",
    "two objects": b"{}{}",
    "an unquoted key": b"{a:1}",
    "a number as key": b"{1:1}",
    "a null byte": b"\x00",
    "a form": b"url=https%3A%2F%2Fmetamask.io",
    "UTF-16": "{}".encode("utf-16"),
    "1,100 lists in lists": b"[" * 1100 + b"]" * 1100,
}
WRONG_TYPES = [
    "text/plain",
    "text/html; charset=utf-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "application/jsonp",
    "application/json; charset=latin-1",
    "application/json; charset=utf-16",
    "application/xml",
]
RIGHT_TYPES = [
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/json; charset=utf-8; profile=x",
    "application/problem+json",
    "",
]


each_service = each_case("service", SERVICES)
each_field = each_case(("service", "name"), FIELDS)
each_word_field = each_case(
    ("service", "name"), [pair for pair in FIELDS if pair[1] in ("query", "libraryName", "protocol")]
)
each_number = each_case(("service", "name"), NUMBERED)

Post = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def facilitator_stub() -> Generator[StubFacilitator]:
    """A facilitator that settles every payment."""
    with open_stub_facilitator() as stub:
        yield stub


@pytest.fixture(scope="module")
def served_api(
    facilitator_stub: StubFacilitator, tmp_path_factory: pytest.TempPathFactory
) -> Generator[httpx.Client]:
    """One API for all tests here."""
    folder = tmp_path_factory.mktemp("served_api")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(folder)
        settings = Settings(
            pay_to=DEFAULT_PAYEE,
            network="eip155:84532",
            facilitator_url=facilitator_stub.url,
            database_url=f"sqlite:///{folder / 'journal.db'}",
            port=0,
            free_per_minute=0,  # all tests come from one IP address
        )
    with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def payments(served_api: httpx.Client) -> dict[str, str]:
    """An unused payment for every service."""
    return {
        service.slug: sign_payment(served_api, Buyer(), service.path, service.input_example)
        for service in SERVICES
    }


@pytest.fixture
def post(
    served_api: httpx.Client, payments: dict[str, str], facilitator_stub: StubFacilitator
) -> Iterator[Post]:
    """Function that sends a body with a valid payment; the test fails if a payment was settled."""

    def send(
        service: AnyService, body: bytes | Iterator[bytes], content_type: str = "application/json"
    ) -> httpx.Response:
        headers = {"Content-Type": content_type, "PAYMENT-SIGNATURE": payments[service.slug]}
        return served_api.post(service.path, content=body, headers=headers)

    before = facilitator_stub.settle_calls
    yield send
    assert facilitator_stub.settle_calls == before, "an invalid body was charged for"


def example_without_chain_of(service: AnyService, name: str) -> dict[str, Any]:
    """Return the example of a service, without the name of the chain if `name` is the field of its id."""
    return {key: value for key, value in service.input_example.items() if (name, key) != ("chainId", "chain")}


def encode_body(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def invalid_fields(names: Iterable[str]) -> dict[str, Any]:
    """Return an invalid value for every field."""
    return {name: {} for name in names}


def add_member(service: AnyService, value: bytes) -> bytes:
    """Return the published example with one more member."""
    return encode_body(service.input_example)[:-1] + b',"zzz":' + value + b"}"


def list_issues(response: httpx.Response) -> list[dict[str, str]]:
    """Return the issues of a response, which must be a validation error."""
    assert response.status_code == 400, response.text
    content = response.json()
    assert content["error"]["code"] == "validation_error"
    assert content["requestId"] == response.headers["X-Request-Id"]
    found = content["error"]["details"]["issues"]
    assert found
    assert all(set(issue) == {"path", "message"} and issue["message"] for issue in found)
    return found


def list_issue_paths(response: httpx.Response) -> set[str]:
    return {issue["path"] for issue in list_issues(response)}


def is_accepted(served_api: httpx.Client, service: AnyService, body: bytes, content_type: str) -> bool:
    """Return True if a body without a payment gets the terms."""
    headers = {"Content-Type": content_type} if content_type else {}
    return served_api.post(service.path, content=body, headers=headers).status_code == 402


@pytest.mark.extended
@each_service
@each_case("value", BROKEN_VALUES)
def test_malformed_json_is_refused(post: Post, service: AnyService, value: bytes) -> None:
    response = post(service, add_member(service, value))

    assert list_issue_paths(response) == {""}


@pytest.mark.extended
@each_service
@each_case("body", NO_OBJECTS)
def test_body_without_object_is_refused(post: Post, service: AnyService, body: bytes) -> None:
    response = post(service, body)

    assert list_issue_paths(response) == {""}


@each_service
def test_byte_order_mark_is_refused(post: Post, service: AnyService) -> None:
    response = post(service, b"\xef\xbb\xbf" + encode_body(service.input_example))

    assert list_issue_paths(response) == {""}


@each_service
def test_repeated_key_is_refused_by_name(post: Post, service: AnyService) -> None:
    example = encode_body(service.input_example)

    response = post(service, example[:-1] + b"," + example[1:])

    assert repr(next(iter(service.input_example))) in list_issues(response)[0]["message"]


@each_service
def test_missing_body_with_payment_is_refused(post: Post, service: AnyService) -> None:
    assert list_issue_paths(post(service, b"")) == {""}


@each_service
def test_empty_object_lacks_required_fields(post: Post, service: AnyService) -> None:
    response = post(service, b"{}")  # with a payment; an empty object without one gets the terms

    assert list_issue_paths(response) >= set(service.input_schema(None).get("required", ()))


@each_service
@each_case("content_type", WRONG_TYPES)
def test_other_content_type_is_refused(post: Post, service: AnyService, content_type: str) -> None:
    response = post(service, encode_body(service.input_example), content_type)

    assert list_issue_paths(response) == {""}


@each_case("content_type", RIGHT_TYPES)
def test_json_content_types_are_accepted(served_api: httpx.Client, content_type: str) -> None:
    service = SERVICES[0]

    assert is_accepted(served_api, service, encode_body(service.input_example), content_type)


def test_compressed_body_is_refused_by_its_coding(served_api: httpx.Client) -> None:
    service = SERVICES[0]
    body = gzip.compress(encode_body(service.input_example))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}

    response = served_api.post(service.path, content=body, headers=headers)

    assert [issue["message"] for issue in list_issues(response)] == [
        "the body is compressed (Content-Encoding: gzip); send it without compression"
    ]


def test_repeated_key_among_many_is_found_at_once() -> None:
    members = ",".join(f'"{number}":0' for number in range(6_000))
    start = time.thread_time()

    with pytest.raises(InvalidRequest, match="key '5999' appears twice"):
        parse_json_object(f'{{{members},"5999":0}}'.encode())

    assert time.thread_time() - start < 0.1  # 0.6 s if each key is counted among all


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "the body is missing"),
        (b"[]", "the body must be a JSON object"),
        (b'{"a":1,"a":2}', "key 'a' appears twice"),
        (b"{", "the body is not valid JSON"),
        (b"\x1f\x8b" * MAX_BODY_BYTES, f"the body is larger than {MAX_BODY_BYTES} bytes"),
    ],
    ids=["none", "a list", "a key twice", "half an object", "too large"],
)
def test_body_that_names_a_compression_keeps_its_own_problem(
    served_api: httpx.Client, payments: dict[str, str], body: bytes, problem: str
) -> None:
    service = SERVICES[0]
    payment = {"PAYMENT-SIGNATURE": payments[service.slug]}
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **payment}

    response = served_api.post(service.path, content=body, headers=headers)

    assert [problem in issue["message"] for issue in list_issues(response)] == [True]


def test_plain_body_with_mistaken_coding_is_accepted(served_api: httpx.Client) -> None:
    service = SERVICES[0]
    headers = {"Content-Type": "application/json", "Content-Encoding": "utf-8"}

    response = served_api.post(service.path, content=encode_body(service.input_example), headers=headers)

    assert response.status_code == 402


@each_service
def test_body_of_64_kib_is_accepted(served_api: httpx.Client, service: AnyService) -> None:
    body = encode_body(service.input_example).ljust(MAX_BODY_BYTES)

    assert is_accepted(served_api, service, body, "application/json")


@each_service
def test_one_byte_more_is_refused(post: Post, service: AnyService) -> None:
    response = post(service, encode_body(service.input_example).ljust(MAX_BODY_BYTES + 1))

    assert str(MAX_BODY_BYTES) in list_issues(response)[0]["message"]


@each_service
def test_chunked_body_is_limited_as_well(post: Post, service: AnyService) -> None:
    pieces = (b" " * 1024 for _ in range(MAX_BODY_BYTES // 1024 + 1))

    response = post(service, pieces)

    assert str(MAX_BODY_BYTES) in list_issues(response)[0]["message"]


def test_far_too_large_body_keeps_connection_usable(post: Post, served_api: httpx.Client) -> None:
    response = post(SERVICES[0], b" " * 5_000_000)

    assert list_issue_paths(response) == {""}
    assert served_api.get("/livez").status_code == 200


@pytest.mark.extended
@each_field
@each_case("value", [None, {}, {"a": [1]}, [], [[]], [None]])
def test_value_of_wrong_type_is_named(post: Post, service: AnyService, name: str, value: Any) -> None:
    response = post(service, encode_body(service.input_example | {name: value}))

    assert any(path.split(".")[0] == name for path in list_issue_paths(response))


@pytest.mark.extended
@each_number
@each_case("value", [b"-1", b"0.5", b'"5"', b"true", b"1e300", LARGE.encode(), b"-" + LARGE.encode()])
def test_invalid_or_too_large_number_is_named(
    post: Post, service: AnyService, name: str, value: bytes
) -> None:
    fields = example_without_chain_of(service, name)
    fields.pop(name, None)
    rest = encode_body(fields)[:-1] + b"," if fields else b"{"

    response = post(service, rest + f'"{name}":'.encode() + value + b"}")

    assert name in list_issue_paths(response)


@each_number
def test_integer_may_have_decimal_point(served_api: httpx.Client, service: AnyService, name: str) -> None:
    number = service.input_example.get(name) or (8453 if name == "chainId" else 5)
    fields = example_without_chain_of(service, name)

    body = encode_body(fields | {name: float(number)})

    assert f"{number}.0".encode() in body
    assert is_accepted(served_api, service, body, "application/json")


@each_service
def test_all_issues_are_reported_together(post: Post, service: AnyService) -> None:
    names = service.input_schema(None)["properties"]

    response = post(service, encode_body(invalid_fields(names)))

    assert list_issue_paths(response) - {""} == set(names)


@each_case("service", STRICT)
def test_unknown_keys_are_named_beside_other_issues(post: Post, service: AnyService) -> None:
    names = service.input_schema(None)["properties"]

    response = post(service, encode_body({**invalid_fields(names), "zzz": 1, "yyy": 2}))

    assert list_issue_paths(response) == {*names, "zzz", "yyy"}


@each_case(
    ("slug", "field", "value", "message"),
    [
        ("token-risk", "tokenAddress", ..., "is required"),
        ("token-risk", "tokenAddress", None, "must be a string, not null"),
        ("token-risk", "tokenAddress", ["0x"], "must be a string, not an array"),
        (
            "token-risk",
            "tokenAddress",
            "0x12",
            "must be an EVM address: 0x and 40 hexadecimal characters",
        ),
        (
            "token-risk",
            "chain",
            "Ethereum",
            "must be 'arbitrum', 'base', 'bsc', 'ethereum', 'optimism' or 'polygon'",
        ),
        ("wallet-brief", "chainId", "8453", "must be an integer, not a string"),
        ("wallet-brief", "chainId", True, "must be an integer, not a boolean"),
        ("wallet-brief", "chainId", {}, "must be an integer, not an object"),
        ("wallet-brief", "chainId", 1.5, "must be an integer, not a decimal number"),
        ("wallet-brief", "chainId", 0, "must be greater than 0"),
        ("wallet-brief", "chainId", 10**30, "must be at most 9007199254740991"),
        ("protocol-context", "protocol", "", "is too short: the minimum length is 1"),
        ("protocol-context", "protocol", "x" * 101, "is too long: the maximum length is 100"),
        ("protocol-context", "protocol", " \t", "must not be blank"),
        ("crawler-search", "limit", 0, "must be at least 1"),
        ("crawler-search", "limit", 11, "must be at most 10"),
        ("crawler-scrape", "onlyMainContent", "no", "must be true or false, not a string"),
        ("neuralweb-contents", "urls", "https://a.example", "must be an array, not a string"),
        ("neuralweb-contents", "urls", [], "has 0 items: the minimum is 1"),
        ("neuralweb-contents", "urls", ["https://a.example"] * 6, "has 6 items: the maximum is 5"),
        (
            "libdocs-query-docs",
            "libraryId",
            "react",
            "must be an id from libdocs-resolve-library, of the form /<org>/<project>",
        ),
    ],
)
def test_issue_says_what_is_allowed(post: Post, slug: str, field: str, value: Any, message: str) -> None:
    service = next(service for service in SERVICES if service.slug == slug)
    body = {**service.input_example, field: value}

    response = post(service, encode_body({name: each for name, each in body.items() if each is not ...}))

    assert {"path": field, "message": message} in list_issues(response)


def test_missing_field_is_reported_with_unknown_keys(post: Post) -> None:
    body = {"chain": "base", "contract": "0x" + "ab" * 20, "n" * 50: 1}

    response = post(next(each for each in SERVICES if each.slug == "contract-explain"), encode_body(body))

    unknown = f"'chain', 'contract', '{'n' * 40}'"
    assert list_issues(response) == [
        {"path": name, "message": f"is required; unknown keys: {unknown}"}
        for name in ("chainId", "contractAddress")
    ]


@each_service
def test_no_issue_is_in_pydantics_words(post: Post, service: AnyService) -> None:
    names = service.input_schema(None)["properties"]

    values: list[Any] = [None, {}, [], [None], "", "  ", "x" * 3000, 0, -1, 1.5, 1e300, 10**400, True]
    for value in values:
        response = post(service, encode_body({**service.input_example, **dict.fromkeys(names, value)}))

        for issue in list_issues(response):
            assert not re.search(r"Input|String|Field|List|Value error|pattern", issue["message"]), issue


# zero width, soft hyphen, joiners, marks of direction, fillers, controls
UNSEEN = (
    "\u200b\u2060\ufeff\xad\u200c\u200d\u200e\u200f\u202a\u202e\u2066\u2069\u061c\u3164\u2800\ufe0f\0\x85"
)


@each_word_field
def test_text_that_nothing_shows_is_blank(post: Post, service: AnyService, name: str) -> None:
    for character in UNSEEN:
        response = post(service, encode_body({**service.input_example, name: f"{character} {character}"}))

        assert list_issues(response) == [{"path": name, "message": "must not be blank"}], repr(character)


@each_word_field
def test_unseen_characters_beside_visible_ones_are_kept(
    served_api: httpx.Client, service: AnyService, name: str
) -> None:
    for text in (f"{UNSEEN}a", "\u0645\u06cc\u200c\u062e", "\u2764\ufe0f", "\U0001f468\u200d\U0001f469"):
        body = {**service.input_example, name: text}

        assert is_accepted(served_api, service, encode_body(body), "application/json"), repr(text)


def test_list_item_is_named_by_index(post: Post) -> None:
    service = next(service for service in SERVICES if service.slug == "neuralweb-contents")

    response = post(service, encode_body({"urls": ["https://example.com/", "nonsense", 5]}))

    assert list_issue_paths(response) == {"urls.1", "urls.2"}


@each_case("service", STRICT)
def test_web_service_refuses_unknown_key(post: Post, service: AnyService) -> None:
    response = post(service, add_member(service, b"1"))

    keys = ", ".join(service.input_schema(None)["properties"])
    assert list_issues(response) == [{"path": "zzz", "message": f"unknown key; the keys are {keys}"}]


@each_case("service", LENIENT)
def test_crypto_service_ignores_unknown_key(served_api: httpx.Client, service: AnyService) -> None:
    assert is_accepted(served_api, service, add_member(service, b"1"), "application/json")


@each_case("service", LENIENT)
def test_ignored_key_may_contain_null_character(served_api: httpx.Client, service: AnyService) -> None:
    assert is_accepted(served_api, service, add_member(service, b'"\\u0000"'), "application/json")


@each_case("service", CAPPED)
def test_refused_options_are_named_first(post: Post, service: AnyService) -> None:
    options = sorted(service.refused_options.names)
    fields = invalid_fields(service.input_schema(None)["properties"])

    response = post(service, encode_body({**fields, "zzz": 1, **dict.fromkeys(options, True)}))

    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "unsupported_options"
    assert error["details"]["options"] == options
    assert all(option in error["message"] for option in options)


@pytest.mark.extended
@each_case("service", CAPPED)
@each_case("value", [True, False, None, 0, "", [], {}])
def test_option_is_refused_with_any_value(post: Post, service: AnyService, value: Any) -> None:
    option = min(service.refused_options.names)

    response = post(service, encode_body({**service.input_example, option: value}))

    assert response.json()["error"]["details"]["options"] == [option]


@each_case("service", CAPPED)
@each_case("spelled", ["deepResearch", "deep_research", "deep-research", "DEEPRESEARCH"])
def test_option_is_recognised_in_any_spelling(post: Post, service: AnyService, spelled: str) -> None:
    response = post(service, encode_body({**service.input_example, spelled: True}))

    assert response.json()["error"]["details"]["options"] == [spelled]


@each_case(
    ("slug_", "options"),
    [
        ("neuralweb-search", {"type": "deep"}),
        ("neuralweb-search", {"type": "neural"}),
        ("neuralweb-search", {"contents": {"summary": True}}),
        ("neuralweb-contents", {"summary": True}),
        ("crawler-search", {"scrapeOptions": {"formats": ["markdown"]}}),
        ("crawler-scrape", {"formats": ["markdown", "json"]}),
        ("crawler-scrape", {"formats": [{"type": "json"}]}),
        ("crawler-scrape", {"actions": []}),
        ("crawler-scrape", {"proxy": "stealth"}),
        ("crawler-map", {"limit": 5000}),
    ],
)
def test_refused_options_of_contract_are_never_ignored(
    post: Post, slug_: str, options: dict[str, Any]
) -> None:
    service = next(service for service in SERVICES if service.slug == slug_)

    response = post(service, encode_body({**service.input_example, **options}))

    assert response.json()["error"]["code"] == "unsupported_options"
    assert response.json()["error"]["details"]["options"] == list(options)


@each_case("service", STRICT)
def test_number_of_reported_issues_is_limited(post: Post, service: AnyService) -> None:
    response = post(service, encode_body({f"k{number}": 0 for number in range(4000)}))

    assert len(list_issues(response)) == 101
    assert len(response.content) < 16_384
