"""The chains the crypto services work on, and the words they share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, StringConstraints

from centgate.errors import Issue
from centgate.schema import Omittable, Request, walk

ChainSlug = Literal["arbitrum", "base", "bsc", "ethereum", "optimism", "polygon"]


@dataclass(frozen=True, slots=True)
class Chain:
    """An EVM chain: `slug` in our words, `id` as in EIP-155, `native` the symbol of its own coin."""

    slug: str
    id: int
    native: str


CHAINS: tuple[Chain, ...] = (
    Chain("ethereum", 1, "ETH"),
    Chain("base", 8453, "ETH"),
    Chain("bsc", 56, "BNB"),
    Chain("polygon", 137, "POL"),
    Chain("arbitrum", 42161, "ETH"),
    Chain("optimism", 10, "ETH"),
)
CHAIN_BY_ID = {chain.id: chain for chain in CHAINS}
CHAIN_BY_SLUG: dict[str, Chain] = {chain.slug: chain for chain in CHAINS}
CHAIN_NAMES = ", ".join(f"{chain.slug} ({chain.id})" for chain in CHAINS)


Address = Annotated[
    str,
    StringConstraints(pattern=r"^0x[a-fA-F0-9]{40}$"),
    AfterValidator(str.lower),
    Field(description="An EVM address: 0x and 40 hexadecimal characters, in any case."),
]
"""20 bytes as 0x and 40 hexadecimal characters, any case in, lower case out."""

_BURNED = re.compile(r"0x(0{36}[0-9a-f]{4}|(dead){10}|dead0{16}42069420694206942069)")


def is_burned(address: str) -> bool:
    """Whether nobody holds an address's key: zero, the first few, and the many spellings of dead."""
    return bool(_BURNED.fullmatch(address))


MAX_CHAIN_ID = 9_007_199_254_740_991
"""The largest integer that every JSON reader keeps exact."""
_AnyChainId = Annotated[int, Field(gt=0, le=MAX_CHAIN_ID, description="The chain's id (EIP-155).")]
_Slug = Annotated[ChainSlug, Field(description="The chain's slug; wins over `chainId` when both are sent.")]
_SUPPORTED: list[JsonValue] = [chain.id for chain in CHAINS]


class OnChain(Request):
    """A request about something on a chain named by its id."""

    model_config = ConfigDict(
        json_schema_extra={"allOf": [{"properties": {"chainId": {"enum": _SUPPORTED}}}]}
    )

    chain_id: _AnyChainId

    @property
    def on(self) -> int:
        """The id of the chain asked about."""
        return self.chain_id

    @classmethod
    def rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """The chain is one of ours, or the development chain where there is one."""
        yield from _unsupported(body.get("chainId"), context)


class OnNamedChain(Request):
    """A request about something on a chain named by slug or id; the slug wins."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["chain"]},
                {"required": ["chainId"], "properties": {"chainId": {"enum": _SUPPORTED}}},
            ]
        }
    )

    chain: Omittable[_Slug] = None
    chain_id: Omittable[_AnyChainId] = None

    @property
    def on(self) -> int:
        """The id of the chain asked about."""
        return CHAIN_BY_SLUG[self.chain].id if self.chain else self.chain_id or 0

    @classmethod
    def rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """One of the two is there, and where the id decides it is one of ours."""
        if "chain" not in body and "chainId" not in body:
            yield Issue("", "one of chain or chainId is required")
        elif "chain" not in body:
            yield from _unsupported(body["chainId"], context)

    def _canonical(self) -> dict[str, Any]:
        """With the chain as its id, however it was named."""
        return {name: value for name, value in super()._canonical().items() if name != "chain"} | {
            "chainId": self.on
        }


def _unsupported(chain_id: Any, context: Mapping[str, Any]) -> Iterable[Issue]:
    """Silent on what is no chain id at all: the field itself complains of that."""
    if not isinstance(chain_id, int) or not 0 < chain_id <= MAX_CHAIN_ID:
        return
    if chain_id not in CHAIN_BY_ID and chain_id != context.get("development_chain"):
        yield Issue("chainId", f"chain {chain_id} is not supported; supported: {CHAIN_NAMES}")


def admit_development_chain(schema: dict[str, Any], chain_id: int) -> None:
    """Let a published request schema say that the development chain's own id is accepted too."""
    for node in walk(schema):
        if node.get("enum") == _SUPPORTED:
            node["enum"] = [*_SUPPORTED, chain_id]
