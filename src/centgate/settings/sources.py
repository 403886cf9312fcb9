"""Settings of the sources of facts: which are used, and those of the sources that are built in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, field_validator

from centgate.phishing.published import parse_list_urls
from centgate.settings.fields import CommaList, SettingsGroup, split_list
from centgate.web.fetch.policy import FetchPolicy


class SourceSettings(SettingsGroup):
    """Choice of sources; page reader, documentation, site index and phishing lists."""

    pinned: CommaList = Field(
        default=(),
        description="Providers that answer a service alone, without a fallback, as `<service>=<provider>` "
        "separated by commas: crawler-scrape=pagereader.",
    )
    resale_permitted_only: bool = Field(
        default=False,
        description="True to use only sources whose terms of use permit selling answers made of their data; "
        "`centgate doctor --only terms` lists them. Services without such a source answer "
        "`provider_unconfigured`.",
    )
    fetch_ports: Annotated[tuple[int, ...], BeforeValidator(split_list)] = Field(
        default=(80, 443), description="Allowed ports of fetched pages, separated by commas."
    )
    fetch_allowed: CommaList = Field(
        default=(),
        description="Non-public addresses that may be fetched for buyers, as `address`, "
        "`network/bits` or `address:port`, separated by commas. For tests and intranets.",
    )
    fetch_robots: bool = Field(
        default=True, description="True if the built-in page reader respects a site's robots.txt."
    )
    page_processes: int = Field(
        default=2, ge=1, le=64, description="Number of processes that parse pages, per server process."
    )
    pagereader_render: bool | None = Field(
        default=None,
        description="True if pages that need scripts are rendered with a browser; needs the extra "
        "`render` and a Chromium, best a headless shell. Default: true if both are installed.",
    )
    pagereader_chromium: Path | None = Field(
        default=None, description="Path of the browser's executable. Default: searched under its usual names."
    )
    packagedocs_folder: Path = Field(
        default=Path("centgate-docs"),
        description="Folder for the indexes of the built-in documentation search, one file per library and "
        "version.",
    )
    packagedocs_sites: bool = Field(
        default=True,
        description="Read the documentation sites that packages name, by their llms-full.txt or llms.txt, "
        "else by their sitemap, in addition to the packages. They are fetched like pages for buyers, under "
        "robots.txt.",
    )
    siteindex_folder: Path = Field(
        default=Path("centgate-index"),
        description="Folder for the search index of sites of the operator's choosing, which `centgate index` "
        "writes; shared by all server processes of a machine.",
    )
    siteindex_embeddings_model: str | None = Field(
        default=None,
        description="Model at `CENTGATE_SITEINDEX_EMBEDDINGS_URL`, an OpenAI-compatible endpoint (up to and "
        "with `/v1`), whose vectors find pages of the site index by meaning.",
    )
    siteindex_min_similarity: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="Cosine similarity from which a page of the site index is near a query. Models differ: "
        "those of the E5 family need about 0.8.",
    )
    phishing_list: Path | None = Field(
        default=None,
        description="A phishing list made by `centgate phishing-list update`. Default: the list in the "
        "package.",
    )
    phishing_list_url: CommaList | None = Field(
        default=None,
        description="Phishing lists that are fetched in the background once a day, separated by commas: "
        "`<list>=<url>`, or a list's name alone for its usual address (`metamask`, `polkadot`, `phantom`, "
        "`scamsniffer`), a URL alone for `metamask`, `hotlist=<url>` for the changes of MetaMask's stalelist "
        "every five minutes, `default` for `metamask,polkadot`, `off` for none. Default: `default` for "
        "`centgate serve` unless `CENTGATE_PHISHING_LIST` is set, else `off`.",
    )
    phishing_folder: Path = Field(
        default=Path("centgate-phishing"),
        description="Folder for fetched phishing lists, shared by all server processes of a machine.",
    )

    @field_validator("pinned")
    @classmethod
    def _check_pins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pin in value:
            if not re.fullmatch(r"[a-z-]+=[a-z0-9]+", pin):
                raise ValueError(f"{pin!r} is not of the form service=provider")
        return value

    @field_validator("fetch_ports")
    @classmethod
    def _check_ports(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        FetchPolicy(frozenset(value))  # raises for an invalid port
        return value

    @field_validator("fetch_allowed")
    @classmethod
    def _normalize_fetch_allowed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return FetchPolicy(allowed_networks=value).allowed_networks

    @field_validator("phishing_list_url")
    @classmethod
    def _check_phishing_urls(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        parse_list_urls(value or ())
        return value

    @property
    def fetch_policy(self) -> FetchPolicy:
        """The policy for addresses that may be fetched for buyers."""
        return FetchPolicy(frozenset(self.fetch_ports), self.fetch_allowed)

    @property
    def phishing_urls(self) -> Mapping[str, str]:
        """Addresses of the phishing lists to fetch, by list, and of the hotlist."""
        return parse_list_urls(self.phishing_list_url or ())

    def with_fetched_lists(self) -> Self:
        """Return the settings of a server for real payments, which fetches the default phishing lists."""
        if self.phishing_list_url is not None or self.phishing_list is not None:
            return self
        return self.model_copy(update={"phishing_list_url": ("default",)})

    def pinned_provider(self, service: str) -> str | None:
        """Return the name of the provider pinned for a service, or None."""
        return dict(pin.split("=", 1) for pin in self.pinned).get(service)
