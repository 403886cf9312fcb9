"""Two development chains, one facilitator for both, and deployments that accept payments on both."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from buyer import decode_header, encode_header
from facilitators import build_settings

from centgate.devchain.devnet import DevChain, open_devchains
from centgate.settings import ProviderSettings, Settings
from centgate.signing.assets import Asset

FIRST, SECOND = "eip155:84532", "eip155:31337"
PAYEES = {
    FIRST: "0xD1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1D1".lower(),
    SECOND: "0xD2D2D2D2D2D2D2D2D2D2D2D2D2D2D2D2D2D2D2D2".lower(),
}
TOKEN_NAME, TOKEN_VERSION = "USDC", "2"


@dataclass(frozen=True)
class TwoChains:
    """The chains by network, and the settings to accept payments on them."""

    chains: Mapping[str, DevChain]

    @property
    def facilitator_url(self) -> str:
        return self.chains[FIRST].facilitator_url

    @property
    def entries(self) -> list[dict[str, str]]:
        """Entries of CENTGATE_ACCEPTS."""
        return [
            {
                "network": network,
                "payTo": PAYEES[network],
                "asset": chain.token,
                "name": TOKEN_NAME,
                "version": TOKEN_VERSION,
            }
            for network, chain in self.chains.items()
        ]

    @property
    def assets(self) -> dict[str, Asset]:
        """The tokens by network, in the format of the clients' settings."""
        return {
            network: Asset(chain.token, TOKEN_NAME, TOKEN_VERSION) for network, chain in self.chains.items()
        }

    @property
    def environment(self) -> dict[str, str]:
        """Settings of a deployment as environment variables, without the database."""
        nodes = {f"CENTGATE_RPC_{chain.chain_id}_URL": chain.rpc_url for chain in self.chains.values()}
        return {
            "CENTGATE_ACCEPTS": json.dumps(self.entries),
            "CENTGATE_FACILITATOR_URL": self.facilitator_url,
            "CENTGATE_PHISHING_LIST_URL": "off",
            **nodes,
        }

    def build_settings(self, folder: Path, **changes: Any) -> Settings:
        """Return the settings of a deployment with its journal in a folder."""
        nodes = {
            f"rpc_{chain.chain_id}": ProviderSettings(url=chain.rpc_url) for chain in self.chains.values()
        }
        given: dict[str, Any] = {
            "facilitator_url": self.facilitator_url,
            "accepts": self.entries,
            "pay_to": None,
            "network": None,
            "providers": nodes,
        }
        return build_settings(folder, **{**given, **changes})

    def balance(self, network: str) -> int:
        """Return the payee's balance on a network, in base units."""
        return self.chains[network].token_balance(PAYEES[network])


@contextmanager
def open_two_chains() -> Generator[TwoChains]:
    """Start both chains and their facilitator."""
    with open_devchains([int(each.removeprefix("eip155:")) for each in (FIRST, SECOND)]) as chains:
        yield TwoChains({each.network: each for each in chains})


def select_entry(header: str, network: str) -> str:
    """Return a PAYMENT-REQUIRED header with the entry of one network only."""
    offer = decode_header(header)
    entries = [each for each in offer["accepts"] if each["network"] == network]
    return encode_header({**offer, "accepts": entries})
