"""The README says what is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from centgate.catalog import all_services
from centgate.provider import UnavailableProvider
from centgate.service import AnyService

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_the_services_table_has_each_service_and_whether_it_works(service: AnyService) -> None:
    leads = [source.provider for source in service.sources if source.can_answer_alone]
    works = "yes" if any(not issubclass(lead, UnavailableProvider) for lead in leads) else "not yet"

    row = f"| {service.slug} | `{service.path}` | {service.summary} | {works} |"

    assert row in README.read_text(encoding="utf-8")
