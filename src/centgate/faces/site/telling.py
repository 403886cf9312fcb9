"""What a service's page says beyond its schemas: who stands in for whom, what is kept, what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from centgate.client.catalog import CatalogUnread, Entry, Provider
from centgate.envelope import ERRORS, Meaning
from centgate.faces.site.deployment import Deployment, listing

_ELSEWHERE = ("not_found", "method_not_allowed")
"""Codes that a request to a service's own route cannot be answered with."""


def errors_of_a_call() -> Mapping[str, Meaning]:
    """The errors that a paid route can answer with."""
    return {code: meaning for code, meaning in ERRORS.items() if code not in _ELSEWHERE}


def sample_answer(service: Entry, deployment: Deployment) -> dict[str, Any]:
    """A whole answer, envelope and all, as the API's OpenAPI document shows it; CatalogUnread without one."""
    try:
        operation = deployment.openapi["paths"][service.path]["post"]
        return operation["responses"]["200"]["content"]["application/json"]["example"]
    except (KeyError, TypeError) as error:
        raise CatalogUnread(f"{deployment.api}/openapi.json shows no answer of {service.slug}") from error


def failures(service: Entry) -> Iterator[str]:
    """What happens when each kind of source fails, from the roles they have on this deployment."""
    configured = {source.name: source.configured for source in service.sources}
    able = [each for each in service.providers if configured.get(each.name, True)]
    leads = [each for each in able if each in service.leads]
    yield from _of_leads(leads)
    for role, verb in (("secondary", "checks"), ("enrichment", "adds to")):
        helping = [each for each in able if each.role == role]
        if helping:
            yield _of_help(helping, verb)
    idle = [each for each in service.providers if each not in able]
    if idle and leads:
        yield f"{listing(idle, 'and')} {_be(idle)} not set up on this deployment, and not asked."


def _of_leads(leads: Sequence[Provider]) -> Iterator[str]:
    if not leads:
        yield "No source that could answer is set up on this deployment: the call is refused before payment."
        return
    first, *others = leads
    if others:
        yield (
            f"If {first.label} fails or knows nothing, {listing(others, 'then')} "
            f"{'is' if len(others) == 1 else 'are'} asked in its place, and `warnings` names the source "
            "that stood in."
        )
    whole = f"If {'all of these fail' if others else f'{first.label} fails'}"
    yield (
        f"{whole}, the call fails with `provider_error`, `provider_timeout` or `provider_rate_limited`. "
        "The payment stays good: the same request with the same payment is answered later, "
        "at no further charge."
    )


def _of_help(helping: Sequence[Provider], verb: str) -> str:
    one = len(helping) == 1
    return (
        f"{listing(helping, 'and')} {verb if one else _plural(verb)} the answer. "
        f"If {'it' if one else 'one'} fails, you still get the answer: "
        "what only it knows is null, and `warnings` says so."
    )


def _plural(verb: str) -> str:
    return {"checks": "check", "adds to": "add to"}[verb]


def _be(providers: Sequence[Provider]) -> str:
    return "is" if len(providers) == 1 else "are"


def kept(service: Entry) -> str:
    """How long an answer is kept, as a sentence."""
    if not service.cache_seconds:
        return "Answers are not cached: each call is worked out anew."
    minutes, seconds = divmod(service.cache_seconds, 60)
    span = f"{seconds} seconds" if seconds else f"{minutes} minute{'s' if minutes > 1 else ''}"
    return (
        f"An answer is kept for {span} and serves equal requests meanwhile, at the same price; "
        "`cache.hit` says so. Errors are not kept."
    )
