"""A payment that its signed-in payer redeems without presenting it: rebuilt from the journal's row."""

from __future__ import annotations

from centgate.errors import PaymentNote, PaymentRequired
from centgate.payments.authorization import Payment, terms_when_signed
from centgate.payments.settle_request import ResubmissionData
from centgate.payments.terms import RouteTerms
from centgate.payments.wallet.wallet_payments import OwnPayment
from centgate.signing.assets import is_test_network


def build_redeemed_payment(own: OwnPayment, terms: RouteTerms) -> Payment:
    """Return the payment of a row, to be claimed as if its payer had sent it; `terms` are the route's now.

    It has no signature and always has a `rejection`: nothing can be settled with it. The claim rules accept
    it only where they accept an expired payment that was settled before.
    """
    record = own.record
    return Payment(
        key=record.key,
        terms=terms_when_signed(
            terms,
            network=record.key.network,
            asset=record.key.asset,
            pay_to=record.pay_to,
            amount=record.amount,
        ),
        resubmission=ResubmissionData(
            signature="", validAfter="", validBefore="", window=0, name="", version="", url=""
        ),
        resubmission_json="",
        valid_before=record.valid_before,
        rejection=PaymentRequired(
            "the payment is not settled: it cannot be redeemed",
            payment=PaymentNote("unused", charged=False, retry="none"),
        ),
        is_signer_verified=True,
        signature_form="key",
        signature_digest="",
        identifier=None,
        is_on_test_network=is_test_network(terms.first.network),
    )
