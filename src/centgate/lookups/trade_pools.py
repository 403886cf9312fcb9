"""Tell by its own interface whether an address is a pool of a token, as an index of pools says."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from centgate.crypto import abi
from centgate.crypto.abi import function_selector
from centgate.crypto.token.pools import PoolKey, PoolKind
from centgate.lookups import erc20
from centgate.lookups.contract_answers import parse_address
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

MAX_CANDIDATES = 8
"""Addresses that are asked whether they are pools of the token."""
_PROBES = {
    name: function_selector(f"{name}()")
    for name in (
        *("token0", "token1", "getReserves", "stable"),
        *("slot0", "globalState", "fee", "tickSpacing"),
    )
}
"""Selectors of the methods by which a pool's interface is recognized."""
_NAMES: dict[PoolKind, str] = {
    "v2": "a pair with the interface of Uniswap v2",
    "solidly": "a pair with the interface of Solidly",
    "v3": "a pool with the interface of Uniswap v3",
    "algebra": "a pool with the interface of Algebra",
    "v4": "Uniswap v4",
}


async def identify_pools(rpc: Rpc, chain_id: int, token: str, addresses: Sequence[str]) -> list[PoolKey]:
    """Return those addresses that are pools of the token, the one that holds most of it first.

    One round of requests. Raises ProviderFailure.
    """
    candidates = [each for each in dict.fromkeys(addresses) if len(each) == len(token)][:MAX_CANDIDATES]
    if not candidates:
        return []
    calls = [
        call
        for address in candidates
        for call in (
            erc20.balance_of_call(token, address),
            *(ContractCall(address, selector) for selector in _PROBES.values()),
        )
    ]
    returned = await rpc.call_contracts(chain_id, calls)
    size = 1 + len(_PROBES)
    found: list[tuple[int, PoolKey]] = []
    for number, address in enumerate(candidates):
        balance, *answers = returned[number * size : (number + 1) * size]
        key = _PoolAnswers(dict(zip(_PROBES, answers, strict=True))).identify(address, token)
        if key:
            found.append((abi.decode_uint(balance) or 0, key))
    return [key for _, key in sorted(found, key=lambda entry: -entry[0])]


class _PoolAnswers(Struct, frozen=True):
    """Answers of one address by the names of the probes; None if it has no such function."""

    answers: dict[str, bytes | None]

    def identify(self, address: str, token: str) -> PoolKey | None:
        """Return the pool's key; None if it is no pool of the token, or of an unknown kind."""
        sides = [parse_address(self.answers[name]) for name in ("token0", "token1")]
        kind = self._kind()
        if kind is None or None in sides or token not in sides:
            return None
        token0, token1 = (side or "" for side in sides)
        spacing = self._number("tickSpacing") if kind in ("v3", "algebra") else None
        fee = self._number("fee") if kind == "v3" else None
        stable = bool(self._number("stable")) if kind == "solidly" else False
        return PoolKey(kind, address, token0, token1, _NAMES[kind], fee, tick_spacing=spacing, stable=stable)

    def _kind(self) -> PoolKind | None:
        if self._words("getReserves") >= 2:
            return "solidly" if self._words("stable") else "v2"
        if self._words("slot0") >= 2:
            return "v3"
        return "algebra" if self._words("globalState") >= 2 else None

    def _words(self, name: str) -> int:
        return len(self.answers[name] or b"") // 32

    def _number(self, name: str) -> int | None:
        value = abi.decode_uint(self.answers[name])
        return value if value is not None and value < 2**24 else None
