"""Demo step for wallets: an unlimited approval, found by two services."""

from __future__ import annotations

from typing import Any

from eth_account import Account as EthAccount
from rich.table import Column, Table

from centgate.cli.demo.buyer import DemoBuyer, expect
from centgate.devchain.accounts import Account
from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc

WALLET, APPROVALS = "/services/wallet-brief", "/services/approval-risk"
UNLIMITED = 2**256 - 1
APPROVE = bytes.fromhex("095ea7b3")  # approve(address,uint256)


def inspect_wallet(buyer: DemoBuyer) -> None:
    """Approve unlimited spending for another address on the chain, and query both services."""
    stranger = buyer.chain.accounts[9].address.lower()
    approve_spender(buyer.chain, buyer.account, stranger, UNLIMITED)
    buyer.print_line("[bold]5. Look at a wallet[/]  the buyer approves unlimited USDC for a stranger\n")
    wallet = {"chainId": buyer.chain.chain_id, "walletAddress": buyer.account.address}
    _show_approvals(buyer, buyer.buy(APPROVALS, wallet).json(), stranger)
    _show_wallet(buyer, buyer.buy(WALLET, wallet).json())


def _show_approvals(buyer: DemoBuyer, answer: dict[str, Any], stranger: str) -> None:
    spender = Column("spender", overflow="fold")
    table = Table(
        "token", spender, "allowance", "severity", "why", title="approval-risk", title_justify="left"
    )
    approvals = answer["data"]["approvals"]
    for approval in approvals:
        allowance = approval["allowance"]
        table.add_row(
            approval["token"]["symbol"],
            approval["spender"]["address"],
            "unlimited" if allowance["unlimited"] else str(allowance["amount"]),
            approval["severity"],
            ", ".join(finding["id"] for finding in approval["findings"]),
        )
    buyer.print_line(table)
    for recommendation in answer["data"]["recommendations"]:
        buyer.print_line(f"   [yellow]{recommendation['action']}[/] {recommendation['reason']}\n")
    spenders = [approval["spender"]["address"] for approval in approvals]
    expect(spenders == [stranger], f"the new approval was not found, but: {spenders}")
    expect(answer["data"]["unlimitedCount"] == 1, "the unlimited approval is not counted")


def _show_wallet(buyer: DemoBuyer, answer: dict[str, Any]) -> None:
    data = answer["data"]
    table = Table("holding", "amount", title="wallet-brief", title_justify="left")
    tokens = {each["tokenAddress"]: each for each in data["tokenBalances"]}
    for each in (data["nativeBalance"], *tokens.values()):
        table.add_row(each["symbol"], f"{each['amount']:,.4f}")
    buyer.print_line(table)
    out = [each for each in data["recentTransfers"] if each["direction"] == "out"]
    buyer.print_line(f"   {len(out)} recent payments out, the latest in {out[0]['transactionHash']}\n")
    buyer.print_warnings(answer)
    buyer.print_line()
    usdc = tokens[buyer.chain.token.lower()]["amountBaseUnits"]
    expect(
        int(usdc) == buyer.chain.token_balance(buyer.account.address),
        f"{usdc} is not the buyer's balance of the token",
    )


def approve_spender(chain: DevChain, owner: Account, spender: str, amount: int) -> None:
    """Approve an amount of the owner's USDC for `spender`; the transaction is mined when this returns."""
    data = APPROVE + bytes.fromhex(spender[2:]).rjust(32, b"\0") + amount.to_bytes(32)
    transaction = {
        "chainId": chain.chain_id,
        "nonce": int(call_rpc(chain.rpc_url, "eth_getTransactionCount", owner.address, "latest"), 16),
        "to": chain.token,
        "data": "0x" + data.hex(),
        "gas": 100_000,
        "maxFeePerGas": 10**10,
        "maxPriorityFeePerGas": 10**9,
    }
    signed = EthAccount.sign_transaction(transaction, owner.private_key)
    call_rpc(chain.rpc_url, "eth_sendRawTransaction", "0x" + signed.raw_transaction.hex().removeprefix("0x"))
