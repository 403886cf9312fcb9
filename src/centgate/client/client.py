"""Base class of the sync and async clients: configuration, caps and ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from centgate.client.base_url import parse_origin, require_private_or_tls
from centgate.client.caps import DEFAULT_CAPS, Caps, Spent
from centgate.client.policy import (
    DEFAULT_OPTIONS,
    DEFAULT_PATIENCE,
    DEFAULT_POLICY,
    Allowed,
    OptionNames,
    Patience,
    parse_payees,
)

if TYPE_CHECKING:
    import ssl

    from centgate.client.ledger import Ledger
    from centgate.client.purchase import WalletSource
    from centgate.client.settings import BuyerSettings
    from centgate.client.transport import Proxies, Transport


class BaseClient(ABC):
    """Client of one API; subclasses send the requests."""

    def __init__(
        self,
        api: str,
        wallet: WalletSource = None,
        *,
        caps: Caps = DEFAULT_CAPS,
        payee: str | Mapping[str, str] | None = None,
        ledger: Ledger | None = None,
        networks: Iterable[str] | None = None,
        preferred_network: str | None = None,
        allowed: Allowed = DEFAULT_POLICY,
        patience: Patience = DEFAULT_PATIENCE,
        proxies: Proxies = "none",
        tls: ssl.SSLContext | None = None,
        watch: Callable[[str], None] | None = None,
        rpc: str | None = None,
        options: OptionNames = DEFAULT_OPTIONS,
    ) -> None:
        """Create a client; this sends nothing.

        `networks` are the networks it may pay on (CAIP-2) and replace those of `allowed`; the default is
        test networks only. If an API accepts several, `preferred_network` is paid on, else the cheapest, and
        of equal ones the API's first; terms that are settled after the work come before upfront ones.
        `payee` is the only address it pays, or has the only ones by network; without one it pays the address
        that the API named first, as recorded in the ledger. The ledger also counts towards the total cap.
        Without a `ledger` both records last as long as this object. `watch` receives progress messages. `rpc`
        is the URL of your own Ethereum node, for `balance` and `release_unused`. `options` are the names of
        options in messages. Raises
        AddressRefused for an API URL that is not allowed, ValueError for an invalid payee or network, and
        TypeError for a wallet that is a key or a path: `Wallet.from_key` and `Wallet.from_file` make one.
        """
        # with pydantic and asyncio these take nine tenths of the import time: only who makes a client pays it
        from centgate.client.ledger import Ledger
        from centgate.client.purchase import Purchases
        from centgate.client.transport import Transport

        origin = parse_origin(api)
        require_private_or_tls(origin, allowed.plain_http)
        transport = Transport(origin, connect_timeout=patience.connect, proxies=proxies, tls=tls)
        if networks is not None:
            allowed = allowed.with_networks(networks)
        if preferred_network is not None:
            allowed = allowed.with_preferred(preferred_network)
        self._purchases = Purchases(
            origin,
            transport,
            wallet=wallet,
            caps=caps,
            payees=parse_payees(payee),
            ledger=ledger or Ledger(),
            allowed=allowed,
            patience=patience,
            watch=watch,
            rpc=rpc,
            options=options,
        )
        self._connect(transport)

    @classmethod
    def from_settings(
        cls,
        settings: BuyerSettings | None = None,
        *,
        watch: Callable[[str], None] | None = None,
        options: OptionNames = DEFAULT_OPTIONS,
    ) -> Self:
        """Create a client from the environment. The key is read when a payment has to be signed."""
        # slow to import, and needed only here
        from centgate.client.ledger import Ledger
        from centgate.client.settings import BuyerSettings
        from centgate.client.transport import parse_proxy

        resolved = settings or BuyerSettings()
        return cls(
            resolved.api_url,
            resolved.open_wallet,
            caps=resolved.caps,
            payee=resolved.payee,
            networks=resolved.networks or None,
            preferred_network=resolved.preferred_network,
            allowed=resolved.allowed,
            ledger=Ledger(resolved.ledger),
            proxies=parse_proxy(resolved.proxy),
            watch=watch,
            rpc=resolved.wallet_rpc,
            options=options,
        )

    @property
    def api(self) -> str:
        """The API's origin, `scheme://host[:port]`."""
        return self._purchases.api

    @property
    def ledger(self) -> Ledger:
        """Record of every signed payment and its outcome."""
        return self._purchases.ledger

    @property
    def spent(self) -> Spent:
        """US dollars that the wallet has signed for, as the ledger counts them towards the caps."""
        return self._purchases.spent()

    def with_limits(self, *, timeout: float | None = None, max_price: Decimal | str | None = None) -> Self:
        """Return a client with limits of its own, for typed methods: it shares everything else with this one.

        `timeout` is in seconds for a whole call, though a signed payment has a second at least; one that is
        not answered by then stays open, and the same call sends it again. `max_price` is in US dollars, and
        cannot raise the cap per call.
        """
        limited = copy(self)
        limited._purchases = self._purchases.with_limits(timeout, max_price)  # noqa: SLF001 - of this class
        return limited

    @abstractmethod
    def _connect(self, transport: Transport) -> None:
        """Keep the connections, to close them with the client."""
