"""The response of `GET /status.json`: the measured state of every service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from centgate.client.catalog import CatalogUnavailable, fetch_json
from centgate.client.wire_model import ApiModel, Timestamp

if TYPE_CHECKING:
    import httpx2

StatusWord = Literal["operational", "degraded", "outage", "unconfigured", "unknown"]
_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


class CallFigures(ApiModel):
    """Figures of the calls of one service in a period; answers from the cache are not counted."""

    calls: _Count = Field(
        description="Calls that were answered, failed, or were refused for lack of a source."
    )
    success_share: _Share | None = Field(description="Share of these that were answered; null without calls.")
    p50_ms: _Count | None = Field(description="Median time of the answers in milliseconds; null without any.")
    p95_ms: _Count | None = Field(
        description="Time in milliseconds that 95 percent of the answers did not exceed; null without any."
    )


class StatusDay(CallFigures):
    """One day in UTC."""

    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$", description="The day, in UTC.")]
    state: Literal["operational", "degraded", "outage", "unknown"] | None = Field(
        description="State of the day: outage if no call was answered; null if nothing was measured."
    )
    outage_seconds: _Count | None = Field(
        description="Seconds in which all sources were known to be down, added up over the servers; null if "
        "nothing was measured."
    )


class ServiceStatus(ApiModel):
    """Measured state of one service."""

    slug: str = Field(description="The service.")
    title: str = Field(description="Its title.")
    state: StatusWord = Field(
        description="State now. outage: no source answers, and new payments are refused uncharged; degraded: "
        "some calls are not answered; unconfigured: no source is configured; unknown: no call for an hour."
    )
    available: bool = Field(description="False in an outage and if no source is configured.")
    last_answer_at: Timestamp | None = Field(
        description="Time of the last answer of its sources in 90 days, in UTC; null if there was none."
    )
    last_hour: CallFigures
    last_day: CallFigures
    days: Annotated[tuple[StatusDay, ...], Field(max_length=366)] = Field(
        description="The last 90 days, oldest first, today included."
    )


class StatusReport(ApiModel):
    """Measured state of every service of a deployment."""

    status: StatusWord = Field(
        description="degraded if any configured service is; outage only if all configured services are."
    )
    time: Timestamp = Field(description="Time of this report, in UTC.")
    services: tuple[ServiceStatus, ...]


def fetch_status(http: httpx2.Client) -> StatusReport:
    """Fetch the measured status of an API. Raises CatalogUnavailable."""
    try:
        return StatusReport.model_validate(fetch_json(http, "/status.json"))
    except ValidationError as error:
        raise CatalogUnavailable(f"{http.base_url} returns its status in an unknown format") from error
