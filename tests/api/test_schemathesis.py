"""The server conforms to its OpenAPI document, for generated valid and invalid requests."""

# schemathesis is typed in part
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, cast

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.core.result import Ok
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi.checks import negative_data_rejection

from centgate.api.openapi import openapi_document
from centgate.catalog import all_services
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.settings import Settings

pytestmark = pytest.mark.extended

DOCUMENT = openapi_document(
    all_services(), Settings.model_construct(pay_to=DEFAULT_PAYEE, network="eip155:84532")
)
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
            },
            *(
                {
                    "include-path": path,
                    "checks": {
                        # without a signature, a signature is requested
                        "missing_required_header": {"enabled": False},
                        "negative_data_rejection": {"expected-statuses": ["400", "402", "404", "405"]},
                        # a cursor is issued by the server, which no schema can express
                        "positive_data_acceptance": {"expected-statuses": ["200", "400", "402"]},
                    },
                }
                for path in ("/payments", "/payments/{transaction}")
            ),
            {
                # browsers accept more as an address than a pattern can express, such as a host of one number
                "include-path": "/services/phishing-check",
                "checks": {"negative_data_rejection": {"expected-statuses": ["400", "402", "404", "405"]}},
            },
        ],
        "checks": {
            # valid requests are answered or get a 402; never called invalid
            "positive_data_acceptance": {"expected-statuses": ["200", "402"]},
            # invalid requests are refused before the 402
            "negative_data_rejection": {"expected-statuses": ["400", "404", "405"]},
        },
    }
)
SETTINGS = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def remove_pattern_lengths(schema: Any) -> Any:
    """Return a schema whose strings with a pattern may have any length.

    Generating one that matches the pattern of a URL and is too long takes some seconds for each service;
    other tests send such a URL.
    """
    if isinstance(schema, list):
        return [remove_pattern_lengths(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    left_out = "maxLength" if members.keys() & {"pattern", "then"} else None
    return {name: remove_pattern_lengths(each) for name, each in members.items() if name != left_out}


def validate_responses(case: schemathesis.Case[Any], reader: httpx.Client) -> None:
    """Send one generated request and validate the response.

    An empty object is no invalid request but asks for the terms of payment.
    """
    excluded = [negative_data_rejection] if case.body == {} else []
    case.call_and_validate(base_url=str(reader.base_url), excluded_checks=excluded)


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_operations_conform_to_description(path: str, reader: httpx.Client) -> None:
    # built here and not by `schema.parametrize`: that builds the tests of all paths in every worker
    document = remove_pattern_lengths({**DOCUMENT, "paths": {path: DOCUMENT["paths"][path]}})
    tests = get_all_tests(
        schema=schemathesis.openapi.from_dict(document, config=CONFIG),
        test_func=validate_responses,
        settings=SETTINGS,
        given_kwargs=None,
    )

    for built in tests:
        assert isinstance(built, Ok)
        _, check = built.ok()
        check(reader=reader)


def test_tested_description_is_the_served_one(reader: httpx.Client) -> None:
    served = reader.get("/openapi.json").json()

    assert {**served, "servers": None} == {**DOCUMENT, "servers": None}
