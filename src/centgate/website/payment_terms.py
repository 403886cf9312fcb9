"""Payment terms promised by a service's page; its script refuses to sign any other terms."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from centgate.client.catalog import ListedRequirements, ServiceDetail
from centgate.signing.assets import USDC, Asset, parse_chain_id
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.networks import PaymentNetwork, find_network
from centgate.website.payment_states import PAYMENT_STATES

_TYPES = {
    "EIP712Domain": "string name,string version,uint256 chainId,address verifyingContract",
    "TransferWithAuthorization": "address from,address to,uint256 value,"
    "uint256 validAfter,uint256 validBefore,bytes32 nonce",
}
"""Types of EIP-3009 in EIP-712 notation."""


def promise_terms(service: ServiceDetail, deployment: ApiSnapshot) -> dict[str, Any] | None:
    """Return the terms that the script compares the 402 with, and the data it needs for signing.

    The token is the one this software knows for the network; the API's own data is used only for unknown
    networks. Returns None if payments are disabled.
    """
    terms, network = deployment.terms, deployment.payment_network
    if terms is None or network is None:
        return None
    chain = parse_chain_id(terms.network)
    token = USDC.get(terms.network) or _asset_from_terms(terms)
    dollars = Decimal(service.price.removeprefix("$"))
    url = deployment.api + service.path
    return {
        "url": url,
        "sum": f"{dollars} USDC",
        "network": terms.network,
        "networkName": network.name,
        "chainId": chain,
        "explorer": network.explorer,
        "addChain": _chain_parameters(find_network(terms.network), chain),
        "typedData": _build_typed_data(token, chain),
        "states": {state: meaning for state, (meaning, _) in PAYMENT_STATES.items()},
        "terms": {
            "amount": ["price in base units", str(int(dollars * 10**token.decimals))],
            "payTo": ["payee", terms.pay_to],
            "network": ["network", terms.network],
            "asset": ["token", token.address],
            "name": ["token's name", token.name],
            "version": ["token's version", token.version],
            "scheme": ["scheme", terms.scheme],
            "x402Version": ["x402 version", 2],
            "maxTimeoutSeconds": ["validity in seconds", terms.max_timeout_seconds],
            "url": ["URL of the request", url],
        },
    }


def describe_terms(promise: dict[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """Return the promised terms as labels and values; empty if there is no promise."""
    if promise is None:
        return ()
    terms = {name: str(value) for name, (_, value) in promise["terms"].items()}
    return (
        ("Amount", promise["sum"]),
        ("Paid to", terms["payTo"]),
        ("Network", f"{promise['networkName']} ({terms['network']})"),
        ("Token", f"{terms['name']} at {terms['asset']}"),
        ("For", f"one POST to {terms['url']}"),
        ("Valid for", f"{terms['maxTimeoutSeconds']} seconds after you sign"),
    )


def _asset_from_terms(terms: ListedRequirements) -> Asset:
    return Asset(terms.asset, str(terms.extra["name"]), str(terms.extra["version"]))


def _chain_parameters(network: PaymentNetwork, chain: int) -> dict[str, Any] | None:
    """Return the parameter of `wallet_addEthereumChain` (EIP-3085); None unless fees are paid in ether."""
    if not network.rpc_url or not network.explorer:
        return None
    return {
        "chainId": hex(chain),
        "chainName": network.name,
        "nativeCurrency": {"name": "Ether", "symbol": "ETH", "decimals": 18},
        "rpcUrls": [network.rpc_url],
        "blockExplorerUrls": [network.explorer.removesuffix("/tx/")],
    }


def _build_typed_data(token: Asset, chain: int) -> dict[str, Any]:
    """Return the parameter of `eth_signTypedData_v4`, without the message."""
    return {
        "types": {
            name: [_parse_member(each) for each in members.split(",")] for name, members in _TYPES.items()
        },
        "primaryType": "TransferWithAuthorization",
        "domain": {
            "name": token.name,
            "version": token.version,
            "chainId": chain,
            "verifyingContract": token.address,
        },
    }


def _parse_member(text: str) -> dict[str, str]:
    kind, _, name = text.partition(" ")
    return {"name": name, "type": kind}
