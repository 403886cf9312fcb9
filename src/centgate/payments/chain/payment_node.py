"""Client of one RPC node for payment checks, and the reads that concern no payment.

Every answer is checked; an answer that cannot be right counts as no answer.
"""

from __future__ import annotations

import re
from typing import Any, cast

import aiohttp

from centgate import jsonrpc
from centgate.jsonrpc import RpcError
from centgate.providers.jsonrpc.errors import is_execution_failure
from centgate.signing.contract_signature import VALID_SIGNATURE, encode_validity_call
from centgate.signing.evm import keccak

_DECIMALS = "0x" + keccak(b"decimals()")[:4].hex()
_UINT8 = re.compile(r"0x0{62}[0-9a-fA-F]{2}")
SPAN = 2000
"""Blocks of one `eth_getLogs`: public nodes refuse longer ranges."""
CONFIRMATIONS = 32
"""Confirmations after which a block counts as safe, for nodes without a `safe` block."""
MAX_ANSWER = 4 << 20
"""Maximum size of a response in bytes."""
WITHOUT_TRANSACTIONS = False
SIGNATURE_GAS = 3_000_000
"""Maximum gas for a contract's check of a signature; the most expensive known, of passkeys, need a tenth."""
_DEVELOPMENT = ("anvil", "hardhat")
"""Prefixes of `web3_clientVersion` on development nodes."""


class ChainUnreachable(Exception):
    """No node, or too few of them, gave a consistent answer; `answers` are those received."""

    def __init__(self, message: str, answers: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.answers = answers


def open_node_session() -> aiohttp.ClientSession:
    """Open the HTTP session for nodes of payment networks and for alert webhooks."""
    return aiohttp.ClientSession(trust_env=False)


class PaymentNode:
    """Client of one JSON-RPC node; checks that the node is on the configured chain."""

    def __init__(self, session: aiohttp.ClientSession, url: str, chain_id: int) -> None:
        self._session = session
        self._url = url
        self._chain_id = chain_id
        self._timeout = aiohttp.ClientTimeout(total=10)
        self._chain_checked = False

    async def call(self, method: str, *params: Any) -> Any:
        """Call a JSON-RPC method and return its result, None for `null`. Raises ChainUnreachable."""
        if not self._chain_checked:
            if parse_quantity(await self._post("eth_chainId")) != self._chain_id:
                raise ChainUnreachable("the node is on another chain")
            self._chain_checked = True
        return await self._post(method, *params)

    async def read_block(self, number: str) -> dict[str, Any]:
        """Return a block by its hexadecimal number or its tag. Raises ChainUnreachable."""
        block = await self.call("eth_getBlockByNumber", number, WITHOUT_TRANSACTIONS)
        if block is None:
            raise ChainUnreachable(f"the node does not have block {number}")
        return cast(dict[str, Any], block)

    async def read_block_time(self, number: int) -> int:
        """Return the time of a block in seconds since 1970. Raises ChainUnreachable."""
        return parse_quantity((await self.read_block(hex(number)))["timestamp"])

    async def has_code(self, address: str) -> bool:
        """Return True if there is code at the address, its own or delegated. Raises ChainUnreachable."""
        return (await self.call("eth_getCode", address, "latest")) not in (None, "", "0x")

    async def read_decimals(self, token: str) -> int:
        """Return the decimals of a token. Raises ChainUnreachable."""
        answer = await self.call("eth_call", {"to": token, "data": _DECIMALS}, "latest")
        if not isinstance(answer, str) or not _UINT8.fullmatch(answer):
            raise ChainUnreachable("the token did not return its decimals")
        return int(answer, 16)

    async def accepts_signature(self, wallet: str, digest: bytes, signature: bytes) -> bool:
        """Return True if a contract says that a signature of a digest is its own (ERC-1271).

        A call that fails, or that needs more gas than a wallet should, is a no. Raises ChainUnreachable.
        """
        data = "0x" + encode_validity_call(digest, signature).hex()
        call = {"to": wallet, "data": data, "gas": hex(SIGNATURE_GAS)}
        try:
            answer = await self.call("eth_call", call, "latest")
        except ChainUnreachable as error:
            cause = error.__cause__
            if isinstance(cause, RpcError) and is_execution_failure(cause.code, cause.message.lower()):
                return False
            raise
        if not isinstance(answer, str):
            raise ChainUnreachable("the node did not return the result of a call")
        return answer[:66].lower() == VALID_SIGNATURE

    async def read_newest_block_number(self) -> int:
        """Return the number of the newest block. Raises ChainUnreachable."""
        return parse_quantity(await self.call("eth_blockNumber"))

    async def read_safe_block_number(self) -> int:
        """Return the number of the newest safe block. Raises ChainUnreachable."""
        latest = await self.read_newest_block_number()
        return parse_quantity((await self.read_safe_block(latest))["number"])

    async def read_safe_block(self, latest: int) -> dict[str, Any]:
        """Return the newest `safe` block: on a rollup, one whose data is on its base layer.

        `latest` is the number of the newest block. Raises ChainUnreachable.
        """
        if await self._is_for_development():
            return await self.read_block(hex(latest))
        try:
            return await self.read_block("safe")
        except ChainUnreachable:
            return await self.read_block(hex(max(0, latest - CONFIRMATIONS)))

    async def find_first_block_since(self, earliest: float, latest: int) -> int:
        """Return the first block up to `latest` that is not older than a time, else the one after `latest`.

        Raises ChainUnreachable.
        """
        high, low = latest + 1, max(0, latest - SPAN)
        while low > 0 and await self.read_block_time(low) >= earliest:
            high, low = low, max(0, low - 2 * (latest - low))
        while low < high:
            middle = (low + high) // 2
            if await self.read_block_time(middle) >= earliest:
                high = middle
            else:
                low = middle + 1
        return low

    async def _is_for_development(self) -> bool:
        """Return True for a local development chain: no reorganisations, few blocks without transactions."""
        try:
            version = await self.call("web3_clientVersion")
        except ChainUnreachable:
            return False
        return str(version).lower().startswith(_DEVELOPMENT)

    async def _post(self, method: str, *params: Any) -> Any:
        try:
            async with self._session.post(
                self._url,
                data=jsonrpc.encode_request(method, params),
                headers={"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise ChainUnreachable(f"{method}: status {response.status}")
                return jsonrpc.decode_result(await _read_body(response))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise ChainUnreachable(f"{method} failed") from error


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise ValueError("the node's answer is too long")
    return bytes(body)


def parse_quantity(quantity: Any) -> int:
    """Parse a number in hexadecimal. Raises ChainUnreachable."""
    try:
        return int(quantity, 16)
    except (TypeError, ValueError) as error:
        # an answer that is nested too deeply cannot be written as text
        shown = quantity[:80] if isinstance(quantity, str) else type(quantity).__name__
        raise ChainUnreachable(f"not a number: {shown}") from error
