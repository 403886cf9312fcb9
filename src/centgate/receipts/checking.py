"""What a receipt proves: who signed it, for what, and whether all that belongs to it agrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, cast

from centgate.eip3009 import recover
from centgate.evm import checksummed
from centgate.receipts.signer import ANSWERED, EXTENSION
from centgate.receipts.typed_data import ANSWER, OFFER, RECEIPT, Statement

State = Literal["ok", "failed", "not checked"]
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at, and what was seen, as a sentence without its full stop."""

    name: Literal["receipt", "settlement", "answer", "body", "offer", "signer"]
    state: State
    says: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All that could be said of a receipt; `signer` and `payload` are None where it cannot be read."""

    signer: str | None
    payload: Json | None
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the receipt."""
        return all(check.state != "failed" for check in self.checks)

    @property
    def failures(self) -> tuple[str, ...]:
        """What speaks against it."""
        return tuple(check.says for check in self.checks if check.state == "failed")


@dataclass(frozen=True, slots=True)
class _Signed:
    """A statement whose signature leads to an address."""

    signer: str
    payload: Json
    digest: bytes


def examine(
    settlement: Json, *, body: bytes | None = None, required: Json | None = None, signer: str | None = None
) -> Verdict:
    """Hold the receipt in an x402 SettleResponse against whatever else is at hand.

    `body` are the bytes of the answer, `required` is the PaymentRequired or the signed offer, `signer` the
    address that is expected. Any signature leads to some address: a receipt proves something of a service
    only when that address is known to be the service's, so `signer` is the check that counts.
    """
    try:
        receipt = _opened(RECEIPT, _inside(settlement, EXTENSION, "receipt"))
    except ValueError as error:
        return Verdict(None, None, (Check("receipt", "failed", f"the receipt cannot be read: {error}"),))
    checks = (
        Check("receipt", "ok", f"the receipt is signed by {receipt.signer}"),
        _settlement(settlement, receipt),
        *_answered(settlement, receipt, body),
        _offered(required, receipt),
        _expected(signer, receipt),
    )
    return Verdict(receipt.signer, receipt.payload, checks)


def carries_receipt(settlement: Json) -> bool:
    """Whether a SettleResponse has anything where a signed receipt would stand."""
    extensions = settlement.get("extensions")
    return isinstance(extensions, dict) and EXTENSION in extensions


def _settlement(settlement: Json, receipt: _Signed) -> Check:
    """What stands around the receipt is not signed: it must not say anything else."""
    if settlement.get("success") is not True:
        return Check("settlement", "failed", "the settlement around the receipt says that it failed")
    for name in ("payer", "network", "transaction"):
        signed, said = receipt.payload.get(name, ""), settlement.get(name)
        if signed and str(said).lower() != str(signed).lower():
            return Check("settlement", "failed", f"the settlement around the receipt has another {name}")
    return Check("settlement", "ok", "the settlement around the receipt says the same")


def _answered(settlement: Json, receipt: _Signed, body: bytes | None) -> Iterator[Check]:
    """The statement of what the answer was, and the answer itself."""
    try:
        block = _inside(settlement, ANSWERED, "answer")
    except ValueError:
        yield Check(
            "answer", "not checked", "nothing says what the answer was: other servers sign no such thing"
        )
        if body is not None:
            yield Check("body", "failed", "nothing that is signed says what the body was")
        return
    try:
        answer = _opened(ANSWER, block)
    except ValueError as error:
        yield Check("answer", "failed", f"the statement of the answer cannot be read: {error}")
        return
    yield _statement(answer, receipt)
    if body is None:
        yield Check("body", "not checked", f"the body's SHA-256 has to be {answer.payload['bodySha256']}")
    elif "0x" + sha256(body).hexdigest() != answer.payload["bodySha256"].lower():
        yield Check("body", "failed", "the body is not the one that was signed for")
    else:
        yield Check("body", "ok", "the body is the one that was signed for, byte for byte")


