"""Verify a receipt: its signer, its content, and its agreement with the settlement, answer and offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, cast

from centgate.signing.eip3009 import recover_signer
from centgate.signing.evm import to_checksum_address
from centgate.signing.receipts.signer import ANSWER_EXTENSION, RECEIPT_EXTENSION
from centgate.signing.receipts.typed_data import ANSWER, OFFER, RECEIPT, StatementType

CheckState = Literal["ok", "failed", "not checked"]
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReceiptCheck:
    """Result of one check; `message` is a sentence without its full stop."""

    name: Literal["receipt", "settlement", "answer", "body", "offer", "signer"]
    state: CheckState
    message: str


@dataclass(frozen=True, slots=True)
class ReceiptVerdict:
    """Results of all checks of a receipt; `signer` and `payload` are None if it is unreadable."""

    signer: str | None
    payload: Json | None
    checks: tuple[ReceiptCheck, ...]

    @property
    def is_valid(self) -> bool:
        """True if no check failed."""
        return all(check.state != "failed" for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences of the failed checks."""
        return tuple(check.message for check in self.checks if check.state == "failed")


@dataclass(frozen=True, slots=True)
class _SignedStatement:
    """A signed statement with the address recovered from its signature."""

    signer: str
    payload: Json
    digest: bytes


def verify_receipt(
    settlement: Json, *, body: bytes | None = None, required: Json | None = None, signer: str | None = None
) -> ReceiptVerdict:
    """Check the receipt in an x402 SettleResponse against the other data that the caller has.

    `body` is the bytes of the answer, `required` is the PaymentRequired or the signed offer, `signer` is the
    expected address. Any signature recovers to some address: a receipt proves something about a service only
    if that address is known to belong to the service, so `signer` is the check that matters.
    """
    try:
        receipt = _parse_signed(RECEIPT, _extension_info(settlement, RECEIPT_EXTENSION, "receipt"))
    except ValueError as error:
        return ReceiptVerdict(
            None, None, (ReceiptCheck("receipt", "failed", f"the receipt is unreadable: {error}"),)
        )
    checks = (
        ReceiptCheck("receipt", "ok", f"the receipt is signed by {receipt.signer}"),
        _check_settlement(settlement, receipt),
        *_check_answer(settlement, receipt, body),
        _check_offer(required, receipt),
        _check_signer(signer, receipt),
    )
    return ReceiptVerdict(receipt.signer, receipt.payload, checks)


def has_receipt(settlement: Json) -> bool:
    """Return True if a SettleResponse has the extension of signed receipts, valid or not."""
    extensions = settlement.get("extensions")
    return isinstance(extensions, dict) and RECEIPT_EXTENSION in extensions


def _check_settlement(settlement: Json, receipt: _SignedStatement) -> ReceiptCheck:
    """Check that the unsigned settlement around the receipt agrees with it."""
    if settlement.get("success") is not True:
        return ReceiptCheck("settlement", "failed", "the settlement around the receipt reports a failure")
    for name in ("payer", "network", "transaction"):
        signed, unsigned = receipt.payload.get(name, ""), settlement.get(name)
        if signed and str(unsigned).lower() != str(signed).lower():
            return ReceiptCheck(
                "settlement", "failed", f"the settlement around the receipt has a different {name}"
            )
    return ReceiptCheck("settlement", "ok", "the settlement around the receipt agrees with it")


def _check_answer(settlement: Json, receipt: _SignedStatement, body: bytes | None) -> Iterator[ReceiptCheck]:
    """Check the signed statement about the answer, and the answer's body."""
    try:
        block = _extension_info(settlement, ANSWER_EXTENSION, "answer")
    except ValueError:
        yield ReceiptCheck(
            "answer",
            "not checked",
            "the response has no signed statement about the answer: only Centgate servers sign one",
        )
        if body is not None:
            yield ReceiptCheck("body", "failed", "no signed statement covers the body")
        return
    try:
        answer = _parse_signed(ANSWER, block)
    except ValueError as error:
        yield ReceiptCheck("answer", "failed", f"the statement about the answer is unreadable: {error}")
        return
    yield _check_answer_statement(answer, receipt)
    if body is None:
        yield ReceiptCheck(
            "body", "not checked", f"the body's SHA-256 must be {answer.payload['bodySha256']}"
        )
    elif "0x" + sha256(body).hexdigest() != answer.payload["bodySha256"].lower():
        yield ReceiptCheck("body", "failed", "the body is not the one that was signed")
    else:
        yield ReceiptCheck("body", "ok", "the body is the one that was signed, byte for byte")


