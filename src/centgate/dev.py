"""`centgate dev`: the whole house on one machine, with money that is worth nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from centgate.devchain.house import DevChain, open_devchain
from centgate.settings import ProviderSettings, Settings

MERCHANT = "0xcE47ca7E00000000000000000000000000000402"
"""Where payments on the development chain go unless `CENTGATE_PAY_TO` says otherwise; nobody has its key."""


@dataclass(frozen=True)
class Development:
    """A development chain with its facilitator, and the settings of an API that is paid on it."""

    chain: DevChain
    settings: Settings


@contextmanager
def development(settings: Settings) -> Generator[Development]:
    """Start the chain and the facilitator, and keep the journal in a folder that goes with them."""
    with (
        tempfile.TemporaryDirectory(prefix="centgate-dev-") as folder,
        open_devchain(rpc=settings.dev_rpc, anvil=shutil.which("anvil")) as chain,
    ):
        yield Development(chain, paid_on(chain, settings, Path(folder)))


def paid_on(chain: DevChain, settings: Settings, folder: Path) -> Settings:
    """The operator's settings, with everything about money turned to the development chain."""
    rpc = {f"rpc_{chain.chain_id}": ProviderSettings(url=chain.rpc_url)}
    return settings.model_copy(
        update={
            "pay_to": settings.pay_to or MERCHANT,
            "network": f"eip155:{chain.chain_id}",
            "asset": None,
            "facilitator_url": chain.facilitator_url,
            "facilitator_token": None,
            "cdp_api_key_id": None,
            "cdp_api_key_secret": None,
            "database_url": f"sqlite:///{folder / 'journal.db'}",
            "packagedocs_folder": folder / "docs",
            "workers": 1,
            # everybody who tries something out comes from one address, and there is no money to lose
            "free_per_minute": 0,
            "refused_per_minute": 0,
            "providers": {**settings.providers, **rpc},
        }
    )