def _statement(answer: _Signed, receipt: _Signed) -> Check:
    if answer.payload["receipt"].lower() != "0x" + receipt.digest.hex():
        return Check("answer", "failed", "the statement of the answer belongs to another receipt")
    if answer.signer != receipt.signer:
        return Check("answer", "failed", f"the statement of the answer is signed by another, {answer.signer}")
    return Check("answer", "ok", "the same key signed what the answer was")


def _offered(required: Json | None, receipt: _Signed) -> Check:
    if required is None:
        return Check("offer", "not checked", "no offer was given")
    try:
        offer = _opened(OFFER, _offer_in(required))
    except ValueError as error:
        return Check("offer", "failed", f"the offer cannot be read: {error}")
    if offer.signer != receipt.signer:
        return Check("offer", "failed", f"the offer is signed by another, {offer.signer}")
    for name in ("resourceUrl", "network"):
        if offer.payload[name] != receipt.payload[name]:
            return Check("offer", "failed", f"the offer has another {name}")
    accepts = required.get("accepts")
    if isinstance(accepts, list) and not any(_same(each, offer) for each in cast(list[Any], accepts)):
        return Check("offer", "failed", "the offer is not for any of the terms it came with")
    paid = f"{offer.payload['amount']} of {offer.payload['asset']} to {offer.payload['payTo']}"
    return Check("offer", "ok", f"the same key offered it for {paid}")


def _same(terms: Any, offer: _Signed) -> bool:
    """Whether an entry of `accepts` is what an offer promises (section 4.1 of the extension)."""
    if not isinstance(terms, dict):
        return False
    said = cast(dict[str, Any], terms)
    return all(
        said.get(name) == offer.payload[name] for name in ("scheme", "network", "asset", "payTo", "amount")
    )


def _expected(signer: str | None, receipt: _Signed) -> Check:
    if signer is None:
        return Check(
            "signer", "not checked", "compare the signer with the address that the service publishes"
        )
    if signer.lower() != receipt.signer.lower():
        return Check("signer", "failed", f"the receipt is signed by {receipt.signer}, and not by {signer}")
    return Check("signer", "ok", "the signer is the one that was expected")


def _offer_in(required: Json) -> Any:
    """The signed offer in a PaymentRequired, or the one that was given by itself."""
    if "signature" in required:
        return required
    offers = _inside(required, EXTENSION, "offers")
    if not isinstance(offers, list) or not offers:
        raise ValueError("there is no signed offer in it")
    return cast(list[Any], offers)[0]


def _inside(message: Json, extension: str, name: str) -> Any:
    """`extensions.<extension>.info.<name>` of a message of x402; ValueError where there is none."""
    found: Any = message
    for step in ("extensions", extension, "info", name):
        found = cast(dict[str, Any], found).get(step) if isinstance(found, Mapping) else None
    if found is None:
        raise ValueError(f"nothing stands at extensions.{extension}.info.{name}")
    return found


def _opened(statement: Statement, signed: Any) -> _Signed:
    """A signed statement; ValueError says why it is none."""
    block = cast(dict[str, Any], signed) if isinstance(signed, dict) else {}
    if block.get("format") == "jws":
        raise ValueError("it is signed as JWS, and only EIP-712 is checked here")
    payload, signature = block.get("payload"), block.get("signature")
    if block.get("format") != "eip712" or not isinstance(payload, dict) or not isinstance(signature, str):
        raise ValueError("it is not x402's format, payload and signature")
    digest = statement.digest(cast(dict[str, Any], payload))
    address = recover(digest, _bytes(signature))
    if address is None:
        raise ValueError("its signature is none")
    return _Signed(checksummed(address), cast(dict[str, Any], payload), digest)


def _bytes(signature: str) -> bytes:
    try:
        return bytes.fromhex(signature.removeprefix("0x"))
    except ValueError:
        return b""
