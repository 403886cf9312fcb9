"""Reading a request body: strict JSON in, a validated request or every problem at once out."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any, TypeVar, cast

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from centgate.errors import InvalidRequest, Issue, UnsupportedOptions
from centgate.schema import Request
from centgate.service import Service

MAX_BODY = 64 * 1024
"""Bytes of a body that are read."""
MAX_ISSUES = 100
"""Problems that are listed; a body with more has its size as its problem."""

R = TypeVar("R", bound=Request)


def read(service: Service[R, Any], body: bytes, content_type: str, context: dict[str, Any]) -> R:
    """The request a body holds.

    Raises UnsupportedOptions when it asks for more than one cent pays for, else InvalidRequest with all its
    problems. `context` says what this deployment admits beyond the rules for all.
    """
    _check_type(content_type)
    content = parse(body)
    if beyond := service.beyond.asked_for(content):
        raise UnsupportedOptions(beyond, list(service.input_schema(None)["properties"]))
    issues = list(service.request.rules(content, context))
    try:
        request = service.request.model_validate(content, by_alias=True, by_name=False, context=context)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        raise _invalid([*map(_issue, found), *issues]) from None
    if issues:
        raise _invalid(issues)
    return request


def parse(body: bytes) -> dict[str, Any]:
    """A JSON object; InvalidRequest for anything that is not exactly one, in UTF-8, without repeated keys."""
    if not body:
        raise _whole("the body is missing; a JSON object is expected")
    if len(body) > MAX_BODY:
        raise _whole(f"the body is larger than {MAX_BODY} bytes")
    try:
        orjson.loads(body)  # refuses NaN, lone surrogates and what is not UTF-8, none of which `json` does
        content = _DECODER.decode(body.decode())
    except RecursionError:
        raise _whole("the body is nested too deeply") from None
    except ValueError as error:
        raise _whole(f"the body is not valid JSON: {_reason(error)}") from None
    if not isinstance(content, dict):
        raise _whole("the body must be a JSON object")
    return cast(dict[str, Any], content)


@lru_cache(64)
def _check_type(content_type: str) -> None:
    """Raise InvalidRequest for what cannot be JSON in UTF-8."""
    media, *parameters = (part.strip() for part in content_type.lower().split(";"))
    if (
        media
        and media != "application/json"
        and not (media.startswith("application/") and media.endswith("+json"))
    ):
        raise _whole(f"the content type must be application/json, not {media[:80]}")
    charsets = {
        value.strip('" ')
        for name, _, value in (item.partition("=") for item in parameters)
        if name == "charset"
    }
    if charsets - {"utf-8", "utf8"}:
        raise _whole("the body must be in UTF-8")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice[:80]!r} stands twice in one object")
    return found


def _number(text: str) -> float | int:
    """JSON has one kind of number, so 5.0 is as good an integer as 5 (JSON Schema 2020-12, section 4.2.3)."""
    number = float(text)
    return int(number) if math.isfinite(number) and number.is_integer() and abs(number) < 2**63 else number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number)


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return str(error)[:200]


def _issue(error: ErrorDetails) -> Issue:
    path = ".".join(str(part) for part in error["loc"])
    return Issue(path, "unknown key" if error["type"] == "extra_forbidden" else error["msg"])


def _whole(message: str) -> InvalidRequest:
    return InvalidRequest([Issue("", message)])


def _invalid(issues: list[Issue]) -> InvalidRequest:
    if len(issues) > MAX_ISSUES:
        more = len(issues) - MAX_ISSUES
        issues = [*issues[:MAX_ISSUES], Issue("", f"and {more} more problems")]
    return InvalidRequest(issues)
