"""Website of an API that is paid on several networks: all are named, in the API's order."""

from __future__ import annotations

import re
from collections.abc import Generator

import pytest
from site_fixtures import SiteFixture, open_site_fixture

from centgate.accepted_tokens import parse_accepted_tokens

pytestmark = pytest.mark.extended

ENTRIES = [
    {"network": "eip155:137", "payTo": "0x" + "c1" * 20},
    {"network": "eip155:8453", "payTo": "0x" + "c2" * 20},
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[SiteFixture]:
    """The website of a deployment that accepts payments on Polygon and Base."""
    first, second = parse_accepted_tokens(ENTRIES)
    changes = {"accepts": (first, second), "network": first.network, "pay_to": first.pay_to}
    with open_site_fixture(tmp_path_factory.mktemp("several"), **changes) as found:
        yield found


@pytest.mark.parametrize("page", ["/trust.md", "/paying.md", "/status.md", "/start.md"])
def test_guides_name_each_network_in_order(site: SiteFixture, page: str) -> None:
    text = site.files[page].content.decode()

    assert 0 < text.index("Polygon (`eip155:137`)") < text.index("Base (`eip155:8453`)")


def test_payees_of_all_networks_are_published(site: SiteFixture) -> None:
    text = site.files["/trust.md"].content.decode().lower()

    assert all(entry["payTo"] in text for entry in ENTRIES)


@pytest.mark.parametrize("file", ["/llms.txt", "/.well-known/agent-skills/centgate/SKILL.md"])
def test_agent_texts_name_each_network(site: SiteFixture, file: str) -> None:
    assert re.search("`eip155:137`, `eip155:8453`", site.files[file].content.decode())


def test_raw_terms_are_a_list(site: SiteFixture) -> None:
    text = site.files["/paying.md"].content.decode()

    assert "an entry for each" in text
    assert text.count('"payTo"') == len(ENTRIES)
