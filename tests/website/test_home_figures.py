"""Figures and links of the first page that depend on the API's public documents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from browser_session import ServedSite
from msgspec.structs import replace

from centgate.client.status_report import CallFigures, ServiceStatus, StatusReport
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.pages import build_pages
from centgate.website.rendering import format_duration, render_html

NO_CALLS = CallFigures(calls=0, success_share=None, p50_ms=None, p95_ms=None)


def with_times(deployment: ApiSnapshot, *times: tuple[int, int]) -> ApiSnapshot:
    """Return a deployment whose first services had these calls and median milliseconds in the last day."""
    figures = [CallFigures(calls=calls, success_share=1, p50_ms=ms, p95_ms=ms) for calls, ms in times]
    services = tuple(
        ServiceStatus(
            slug=service.slug,
            title=service.title,
            state="operational",
            available=True,
            last_answer_at=None,
            last_hour=NO_CALLS,
            last_day=day,
            days=(),
        )
        for service, day in zip(deployment.services, figures, strict=False)
    )
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(deployment, measured=StatusReport(status="operational", time=now, services=services))


def render_home(deployment: ApiSnapshot) -> str:
    pages = build_pages(deployment)
    return render_html(pages[0], deployment, pages)


@pytest.mark.parametrize(
    ("times", "typical"),
    [([], None), ([(1, 40)], 40), ([(1, 40), (9, 900)], 900), ([(5, 40), (4, 900), (0, 10)], 40)],
)
def test_services_with_many_calls_give_typical_time(
    shop: ServedSite, times: list[tuple[int, int]], typical: int | None
) -> None:
    assert with_times(shop.deployment, *times).typical_milliseconds == typical


@pytest.mark.extended
def test_hero_shows_typical_time_if_measured(shop: ServedSite) -> None:
    shown, without = (
        render_home(with_times(shop.deployment, (3, 1240))),
        render_home(with_times(shop.deployment)),
    )

    assert "<dt>median answer, last day</dt><dd>1.2 s</dd>" in shown
    assert "median answer" not in without
    assert "<dt>services can be bought</dt>" in without
    assert format_duration(999) == "999 ms"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("published", "linked"),
    [("https://git.example/centgate", True), ('javascript:alert("1")', False), (7, False), (None, False)],
)
def test_source_code_is_linked_if_named(shop: ServedSite, *, published: Any, linked: bool) -> None:
    info = {**shop.deployment.openapi["info"], "x-repository": published}
    deployment = replace(shop.deployment, openapi={**shop.deployment.openapi, "info": info})

    assert (">Source code</a>" in render_home(deployment)) is linked
