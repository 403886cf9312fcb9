"""Parse a request body: strict JSON into a validated request, or an error that lists every problem."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar, cast

import orjson
from msgspec import Struct
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from centgate.errors import InvalidRequest, Issue, UnsupportedOptions
from centgate.schema import Request
from centgate.service import Service

MAX_BODY_BYTES = 64 * 1024
"""Maximum size of a body in bytes."""
MAX_ISSUES = 100
"""Maximum number of problems that an error lists; the rest is given as a count."""
_MAX_NAMES, _MAX_NAME_LENGTH = 5, 40
"""Limits on the unknown names that an error repeats."""

_COMPRESSIONS = frozenset({"br", "compress", "deflate", "gzip", "x-gzip", "zstd"})
"""Codings of HTTP (RFC 9110, section 8.4.1, and IANA's registry) that clients compress bodies with."""

R = TypeVar("R", bound=Request)


class RequestBody(Struct, frozen=True):
    """Body of a request as it was received, with the headers that describe it."""

    content: bytes
    content_type: str = "application/json"
    content_encoding: str = ""


def parse_request(service: Service[R, Any], body: RequestBody, context: dict[str, Any]) -> R:
    """Parse and validate the request in a body.

    Raises UnsupportedOptions if it asks for options that are not part of the price, else InvalidRequest with
    all problems. `context` is the pydantic validation context of this deployment.
    """
    _check_type(body.content_type)
    content = _parse_uncompressed(body)
    if beyond := service.refused_options.find_refused(content):
        raise UnsupportedOptions(beyond, list(service.input_schema(None)["properties"]))
    issues = list(service.request.check_cross_field_rules(content, context))
    try:
        request = service.request.model_validate(content, by_alias=True, by_name=False, context=context)
    except ValidationError as error:
        known_keys = service.input_schema(None)["properties"]
        ignored = _list_names(name for name in content if name not in known_keys)
        field_issues = [_to_issue(each, known_keys, ignored) for each in error.errors(include_url=False)]
        raise _invalid_request([*field_issues, *issues]) from None
    if issues:
        raise _invalid_request(issues)
    return request


def _parse_uncompressed(body: RequestBody) -> dict[str, Any]:
    """Parse the object in a body; one that is no text is refused for its compression, if it names one."""
    try:
        return parse_json_object(body.content)
    except InvalidRequest:
        # not before: some clients name a compression, or a charset, of a body that is plain JSON
        coding = body.content_encoding.strip().lower()
        if coding in _COMPRESSIONS and len(body.content) <= MAX_BODY_BYTES and not _is_text(body.content):
            raise _body_error(
                f"the body is compressed (Content-Encoding: {coding}); send it without compression"
            ) from None
        raise


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_probe(body: bytes) -> bool:
    """Return True for no body and for an empty object, which directories send to read the terms."""
    return not body or (len(body) <= MAX_BODY_BYTES and body.translate(None, b" \t\r\n") == b"{}")


def parse_json_object(body: bytes) -> dict[str, Any]:
    """Parse one JSON object in UTF-8 without repeated keys. Raises InvalidRequest for anything else."""
    if not body:
        raise _body_error("the body is missing; a JSON object is expected")
    if len(body) > MAX_BODY_BYTES:
        raise _body_error(f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        orjson.loads(body)  # rejects NaN, lone surrogates and invalid UTF-8, which `json` accepts
        content = _DECODER.decode(body.decode())
    except RecursionError:
        raise _body_error("the body is nested too deeply") from None
    except ValueError as error:
        raise _body_error(f"the body is not valid JSON: {_describe_error(error)}") from None
    if not isinstance(content, dict):
        raise _body_error("the body must be a JSON object")
    return cast(dict[str, Any], content)


@lru_cache(64)
def _check_type(content_type: str) -> None:
    """Raise InvalidRequest for a content type that is not JSON in UTF-8."""
    media, *parameters = (part.strip() for part in content_type.lower().split(";"))
    if (
        media
        and media != "application/json"
        and not (media.startswith("application/") and media.endswith("+json"))
    ):
        raise _body_error(f"the content type must be application/json, not {media[:80]}")
    charsets = {
        value.strip('" ')
        for name, _, value in (item.partition("=") for item in parameters)
        if name == "charset"
    }
    if charsets - {"utf-8", "utf8"}:
        raise _body_error("the body must be in UTF-8")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"key {repeated[:80]!r} appears twice in one object")
    return members


def _parse_number(text: str) -> float | int:
    """Parse a number; 5.0 is the integer 5: JSON has one number type (JSON Schema 2020-12, section 4.2.3)."""
    number = float(text)
    return int(number) if math.isfinite(number) and number.is_integer() and abs(number) < 2**63 else number


_DECODER = json.JSONDecoder(object_pairs_hook=_build_object, parse_float=_parse_number)


def _describe_error(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return str(error)[:200]


_MESSAGES: Mapping[str, str] = {
    "missing": "is required",
    "string_type": "must be a string, not {sent}",
    "int_type": "must be an integer, not {sent}",
    "int_parsing_size": "must be an integer with fewer digits",
    "bool_type": "must be true or false, not {sent}",
    "list_type": "must be an array, not {sent}",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "is too short: the minimum length is {min_length}",
    "string_too_long": "is too long: the maximum length is {max_length}",
    "too_short": "has {actual_length} items: the minimum is {min_length}",
    "too_long": "has {actual_length} items: the maximum is {max_length}",
    "extra_forbidden": "unknown key; the keys are {keys}",
}
"""Messages by pydantic's error types, in the words of JSON; the messages of other types are written here."""

_TYPE_NAMES: Mapping[type, str] = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a decimal number",
    list: "an array",
    dict: "an object",
}


def _to_issue(error: ErrorDetails, known_keys: Iterable[str], ignored: str) -> Issue:
    """Return an issue of the answer; `ignored`: names that the body has and the service does not know."""
    path = ".".join(str(part) for part in error["loc"])
    message = _MESSAGES.get(error["type"])
    if message is None:
        return Issue(path, error["msg"])
    if error["type"] == "missing" and ignored and len(error["loc"]) == 1:
        return Issue(path, f"{message}; unknown keys: {ignored}")
    sent = next((name for kind, name in _TYPE_NAMES.items() if isinstance(error["input"], kind)), "null")
    words = {"sent": sent, "keys": ", ".join(known_keys), **error.get("ctx", {})}
    return Issue(path, message.format_map(words))


def _list_names(names: Iterable[str]) -> str:
    """Return the first names of a body's members in one line, each cut."""
    return ", ".join(repr(name[:_MAX_NAME_LENGTH]) for name in islice(names, _MAX_NAMES))


def _body_error(message: str) -> InvalidRequest:
    return InvalidRequest([Issue("", message)])


def _invalid_request(issues: list[Issue]) -> InvalidRequest:
    if len(issues) > MAX_ISSUES:
        more = len(issues) - MAX_ISSUES
        issues = [*issues[:MAX_ISSUES], Issue("", f"and {more} more problems")]
    return InvalidRequest(issues)
