"""JSON-RPC node: the chain itself, asked through a node."""

from __future__ import annotations

from centgate.provider import About, Announced


class Rpc(Announced):
    """Code, storage, balances and allowances as the chain has them now, and event logs of a bounded range."""

    about = About(
        "rpc",
        "JSON-RPC node",
        docs_url="https://ethereum.org/developers/docs/apis/json-rpc",
        terms="Public nodes are for fair use and limit the rate of calls and the range of logs.",
    )
