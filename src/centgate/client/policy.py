"""Configuration of a client: what it may pay, how long it waits, and the names of its options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from centgate.client.caps import PER_CALL_OPTION
from centgate.signing.asset_entries import decode_list, parse_asset, require_fields, require_network
from centgate.signing.assets import NETWORK_ID, USDC, Asset
from centgate.signing.evm import parse_address, to_checksum_address

DEFAULT_CONCURRENCY = 4
"""Default number of calls of `map` at work at once."""
DEFAULT_LIMIT = 20
"""Default number of payments on a page."""
DEFAULT_NETWORKS = frozenset({"eip155:31337", "eip155:84532"})
"""Default networks of a client, without real money: a local node, and Base Sepolia."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Payment policy: exceptions from the default rules."""

    networks: frozenset[str] = DEFAULT_NETWORKS
    """Networks (CAIP-2) to pay on, in addition to those of `assets`. The default is test networks only."""
    assets: Mapping[str, Asset] = field(default_factory=dict[str, Asset])
    """Dollar tokens by network, instead of Circle's USDC."""
    hosts: frozenset[str] = frozenset()
    """Hosts that the terms may name although another host was called."""
    plain_http: frozenset[str] = frozenset()
    """Public hosts that may be called without TLS."""
    preferred_network: str | None = None
    """Network (CAIP-2) to pay on if an API accepts several; it must be allowed as well."""

    def asset(self, network: str) -> Asset | None:
        """Return the token to pay with on a network; None if the network is not allowed."""
        if network in self.assets:
            return self.assets[network]
        return USDC.get(network) if network in self.networks else None

    def with_assets(self, assets: Mapping[str, Asset], networks: Iterable[str]) -> Allowed:
        """Return a copy with these tokens, of them only those on `networks` if any are named."""
        names = frozenset(networks)
        return replace(
            self, assets={name: token for name, token in assets.items() if not names or name in names}
        )

    def with_networks(self, networks: Iterable[str]) -> Allowed:
        """Return a copy with these networks instead. Raises ValueError for an unknown network."""
        names = frozenset((networks,) if isinstance(networks, str) else networks)
        for name in sorted(names - USDC.keys() - DEFAULT_NETWORKS - self.assets.keys()):
            supported = ", ".join({**USDC, **self.assets})
            raise ValueError(f"this client cannot pay on network {name[:40]!r}; supported: {supported}")
        return replace(self, networks=names)

    def with_preferred(self, network: str) -> Allowed:
        """Return a copy that prefers a network. Raises ValueError if it is not of the form eip155:8453."""
        if not re.fullmatch(NETWORK_ID, network):
            raise ValueError(f"{network[:40]!r} is not a network of the form eip155:8453")
        return replace(self, preferred_network=network)


DEFAULT_POLICY = Allowed()
"""Default payment policy."""
_ASSET_KEYS = ("network", "asset", "name", "version")
ANY_NETWORK = "*"
"""Key of a pinned payee that is paid on every network."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Timeouts in seconds, and the retry limit for one payment."""

    deadline: float = 90
    """For the whole paid call, from the first time the payment is sent."""
    attempts: int = 8
    answer: float = 60
    """For one HTTP response."""
    connect: float = 10
    pause: float = 0.5
    """Delay before the second attempt; doubled before each further one."""
    longest_pause: float = 10


DEFAULT_PATIENCE = Patience()
"""Default timeouts and retry limit."""


@dataclass(frozen=True, slots=True)
class OptionNames:
    """Names of the options that set a client up, for the advice in its messages."""

    api: str = "CENTGATE_API_URL"
    per_call: str = PER_CALL_OPTION


DEFAULT_OPTIONS = OptionNames()
"""The names of the environment variables."""


def parse_allowed_assets(value: Any) -> Mapping[str, Asset] | None:
    """Parse the tokens that may be paid with, by network (CAIP-2), from a JSON list as text.

    Entries have the keys `network`, `asset`, `name` and `version`. Returns what is no text unchanged.
    Raises ValueError.
    """
    if not isinstance(value, str):
        return value
    entries: Any = decode_list(value)
    if not isinstance(entries, list):
        example = '[{"network": "eip155:31337", "asset": "0x…", "name": "USDC", "version": "2"}]'
        raise ValueError(f"needs a JSON list: {example}")
    if not entries:
        raise ValueError("the list is empty: name at least one token, or do not set it")
    assets: dict[str, Asset] = {}
    for number, entry in enumerate(cast(Sequence[Any], entries), 1):
        fields = require_fields(entry, _ASSET_KEYS, f"entry {number}")
        network = require_network(fields, f"entry {number}")
        if network in assets:
            raise ValueError(f"two tokens are named on {network}")
        assets[network] = parse_asset(fields, network, f"entry {number}")
    return assets


def parse_payees(payee: str | Mapping[str, str] | None) -> dict[str, str]:
    """Parse pinned payees: one address for all networks, or addresses by network.

    As text, the latter are `eip155:8453=0x…,eip155:137=0x…`. Returns them by network, with their checksums,
    the single one for `ANY_NETWORK`; empty for None. Raises ValueError.
    """
    if payee is None:
        return {}
    if isinstance(payee, Mapping):
        pairs = list(payee.items())
    elif "=" not in payee:
        return {ANY_NETWORK: parse_payee(payee)}
    else:
        pairs = [(name.strip(), address.strip()) for name, _, address in _partition_each(payee)]
    for network, _ in pairs:
        if not re.fullmatch(NETWORK_ID, network):
            raise ValueError(f"{network[:40]!r} is not a network of the form eip155:8453")
        if [name for name, _ in pairs].count(network) > 1:
            raise ValueError(f"two payees are pinned on {network}")
    if not pairs:
        raise ValueError("no payee is pinned")
    return {network: parse_payee(address) for network, address in pairs}


def _partition_each(text: str) -> Iterable[tuple[str, str, str]]:
    return (part.partition("=") for part in text.split(",") if part.strip())


def parse_payee(address: str) -> str:
    """Parse a payee's address and return it with its EIP-55 checksum. Raises ValueError."""
    if not int(parse_address(address), 16):
        raise ValueError(f"{address[:60]!r} is not an address")
    return to_checksum_address(address)
