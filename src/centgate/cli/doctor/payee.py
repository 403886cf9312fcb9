"""Checks of the payee address and the payment token."""

from __future__ import annotations

import re
from typing import cast

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from centgate.accepted_tokens import AcceptedToken
from centgate.cli.doctor.check import check_each, fail, ok, skip, warn
from centgate.cli.doctor.context import DoctorContext
from centgate.cli.doctor.node import missing_node
from centgate.crypto.contract.account_kinds import classify_code
from centgate.errors import ProviderFailure
from centgate.findings import Finding
from centgate.payments.payee import find_payee_problem
from centgate.providers.jsonrpc.client import CallFailure, RpcNode
from centgate.settings import get_raw_value
from centgate.signing.assets import USDC
from centgate.signing.eip3009 import domain_separator
from centgate.signing.evm import keccak


async def check_pay_to(deployment: DoctorContext) -> Finding:
    """CENTGATE_PAY_TO is set, has its checksum, and is a usable address."""
    return await check_each(deployment.by_token, _check_address)


async def _check_address(deployment: DoctorContext) -> Finding:
    address = deployment.settings.pay_to
    if address is None:
        return fail(
            "CENTGATE_PAY_TO is not set: every paid route answers 402, and nothing is sold",
            "set it to the address that receives payments",
        )
    setting = deployment.setting_name("PAY_TO")
    token = AcceptedToken(deployment.settings.network, deployment.settings.token, address)
    if why := find_payee_problem(token):
        return fail(f"{address} {why}", f"set {setting} to an address whose key you hold")
    configured = _find_configured_address(deployment, address)
    if configured != address:
        return warn(
            f"{configured} has no checksum, so a wrong digit would go unnoticed",
            f"compare it with your wallet and set {setting} to {address}"
            if deployment.is_from_list
            else f"compare it with your wallet and set CENTGATE_PAY_TO={address}",
        )
    return ok(f"{address}, with its checksum")


def _find_configured_address(deployment: DoctorContext, address: str) -> str:
    """Return the payee's address as the operator wrote it."""
    if not deployment.is_from_list:
        return get_raw_value("PAY_TO") or address
    found = re.search(address, get_raw_value("ACCEPTS") or "", re.IGNORECASE)
    return found[0] if found else address


async def check_pay_to_account(deployment: DoctorContext) -> Finding:
    """The account at CENTGATE_PAY_TO on the chain: a contract must be able to transfer tokens, and the token
    must not block the address."""
    return await check_each(deployment.by_token, _check_account)


async def _check_account(deployment: DoctorContext) -> Finding:
    address, node = deployment.settings.pay_to, deployment.node
    if address is None:
        return skip("CENTGATE_PAY_TO is not set")
    if node is None:
        return missing_node(deployment)
    try:
        (code,) = await node.send_requests([("eth_getCode", [address, "latest"])], tolerant=False)
        token = deployment.settings.token.address
        blocked = await _call_contract(node, token, "isBlacklisted(address)", address)
    except ProviderFailure as failure:
        return skip(failure.message)
    if blocked and int.from_bytes(blocked) == 1:
        return fail(
            f"the token blocks {address}: payments fail",
            f"set {deployment.setting_name('PAY_TO')} to another address",
        )
    kind = classify_code(bytes.fromhex(str(code).removeprefix("0x")))
    if kind == "delegated_wallet":
        return warn(f"{address} has delegated to a contract (EIP-7702)", "check that you chose this contract")
    if kind == "contract":
        return warn(
            f"{address} is a contract", "fine for a Safe; otherwise check that it can transfer tokens"
        )
    return ok("a regular account with its own key")


async def check_token(deployment: DoctorContext) -> Finding:
    """The token's EIP-712 domain (name, version) and decimals match the contract on the chain."""
    return await check_each(deployment.by_token, _check_contract)


async def _check_contract(deployment: DoctorContext) -> Finding:
    settings, node = deployment.settings, deployment.node
    if settings.pay_to is None and settings.network not in USDC and not settings.asset:
        return skip("no token is set")
    asset = settings.token
    if node is None:
        return missing_node(deployment)
    try:
        separator = await _call_contract(node, asset.address, "DOMAIN_SEPARATOR()")
        decimals = await _call_contract(node, asset.address, "decimals()")
        name, version = [
            _decode_string(await _call_contract(node, asset.address, what))
            for what in ("name()", "version()")
        ]
    except ProviderFailure as failure:
        return fail(failure.message, f"check the node in {deployment.node_setting}")
    if decimals is None:
        return fail(
            f"there is no token at {asset.address} on {settings.network}",
            f"set {deployment.setting_name('ASSET')} to the token's address on that network",
        )
    if int.from_bytes(decimals) != asset.decimals:
        return fail(
            f"the token has {int.from_bytes(decimals)} decimals, but prices use {asset.decimals}",
            f"set {deployment.setting_name('ASSET')} to a dollar token with 6 decimals",
        )
    return _check_domain(deployment, separator, (name, version))


def _check_domain(
    deployment: DoctorContext, separator: bytes | None, contract_domain: tuple[str | None, str | None]
) -> Finding:
    """Check that buyers sign under the domain that the contract verifies."""
    asset, chain_id = deployment.settings.token, deployment.settings.chain_id
    expected = f"name {asset.name!r}, version {asset.version!r}"
    actual = f"name {contract_domain[0]!r}, version {contract_domain[1]!r}"
    if separator is None:
        if contract_domain == (asset.name, asset.version):
            return ok(f"{expected}, 6 decimals")
        return warn(
            f"the contract has no DOMAIN_SEPARATOR(), and reports {actual}; the settings say {expected}",
            "check that the token supports EIP-3009, and its signing domain",
        )
    if separator == domain_separator(asset.name, asset.version, chain_id, asset.address):
        return ok(f"{expected}, 6 decimals, the domain on the chain")
    if contract_domain == (asset.name, asset.version):
        return fail(
            f"signatures will be invalid: the contract has {actual} too, but its domain is that of another "
            f"chain or address than {chain_id} and {asset.address}",
            f"check that {deployment.setting_name('ASSET')} is the token, and that the node is on its chain",
        )
    return fail(
        f"signatures will be invalid: the settings say {expected}, the contract says {actual}",
        f"set {deployment.setting_name('ASSET_NAME')} and {deployment.setting_name('ASSET_VERSION')} to the "
        "contract's values",
    )


async def _call_contract(node: RpcNode, to: str, signature: str, address: str | None = None) -> bytes | None:
    """Call a contract and return its output; None if it returns nothing or reverts."""
    data = keccak(signature.encode())[:4] + (bytes.fromhex(address[2:]).rjust(32, b"\0") if address else b"")
    call = {"to": to, "data": "0x" + data.hex()}
    (answer,) = await node.send_requests([("eth_call", [call, "latest"])], tolerant=True)
    if isinstance(answer, CallFailure):
        return None
    return bytes.fromhex(str(answer).removeprefix("0x")) or None


def _decode_string(returned: bytes | None) -> str | None:
    try:
        return cast(str, decode(["string"], returned)[0]) if returned else None
    except (DecodingError, UnicodeDecodeError):
        return None
