"""Sales and transfers at real holders, and those of them whose tokens were taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto import abi
from centgate.crypto.contract.account_kinds import WALLET_KINDS, classify_code
from centgate.crypto.token.token_rule import HOLDER_CHECKS, TAKEN_AWAY
from centgate.crypto.token.trade_records import HolderProbe, parse_holder_probe
from centgate.errors import NoData, ProviderFailure
from centgate.fallback import attempt
from centgate.lookups import erc20
from centgate.lookups.pool_buyers import HOLDER_BLOCKS, MAX_HOLDERS, parse_transfer_amount, read_recent_logs
from centgate.lookups.trade_calls import TokenMarket, parse_outcome
from centgate.providers.jsonrpc.simulated_calls import CallOutcome
from centgate.providers.rpc import Rpc

TRANSFER_SECONDS = 3.0
"""Seconds for the transfers of holders, without which the rest has its verdict."""
_OUT_OF_GAS = "out of gas"
"""Words of nodes on a call that spent all of its gas, which is ample for a transfer."""


class HolderSeller(Struct, frozen=True):
    """Sales of one token by its holders, in one pool."""

    rpc: Rpc
    market: TokenMarket

    async def sell_at(
        self,
        holders: Sequence[str],
        gas_price: int,
        *,
        received: Mapping[str, int] | None = None,
        told: Set[str] = frozenset(),
        height: int | None = None,
    ) -> list[HolderProbe]:
        """Sell at each holder that is a wallet. `received` tells whose tokens vanished without a transfer.

        `told` are the holders whose purchases the token's own events show; `height` is the block up to which
        they were read. A holder whose sales give no result is left out, with a warning; nothing is raised.
        """
        chosen = [each for each in dict.fromkeys(holders) if each != self.market.pool.address][:MAX_HOLDERS]
        if not chosen:
            return []
        (node_height, outcomes), sent, sends = await asyncio.gather(
            self._run_at_holders(chosen, gas_price),
            self._read_sent(chosen, height),
            self._send_from(dict.fromkeys(chosen, 1), gas_price),
        )
        is_behind = height is not None and node_height < height
        if is_behind:
            sent = None  # what was bought since is not there yet, rather than gone
        probes = self._parse_probes(outcomes, is_behind=is_behind)
        gone = {each.holder for each in probes if _is_gone(each, (received or {}).get(each.holder, 0))}
        drained = await self._find_drained(gone, told, sent, height)
        probes = [
            replace(each, can_send=sends.get(each.holder), drained=each.holder in drained) for each in probes
        ]
        tested = [probe for probe in probes if probe.is_tested]
        # a token may refuse so small an amount
        refused = {
            each.holder: each.small.amount
            for each in tested
            if each.can_send is False and each.can_sell and each.small is not None
        }
        if not refused:
            return tested
        again = await self._send_from(refused, gas_price)
        return [replace(each, can_send=again.get(each.holder, each.can_send)) for each in tested]

    async def _run_at_holders(
        self, holders: Sequence[str], gas_price: int
    ) -> tuple[int, Mapping[str, tuple[bytes, CallOutcome]]]:
        """Run the sale of each holder; without a price of gas if the node runs none of them with it.

        Return the node's latest block with their code and results.
        """
        calls = {holder: self.market.holder_call(holder, gas_price) for holder in holders}
        found = await attempt(self.rpc.simulate_at_accounts, self.market.chain_id, calls)
        is_run = not isinstance(found, NoData | ProviderFailure)
        if is_run and any(outcome.succeeded for _, outcome in found[1].values()):
            return found
        if gas_price:
            return await self._run_at_holders(holders, 0)
        return found if is_run else (0, {})

    def _parse_probes(
        self, outcomes: Mapping[str, tuple[bytes, CallOutcome]], *, is_behind: bool
    ) -> list[HolderProbe]:
        """Return the results at holders that are wallets; warn of those without one."""
        wallets = {
            holder: outcome
            for holder, (code, outcome) in outcomes.items()
            if classify_code(code) in WALLET_KINDS
        }
        probes = [
            probe
            for holder, outcome in wallets.items()
            if (probe := parse_outcome(partial(parse_holder_probe, holder), outcome))
            and probe.depth
            and (probe.balance or not is_behind)
        ]
        if missing := len(wallets) - len(probes):
            self.rpc.trace.add_warning(
                f"sales at {missing} of {len(outcomes)} holders gave no result; not checked at them on the "
                f"chain: {HOLDER_CHECKS}"
            )
        return probes

    async def _read_sent(self, holders: Sequence[str], height: int | None) -> set[str] | None:
        """Return the holders that sent tokens themselves; None if that is not known."""
        if height is None:
            return None
        topics = [erc20.TRANSFER_TOPIC, [abi.encode_topic(holder) for holder in holders]]
        logs = await read_recent_logs(self.rpc, self.market, self.market.token, topics, height)
        # a shorter range than that of the purchases may lack sales, as does a failure
        if logs is None or logs.unread or logs.from_block > max(0, height - HOLDER_BLOCKS + 1):
            return None
        sent = (log for log in logs.entries if parse_transfer_amount(log) and log.topics[1] != log.topics[2])
        return {abi.decode_address(log.topics[1]) for log in sent}

    async def _send_from(self, amounts: Mapping[str, int], gas_price: int) -> Mapping[str, bool]:
        """Return which holders can send an amount to the pool in a transaction of their own, where known."""
        calls = [self.market.transfer_call(holder, amount, gas_price) for holder, amount in amounts.items()]
        try:
            async with asyncio.timeout(TRANSFER_SECONDS):
                outcomes = await attempt(self.rpc.simulate_calls, self.market.chain_id, calls)
        except TimeoutError:
            return {}
        if isinstance(outcomes, NoData | ProviderFailure):
            return {}
        return {
            holder: outcome.succeeded and (not outcome.data or any(outcome.data))
            for holder, outcome in zip(amounts, outcomes, strict=True)
            if outcome.succeeded or outcome.data or _is_refused_transfer(outcome)
        }

    async def _find_drained(
        self, gone: Set[str], told: Set[str], sent: Set[str] | None, height: int | None
    ) -> Set[str]:
        """Return those holders without tokens, of whom `sent` are known to have sent some, that sent none."""
        suspects = gone - (sent or set())
        if not suspects:
            return suspects
        if sent is not None and await self._has_events_of(suspects & told, height):
            return suspects
        self.rpc.trace.add_warning(
            f"{len(suspects)} holders have no tokens left, and what they sent was not read; not checked at "
            f"them on the chain: {TAKEN_AWAY}"
        )
        return set()

    async def _has_events_of(self, buyers: Set[str], height: int | None) -> bool:
        """True if a node still shows events of these buyers, whose purchases had some.

        One that has not indexed the blocks gives no events, and no error.
        """
        if not buyers or height is None:
            return True
        topics = [erc20.TRANSFER_TOPIC, None, [abi.encode_topic(buyer) for buyer in buyers]]
        logs = await read_recent_logs(self.rpc, self.market, self.market.token, topics, height)
        return logs is not None and buyers <= {abi.decode_address(log.topics[2]) for log in logs.entries}


def _is_gone(probe: HolderProbe, received: int) -> bool:
    """True if a holder has at most a hundredth of what it bought; False if that is not known (0)."""
    return probe.balance * 100 < received


def _is_refused_transfer(outcome: CallOutcome) -> bool:
    """True if a node says that the token ended a transfer; other failures are those of the node."""
    return outcome.is_refusal or _OUT_OF_GAS in (outcome.message or "").lower()
