"""Responses of other servers, and robustness of mappings, addresses and errors."""

from __future__ import annotations

import pickle
from types import MappingProxyType
from typing import Any

import pytest
from hostile import (
    PATH,
    SLUG,
    HostileApi,
    PlannedResponse,
    ReceivedRequest,
    answer_body,
    error_response,
    payment_response,
    service_entry,
)
from pydantic import ValidationError
from shopping import OpenClient

from centgate.client.answer_data import AnswerData
from centgate.client.errors import (
    AddressRefused,
    BuyerError,
    Drift,
    InputIssue,
    InvalidInput,
    NoData,
    NotFound,
    PaymentRefused,
    ServiceFailed,
    UnsupportedOptions,
)
from centgate.client.sync_client import Centgate
from centgate.client.wire_model import UntrustedModel


class Nested(UntrustedModel):
    """Lists as in answers."""

    rows: list[dict[str, Any]]
    words: tuple[str, ...] = ()
    more: list[list[int]] | None = None


class Facts(AnswerData):
    """A typed answer."""

    rows: list[str]


@pytest.mark.parametrize(
    ("model", "content"),
    [
        (Nested, {"rows": [1] * 1000}),
        (Nested, {"rows": [], "words": [1] * 1000}),
        (Nested, {"rows": [], "more": [["x"] * 1000] * 1000}),
        (Facts, {"rows": [1] * 1000}),
    ],
    ids=["list", "tuple", "lists in a list", "typed answer"],
)
def test_list_is_rejected_at_first_wrong_element(model: type[UntrustedModel], content: Any) -> None:
    with pytest.raises(ValidationError) as error:
        model.model_validate(content)

    assert error.value.error_count() == 1


async def test_wrong_elements_leave_payment_open(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(200, answer_body() | {"providers": [1] * 1000})]

    with pytest.raises(Drift, match=r"providers\.0") as error:
        await shop(hostile.url).call(SLUG, {})

    assert error.value.money == "unknown"


async def test_catalogue_of_wrong_elements_is_invalid(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.service_response = PlannedResponse(200, service_entry(tags=[1] * 1000))

    with pytest.raises(Drift, match=r"tags\.0"):
        await shop(hostile.url).service(SLUG)


async def test_slug_with_line_end_is_invalid(shop: OpenClient, hostile: HostileApi) -> None:
    with pytest.raises(NotFound):
        await shop(hostile.url).call(SLUG + "\n", {})

    assert hostile.requests == []


async def test_receipt_without_transaction_is_invalid(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [
        lambda request: PlannedResponse(
            200, answer_body(), {"PAYMENT-RESPONSE": payment_response(request, transaction="")}
        )
    ]

    answer = await shop(hostile.url).call(SLUG, {})

    assert (answer.receipt, answer.money) == (None, "unknown")


async def test_header_values_are_case_insensitive(shop: OpenClient, hostile: HostileApi) -> None:
    def delivered(request: ReceivedRequest) -> PlannedResponse:
        headers = {"payment-RESPONSE": payment_response(request), "content-ENCODING": "Identity"}
        return PlannedResponse(200, answer_body(), headers, accepts_payment=True)

    hostile.paid = [delivered]

    answer = await shop(hostile.url).call(SLUG, {})

    assert (answer.money, len(hostile.payments)) == ("moved", 1)


async def test_uncharged_no_data_is_not_reported_as_paid(shop: OpenClient, hostile: HostileApi) -> None:
    note = {"state": "unused", "charged": False, "retry": "none"}
    hostile.paid = [error_response(404, "no_data", note=note)]

    with pytest.raises(PaymentRefused, match=r"the API .* reports that no money moved") as error:
        await shop(hostile.url).call(SLUG, {})

    assert error.value.money == "reported_not_moved"


async def test_no_data_without_note_is_not_reported_as_paid(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [error_response(404, "no_data")]

    with pytest.raises(NoData, match="whether the") as error:
        await shop(hostile.url).call(SLUG, {})

    assert error.value.money == "unknown"


async def test_lost_connection_is_reported_briefly(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.paid = [PlannedResponse(200, answer_body(), {"bad header" + "x" * 50_000: "1"})] * 4

    with pytest.raises(BuyerError) as error:
        await shop(hostile.url).call(SLUG, {})

    assert len(str(error.value)) < 600


async def test_body_may_be_any_mapping(shop: OpenClient, hostile: HostileApi) -> None:
    await shop(hostile.url).call(SLUG, MappingProxyType({"b": MappingProxyType({"c": 1}), "a": 2}))

    assert hostile.requests[-1].body == b'{"a":2,"b":{"c":1}}'


@pytest.mark.parametrize(
    "api", ["http://a..b.local", "http://" + "a" * 64, "http://134744072", "http://0x08080808"]
)
def test_public_host_without_tls_is_not_called(api: str) -> None:
    with pytest.raises(AddressRefused):
        Centgate(api)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("so", [InputIssue("a", "b")]),
        UnsupportedOptions("so", ["a"]),
        PaymentRefused("so", "why", money="moved"),
        NoData("so", None, money="moved"),
        ServiceFailed("so", "code", None, money="moved"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error: BuyerError) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), vars(again)) == (type(error), "so", vars(error))


@pytest.mark.parametrize(
    "change",
    [
        {"providers": [{"name": "book", "role": "oracle"}]},
        {"payment": {"protocol": "x402"}},
        {"payment": None, "tags": 5, "priceUsd": "a cent"},
    ],
    ids=["role", "posture", "anything"],
)
async def test_unneeded_fields_may_have_any_value(
    shop: OpenClient, hostile: HostileApi, change: dict[str, Any]
) -> None:
    hostile.service_response = PlannedResponse(200, service_entry(**change))

    answer = await shop(hostile.url).call(SLUG, {})

    assert answer.money == "moved"


async def test_service_needs_only_name_and_path(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.service_response = PlannedResponse(
        200, {"slug": SLUG, "path": PATH, "providers": [{"name": "a", "role": "new"}]}
    )

    service = await shop(hostile.url).service(SLUG)

    assert (service.path, service.providers[0].role, service.available) == (PATH, "new", True)


async def test_receipt_without_padding_is_read(shop: OpenClient, hostile: HostileApi) -> None:
    def delivered(request: ReceivedRequest) -> PlannedResponse:
        return PlannedResponse(
            200,
            answer_body(),
            {"PAYMENT-RESPONSE": payment_response(request).rstrip("=")},
            accepts_payment=True,
        )

    hostile.paid = [delivered]

    answer = await shop(hostile.url).call(SLUG, {})

    assert answer.money == "moved"
