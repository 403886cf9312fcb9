// SPDX-License-Identifier: Apache-2.0
// solc: viaIR
pragma solidity ^0.8.20;

import "./TradeRecords.sol";
import "./Trader.sol";

// Buys and sells a token in one eth_call, on the pool itself, without a router.
//
// TradeSimulator is sent as a call without recipient: its constructor trades and returns the records as code.
// HolderTrader and WalletTrader are installed at an account by a code override. Every attempt is undone by a revert that carries
// its record, so that attempts do not influence one another.
//
// Strangers' code runs here: each call has a limit of gas, and at most REASON_BYTES of its answer are copied.

/// Size of a market.
library Depth {
    /// Return what the pool holds of each side; for v4 the amounts at the current price that count. A pair's
    /// own reserves limit what the token says of it.
    function measure(Market memory m) internal view returns (uint256 quotes, uint256 tokens) {
        quotes = Calls.balance(m.quote, m.pool);
        tokens = Calls.balance(m.token, m.pool);
        if (m.kind == KIND_V3) return (quotes, tokens);
        if (m.kind <= KIND_SOLIDLY) {
            (uint256 reserve0, uint256 reserve1) =
                Calls.readPair(m.pool, abi.encodeCall(IPool.getReserves, ()));
            if (m.quote > m.token) (reserve0, reserve1) = (reserve1, reserve0);
            return (Calls.least(reserve0, quotes), Calls.least(reserve1, tokens));
        }
        (uint256 root, uint256 liquidity) = _readV4(m);
        if (root == 0) return (quotes, tokens);
        uint256 first = (liquidity << 96) / root;
        uint256 second = liquidity * (root >> 32) >> 64;
        (uint256 q, uint256 t) = m.quote < m.token ? (first, second) : (second, first);
        return (Calls.least(q, quotes), Calls.least(t, tokens));
    }

    /// Return what a small purchase spends: a part of the pool that buys several base units.
    function smallPart(uint256 quotes, uint256 tokens) internal pure returns (uint256) {
        return tokens == 0 || tokens >= FEW_UNITS * SMALL_PART
            ? quotes / SMALL_PART
            : Calls.least(quotes * FEW_UNITS / tokens, quotes / LARGE_PART);
    }

    function _readV4(Market memory m) private view returns (uint256 root, uint256 liquidity) {
        (address first, address second) = m.token < m.quote ? (m.token, m.quote) : (m.quote, m.token);
        bytes32 id = keccak256(abi.encode(first, second, uint24(m.fee), int24(m.spacing), m.hooks));
        // slot of `pools` in the PoolManager: StateLibrary of Uniswap's v4-core
        uint256 slot = uint256(keccak256(abi.encode(id, uint256(6))));
        root = uint160(Calls.read(m.pool, abi.encodeCall(IPoolManager.extsload, (bytes32(slot)))));
        liquidity = uint128(Calls.read(m.pool, abi.encodeCall(IPoolManager.extsload, (bytes32(slot + 3)))));
    }
}

