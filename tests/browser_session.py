"""Website in a thread, and a browser wallet that makes real signatures."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import uvicorn
from eth_account import Account
from msgspec.structs import replace
from playwright.sync_api import Page

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.server import local_url, open_listener
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.files import SiteFile, build_files
from centgate.website.server import create_site_app


@dataclass(frozen=True)
class ServedSite:
    """A served website and the snapshot of the API that it shows."""

    url: str
    deployment: ApiSnapshot

    @cached_property
    def files(self) -> dict[str, SiteFile]:
        """Return the files of the website, by path."""
        return build_files(self.deployment)


@contextmanager
def serve_site(api: str, **promises: Any) -> Generator[ServedSite]:
    """Serve the website of an API in a thread; `promises` replace terms that it read from the API."""
    listener, settings = open_listener(Settings(port=0))
    url = local_url(settings)
    deployment = with_changed_terms(read_snapshot(api, url), **promises)
    config = uvicorn.Config(create_site_app(api, deployment), log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    yield ServedSite(url, deployment)
    server.should_exit = server.force_exit = True
    thread.join()
    listener.close()


def with_changed_terms(deployment: ApiSnapshot, **promises: Any) -> ApiSnapshot:
    """Return the deployment with changed terms; `price` applies to every service."""
    price = promises.pop("price", None)
    assert deployment.terms is not None
    terms = deployment.terms.model_copy(update=promises)
    services = deployment.services
    if price:
        services = tuple(each.model_copy(update={"price": price}) for each in services)
    return replace(deployment, terms=terms, services=services)


class WalletError(Exception):
    """Error of the wallet, with an EIP-1193 code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class BrowserWallet:
    """EIP-1193 wallet of one of the payers, as injected by a browser extension."""

    number: int = 0
    chain: int = 84532
    knows: set[int] = field(default_factory=lambda: {1, 84532})
    refuses: set[str] = field(default_factory=set[str])
    methods: list[str] = field(default_factory=list[str])
    """The requested methods, in order."""
    signed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The typed data that was signed."""

    @property
    def key(self) -> str:
        return BUYER_ACCOUNTS[self.number].private_key

    @property
    def address(self) -> str:
        return Account.from_key(self.key).address

    def answer(self, method: str, params: list[Any]) -> dict[str, Any]:
        """Return the response to a request: a result, or an error with its code."""
        self.methods.append(method)
        try:
            if method in self.refuses:
                raise WalletError(4001, "User rejected the request.")
            return {"result": self._do(method, params)}
        except WalletError as declined:
            return {"error": {"code": declined.code, "message": str(declined)}}

    def _do(self, method: str, params: list[Any]) -> Any:
        match method:
            case "eth_requestAccounts" | "eth_accounts":
                return [self.address]
            case "eth_chainId":
                return hex(self.chain)
            case "wallet_switchEthereumChain":
                return self._switch(int(params[0]["chainId"], 16))
            case "wallet_addEthereumChain":
                self.knows.add(int(params[0]["chainId"], 16))
                return self._switch(int(params[0]["chainId"], 16))
            case "eth_signTypedData_v4":
                return self._sign(params[0], json.loads(params[1]))
            case _:
                raise WalletError(4200, f"{method} is not supported")

    def _switch(self, chain: int) -> None:
        if chain not in self.knows:
            raise WalletError(4902, "Unrecognized chain ID.")
        self.chain = chain

    def _sign(self, account: str, data: dict[str, Any]) -> str:
        if account != self.address or data["domain"]["chainId"] != self.chain:
            raise WalletError(-32602, "another account or chain is asked for than the wallet's")
        self.signed.append(data)
        signed = Account.sign_typed_data(self.key, full_message=data)
        return "0x" + signed.signature.hex().removeprefix("0x")


@dataclass
class EmptyWallet(BrowserWallet):
    """EIP-1193 wallet without funds."""

    @property
    def key(self) -> str:
        return "0x" + "42" * 32


_PROVIDER = """
const provider = { async request({ method, params }) {
  const { result, error } = await window.walletAnswers(method, params ?? []);
  if (error) throw Object.assign(new Error(error.message), { code: error.code });
  return result;
} };
"""
_INJECTED = "window.ethereum = provider;"
_ANNOUNCED = """
const uuid = "350670db-19fa-4704-a166-e52e178b59d2";
const info = Object.freeze({ uuid, name: NAME, rdns: "test", icon: "" });
const announce = () => dispatchEvent(
  new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }));
addEventListener("eip6963:requestProvider", announce);
"""


def install_wallet(page: Page, wallet: BrowserWallet, *, announced_as: str | None = None) -> None:
    """Inject a wallet into all later pages: as `window.ethereum`, or announced by name (EIP-6963)."""
    page.expose_function("walletAnswers", wallet.answer)  # pyright: ignore[reportUnknownMemberType]
    way = _ANNOUNCED.replace("NAME", json.dumps(announced_as)) if announced_as else _INJECTED
    page.add_init_script(f"{{{_PROVIDER}{way}}}")


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_violations(page: Page) -> list[str]:
    """Return the violations that axe finds on the page, one line each."""
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{each['id']}: {[node['target'] for node in each['nodes'][:3]]}" for each in found]
