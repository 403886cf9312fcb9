"""Development network: chains with the token, and a facilitator that settles on them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from centgate.devchain.accounts import BUYER_ACCOUNTS, FACILITATOR_ACCOUNT, GAS_BALANCE, Account
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.devchain.rpc_client import call_rpc, initial_token_storage, install_token, run_anvil
from centgate.devchain.token import (
    CHAIN_ID,
    TOKEN_ADDRESS,
    encode_authorization_state_call,
    encode_balance_call,
    runtime_code,
)

if TYPE_CHECKING:  # py-evm loads slowly
    from centgate.devchain.chain import EvmChain

NodeKind = Literal["in-process EVM", "anvil", "given node"]


class DevChain(Struct, frozen=True):
    """Running development chain, with the URLs of its parts."""

    rpc_url: str
    facilitator_url: str
    kind: NodeKind
    token: str = TOKEN_ADDRESS
    chain_id: int = CHAIN_ID
    accounts: tuple[Account, ...] = BUYER_ACCOUNTS

    @property
    def network(self) -> str:
        """CAIP-2 identifier of the chain."""
        return f"eip155:{self.chain_id}"

    def token_balance(self, address: str) -> int:
        """Return the token balance of an address, in base units of a millionth. Blocking."""
        return int(self._call_token(encode_balance_call(address)), 16)

    def is_authorization_used(self, payer: str, nonce: str) -> bool:
        """Return True if an authorization was settled or canceled. Blocking."""
        return int(self._call_token(encode_authorization_state_call(payer, nonce)), 16) == 1

    def _call_token(self, call_data: str) -> str:
        return call_rpc(self.rpc_url, "eth_call", {"to": self.token, "data": call_data}, "latest")


@contextmanager
def open_devchain(
    *,
    rpc: str | None = None,
    anvil: str | None = None,
    chain_port: int = 0,
    facilitator_port: int = 0,
    prepare: Callable[[EvmChain], object] | None = None,
) -> Generator[DevChain]:
    """Start a development chain and its facilitator; both stop with the context.

    `rpc` is the URL of an existing node, `anvil` the path of an anvil binary to start; with neither, the
    chain runs in this process, after `prepare` (such as `install_exchanges`) has changed it. Each part has
    its own thread and event loop, so a program with an event loop may enter this; it blocks that loop during
    the imports (a second or two; `asyncio.to_thread` avoids that). Raises `DevNodeError` for an unusable node
    and OSError for a port in use.
    """
    with ExitStack() as open_parts:
        open_parts.enter_context(silence_libraries())
        kind: NodeKind
        if rpc is not None:
            kind, rpc_url = "given node", rpc
            install_token(rpc_url)
        elif anvil is not None:
            kind, rpc_url = "anvil", open_parts.enter_context(run_anvil(anvil, chain_port))
            install_token(rpc_url)
        else:
            kind, rpc_url = (
                "in-process EVM",
                open_parts.enter_context(_serve_chain(CHAIN_ID, chain_port, prepare)),
            )
        rpc_urls = {f"eip155:{CHAIN_ID}": rpc_url}
        facilitator_url = open_parts.enter_context(_serve_facilitator(rpc_urls, facilitator_port))
        yield DevChain(rpc_url, facilitator_url, kind)


@contextmanager
def open_devchains(chain_ids: Sequence[int]) -> Generator[tuple[DevChain, ...]]:
    """Start a chain in this process for each id, and one facilitator that settles on all of them."""
    with ExitStack() as open_parts:
        open_parts.enter_context(silence_libraries())
        rpc_urls = {each: open_parts.enter_context(_serve_chain(each, 0, None)) for each in chain_ids}
        by_network = {f"eip155:{each}": url for each, url in rpc_urls.items()}
        facilitator_url = open_parts.enter_context(_serve_facilitator(by_network, 0))
        yield tuple(
            DevChain(url, facilitator_url, "in-process EVM", chain_id=each) for each, url in rpc_urls.items()
        )


@contextmanager
def _serve_chain(chain_id: int, port: int, prepare: Callable[[EvmChain], object] | None) -> Generator[str]:
    from centgate.devchain.chain import EvmChain, GenesisAccount
    from centgate.devchain.rpc import create_rpc_app

    seeds = {
        account.address: GenesisAccount(GAS_BALANCE) for account in (*BUYER_ACCOUNTS, FACILITATOR_ACCOUNT)
    }
    code = bytes.fromhex(runtime_code().removeprefix("0x"))
    seeds[TOKEN_ADDRESS] = GenesisAccount(code=code, storage=initial_token_storage())
    chain = EvmChain(chain_id, seeds)
    if prepare is not None:
        prepare(chain)
    with serve_app(create_rpc_app(chain), port) as url:
        yield url


@contextmanager
def _serve_facilitator(rpc_urls: Mapping[str, str], port: int) -> Generator[str]:
    from centgate.devchain.facilitator import DevFacilitator, create_facilitator_app

    facilitator = DevFacilitator(rpc_urls, FACILITATOR_ACCOUNT.private_key)
    try:
        with serve_app(create_facilitator_app(facilitator), port) as url:
            yield url
    finally:
        facilitator.close()
