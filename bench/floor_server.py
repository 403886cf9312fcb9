"""Floor server: the minimum of a durable paid call, without a facilitator, a framework or a service.

    python bench/floor_server.py DATABASE_URL

The ASGI application decodes the payment, recovers its signer, commits twice and encodes a response. Prints
`ready http://...` on a line of its own once it is ready.
"""

from __future__ import annotations

import sys
import time
from base64 import b64encode
from functools import partial
from typing import Any

import orjson
from reference_server import serve_application

from centgate.payments.authorization import read_payment
from centgate.payments.database.store import Store
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal.queries import insert_payment, update_owned
from centgate.payments.payment_key import PaymentKey
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

WORKER = "floor"
ANSWER = {"service": "phishing-check", "data": {"domain": "wallet-ethereum.net", "status": "unknown"}}


class FloorApplication:
    """ASGI application with one route for all paths."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._terms = build_terms(phishing_check, settings)
        self._store = store

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = (await receive())["body"]
        header = dict(scope["headers"]).get(b"payment-signature")
        if header is None:
            await _send_response(send, 402, b"{}", [(b"payment-required", self._terms.header.encode())])
            return
        payment = read_payment(header.decode(), self._terms, time.time())
        orjson.loads(body)
        await self._store.run(partial(insert_payment, payment.key, _build_row(payment.signature_digest)))
        await self._store.run(
            partial(update_owned, payment.key, WORKER, {"state": "delivered", "owner": None})
        )
        answer, receipt = orjson.dumps(ANSWER), b64encode(orjson.dumps(_build_receipt(payment.key)))
        await _send_response(send, 200, answer, [(b"payment-response", receipt)])


def _build_row(signature_digest: str) -> dict[str, Any]:
    """Return the columns of a payment in state `settling`, as `insert_payment` takes them."""
    now = time.time()
    null_columns = (
        "identifier",
        "transaction",
        "reason",
        "signed",
        "retry_at",
        "settled_at",
        "request_id",
        "status",
        "claim_block",
    )
    values = {
        "state": "settling",
        "owner": WORKER,
        "binding": signature_digest,
        "service": "floor",
        "proof": signature_digest,
        "signer_known": 1,
        "amount": "10000",
        "pay_to": "",
        "valid_before": 0,
        "attempts": 0,
        "presentations": 1,
        "facilitator": None,
        "open_cause": None,
    }
    return {**dict.fromkeys(null_columns), **values, "created_at": now, "updated_at": now}


def _build_receipt(key: PaymentKey) -> dict[str, Any]:
    return {"success": True, "payer": key.payer, "transaction": key.nonce, "network": key.network}


async def _send_response(send: Any, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    defaults = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*defaults, *headers]})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Serve until terminated."""
    settings = Settings(pay_to="0x" + "22" * 20, network="eip155:84532", database_url=sys.argv[1])
    serve_application(FloorApplication(settings, open_store(settings.database_url)))


if __name__ == "__main__":
    main()