/// Buys and sells for new accounts. Returns as code: quote and token in the pool, their decimals, capital, 0;
/// then records: small, large, transfer, account with code, other way of sale, largest buy, largest sale, and
/// small once more as a wallet trades.
contract TradeSimulator {
    constructor(Plan memory plan) payable {
        (uint256 quotes, uint256 tokens) = Depth.measure(plan.market);
        bytes memory result = _simulate(plan, quotes, tokens);
        assembly {
            return(add(result, 32), mload(result))
        }
    }

    function _simulate(Plan memory plan, uint256 quotes, uint256 tokens) private returns (bytes memory) {
        Trader trader = new Trader();
        uint256 large = quotes / LARGE_PART;
        (bool ok,) = Calls.run(
            address(trader), address(this).balance, abi.encodeCall(Trader.fund, (plan, large)), STEP_GAS + STEP_GAS
        );
        Market memory m = plan.market;
        uint256 capital = ok ? Calls.balance(m.quote, address(trader)) : 0;
        large = Calls.least(large, capital);
        bytes memory header = abi.encode(quotes, tokens, _decimals(m.quote), _decimals(m.token), capital, 0);
        return abi.encodePacked(header, _run(trader, m, Depth.smallPart(quotes, tokens), large));
    }

    /// Return the decimals of a token; NO_DECIMALS if it tells none.
    function _decimals(address token) private view returns (uint256) {
        if (token == address(0)) return 18;
        (bool ok, bytes memory answer) =
            token.staticcall{gas: READ_GAS}(abi.encodeCall(IToken.decimals, ()));
        return ok && answer.length >= 32 ? Calls.word(answer, 0) : NO_DECIMALS;
    }

    function _run(Trader trader, Market memory m, uint256 small, uint256 large) private returns (bytes memory) {
        bytes[8] memory records;
        if (small == 0) small = large;
        records[0] = _attempt(trader, m, 0, small, 0);
        (uint256 smallStage, uint256 smallReceived) = Calls.decode(records[0]);
        if (smallStage == STAGE_SOLD) {
            // a wallet sends half as much gas again as its estimate
            uint256 gasLimit = Calls.word(records[0], 8) * 3 / 2;
            records[7] = _attempt(trader, m, AS_WALLET | gasLimit << GAS_SHIFT, small, 0);
        }
        if (smallStage >= STAGE_BOUGHT) {
            records[1] = _attempt(trader, m, 0, large, 0);
            records[2] = _attempt(trader, m, TRANSFER, small, 0);
            records[3] = _attempt(trader, m, WITH_CODE, small, 0);
            if (smallStage < STAGE_SOLD) {
                bool topsUp = m.kind == KIND_V3;
                records[4] = _attempt(trader, m, topsUp ? TOP_UP : DIRECT, small, topsUp ? smallReceived / 4 : 0);
            }
            (uint256 stage, uint256 received) = Calls.decode(records[1]);
            if (stage < STAGE_BOUGHT) records[5] = _bisect(trader, m, BUY_ONLY, small, large);
            else if (smallStage == STAGE_SOLD && stage < STAGE_SOLD) {
                records[6] = _bisectSale(trader, m, large, smallReceived, received);
            }
        }
        bytes memory all;
        for (uint256 i = 0; i < 8; i++) {
            all = abi.encodePacked(all, records[i].length == 512 ? records[i] : new bytes(512));
        }
        return all;
    }

    function _attempt(Trader trader, Market memory m, uint256 flags, uint256 spend, uint256 sale)
        private
        returns (bytes memory answer)
    {
        if (gasleft() < STEP_GAS) return "";
        try trader.roundTrip(m, flags, spend, sale) {
            return "";
        } catch (bytes memory record) {
            return record;
        }
    }

    /// Find the largest purchase between one that succeeds and one that fails.
    function _bisect(Trader trader, Market memory m, uint256 flags, uint256 low, uint256 high)
        private
        returns (bytes memory best)
    {
        for (uint256 i = 0; i < BISECTIONS; i++) {
            uint256 middle = (low + high) / 2;
            bytes memory record = _attempt(trader, m, flags, middle, 0);
            (uint256 stage,) = Calls.decode(record);
            if (stage >= STAGE_BOUGHT) (low, best) = (middle, record);
            else high = middle;
        }
        if (best.length == 0) best = _attempt(trader, m, flags, low, 0);
    }

    /// Find the largest sale between one that succeeds and one that fails.
    function _bisectSale(Trader trader, Market memory m, uint256 spend, uint256 low, uint256 high)
        private
        returns (bytes memory best)
    {
        for (uint256 i = 0; i < BISECTIONS; i++) {
            uint256 middle = (low + high) / 2;
            bytes memory record = _attempt(trader, m, 0, spend, middle);
            (uint256 stage,) = Calls.decode(record);
            if (stage == STAGE_SOLD) (low, best) = (middle, record);
            else high = middle;
        }
        if (best.length == 0) best = _attempt(trader, m, 0, spend, low);
    }
}

