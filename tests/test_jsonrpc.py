"""Messages of JSON-RPC: requests, results, errors and batches."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from centgate import jsonrpc
from centgate.jsonrpc import RpcError


def test_request_has_version_and_id() -> None:
    request = jsonrpc.build_request("eth_chainId", [], 7)

    assert request == {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId", "params": []}


@pytest.mark.parametrize("result", ["0x1", None, {"number": "0x1"}, []])
def test_result_may_be_null(result: Any) -> None:
    assert jsonrpc.parse_result({"id": 0, "result": result, "error": None}) == result


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{", b"null", b"7", b"[]", b'"result"', b"{}", b'{"id": 0}']
)
def test_body_without_result_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsonrpc.decode_result(body)


def test_null_is_refused_where_result_is_required() -> None:
    with pytest.raises(ValueError, match="empty"):
        jsonrpc.require_result({"id": 0, "result": None})


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": -32000, "message": "header not found"}, -32000, "header not found"),
        ({"code": "429", "message": "slow down"}, 429, "slow down"),
        ({"code": None}, 0, ""),
        ({"message": "failed", "data": {"payload": "too many logs"}}, 0, "failed too many logs"),
        ("a text", 0, "a text"),
        ({"code": 3, "message": "x" * 5000}, 3, "x" * 1000),
    ],
)
def test_error_beside_result_is_raised(error: Any, code: int, message: str) -> None:
    with pytest.raises(RpcError) as raised:
        jsonrpc.parse_result({"id": 0, "result": None, "error": error})

    assert (raised.value.code, raised.value.message) == (code, message)


@pytest.mark.parametrize("member", [b"%b", b'{"message": %b}', b'{"code": %b}', b'{"data": {"payload": %b}}'])
def test_too_deeply_nested_error_has_no_message(member: bytes) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # the default; packages that only tests import raise it
    try:
        with pytest.raises(RpcError) as raised:
            jsonrpc.decode_result(b'{"id": 0, "error": ' + member % (b"[" * 1000 + b"]" * 1000) + b"}")
    finally:
        sys.setrecursionlimit(limit)

    assert (raised.value.code, raised.value.message) == (0, "")


def test_batch_responses_are_sorted_by_id() -> None:
    body = [{"id": "2", "result": "c"}, {"id": 0, "result": "a"}, {"id": 1, "result": "b"}]

    responses = jsonrpc.sort_responses(jsonrpc.list_responses(body), 3)

    assert [each["result"] for each in responses] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "body", [{"id": None, "error": {}}, [{"id": 0}], [{"id": 0}, {"id": 0}], [{"id": 0}, 7]]
)
def test_batch_without_one_response_per_request_is_refused(body: Any) -> None:
    with pytest.raises(LookupError):
        jsonrpc.sort_responses(jsonrpc.list_responses(body), 2)
