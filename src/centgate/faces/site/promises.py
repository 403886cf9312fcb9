"""What a service's page promises of its payment: the script signs nothing that differs from it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from centgate.client.catalog import Entry, Requirements
from centgate.dollars import USDC, Asset
from centgate.faces.site.deployment import Deployment
from centgate.faces.site.networks import Network, network_of
from centgate.faces.site.payment_states import STATES

_TYPES = {
    "EIP712Domain": "string name,string version,uint256 chainId,address verifyingContract",
    "TransferWithAuthorization": "address from,address to,uint256 value,"
    "uint256 validAfter,uint256 validBefore,bytes32 nonce",
}
"""EIP-3009's typed data, in EIP-712's own spelling."""


def promised(service: Entry, deployment: Deployment) -> dict[str, Any] | None:
    """Everything the script holds the terms against, and what it needs to have them signed.

    The token is the one this software knows on the network, and the API's word only where it knows none. None
    where no payments are taken.
    """
    terms = deployment.terms
    if terms is None:
        return None
    network, chain = network_of(terms.network), int(terms.network.removeprefix("eip155:"))
    token = USDC.get(terms.network) or _said(terms)
    dollars = Decimal(service.price.removeprefix("$"))
    url = deployment.api + service.path
    return {
        "url": url,
        "sum": f"{dollars} USDC",
        "network": terms.network,
        "networkName": network.name,
        "chainId": chain,
        "explorer": network.explorer,
        "addChain": _addition(network, chain),
        "typedData": _typed_data(token, chain),
        "states": {state: meaning for state, (meaning, _) in STATES.items()},
        "terms": {
            "amount": ["price in base units", str(int(dollars * 10**token.decimals))],
            "payTo": ["payee", terms.pay_to],
            "network": ["network", terms.network],
            "asset": ["token", token.address],
            "name": ["token's name", token.name],
            "version": ["token's version", token.version],
            "scheme": ["scheme", terms.scheme],
            "x402Version": ["version of x402", 2],
            "maxTimeoutSeconds": ["time it is good for", terms.max_timeout_seconds],
            "url": ["address that is paid for", url],
        },
    }


def terms_in_words(promise: dict[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """What is paid to whom, for how long, and for what; nothing where there is no promise."""
    if promise is None:
        return ()
    terms = {name: str(value) for name, (_, value) in promise["terms"].items()}
    return (
        ("Amount", promise["sum"]),
        ("Paid to", terms["payTo"]),
        ("Network", f"{promise['networkName']} ({terms['network']})"),
        ("Token", f"{terms['name']} at {terms['asset']}"),
        ("For", f"one POST to {terms['url']}"),
        ("Good for", f"{terms['maxTimeoutSeconds']} seconds after you sign"),
    )


def _said(terms: Requirements) -> Asset:
    return Asset(terms.asset, str(terms.extra["name"]), str(terms.extra["version"]))


def _addition(network: Network, chain: int) -> dict[str, Any] | None:
    """The parameter of `wallet_addEthereumChain` (EIP-3085); only for the networks that are paid in ether."""
    if not network.node or not network.explorer:
        return None
    return {
        "chainId": hex(chain),
        "chainName": network.name,
        "nativeCurrency": {"name": "Ether", "symbol": "ETH", "decimals": 18},
        "rpcUrls": [network.node],
        "blockExplorerUrls": [network.explorer.removesuffix("/tx/")],
    }


def _typed_data(token: Asset, chain: int) -> dict[str, Any]:
    """What `eth_signTypedData_v4` is given, but for the message."""
    return {
        "types": {name: [_member(each) for each in members.split(",")] for name, members in _TYPES.items()},
        "primaryType": "TransferWithAuthorization",
        "domain": {
            "name": token.name,
            "version": token.version,
            "chainId": chain,
            "verifyingContract": token.address,
        },
    }


def _member(text: str) -> dict[str, str]:
    kind, _, name = text.partition(" ")
    return {"name": name, "type": kind}
