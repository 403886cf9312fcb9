"""Base class of the sync and async clients: configuration, caps and ledger."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Self

from centgate.client.base_url import parse_origin, require_private_or_tls
from centgate.client.caps import DEFAULT_CAPS, Caps
from centgate.client.free_requests import DEFAULT_PATIENCE, Patience
from centgate.client.ledger import Ledger
from centgate.client.purchase import Purchases, WalletSource
from centgate.client.quote import DEFAULT_POLICY, Allowed, parse_payee
from centgate.client.settings import BuyerSettings
from centgate.client.transport import Proxies, Transport, parse_proxy


class BaseClient(ABC):
    """Client of one API; subclasses send the requests."""

    def __init__(
        self,
        api: str,
        wallet: WalletSource = None,
        *,
        caps: Caps = DEFAULT_CAPS,
        payee: str | None = None,
        ledger: Ledger | None = None,
        networks: Iterable[str] | None = None,
        allowed: Allowed = DEFAULT_POLICY,
        patience: Patience = DEFAULT_PATIENCE,
        proxies: Proxies = "none",
        tls: ssl.SSLContext | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        """Create a client; this sends nothing.

        `networks` are the networks it may pay on (CAIP-2) and replace those of `allowed`; the default is
        test networks only. `payee` is the only address it pays; without one it pays the address that the
        API named first, as recorded in the ledger. The ledger also counts towards the total cap. Without a
        `ledger` both records last as long as this object. `watch` receives progress messages. Raises
        AddressRefused for an API URL that is not allowed, ValueError for an invalid payee or network.
        """
        origin = parse_origin(api)
        require_private_or_tls(origin, allowed.plain_http)
        transport = Transport(origin, connect_timeout=patience.connect, proxies=proxies, tls=tls)
        self._purchases = Purchases(
            origin,
            transport,
            wallet=wallet,
            caps=caps,
            payee=parse_payee(payee) if payee is not None else None,
            ledger=ledger or Ledger(),
            allowed=allowed if networks is None else allowed.with_networks(networks),
            patience=patience,
            watch=watch,
        )
        self._connect(transport)

    @classmethod
    def from_settings(
        cls, settings: BuyerSettings | None = None, *, watch: Callable[[str], None] | None = None
    ) -> Self:
        """Create a client from the environment. The key is read when a payment has to be signed."""
        resolved = settings or BuyerSettings()
        return cls(
            resolved.api_url,
            resolved.open_wallet,
            caps=resolved.caps,
            payee=resolved.payee,
            networks=resolved.networks or None,
            ledger=Ledger(resolved.ledger),
            proxies=parse_proxy(resolved.proxy),
            watch=watch,
        )

    @property
    def api(self) -> str:
        """The API's origin, `scheme://host[:port]`."""
        return self._purchases.api

    @property
    def ledger(self) -> Ledger:
        """Record of every signed payment and its outcome."""
        return self._purchases.ledger

    @abstractmethod
    def _connect(self, transport: Transport) -> None:
        """Keep the connections, to close them with the client."""
