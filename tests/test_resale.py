"""Sources whose terms do not permit resale, which a setting excludes."""

from __future__ import annotations

import pytest
from buyer import PHISHING, ApiFactory
from fake_upstreams import FakeUpstreams, configure_providers, send_paid

from centgate.catalog import all_providers, all_services, sources_by_resale
from centgate.settings import ProviderSettings, Settings

PROTOCOLS = "/services/protocol-context"


@pytest.fixture
def strict(settings: Settings) -> Settings:
    """Settings that use only sources whose terms permit resale."""
    return settings.model_copy(update={"resale_permitted_only": True})


def test_forbidding_sources_are_named() -> None:
    forbidding = {
        name for name, kind in all_providers(all_services()).items() if kind.info.resale == "forbidden"
    }

    assert forbidding == {"goplus", "honeypotis"}


def test_default_uses_all_sources(settings: Settings) -> None:
    sources = sources_by_resale(settings)

    assert {about.name for about in sources["forbidden"]} == {"goplus", "honeypotis"}
    assert {"rpc", "sourcify", "phishinglist"} <= {about.name for about in sources["permitted"]}


def test_strict_deployment_uses_permitted_sources_only(strict: Settings) -> None:
    sources = sources_by_resale(strict)

    assert sources["forbidden"] == sources["unstated"] == []
    assert {"rpc", "sourcify", "phishinglist"} <= {about.name for about in sources["permitted"]}


def test_consent_includes_a_source_again(strict: Settings) -> None:
    agreed = configure_providers(strict, {"goplus": ProviderSettings(resale_permitted=True)})

    assert "goplus" in {about.name for about in sources_by_resale(agreed)["permitted"]}


def test_operator_may_deny_resale(settings: Settings) -> None:
    denied = configure_providers(settings, {"sourcify": ProviderSettings(resale_permitted=False)})

    assert "sourcify" in {about.name for about in sources_by_resale(denied)["forbidden"]}


def test_excluded_source_is_never_called(api: ApiFactory, strict: Settings, upstreams: FakeUpstreams) -> None:
    client = api(configure_providers(strict, upstreams.provider_settings("defillama", "exa")))

    response = send_paid(client, PROTOCOLS, {"protocol": "aave-v3"})

    assert response.status_code == 503
    assert response.json()["error"]["code"] == "provider_unconfigured"
    assert response.json()["error"]["details"]["payment"]["charged"] is False
    assert upstreams.requests == []


def test_services_with_own_evidence_answer(api: ApiFactory, strict: Settings) -> None:
    client = api(strict)

    response = send_paid(client, PHISHING, {"url": "https://metamask.io"})

    assert response.status_code == 200
