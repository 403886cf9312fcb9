"""Notes on a service's page: failures of sources, caching, possible errors, and the sample answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from centgate.client.catalog import CatalogUnavailable, ServiceDetail, ServiceProvider
from centgate.envelope import ERROR_SPECS, ErrorSpec
from centgate.website.api_snapshot import ApiSnapshot, join_labels

_UNREACHABLE_CODES = ("not_found", "method_not_allowed")
"""Error codes that a service's own route cannot return."""


def call_errors() -> Mapping[str, ErrorSpec]:
    """Return the errors that a paid route can return."""
    return {code: meaning for code, meaning in ERROR_SPECS.items() if code not in _UNREACHABLE_CODES}


def sample_answer(service: ServiceDetail, deployment: ApiSnapshot) -> dict[str, Any]:
    """Return the sample answer with its envelope, from the OpenAPI document. Raises CatalogUnavailable."""
    try:
        operation = deployment.openapi["paths"][service.path]["post"]
        return operation["responses"]["200"]["content"]["application/json"]["example"]
    except (KeyError, TypeError) as error:
        raise CatalogUnavailable(
            f"{deployment.api}/openapi.json has no sample answer of {service.slug}"
        ) from error


def failure_notes(service: ServiceDetail) -> Iterator[str]:
    """Describe what happens when each kind of source fails, from their roles on this deployment."""
    configured = {source.name: source.configured for source in service.sources}
    available = [each for each in service.providers if configured.get(each.name, True)]
    leads = [each for each in available if each in service.leads]
    yield from _describe_primary_failure(leads)
    for role, verb in (("secondary", "checks"), ("enrichment", "adds to")):
        helpers = [each for each in available if each.role == role]
        if helpers:
            yield _describe_helper_failure(helpers, verb)
    unconfigured = [each for each in service.providers if each not in available]
    if unconfigured and leads:
        verb = "is" if len(unconfigured) == 1 else "are"
        yield f"{join_labels(unconfigured, 'and')} {verb} not configured on this deployment."


def _describe_primary_failure(leads: Sequence[ServiceProvider]) -> Iterator[str]:
    if not leads:
        yield "No source that can answer is configured on this deployment: calls are refused before payment."
        return
    first, *others = leads
    if others:
        yield (
            f"If {first.label} fails or has no data, {join_labels(others, 'then')} "
            f"{'is' if len(others) == 1 else 'are'} asked instead, and `warnings` names the source "
            "that was used."
        )
    condition = f"If {'all of these fail' if others else f'{first.label} fails'}"
    yield (
        f"{condition}, the call fails with `provider_error`, `provider_timeout` or `provider_rate_limited`. "
        "The payment stays valid: send the same request with the same payment later to get the "
        "answer at no further charge."
    )


def _describe_helper_failure(helpers: Sequence[ServiceProvider], verb: str) -> str:
    one = len(helpers) == 1
    return (
        f"{join_labels(helpers, 'and')} {verb if one else _plural_verb(verb)} the answer. "
        f"If {'it' if one else 'one'} fails, you still get the answer: "
        "fields that only this source provides are null, and `warnings` says so."
    )


def _plural_verb(verb: str) -> str:
    return {"checks": "check", "adds to": "add to"}[verb]


def describe_caching(service: ServiceDetail) -> str:
    """Return a sentence on how long answers are cached."""
    if not service.cache_seconds:
        return "Answers are not cached."
    minutes, seconds = divmod(service.cache_seconds, 60)
    span = f"{service.cache_seconds} seconds" if seconds else f"{minutes} minute{'s' if minutes > 1 else ''}"
    return (
        f"Answers are cached for {span} and returned to equal requests at the same price; "
        "`cache.hit` is then true. Errors are not cached."
    )
