"""`GET /services?format=`: the services as tools of OpenAI, Anthropic and Gemini."""

from __future__ import annotations

import httpx
import pytest

from centgate.client.catalog import ServiceDetail
from centgate.client.tools import TOOL_FLAVOURS, ToolFlavour, build_tool


@pytest.mark.parametrize("flavour", TOOL_FLAVOURS)
def test_purchasable_services_are_given_as_tools(client: httpx.Client, flavour: ToolFlavour) -> None:
    listed = [each["slug"] for each in client.get("/services").json()["services"]]
    details = [ServiceDetail.model_validate(client.get(f"/services/{slug}").json()) for slug in listed]

    response = client.get("/services", params={"format": flavour})

    assert response.status_code == 200
    assert response.json() == {"tools": [build_tool(each, flavour) for each in details if each.available]}
    assert 0 < len(response.json()["tools"]) < len(listed)  # searches have no source here
    assert (
        client.get(
            "/services", params={"format": flavour}, headers={"If-None-Match": response.headers["ETag"]}
        ).status_code
        == 304
    )


@pytest.mark.parametrize("query", ["format=llama", "format=", "format=openai&format=gemini"])
def test_unknown_format_is_refused(client: httpx.Client, query: str) -> None:
    error = client.get(f"/services?{query}").json()["error"]

    assert error["code"] == "validation_error"
    assert error["details"]["issues"] == [
        {"path": "format", "message": "must be one of openai, anthropic, gemini, or be left out"}
    ]


def test_other_parameters_change_nothing(client: httpx.Client) -> None:
    assert client.get("/services?utm_source=x").content == client.get("/services").content
