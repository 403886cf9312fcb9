"""Table of token cases, honest and not, with the expected result of the trade simulation of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Later = Literal["flip", "drain", "rebase", "change", "wait", "nothing"]
"""Changes that the token's owner makes after holders have bought."""


@dataclass(frozen=True)
class TokenCase:
    """Token with its expected verdict. Taxes in percent; None is unknown."""

    name: str
    kind: str
    honest: bool
    honeypot: bool | None
    buy_tax: float | None = 0
    sell_tax: float | None = 0
    transfer_tax: float | None = 0
    transfer_blocked: bool = False
    cannot_sell_all: bool = False
    all_holders_sell: bool = True
    siphoned: bool = False
    cooldown: bool = False
    origin_check: bool = False
    has_max_buy: bool = False
    has_max_sell: bool = False
    explanation: str | None = None
    """Part of the expected text in our words."""
    later: Later = "nothing"
    opens: bool = False
    """True if trading is opened for the holders, and closed again."""


def _build_trap(name: str, kind: str, **more: object) -> TokenCase:
    """Return the case of a token that can be bought and not sold."""
    truth: dict[str, object] = {
        "sell_tax": None,
        "all_holders_sell": False,
        "honest": False,
        "honeypot": True,
    }
    return TokenCase(name, kind, **(truth | more))  # pyright: ignore[reportArgumentType]


def _build_sellable(name: str, kind: str, **more: object) -> TokenCase:
    truth: dict[str, object] = {"honest": True, "honeypot": False}
    return TokenCase(name, kind, **(truth | more))  # pyright: ignore[reportArgumentType]


