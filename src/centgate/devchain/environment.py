"""`centgate dev`: chain, facilitator and API on one machine, with worthless test money."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from centgate.devchain.accounts import DEFAULT_PAYEE
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.environment import node_variable
from centgate.provider_settings import ProviderSettings
from centgate.settings import Settings, find_variables

_UNUSED = (
    *("accepts", "asset", "asset_name", "asset_version"),
    *("facilitator_token", "cdp_api_key_id", "cdp_api_key_secret"),
    *("facilitator_fallback_url", "facilitator_fallback_token"),
    *("facilitator_fallback_cdp_api_key_id", "facilitator_fallback_cdp_api_key_secret"),
)
"""The operator's settings of payments that do not apply to the development chain."""
_BUYERS_OWN = (
    *("CENTGATE_NETWORKS", "CENTGATE_ALLOWED_ASSETS", "CENTGATE_PREFERRED_NETWORK"),
    *("CENTGATE_PAYEE", "CENTGATE_PROXY"),
)
"""The buyer's settings by which it would not pay here, or not reach it."""


class DevEnvironment(Struct, frozen=True):
    """Development chain with its facilitator, and the settings of an API that uses them."""

    chain: DevChain
    settings: Settings

    @property
    def shell_settings(self) -> str:
        """The command that sets, in another shell, what the operator's commands find this deployment by.

        Variables that do not apply here, of `.env` for example, are set to nothing.
        """
        variables = dict.fromkeys(find_variables(_UNUSED), "") | {
            "CENTGATE_DATABASE_URL": self.settings.database_url,
            "CENTGATE_FACILITATOR_URL": self.chain.facilitator_url,
            "CENTGATE_NETWORK": self.settings.network,
            "CENTGATE_PAY_TO": self.settings.pay_to,
            node_variable(self.chain.network): self.chain.rpc_url,
        }
        return _join_export(variables)

    def buyer_settings(self, api_url: str) -> str:
        """Return the command that sets, in another shell, what the buyer's commands pay this API by.

        Settings of the buyer that would forbid that, such as a pinned payee, are set to nothing.
        """
        variables = dict.fromkeys(filter(os.environ.get, _BUYERS_OWN), "") | {
            "CENTGATE_API_URL": api_url,
            "CENTGATE_WALLET_KEY": self.chain.accounts[0].private_key,
            "CENTGATE_WALLET_RPC": self.chain.rpc_url,
        }
        return _join_export(variables)


def _join_export(variables: Mapping[str, str | None]) -> str:
    return shlex.join(["export", *(f"{name}={value}" for name, value in variables.items())])


@contextmanager
def open_dev_environment(settings: Settings) -> Generator[DevEnvironment]:
    """Start the chain and the facilitator, with the journal in a temporary folder."""
    with (
        tempfile.TemporaryDirectory(prefix="centgate-dev-") as folder,
        open_devchain(rpc=settings.dev_rpc, anvil=shutil.which("anvil")) as chain,
    ):
        yield DevEnvironment(chain, devchain_settings(chain, settings, Path(folder)))


def devchain_settings(chain: DevChain, settings: Settings, folder: Path) -> Settings:
    """Return the operator's settings with all payment settings switched to the development chain."""
    rpc = {f"rpc_{chain.chain_id}": ProviderSettings(url=chain.rpc_url)}
    return settings.model_copy(
        update={
            **{name: Settings.model_fields[name].default for name in _UNUSED},
            "pay_to": settings.pay_to or DEFAULT_PAYEE,
            "network": chain.network,
            "facilitator_url": chain.facilitator_url,
            "database_url": f"sqlite:///{folder / 'journal.db'}",
            # an index that the operator has built can be tried here
            "packagedocs_folder": _own_folder(settings, "packagedocs_folder") or folder / "docs",
            "siteindex_folder": _own_folder(settings, "siteindex_folder") or folder / "index",
            "phishing_folder": _own_folder(settings, "phishing_folder") or folder / "phishing",
            "phishing_list_url": settings.phishing_list_url or ("off",),
            "workers": 1,
            # all local clients share one IP address, and no real money is at risk
            "free_per_minute": 0,
            "refused_per_minute": 0,
            "providers": {**settings.providers, **rpc},
        }
    )


def _own_folder(settings: Settings, name: str) -> Path | None:
    """Return a folder that the operator has set; None for the default of a server."""
    return getattr(settings, name) if name in settings.model_fields_set else None
