"""What both clients are made of: whom they call, by what means, and what they remember."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Self

import httpx2

from centgate.client.asking import PATIENCE, Patience
from centgate.client.caps import CAPS, Caps
from centgate.client.exchange import Proxies, async_http, proxies_set
from centgate.client.ledger import Ledger
from centgate.client.origin import origin_of, require_private_or_tls
from centgate.client.purchase import Buyer, WalletSource
from centgate.client.settings import BuyerSettings
from centgate.client.terms import ALLOWED, Allowed, read_payee


class Client(ABC):
    """A buyer at one API, without the way its requests are sent."""

    def __init__(
        self,
        api: str,
        wallet: WalletSource = None,
        *,
        caps: Caps = CAPS,
        payee: str | None = None,
        ledger: Ledger | None = None,
        networks: Iterable[str] | None = None,
        allowed: Allowed = ALLOWED,
        patience: Patience = PATIENCE,
        proxies: Proxies = "none",
        tls: ssl.SSLContext | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        """A client that has sent nothing yet.

        `networks` are those it pays on (CAIP-2), in place of those of `allowed`; unless they are named, test
        networks alone. `payee` is the only address it pays; without one it pays whoever the API asked for
        first, as long as the ledger remembers. The ledger counts against the total cap too. Without a
        `ledger` both last as long as this object. `watch` is told in sentences what goes on. Raises
        AddressRefused for an API that may not be called, ValueError for no payee or network.
        """
        origin = origin_of(api)
        require_private_or_tls(origin, allowed.plain_http)
        self._buyer = Buyer(
            origin,
            wallet=wallet,
            caps=caps,
            payee=read_payee(payee) if payee is not None else None,
            ledger=ledger or Ledger(),
            allowed=allowed if networks is None else allowed.with_networks(networks),
            patience=patience,
            watch=watch,
        )
        self._connects(partial(async_http, origin, proxies, tls))

    @classmethod
    def from_settings(
        cls, settings: BuyerSettings | None = None, *, watch: Callable[[str], None] | None = None
    ) -> Self:
        """A client as the environment sets it up; the key is read when a payment is to be signed."""
        given = settings or BuyerSettings()
        return cls(
            given.api_url,
            given.open_wallet,
            caps=given.caps,
            payee=given.payee,
            networks=given.networks or None,
            ledger=Ledger(given.ledger),
            proxies=proxies_set(given.proxy),
            watch=watch,
        )

    @property
    def api(self) -> str:
        """The API's address."""
        return self._buyer.api

    @property
    def ledger(self) -> Ledger:
        """What was signed, and what came of it."""
        return self._buyer.ledger

    @abstractmethod
    def _connects(self, connect: Callable[[], httpx2.AsyncClient]) -> None:
        """Take what opens the connections."""
