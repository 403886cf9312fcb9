"""`devchain_settings`: the operator's settings that a development server keeps."""

from __future__ import annotations

from pathlib import Path

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.settings import Settings


def test_development_server_uses_phishing_lists_of_operator(devchain: DevChain, tmp_path: Path) -> None:
    own = Settings(
        phishing_folder=tmp_path / "lists",
        phishing_list=tmp_path / "own.xz",
        phishing_list_url=("metamask=https://lists.example/config.json",),
    )

    settings = devchain_settings(devchain, own, tmp_path / "dev")

    assert settings.phishing_folder == tmp_path / "lists"
    assert settings.phishing_list == tmp_path / "own.xz"
    assert settings.phishing_urls == {"metamask": "https://lists.example/config.json"}


def test_development_server_fetches_no_list_by_default(devchain: DevChain, tmp_path: Path) -> None:
    settings = devchain_settings(devchain, Settings(), tmp_path / "dev")

    assert settings.phishing_folder == tmp_path / "dev" / "phishing"
    assert settings.phishing_urls == {}


def test_development_server_uses_indexes_of_operator(devchain: DevChain, tmp_path: Path) -> None:
    own = Settings(siteindex_folder=tmp_path / "pages", packagedocs_folder=tmp_path / "docs")

    settings = devchain_settings(devchain, own, tmp_path / "dev")

    assert settings.siteindex_folder == tmp_path / "pages"
    assert settings.packagedocs_folder == tmp_path / "docs"


def test_development_server_has_own_indexes_by_default(devchain: DevChain, tmp_path: Path) -> None:
    settings = devchain_settings(devchain, Settings(), tmp_path / "dev")

    assert settings.siteindex_folder == tmp_path / "dev" / "index"
    assert settings.packagedocs_folder == tmp_path / "dev" / "docs"
