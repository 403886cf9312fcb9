"""JSON-RPC 2.0 messages, without I/O: each caller sends them over the transport of its trust level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import orjson

MAX_MESSAGE_LENGTH = 1000
"""Characters of an error message that are read."""

RpcObject = dict[str, Any]


class RpcError(ValueError):
    """An error that the server returned instead of a result."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message or f"error {code}")
        self.code = code
        """0 if the server gave no number."""
        self.message = message
        self.data = data
        """Revert data of a failed call in hexadecimal digits, as the server wrote it; None without it."""


def build_request(method: str, params: Sequence[Any], request_id: int = 0) -> RpcObject:
    """Build a request object."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def encode_request(method: str, params: Sequence[Any]) -> bytes:
    """Encode a single request."""
    return orjson.dumps(build_request(method, params))


def decode_result(body: bytes) -> Any:
    """Return the result in the body of a single response, None for `null`. Raises as `parse_result`."""
    return parse_result(orjson.loads(body))


def parse_result(response: Any) -> Any:
    """Return the result of a response object, None for `null`.

    Raises RpcError if the response has an error, also beside a result; ValueError if it has neither.
    """
    if not isinstance(response, dict):
        raise ValueError("not a JSON-RPC response")
    members = cast(RpcObject, response)
    if error := members.get("error"):
        raise parse_error(error)
    if "result" not in members:
        raise ValueError("a JSON-RPC response without a result")
    return members["result"]


def require_result(response: Any) -> Any:
    """Return the result of a response object. Raises as `parse_result`, and ValueError for `null`."""
    result = parse_result(response)
    if result is None:
        raise ValueError("a JSON-RPC response with an empty result")
    return result


def parse_error(error: Any) -> RpcError:
    """Parse the member `error` of a response; some servers give the cause only in its data.

    The message is empty if it is nested too deeply to be written as text.
    """
    try:
        return _read_error(error)
    except RecursionError:
        return RpcError(0, "")


def _read_error(error: Any) -> RpcError:
    if not isinstance(error, dict):
        return RpcError(0, str(error or "")[:MAX_MESSAGE_LENGTH])
    details = cast(RpcObject, error)
    code, message, data = str(details.get("code")), str(details.get("message") or ""), details.get("data")
    payload = cast(RpcObject, data).get("payload") if isinstance(data, dict) else None
    full_message = f"{message} {payload or ''}".strip()
    return RpcError(
        int(code) if code.removeprefix("-").isdigit() else 0,
        full_message[:MAX_MESSAGE_LENGTH],
        data if isinstance(data, str) and data.startswith("0x") else None,
    )


def list_responses(body: Any) -> list[RpcObject]:
    """Return the response objects of a body: one, or those of a batch."""
    bodies = cast(list[Any], body) if isinstance(body, list) else [body]
    return [cast(RpcObject, each) for each in bodies if isinstance(each, dict)]


def sort_responses(responses: Sequence[RpcObject], count: int) -> list[RpcObject]:
    """Return the responses to the requests 0 to `count` - 1, which servers may send in any order.

    Raises LookupError if they are not one for each request.
    """
    by_id = {str(response.get("id")): response for response in responses}
    if len(responses) != count:
        raise LookupError(f"{len(responses)} responses to {count} requests")
    return [by_id[str(number)] for number in range(count)]
