"""Who is paid, and in which token."""

from __future__ import annotations

from typing import cast

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import Deployment
from centgate.doctor.node import without_node
from centgate.dollars import USDC, Asset
from centgate.eip3009 import domain_separator
from centgate.errors import ProviderFailure
from centgate.evm import keccak
from centgate.jsonrpc.nodes import Node, RpcRefused
from centgate.settings import Settings, as_given

BURNS = frozenset(
    {
        "0x000000000000000000000000000000000000dead",
        "0xdead000000000000000042069420694206942069",
        "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "0xffffffffffffffffffffffffffffffffffffffff",
    }
)
"""Addresses that things are sent to in order to lose them, or that stand for something else."""
PRECOMPILED = 0xFFFF
"""Up to this number addresses are contracts of the chain itself."""
DELEGATION = b"\xef\x01\x00"
"""What the code of an account begins with that has delegated to a contract (EIP-7702)."""


async def pay_to(deployment: Deployment) -> Finding:
    """CENTGATE_PAY_TO is set, written with its checksum, and can be somebody's."""
    address = deployment.settings.pay_to
    if address is None:
        return failed(
            "CENTGATE_PAY_TO is not set: no payment is taken, and nothing is served",
            "set it to the address that is to be paid",
        )
    if why := _nobodys(address, deployment.settings):
        return failed(f"{address} {why}", "set CENTGATE_PAY_TO to an address that you have the key of")
    given = as_given("PAY_TO") or address
    if given != address:
        return warning(
            f"{given} is written without its checksum, so a wrong digit would go unnoticed",
            f"compare it with your wallet and set CENTGATE_PAY_TO={address}",
        )
    return ok(f"{address}, with its checksum")


def _nobodys(address: str, settings: Settings) -> str | None:
    """Why nobody who is paid at an address has the money."""
    from centgate.dev import MERCHANT
    from centgate.devchain.accounts import BUYERS, FACILITATOR

    lower = address.lower()
    if lower in BURNS or int(lower, 16) <= PRECOMPILED:
        return "is nobody's: what is sent there is lost"
    if lower in {settings.token.address.lower(), *(token.address.lower() for token in USDC.values())}:
        return "is the token itself, which cannot give back what it is sent"
    if settings.development_chain is None:
        if address == MERCHANT:
            return "is the development chain's, and nobody has its key"
        if address in {account.address for account in (*BUYERS, FACILITATOR)}:
            return "is the development chain's, and its key is known to the whole world"
    return None


async def pay_to_account(deployment: Deployment) -> Finding:
    """What stands at CENTGATE_PAY_TO on the chain: a contract must be able to send tokens on, and the token
    must not block the address."""
    address, node = deployment.settings.pay_to, deployment.node
    if address is None:
        return skipped("CENTGATE_PAY_TO is not set")
    if node is None:
        return without_node(deployment)
    try:
        (code,) = await node.ask([("eth_getCode", [address, "latest"])], tolerant=False)
        token = deployment.settings.token.address
        blocked = await _read(node, token, "isBlacklisted(address)", address)
    except ProviderFailure as failure:
        return skipped(failure.message)
    if blocked and int.from_bytes(blocked) == 1:
        return failed(f"the token blocks {address}: no payment can arrive", "be paid at another address")
    found = bytes.fromhex(str(code).removeprefix("0x"))
    if found.startswith(DELEGATION):
        return warning(
            f"{address} has delegated to a contract (EIP-7702)", "see that it is one you have chosen"
        )
    if found:
        return warning(
            f"a contract stands at {address}", "fine for a Safe; else see that it can send tokens on"
        )
    return ok("an account with a key of its own")


async def token(deployment: Deployment) -> Finding:
    """The token's EIP-712 domain (name, version) and its decimals are those of the contract on the chain."""
    settings, node = deployment.settings, deployment.node
    if settings.pay_to is None and settings.network not in USDC and not settings.asset:
        return skipped("no token is set")
    asset = settings.token
    if node is None:
        return without_node(deployment)
    try:
        separator = await _read(node, asset.address, "DOMAIN_SEPARATOR()")
        decimals = await _read(node, asset.address, "decimals()")
        name, version = [_text(await _read(node, asset.address, what)) for what in ("name()", "version()")]
    except ProviderFailure as failure:
        return failed(failure.message, f"see to the node in {deployment.node_setting}")
    if decimals is None:
        return failed(
            f"no token stands at {asset.address} on {settings.network}",
            "set CENTGATE_ASSET to the token's address on that network",
        )
    if int.from_bytes(decimals) != asset.decimals:
        return failed(
            f"the token has {int.from_bytes(decimals)} decimals, and prices are in {asset.decimals}",
            "set CENTGATE_ASSET to a dollar token with 6 decimals",
        )
    return _domain(asset, settings.chain_id, separator, (name, version))


def _domain(
    asset: Asset, chain_id: int, separator: bytes | None, told: tuple[str | None, str | None]
) -> Finding:
    """Whether buyers sign under the domain that the contract checks."""
    ours = f"name {asset.name!r}, version {asset.version!r}"
    theirs = f"name {told[0]!r}, version {told[1]!r}"
    if separator is None:
        if told == (asset.name, asset.version):
            return ok(f"{ours}, 6 decimals")
        return warning(
            f"the contract tells no DOMAIN_SEPARATOR(), and of itself {theirs}; the settings say {ours}",
            "see that it is a token with EIP-3009, and which domain it signs under",
        )
    if separator == domain_separator(asset.name, asset.version, chain_id, asset.address):
        return ok(f"{ours}, 6 decimals, the domain on the chain")
    return failed(
        f"no signature will fit: the settings say {ours}, the contract says {theirs}",
        "set CENTGATE_ASSET_NAME and CENTGATE_ASSET_VERSION to what the contract says",
    )


async def _read(node: Node, to: str, signature: str, address: str | None = None) -> bytes | None:
    """What a contract returns; None where it returns nothing."""
    data = keccak(signature.encode())[:4] + (bytes.fromhex(address[2:]).rjust(32, b"\0") if address else b"")
    call = {"to": to, "data": "0x" + data.hex()}
    (answer,) = await node.ask([("eth_call", [call, "latest"])], tolerant=True)
    if isinstance(answer, RpcRefused):
        return None
    return bytes.fromhex(str(answer).removeprefix("0x")) or None


def _text(returned: bytes | None) -> str | None:
    try:
        return cast(str, decode(["string"], returned)[0]) if returned else None
    except (DecodingError, UnicodeDecodeError):
        return None