/// Trades at an account that it is installed at. Records are returned as raw words.
contract HolderTrader {
    receive() external payable {}

    /// Sell a small part of the account's tokens, then all. Returns balance, token in the pool, largest amount
    /// that was sold; then records: small, all, other way of sale.
    function sellTokens(Market calldata m) external {
        uint256 balance = Calls.balance(m.token, address(this));
        (, uint256 depth) = Depth.measure(m);
        bytes[3] memory records;
        uint256 largest = 0;
        if (balance > 0 && depth > 0) largest = _sellParts(m, balance, depth, records);
        bytes memory all = abi.encode(balance, depth, largest);
        for (uint256 i = 0; i < 3; i++) {
            all = abi.encodePacked(all, records[i].length == 512 ? records[i] : new bytes(512));
        }
        _return(all);
    }

    /// Buy for this account, which needs coins, and sell again. Returns the record of purchase and of sale.
    function buyAndSell(Plan calldata plan) external {
        Trader trader = new Trader();
        (uint256 quotes, uint256 tokens) = Depth.measure(plan.market);
        uint256 spend = Depth.smallPart(quotes, tokens);
        bytes memory data = abi.encodeCall(Trader.fund, (plan, spend));
        Calls.run(address(trader), address(this).balance, data, STEP_GAS + STEP_GAS);
        bytes memory bought = trader.buy(plan.market, spend, address(this));
        (uint256 stage, uint256 received) = Calls.decode(bought);
        bytes memory sold = new bytes(512);
        if (stage == STAGE_BOUGHT) sold = _attempt(trader, plan.market, received, 0);
        _return(abi.encodePacked(bought, sold.length == 512 ? sold : new bytes(512)));
    }

    /// Approve the sale, sell, and revert with the record. A direct sale must work after an approval too.
    function attempt(Trader trader, Market calldata m, uint256 amount, uint256 flags) external {
        uint256 approved = flags & TOP_UP != 0 ? type(uint256).max : amount;
        (bool ok, bytes memory answer) =
            Calls.runToken(m.token, abi.encodeCall(IToken.approve, (address(trader), approved)));
        if (!ok && flags & DIRECT == 0) {
            Trade memory t;
            t.stage = STAGE_BOUGHT;
            t.amount = amount;
            t.reason = answer.length > 0 ? answer : new bytes(1);
            Calls.undo(Calls.encode(t));
        }
        Calls.undo(trader.sell(m, address(this), amount, flags));
    }

    function execute(address target, bytes calldata data) external {
        (bool ok, bytes memory answer) = Calls.runToken(target, data);
        if (!ok) Calls.undo(answer);
    }

    function _sellParts(Market calldata m, uint256 balance, uint256 depth, bytes[3] memory records)
        private
        returns (uint256 largest)
    {
        Trader trader = new Trader();
        uint256 small = Calls.least(balance, depth / SMALL_PART + 1);
        uint256 full = Calls.least(balance, depth);
        records[0] = _attempt(trader, m, small, 0);
        (uint256 stage,) = Calls.decode(records[0]);
        if (stage < STAGE_SOLD) {
            records[2] = _attempt(trader, m, small, m.kind == KIND_V3 ? TOP_UP : DIRECT);
            return 0;
        }
        if (full <= small) return small;
        records[1] = _attempt(trader, m, full, 0);
        (stage,) = Calls.decode(records[1]);
        return stage == STAGE_SOLD ? full : _bisect(trader, m, small, full);
    }

    function _bisect(Trader trader, Market calldata m, uint256 low, uint256 high) private returns (uint256) {
        for (uint256 i = 0; i < BISECTIONS; i++) {
            uint256 middle = (low + high) / 2;
            (uint256 stage,) = Calls.decode(_attempt(trader, m, middle, 0));
            if (stage == STAGE_SOLD) low = middle;
            else high = middle;
        }
        return low;
    }

    function _attempt(Trader trader, Market calldata m, uint256 amount, uint256 flags)
        private
        returns (bytes memory)
    {
        if (gasleft() < STEP_GAS) return "";
        try this.attempt(trader, m, amount, flags) {
            return "";
        } catch (bytes memory record) {
            return record;
        }
    }

    function _return(bytes memory data) private pure {
        assembly {
            return(add(data, 32), mload(data))
        }
    }
}

/// Trades for a wallet, as a router does. The token's storage is overridden so that this account may take the
/// wallet's tokens; the wallet needs no code for it, and can send the transaction itself.
contract WalletTrader is Trader {
    /// Buy for a wallet, and sell a part. Returns the record of purchase and of sale.
    /// `times`: how much more than a small trade it is; `percent`: the part that is sold. A token could know the
    /// amounts of the other trades. `flags` are those of the sale.
    function tradeFor(address wallet, Plan calldata plan, uint256 times, uint256 percent, uint256 flags)
        external
        returns (bytes memory)
    {
        (uint256 quotes, uint256 tokens) = Depth.measure(plan.market);
        uint256 small = Depth.smallPart(quotes, tokens);
        uint256 spend = small * times;
        if (spend > quotes / LARGE_PART) spend = small;
        bytes memory data = abi.encodeCall(Trader.fund, (plan, spend));
        Calls.run(address(this), address(this).balance, data, STEP_GAS + STEP_GAS);
        Trade memory bought;
        Trade memory sold;
        _buy(plan.market, spend, wallet, bought);
        if (bought.stage == STAGE_BOUGHT) {
            sold.stage = STAGE_APPROVED;
            uint256 amount = bought.received * percent / 100;
            if (Calls.least(amount, bought.quoteIn) < MANY_UNITS) amount = bought.received;
            _sell(plan.market, wallet, amount, flags, sold);
        }
        bytes memory records = abi.encodePacked(Calls.encode(bought), Calls.encode(sold));
        assembly {
            return(add(records, 32), mload(records))
        }
    }
}
