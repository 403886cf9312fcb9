"""The server does what its OpenAPI document says, asked with whatever the document allows and forbids."""

# schemathesis is typed in part
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from centgate.catalog import all_services
from centgate.dev import MERCHANT
from centgate.faces.openapi import openapi
from centgate.settings import Settings

DOCUMENT = openapi(all_services(), Settings.model_construct(pay_to=MERCHANT, network="eip155:84532"))
CONFIG = schemathesis.Config.from_dict(
    {
        # some slugs are paths of paid routes, which take POST as well
        "operations": [
            {
                "include-path": "/services/{slug}",
                "checks": {
                    "unsupported_method": {"enabled": False},
                    "allow_header_conformance": {"enabled": False},
                },
            }
        ],
        "checks": {
            # what is allowed is answered, or asked to be paid for; never called invalid
            "positive_data_acceptance": {"expected-statuses": ["200", "402"]},
            # what is forbidden is called invalid before money is mentioned
            "negative_data_rejection": {"expected-statuses": ["400", "404", "405"]},
        },
    }
)
# what a browser's address bar takes has no grammar to generate from: hosts stand for it here
HOSTS = st.from_regex(r"\A(https?://)?[a-z]{1,20}\.(com|org|net)(/[a-z0-9]{0,20})?\Z")

schemathesis.openapi.format("web-address", HOSTS)
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_an_operation_keeps_to_its_description(case: schemathesis.Case[Any], reader: httpx.Client) -> None:
    case.call_and_validate(base_url=str(reader.base_url))


def test_the_description_is_the_one_that_is_served(reader: httpx.Client) -> None:
    served = reader.get("/openapi.json").json()

    assert {**served, "servers": None} == {**DOCUMENT, "servers": None}
