"""Contracts that lock the shares of a pair (LP tokens), by chain. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

LockerSource = Literal["adapters", "public code", "own docs"]
"""`adapters`: DefiLlama/DefiLlama-Adapters, projects `unicrypt`, `team-finance` and `pinksale` (read
2026-11-23); `public code`: named the same in the source of tokens or wallets by other authors."""


class Locker(Struct, frozen=True):
    """Contract of a locking service. `address` is in lower case."""

    address: str
    name: str
    sources: tuple[LockerSource, ...]

    @property
    def is_verified(self) -> bool:
        """True if two sources agree on the address. What an unverified one holds does not count as locked."""
        return len(self.sources) > 1


_BOTH: tuple[LockerSource, ...] = ("adapters", "public code")
_ADAPTERS: tuple[LockerSource, ...] = ("adapters",)
_PUBLIC: tuple[LockerSource, ...] = ("public code",)
_LOCKERS: Mapping[int, tuple[Locker, ...]] = {
    1: (
        Locker("0x663a5c229c09b049e36dcc11a9b0d4a8eb9db214", "UNCX", _BOTH),
        Locker("0xed9180976c2a4742c7a57354fd39d8bec6cbd8ab", "UNCX", _BOTH),
        Locker("0x17e00383a843a9922bca3b280c0ade9f8ba48449", "UNCX", _ADAPTERS),
        Locker("0xfd235968e65b0990584585763f837a5b5330e6de", "UNCX", _PUBLIC),
        Locker("0xe2fe530c047f2d85298b07d9333c05737f1435fb", "Team Finance", _BOTH),
        Locker("0xdbf72370021babafbceb05ab10f99ad275c6220a", "Team Finance", _BOTH),
        Locker("0xc77aab3c6d7dab46248f3cc3033c856171878bd5", "Team Finance", _ADAPTERS),
        Locker("0x71b5759d73262fbb223956913ecf4ecc51057641", "PinkLock", _BOTH),
        Locker("0x33d4cc8716beb13f814f538ad3b2de3b036f5e2a", "PinkLock", _ADAPTERS),
    ),
    8453: (
        Locker("0x4f0fd563be89ec8c3e7d595bf3639128c0a7c33a", "Team Finance", _BOTH),
        Locker("0xc4e637d37113192f4f1f060daebd7758de7f4131", "UNCX", _PUBLIC),
        Locker("0x231278edd38b00b07fbd52120cef685b9baebcc1", "UNCX", _PUBLIC),
    ),
    56: (
        Locker("0xc765bddb93b0d1c1a88282ba0fa6b2d00e3e0c83", "UNCX", _BOTH),
        Locker("0xc8b839b9226965caf1d9fc1551588aaf553a7be6", "UNCX", _BOTH),
        Locker("0x74dee1a3e2b83e1d1f144af2b741bbaffd7305e1", "UNCX", _ADAPTERS),
        Locker("0x1391b48c996ba2f4f38aee07e369a8f28d38220e", "UNCX", _ADAPTERS),
        Locker("0x0c89c0407775dd89b12918b9c0aa42bf96518820", "Team Finance", _BOTH),
        Locker("0x7536592bb74b5d62eb82e8b93b17eed4eed9a85c", "Team Finance", _BOTH),
        Locker("0x407993575c91ce7643a4d4ccacc9a98c36ee1bbe", "PinkLock", _BOTH),
        Locker("0x7ee058420e5937496f5a2096f04caa7721cf70cc", "PinkLock", _BOTH),
    ),
    137: (
        Locker("0xadb2437e6f65682b85f814fbc12fec0508a7b1d0", "UNCX", _BOTH),
        Locker("0x3ef7442df454ba6b7c1deec8ddf29cfb2d6e56c7", "Team Finance", _BOTH),
        Locker("0x586c21a779c24efd2a8af33c9f7df2a2ea9af55c", "Team Finance", _BOTH),
        Locker("0x5fb71dbf7248a01bf96ce2ab2da34eeabe58c261", "PinkLock", _ADAPTERS),
        Locker("0x6c9a0d8b1c7a95a323d744de30cf027694710633", "PinkLock", _ADAPTERS),
    ),
    42161: (
        Locker("0xe0b0d2021293bee9715e1db3be31b55c00f72a75", "Team Finance", _ADAPTERS),
        Locker("0xebb415084ce323338cfd3174162964cc23753dfd", "PinkLock", _PUBLIC),
    ),
    10: (),
}
"""Mudra and DxLock are known by the tags of the contract analysis alone: sources name different contracts."""
LOCKERS: Mapping[int, Mapping[str, Locker]] = {
    chain: {locker.address: locker for locker in lockers} for chain, lockers in _LOCKERS.items()
}
"""Lockers by chain and address."""
