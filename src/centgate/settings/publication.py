"""Settings of what a deployment publishes beside its answers: website, source code, proofs, origins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from centgate.settings.fields import Origin, Origins, SettingsGroup, split_list

SIGNATURE_PATTERN = r"^0x(?:[0-9a-fA-F]{2}){65,1000}$"
"""A signature in hex: 65 bytes of a key (EIP-191), more of a contract wallet (ERC-1271).

The website shows no longer ones.
"""


class PublicationSettings(SettingsGroup):
    """The website, and what directories and browsers read."""

    site_url: Origin | None = Field(
        default=None,
        description="The URL of the website that `centgate site` serves or builds, without a path: the API "
        "links to it, and the website uses it as its own URL.",
    )
    repository_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s\"<>]+$",
        description="The URL of the source code that this deployment runs: the OpenAPI document names it, "
        "and the website links to it.",
    )
    ownership_proofs: Annotated[
        tuple[Annotated[str, Field(pattern=SIGNATURE_PATTERN)], ...], BeforeValidator(split_list)
    ] = Field(
        default=(),
        description="Proofs that the payee operates this server, separated by commas: signatures "
        "(EIP-191) of the public URL by the key of `CENTGATE_PAY_TO`, each 0x and at least 65 bytes in hex. "
        "Directories read them in the OpenAPI document.",
    )
    well_known: Path | None = Field(
        default=None,
        description="A folder of files that the API and the website serve unchanged under /.well-known/, for "
        "directories that verify the owner of a domain.",
    )
    allowed_origins: Origins = Field(
        default=("*",),
        description="Allowed browser origins (CORS), separated by commas; * for all. `/mcp` is open to pages "
        "of other origins only if these are named.",
    )
