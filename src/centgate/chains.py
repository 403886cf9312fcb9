"""The EVM chains that the crypto services support, and the request fields for chains and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Struct
from pydantic import AfterValidator, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from centgate.coercion import from_unix_seconds, parse_iso_time
from centgate.errors import Issue
from centgate.json_schema import iterate_objects
from centgate.schema import Omittable, Request, TextPattern, hide_rule, require_text, restrict_field

ChainSlug = Literal["arbitrum", "base", "bsc", "ethereum", "optimism", "polygon"]


class Chain(Struct, frozen=True):
    """An EVM chain: `slug` in this API, `id` as in EIP-155, `native` the symbol of its native coin."""

    slug: str
    id: int
    native: str
    started_on: datetime
    """Day of its first block; nothing on it is older."""


CHAINS: tuple[Chain, ...] = (
    Chain("ethereum", 1, "ETH", datetime(2015, 7, 30, tzinfo=UTC)),
    Chain("base", 8453, "ETH", datetime(2023, 6, 15, tzinfo=UTC)),
    Chain("bsc", 56, "BNB", datetime(2020, 4, 20, tzinfo=UTC)),
    Chain("polygon", 137, "POL", datetime(2020, 5, 30, tzinfo=UTC)),
    Chain("arbitrum", 42161, "ETH", datetime(2021, 5, 28, tzinfo=UTC)),
    # its history was restarted on 2021-11-11, but what is older was on it too
    Chain("optimism", 10, "ETH", datetime(2021, 1, 14, tzinfo=UTC)),
)
CHAIN_BY_ID = {chain.id: chain for chain in CHAINS}
CHAIN_BY_SLUG: dict[str, Chain] = {chain.slug: chain for chain in CHAINS}
CHAIN_NAMES = ", ".join(f"{chain.slug} ({chain.id})" for chain in CHAINS)


def well_known_chain(chain_id: int) -> int:
    """Return the chain whose well-known contract addresses apply: the development chain has Ethereum's."""
    return chain_id if chain_id in CHAIN_BY_ID else 1


_CLOCK_TOLERANCE = timedelta(minutes=10)


def from_chain_seconds(seconds: Any, chain_id: int | None) -> datetime | None:
    """Parse the Unix time of an event; None before the chain's first block or in the future.

    Without a chain, the first block is Ethereum's.
    """
    return _require_chain_time(from_unix_seconds(seconds), chain_id)


def parse_chain_time(value: Any, chain_id: int | None) -> datetime | None:
    """Parse the ISO 8601 time of an event, within the bounds of `from_chain_seconds`."""
    return _require_chain_time(parse_iso_time(value), chain_id)


def _require_chain_time(time: datetime | None, chain_id: int | None) -> datetime | None:
    first = CHAIN_BY_ID[well_known_chain(chain_id or 1)].started_on
    return time if time and first <= time <= datetime.now(UTC) + _CLOCK_TOLERANCE else None


Address = Annotated[
    str,
    TextPattern(r"^0x[a-fA-F0-9]{40}$", "must be an EVM address: 0x and 40 hexadecimal characters"),
    AfterValidator(str.lower),
    Field(description="An EVM address: 0x and 40 hexadecimal characters, in any case."),
]
"""20 bytes as 0x and 40 hexadecimal characters; any case is accepted and converted to lower case."""

ZERO_ADDRESS = "0x" + "0" * 40
"""Nobody's address; also the native coin in prices and in v4 pools."""
_BURN_ADDRESS = re.compile(r"0x(0{37}[0-9a-f]{3}|0{36}dead|(dead){10}|dead0{16}42069420694206942069)")
"""From 0x1000 on are live system contracts: BSC's bridge and timelock, Polygon's native token."""


def is_burn_address(address: str) -> bool:
    """True for a burn address: one of the first 4,096 addresses, or a spelling of `dead`."""
    return bool(_BURN_ADDRESS.fullmatch(address))


MAX_CHAIN_ID = 9_007_199_254_740_991
"""The largest integer that every JSON parser represents exactly."""
_AnyChainId = Annotated[int, Field(gt=0, le=MAX_CHAIN_ID, description="The chain's id (EIP-155).")]
_Slug = Annotated[ChainSlug, Field(description="The chain's slug; wins over `chainId` when both are sent.")]
_SUPPORTED_IDS: list[JsonValue] = [chain.id for chain in CHAINS]


_SUPPORTED_ID = restrict_field("chainId", {"enum": _SUPPORTED_IDS})
NAMED_CHAIN_RULE: JsonDict = {"anyOf": [require_text("chain"), {"required": ["chainId"], **_SUPPORTED_ID}]}
"""JSON Schema of what a `NamedChainRequest` requires: a slug, or else the id of a supported chain."""


class ChainRequest(Request):
    """A request whose chain is given by its id."""

    model_config = ConfigDict(json_schema_extra=hide_rule(_SUPPORTED_ID))

    chain_id: _AnyChainId

    @property
    def target_chain_id(self) -> int:
        """The id of the requested chain."""
        return self.chain_id

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Check that the chain is supported or is the development chain."""
        yield from _check_chain_id(body.get("chainId"), context)


class NamedChainRequest(Request):
    """A request whose chain is given by slug or id; the slug takes precedence."""

    model_config = ConfigDict(json_schema_extra=hide_rule(NAMED_CHAIN_RULE))

    chain: Omittable[_Slug] = None
    chain_id: Omittable[_AnyChainId] = None

    @property
    def target_chain_id(self) -> int:
        """The id of the requested chain."""
        return CHAIN_BY_SLUG[self.chain].id if self.chain else self.chain_id or 0

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Check that slug or id is present, and that the id is supported if there is no slug."""
        if "chain" not in body and "chainId" not in body:
            yield Issue("", "one of chain or chainId is required")
        elif "chain" not in body:
            yield from _check_chain_id(body["chainId"], context)

    def _canonical(self) -> dict[str, Any]:
        """Return the canonical request with the chain as its id, also if it was given by slug."""
        return {name: value for name, value in super()._canonical().items() if name != "chain"} | {
            "chainId": self.target_chain_id
        }


def _check_chain_id(chain_id: Any, context: Mapping[str, Any]) -> Iterable[Issue]:
    """Yield an issue for an unsupported chain id; the field itself reports a value that is no chain id."""
    if not isinstance(chain_id, int) or not 0 < chain_id <= MAX_CHAIN_ID:
        return
    if chain_id not in CHAIN_BY_ID and chain_id != context.get("development_chain"):
        yield Issue("chainId", f"chain {chain_id} is not supported; supported: {CHAIN_NAMES}")


def allow_development_chain(schema: dict[str, Any], chain_id: int) -> None:
    """Add the id of the development chain to the ids that a published request schema accepts."""
    for node in iterate_objects(schema):
        if node.get("enum") == _SUPPORTED_IDS:
            node["enum"] = [*_SUPPORTED_IDS, chain_id]
