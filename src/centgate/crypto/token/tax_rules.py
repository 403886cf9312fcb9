"""Rules on the taxes of a token."""

from __future__ import annotations

from collections.abc import Mapping

from centgate.crypto.token.token_rule import AmountRange, TokenRule
from centgate.crypto.token.trades import TaxName

TAX_FIELDS: Mapping[TaxName, tuple[str, str, str]] = {
    "buy_tax": ("goplus:buy_tax", "honeypotis:simulationResult.buyTax", "onchain:simulation.buyTax"),
    "sell_tax": ("goplus:sell_tax", "honeypotis:simulationResult.sellTax", "onchain:simulation.sellTax"),
    "transfer_tax": (
        "goplus:transfer_tax",
        "honeypotis:simulationResult.transferTax",
        "onchain:simulation.transferTax",
    ),
}
"""Fields of the sources that have a tax."""

TAX_RULES: tuple[TokenRule, ...] = (
    # taxes
    TokenRule(
        "sell_tax_extreme",
        "critical",
        "the sell tax",
        "{amount:.4g} % of every sale is taken, so most of the money, or all of it, is lost.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 50),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_high",
        "high",
        "the sell tax",
        "{amount:.4g} % of every sale is taken.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 10, 50),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_medium",
        "medium",
        "the sell tax",
        "{amount:.4g} % of every sale is taken.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 5, 10),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_low",
        "low",
        "the sell tax",
        "{amount:.4g} % of every sale is taken.",
        AmountRange(lambda evidence: evidence.trade.sell_tax, 0.01, 5),
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_unreadable",
        "high",
        "the sell tax",
        "The only sell tax reported is impossible, so how much of a sale is taken is not known.",
        lambda evidence: evidence.trade.has_invalid_sell_tax and evidence.trade.sell_tax is None,
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "sell_tax_in_doubt",
        "medium",
        "the sell tax",
        "One of the reported sell taxes is impossible, so the other may be incomplete.",
        lambda evidence: evidence.trade.has_invalid_sell_tax and evidence.trade.sell_tax is not None,
        TAX_FIELDS["sell_tax"],
    ),
    TokenRule(
        "buy_tax_high",
        "high",
        "the buy tax",
        "{amount:.4g} % of every purchase is taken.",
        AmountRange(lambda evidence: evidence.trade.buy_tax, 10),
        TAX_FIELDS["buy_tax"],
    ),
    TokenRule(
        "buy_tax_medium",
        "medium",
        "the buy tax",
        "{amount:.4g} % of every purchase is taken.",
        AmountRange(lambda evidence: evidence.trade.buy_tax, 5, 10),
        TAX_FIELDS["buy_tax"],
    ),
    TokenRule(
        "buy_tax_low",
        "low",
        "the buy tax",
        "{amount:.4g} % of every purchase is taken.",
        AmountRange(lambda evidence: evidence.trade.buy_tax, 0.01, 5),
        TAX_FIELDS["buy_tax"],
    ),
    TokenRule(
        "transfer_tax_high",
        "high",
        "the transfer tax",
        "{amount:.4g} % is taken when it is sent from one holder to another.",
        AmountRange(lambda evidence: evidence.trade.transfer_tax, 10),
        TAX_FIELDS["transfer_tax"],
    ),
    TokenRule(
        "transfer_tax",
        "medium",
        "the transfer tax",
        "{amount:.4g} % is taken when it is sent from one holder to another.",
        AmountRange(lambda evidence: evidence.trade.transfer_tax, 0.01, 10),
        TAX_FIELDS["transfer_tax"],
        "habit",
    ),
)