def _check_answer_statement(answer: _SignedStatement, receipt: _SignedStatement) -> ReceiptCheck:
    if answer.payload["receipt"].lower() != "0x" + receipt.digest.hex():
        return ReceiptCheck("answer", "failed", "the statement about the answer belongs to another receipt")
    if answer.signer != receipt.signer:
        return ReceiptCheck(
            "answer",
            "failed",
            f"the statement about the answer is signed by a different key, {answer.signer}",
        )
    return ReceiptCheck("answer", "ok", "the statement about the answer is signed by the same key")


def _check_offer(required: Json | None, receipt: _SignedStatement) -> ReceiptCheck:
    if required is None:
        return ReceiptCheck("offer", "not checked", "no offer was given")
    try:
        offer = _parse_signed(OFFER, _find_offer(required, receipt.payload["network"]))
    except ValueError as error:
        return ReceiptCheck("offer", "failed", f"the offer is unreadable: {error}")
    if offer.signer != receipt.signer:
        return ReceiptCheck("offer", "failed", f"the offer is signed by a different key, {offer.signer}")
    for name in ("resourceUrl", "network"):
        if offer.payload[name] != receipt.payload[name]:
            return ReceiptCheck("offer", "failed", f"the offer has a different {name}")
    accepts = required.get("accepts")
    if isinstance(accepts, list) and not any(
        _matches_terms(each, offer) for each in cast(list[Any], accepts)
    ):
        return ReceiptCheck("offer", "failed", "the offer does not match any of the terms sent with it")
    price = f"{offer.payload['amount']} of {offer.payload['asset']} to {offer.payload['payTo']}"
    return ReceiptCheck("offer", "ok", f"the same key signed the offer: {price}")


def _matches_terms(terms: Any, offer: _SignedStatement) -> bool:
    """Return True if an entry of `accepts` matches an offer (section 4.1 of the extension)."""
    if not isinstance(terms, dict):
        return False
    entry = cast(dict[str, Any], terms)
    return all(
        entry.get(name) == offer.payload[name] for name in ("scheme", "network", "asset", "payTo", "amount")
    )


def _check_signer(signer: str | None, receipt: _SignedStatement) -> ReceiptCheck:
    if signer is None:
        return ReceiptCheck(
            "signer", "not checked", "compare the signer with the address that the service publishes"
        )
    if signer.lower() != receipt.signer.lower():
        return ReceiptCheck("signer", "failed", f"the receipt is signed by {receipt.signer}, not by {signer}")
    return ReceiptCheck("signer", "ok", "the signer is the expected one")


def _find_offer(required: Json, network: str) -> Any:
    """Return the signed offer in a PaymentRequired, of several the first for the network that was paid on.

    A bare offer is returned unchanged.
    """
    if "signature" in required:
        return required
    offers = _extension_info(required, RECEIPT_EXTENSION, "offers")
    if not isinstance(offers, list) or not offers:
        raise ValueError("it contains no signed offer")
    signed = cast(list[Any], offers)
    return next((each for each in signed if _offered_network(each) == network), signed[0])


def _offered_network(offer: Any) -> Any:
    payload = cast(dict[str, Any], offer).get("payload") if isinstance(offer, dict) else None
    return cast(dict[str, Any], payload).get("network") if isinstance(payload, dict) else None


def _extension_info(message: Json, extension: str, name: str) -> Any:
    """Return `extensions.<extension>.info.<name>` of an x402 message. Raises ValueError if it is missing."""
    node: Any = message
    for step in ("extensions", extension, "info", name):
        node = cast(dict[str, Any], node).get(step) if isinstance(node, Mapping) else None
    if node is None:
        raise ValueError(f"extensions.{extension}.info.{name} is missing")
    return node


def _parse_signed(statement: StatementType, signed: Any) -> _SignedStatement:
    """Parse a signed statement and recover its signer. Raises ValueError with the reason."""
    block = cast(dict[str, Any], signed) if isinstance(signed, dict) else {}
    if block.get("format") == "jws":
        raise ValueError("it is signed as JWS, but only EIP-712 is supported")
    payload, signature = block.get("payload"), block.get("signature")
    if block.get("format") != "eip712" or not isinstance(payload, dict) or not isinstance(signature, str):
        raise ValueError("it does not have x402's fields format, payload and signature")
    digest = statement.digest(cast(dict[str, Any], payload))
    address = recover_signer(digest, _parse_hex(signature))
    if address is None:
        raise ValueError("its signature is invalid")
    return _SignedStatement(to_checksum_address(address), cast(dict[str, Any], payload), digest)


def _parse_hex(signature: str) -> bytes:
    try:
        return bytes.fromhex(signature.removeprefix("0x"))
    except ValueError:
        return b""