CASES: tuple[TokenCase, ...] = (
    _build_sellable("plain", "Plain"),
    _build_sellable("tax on purchases", "TaxOnBuy", buy_tax=5),
    _build_sellable("tax on sales", "TaxOnSell", sell_tax=10),
    _build_sellable("tax on both", "TaxOnBoth", buy_tax=5, sell_tax=10),
    _build_sellable("tax by amount", "TaxByAmount", sell_tax=30),
    _build_sellable("tax on transfers only", "TaxOnTransfer", transfer_tax=8),
    _build_sellable("all of a transfer is taken", "TransfersTaken", transfer_tax=100, honest=False),
    _build_sellable(
        "no transfers between holders", "NoTransfers", transfer_tax=None, transfer_blocked=True, honest=False
    ),
    _build_sellable("tax of 95 %", "AlmostAllTax", sell_tax=95, honest=False),
    _build_sellable("largest sale", "MaxSell", has_max_sell=True),
    _build_sellable("a part must be kept", "KeepsPart", cannot_sell_all=True),
    _build_sellable("largest wallet", "MaxWallet", has_max_buy=True),
    _build_sellable("pause between trades", "Cooldown", cooldown=True, later="wait"),
    _build_sellable("buyer must send the transaction", "OriginIsBuyer", origin_check=True, transfer_tax=None),
    _build_sellable("seller must send the transaction", "OriginIsSeller", origin_check=True),
    _build_sellable("no contracts as buyers", "NoContractBuyers"),
    _build_sellable("no contracts as sellers", "NoContractSellers"),
    _build_sellable("rebasing", "Rebasing", later="rebase"),
    # the pool has half of the supply, and passes its share of the fee on to the seller
    _build_sellable("reflection", "Reflection", buy_tax=2, sell_tax=1, transfer_tax=2),
    _build_sellable("allowance with a flag", "FrozenAllowance"),
    _build_sellable("no return values", "NoReturnValue"),
    _build_sellable("fees sold into the pair", "SwapBack", buy_tax=5, sell_tax=5),
    _build_sellable("switch, before", "FeeSwitch"),
    _build_sellable("proxy, before", "Proxy"),
    _build_sellable("trading open", "Pausable"),
    _build_trap("revert on sale", "RevertOnSell", explanation="transfer fails"),
    _build_trap("moves nothing", "SilentZero", explanation="moved nothing"),
    _build_trap("returns false", "ReturnsFalse", explanation="returned false"),
    _build_trap(
        "blocked after some blocks",
        "BlockedAfterBlocks",
        later="wait",
        sell_tax=0,
        explanation="real holders",
    ),
    _build_trap("blocked by the purchase", "BlockedOnPurchase", explanation="blocks", transfer_tax=None),
    _build_trap("gas bomb", "GasBomb", explanation="gas"),
    _build_trap("sale never ends", "EndlessSale", explanation="gas"),
    _build_sellable("name, decimals and supply never end", "EndlessReads"),
    _build_trap("only the owner sells", "OwnerOnlySale"),
    _build_trap("only listed sellers", "ListedSellers"),
    # these allow only simulations that do not look like a wallet's transaction
    _build_trap(
        "sells if a contract sends",
        "ContractOrigins",
        sell_tax=0,
        all_holders_sell=True,
        explanation="no wallet can send",
    ),
    _build_trap(
        "sells if the seller has code",
        "ContractSellers",
        sell_tax=0,
        all_holders_sell=True,
        explanation="no wallet can send",
    ),
    _build_trap("sells in free transactions", "FreeTransactions"),
    _build_trap("sells if a rich account sends", "RichOrigins"),
    _build_trap(
        "sells if gas is ample",
        "AmpleGas",
        sell_tax=0,
        all_holders_sell=True,
        explanation="gas that a wallet",
    ),
    _build_sellable(
        "sells if the sender has code",
        "WalletSellers",
        honest=False,
        honeypot=None,
        sell_tax=None,
        explanation="code at their address",
    ),
    # refuses code, as honest tokens do, and wallets that send their own transactions
    _build_sellable(
        "sells without code if others send",
        "CodelessForOthers",
        honest=False,
        honeypot=None,
        sell_tax=None,
        explanation="none with code at their address",
    ),
    # what only a wallet that sends its own sale meets
    _build_sellable(
        "tax on wallets' own sales",
        "TaxOnOwnSales",
        honest=False,
        honeypot=None,
        sell_tax=99,
        explanation="a wallet's own transaction",
    ),
    _build_sellable(
        "tax on amounts that simulations do not sell",
        "TaxOnOtherAmounts",
        honest=False,
        honeypot=None,
        sell_tax=99,
        explanation="a wallet's own transaction",
    ),
    _build_sellable(
        "tax on wallets' own sales with little gas",
        "TaxWithLittleGas",
        honest=False,
        honeypot=None,
        sell_tax=99,
        explanation="a wallet's own transaction",
    ),
    _build_sellable(
        "wallets cannot sell by a router",
        "NoRoutersForWallets",
        honest=False,
        honeypot=None,
        sell_tax=None,
        explanation="a wallet's own transaction",
    ),
    _build_trap(
        "unlimited approval is a trap",
        "UnlimitedTrap",
        sell_tax=0,
        all_holders_sell=True,
        explanation="approval without limit",
    ),
    # its purchases have no events, so that only the pool tells the buyers
    _build_trap(
        "sells in the block of the purchase",
        "SameBlock",
        later="wait",
        sell_tax=0,
        explanation="real holders",
    ),
    _build_sellable(
        "small holdings sell",
        "HoldingLimit",
        honest=False,
        honeypot=None,
        sell_tax=None,
        explanation="more than a small amount",
    ),
    _build_sellable("price falls in a sale", "PriceCollapse", sell_tax=90.06, honest=False),
    _build_sellable("tax after some blocks", "LaterTax", sell_tax=19, later="wait"),
    _build_trap("reentrant", "Reentrant", sell_tax=100, explanation="the pool received none"),
    _build_trap("approval is a trap", "ApproveTrap", explanation="blocks"),
    _build_trap("approval is ignored", "ApproveIgnored", explanation="approval"),
    _build_trap("hostile reason", "HostileReason"),
    _build_trap("switch, after", "FeeSwitch", sell_tax=100, later="flip"),
    _build_trap("proxy, after", "Proxy", later="change"),
    _build_trap("balances are taken later", "BalanceDrain", sell_tax=0, siphoned=True, later="drain"),
    _build_sellable("sale takes the whole balance", "SiphonOnSell", siphoned=True, honest=False),
    # only a router that the token knows would show whether people can sell
    _build_sellable(
        "unknown routers refused",
        "KnownRouters",
        honeypot=None,
        sell_tax=None,
        all_holders_sell=False,
        explanation="direct transfer",
    ),
    _build_sellable(
        "unknown spenders refused",
        "ApprovesListed",
        honeypot=None,
        sell_tax=None,
        all_holders_sell=False,
        explanation="direct transfer",
    ),
    _build_sellable(
        "trading not open",
        "TradingClosed",
        honeypot=None,
        buy_tax=None,
        sell_tax=None,
        transfer_tax=None,
        all_holders_sell=False,
        explanation="not open",
        opens=True,
    ),
    _build_sellable(
        "paused",
        "Pausable",
        honeypot=None,
        buy_tax=None,
        sell_tax=None,
        transfer_tax=None,
        all_holders_sell=False,
        explanation="paused",
        later="flip",
    ),
)
"""Each kind of token, on a v2 pair."""
