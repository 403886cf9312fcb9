"""Doctor check of the sources' terms of use."""

from __future__ import annotations

import pytest
from doctor_fixtures import run_check

from centgate.settings import Settings


@pytest.fixture
def resale_only_settings(settings: Settings) -> Settings:
    """A deployment that uses only sources whose terms permit resale."""
    return settings.model_copy(update={"resale_permitted_only": True})


async def test_doctor_lists_sources_by_terms(settings: Settings) -> None:
    finding = await run_check(settings, "terms")

    assert finding.status == "warning"
    assert "resale forbidden without consent: goplus, honeypotis" in finding.what
    assert "CENTGATE_RESALE_PERMITTED_ONLY=true" in (finding.mend or "")


async def test_doctor_accepts_permitted_sources(resale_only_settings: Settings) -> None:
    finding = await run_check(resale_only_settings, "terms")

    assert finding.status == "ok"
    assert "goplus" not in finding.what


async def test_doctor_explains_omitted_source(resale_only_settings: Settings) -> None:
    finding = await run_check(resale_only_settings, "provider-goplus")

    assert finding.status == "skipped"
    assert "terms" in finding.what
    assert "CENTGATE_GOPLUS_RESALE_PERMITTED" in (finding.mend or "")
