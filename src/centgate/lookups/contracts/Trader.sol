// SPDX-License-Identifier: Apache-2.0
// solc: viaIR
pragma solidity ^0.8.20;

import "./TradeRecords.sol";

interface IPool {
    function getReserves() external view returns (uint256, uint256);
    function getAmountOut(uint256, address) external view returns (uint256);
    function swap(uint256, uint256, address, bytes calldata) external;
    function swap(address, bool, int256, uint160, bytes calldata) external returns (int256, int256);
}

interface IFactory {
    function getPair(address, address) external view returns (address);
    function getPool(address, address, uint24) external view returns (address);
}

struct PoolKey {
    address currency0;
    address currency1;
    uint24 fee;
    int24 tickSpacing;
    address hooks;
}

struct SwapParams {
    bool zeroForOne;
    int256 amountSpecified;
    uint160 sqrtPriceLimitX96;
}

interface IPoolManager {
    function unlock(bytes calldata) external returns (bytes memory);
    function swap(PoolKey memory, SwapParams memory, bytes calldata) external returns (int256);
    function sync(address) external;
    function settle() external payable returns (uint256);
    function take(address, address, uint256) external;
    function extsload(bytes32) external view returns (bytes32);
}

/// Account of a buyer: like a wallet it has no code, since its constructor makes its one call and leaves nothing.
contract Account {
    constructor(address target, bytes memory data) {
        if (target == address(0)) return; // keeps its code
        (bool ok, bytes memory answer) = Calls.runToken(target, data);
        if (!ok) Calls.undo(answer);
        assembly {
            return(0, 0)
        }
    }

    function execute(address target, bytes calldata data) external {
        (bool ok, bytes memory answer) = Calls.runToken(target, data);
        if (!ok) Calls.undo(answer);
    }
}

/// Trades as a router does: it takes the seller's tokens by an allowance.
contract Trader {
    struct Payment {
        address pool;
        address token;
        address payer;
        uint256 flags;
    }

    Payment private payment;
    uint256 private arrived; // at the pool, by the last payment

    receive() external payable {}

    /// Callback of v3 pools, whatever its name: uniswapV3SwapCallback, pancakeV3SwapCallback, algebraSwapCallback.
    fallback() external payable {
        if (msg.sender != payment.pool) revert NotActive();
        (int256 first, int256 second) = abi.decode(msg.data[4:68], (int256, int256));
        uint256 owed = uint256(first > 0 ? first : second);
        bytes memory reason = _payOwed(owed);
        if (reason.length > 0) Calls.undo(reason);
    }

    /// Wrap the coins sent, and buy `amount` of the market's quote token for them, or as much as they buy.
    function fund(Plan calldata plan, uint256 amount) external payable {
        address quote = plan.market.quote;
        if (quote == address(0)) return;
        IToken(plan.wrapped).deposit{value: address(this).balance}();
        if (quote != plan.wrapped) _buyQuote(plan, amount);
    }

    /// Buy with `spend` for a new account, sell what it received, and revert with the record.
    /// `sale` is the amount to sell; 0 is everything.
    function roundTrip(Market calldata m, uint256 flags, uint256 spend, uint256 sale) external {
        Trade memory t;
        // the address of this contract's first creation
        address account =
            address(uint160(uint256(keccak256(abi.encodePacked(bytes2(0xd694), address(this), bytes1(0x01))))));
        if (flags & WITH_CODE != 0) new Account(address(0), "");
        _buy(m, spend, account, t);
        if (t.stage == STAGE_BOUGHT && flags & BUY_ONLY == 0) {
            uint256 amount = sale == 0 ? t.received : Calls.least(sale, t.received);
            if (flags & TRANSFER != 0) _transfer(m, account, amount, t);
            else if (_approve(m, account, amount, flags, t)) _sell(m, account, amount, flags, t);
        }
        Calls.undo(Calls.encode(t));
    }

    /// Buy for `to`. Returns the record.
    function buy(Market calldata m, uint256 spend, address to) external returns (bytes memory) {
        Trade memory t;
        _buy(m, spend, to, t);
        return Calls.encode(t);
    }

    /// Sell the tokens of `from`, which has approved them or pays by `execute`. Returns the record.
    function sell(Market calldata m, address from, uint256 amount, uint256 flags)
        external
        returns (bytes memory)
    {
        Trade memory t;
        _sell(m, from, amount, flags, t);
        return Calls.encode(t);
    }

    /// Callback of the v4 PoolManager: pay first, swap what arrived, take the result.
    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        if (msg.sender != payment.pool) revert NotActive();
        (Market memory m, bool buying, uint256 amount, address to) =
            abi.decode(data, (Market, bool, uint256, address));
        (address tokenIn, address tokenOut) = buying ? (m.quote, m.token) : (m.token, m.quote);
        uint256 paid = _settle(IPoolManager(m.pool), tokenIn, amount);
        (uint256 used, uint256 out) = _swapV4(m, tokenIn < tokenOut, paid);
        if (paid > used) IPoolManager(m.pool).take(tokenIn, address(this), paid - used);
        if (out > 0) IPoolManager(m.pool).take(tokenOut, to, out);
        return abi.encode(out);
    }

    function _buy(Market memory m, uint256 spend, address to, Trade memory t) internal {
        t.stage = STAGE_FUNDED;
        t.quoteIn = Calls.least(spend, Calls.balance(m.quote, address(this)));
        if (t.quoteIn == 0) {
            t.stage = STAGE_NONE;
            t.reason = abi.encodePacked(NoCapital.selector);
            return;
        }
        uint256 before = Calls.balance(m.token, to);
        uint256 funds = Calls.balance(m.quote, address(this));
        bytes memory reason;
        (t.pairOut, reason) = _trade(m, true, t.quoteIn, address(this), to, 0);
        // a pool takes less where its liquidity ends
        t.quoteIn = Calls.minus(funds, Calls.balance(m.quote, address(this)));
        t.received = Calls.minus(Calls.balance(m.token, to), before);
        if (reason.length == 0 && t.received == 0) reason = abi.encodePacked(NothingReceived.selector);
        if (reason.length == 0) t.stage = STAGE_BOUGHT;
        t.reason = reason;
    }

    function _approve(Market memory m, address account, uint256 amount, uint256 flags, Trade memory t)
        private
        returns (bool)
    {
        if (flags & DIRECT == 0) {
            t.amount = amount;
            uint256 approved = flags & (TOP_UP | AS_WALLET) != 0 ? type(uint256).max : amount;
            t.reason = _execute(account, m.token, abi.encodeCall(IToken.approve, (address(this), approved)));
            if (t.reason.length > 0) return false;
        }
        t.stage = STAGE_APPROVED;
        return true;
    }

    function _sell(Market memory m, address from, uint256 amount, uint256 flags, Trade memory t) internal {
        t.amount = amount;
        uint256 before = Calls.balance(m.token, from);
        uint256 quotes = Calls.balance(m.quote, address(this));
        uint256 gas = gasleft();
        arrived = 0;
        (, t.reason) = _trade(m, false, amount, from, address(this), flags);
        t.gasUsed = gas - gasleft();
        t.left = Calls.minus(before, Calls.balance(m.token, from));
        t.pairIn = arrived;
        t.quoteOut = Calls.minus(Calls.balance(m.quote, address(this)), quotes);
        if (t.reason.length == 0 && t.quoteOut == 0) t.reason = abi.encodePacked(NothingPaid.selector);
        if (t.reason.length == 0) t.stage = STAGE_SOLD;
    }

    function _transfer(Market memory m, address account, uint256 amount, Trade memory t) private {
        t.amount = amount;
        uint256 before = Calls.balance(m.token, account);
        // an address that the token does not know
        address recipient = address(uint160(uint256(keccak256(abi.encode(account, gasleft())))));
        uint256 held = Calls.balance(m.token, recipient);
        t.reason = _execute(account, m.token, abi.encodeCall(IToken.transfer, (recipient, amount)));
        t.left = Calls.minus(before, Calls.balance(m.token, account));
        t.pairIn = Calls.minus(Calls.balance(m.token, recipient), held);
        if (t.reason.length == 0) t.stage = STAGE_SOLD;
    }

    /// Let an account make a call. Returns the reason if it fails.
    function _execute(address account, address target, bytes memory data) private returns (bytes memory) {
        if (account.code.length > 0) {
            (bool ok, bytes memory answer) = Calls.run(
                account, 0, abi.encodeCall(Account.execute, (target, data)), STEP_GAS + READ_GAS
            );
            return ok ? bytes("") : _reasonOf(answer);
        }
        try new Account(target, data) {
            return "";
        } catch (bytes memory answer) {
            return _reasonOf(answer);
        }
    }

    /// Return a reason that is not empty.
    function _reasonOf(bytes memory answer) private pure returns (bytes memory) {
        return answer.length > 0 ? answer : new bytes(1);
    }

    function _pay(address token, address payer, address to, uint256 amount, uint256 flags)
        private
        returns (bytes memory)
    {
        bytes memory data = abi.encodeCall(IToken.transfer, (to, amount));
        bool isIgnored = false;
        if (payer != address(this)) {
            if (flags & DIRECT != 0) return _execute(payer, token, data);
            data = abi.encodeCall(IToken.transferFrom, (payer, to, amount));
            isIgnored = _allowance(token, payer) < amount;
        }
        uint256 gasLimit = flags >> GAS_SHIFT;
        (bool ok, bytes memory answer) = Calls.runToken(token, data, gasLimit == 0 ? STEP_GAS : gasLimit);
        if (ok) return "";
        return isIgnored ? abi.encodePacked(ApprovalIgnored.selector) : _reasonOf(answer);
    }

    function _allowance(address token, address payer) private view returns (uint256) {
        return Calls.read(token, abi.encodeCall(IToken.allowance, (payer, address(this))));
    }

    /// Swap on the pool. Returns the tokens that the pool sent, or the reason of the failure.
    function _trade(Market memory m, bool buying, uint256 amount, address payer, address to, uint256 flags)
        private
        returns (uint256 out, bytes memory reason)
    {
        if (m.kind <= KIND_SOLIDLY) return _tradeV2(m, buying, amount, payer, to, flags);
        payment = Payment(m.pool, buying ? m.quote : m.token, payer, flags);
        bytes memory data;
        bool forward = buying ? m.quote < m.token : m.token < m.quote;
        if (m.kind == KIND_V3) data = _encodeSwapV3(to, forward, int256(amount));
        else data = abi.encodeCall(IPoolManager.unlock, (abi.encode(m, buying, amount, to)));
        (bool ok, bytes memory answer) = Calls.run(m.pool, 0, data, STEP_GAS + STEP_GAS);
        payment.pool = address(0);
        if (!ok) return (0, _reasonOf(answer));
        if (m.kind == KIND_V3) out = uint256(-int256(Calls.word(answer, forward ? 1 : 0)));
        else out = Calls.word(answer, 2); // after offset and length of the bytes
    }

    function _tradeV2(Market memory m, bool buying, uint256 amount, address payer, address to, uint256 flags)
        private
        returns (uint256 out, bytes memory reason)
    {
        address tokenIn = buying ? m.quote : m.token;
        (uint256 reserve,) = _reserves(m, buying);
        uint256 excess = Calls.minus(Calls.balance(tokenIn, m.pool), reserve);
        reason = _pay(tokenIn, payer, m.pool, amount, flags);
        if (reason.length > 0) return (0, reason);
        (uint256 reserveIn, uint256 reserveOut) = _reserves(m, buying);
        arrived = Calls.minus(Calls.balance(tokenIn, m.pool), reserveIn);
        // if the token itself traded meanwhile, the pool has counted the excess
        if (reserveIn == reserve) arrived = Calls.minus(arrived, excess);
        if (arrived == 0) return (0, abi.encodePacked(NothingArrived.selector));
        out = _amountOut(m, tokenIn, arrived, reserveIn, reserveOut);
        reason = _swapV2(m, buying, out, to);
        if (reason.length > 0) {
            // the pool's fee may be higher than known
            out = out * 98 / 100;
            if (_swapV2(m, buying, out, to).length == 0) reason = "";
        }
    }

    function _swapV2(Market memory m, bool buying, uint256 out, address to) private returns (bytes memory) {
        bool first = (buying ? m.token : m.quote) < (buying ? m.quote : m.token);
        bytes memory data = abi.encodeWithSignature(
            "swap(uint256,uint256,address,bytes)", first ? out : 0, first ? 0 : out, to, ""
        );
        (bool ok, bytes memory answer) = Calls.run(m.pool, 0, data, STEP_GAS + STEP_GAS);
        return ok ? bytes("") : _reasonOf(answer);
    }

    function _reserves(Market memory m, bool buying) private view returns (uint256 reserveIn, uint256 reserveOut) {
        (uint256 first, uint256 second) = Calls.readPair(m.pool, abi.encodeCall(IPool.getReserves, ()));
        return (buying ? m.quote < m.token : m.token < m.quote) ? (first, second) : (second, first);
    }

    function _amountOut(Market memory m, address tokenIn, uint256 amount, uint256 reserveIn, uint256 reserveOut)
        private
        view
        returns (uint256)
    {
        if (m.kind == KIND_SOLIDLY || m.fee == 0) {
            uint256 out = Calls.read(m.pool, abi.encodeCall(IPool.getAmountOut, (amount, tokenIn)));
            if (out > 0) return out;
        }
        uint256 net = amount * (1_000_000 - (m.fee == 0 ? 3000 : m.fee));
        return net * reserveOut / (reserveIn * 1_000_000 + net);
    }

    function _encodeSwapV3(address to, bool forward, int256 amount) private pure returns (bytes memory) {
        return abi.encodeWithSignature(
            "swap(address,bool,int256,uint160,bytes)", to, forward, amount, _priceLimit(forward), ""
        );
    }

    function _priceLimit(bool forward) private pure returns (uint160) {
        return forward ? 4295128740 : 1461446703485210103287273052203988822378723970341;
    }

    /// Pay what the pool demands. With TOP_UP pay again while less arrived, as a tax takes a part.
    function _payOwed(uint256 owed) private returns (bytes memory reason) {
        Payment memory p = payment;
        uint256 before = Calls.balance(p.token, p.pool);
        uint256 amount = owed;
        for (uint256 i = 0; i < 4; i++) {
            reason = _pay(p.token, p.payer, p.pool, amount, p.flags);
            uint256 sum = Calls.minus(Calls.balance(p.token, p.pool), before);
            arrived = sum;
            if (reason.length > 0 || p.flags & TOP_UP == 0 || sum >= owed) return reason;
            if (sum == 0) return abi.encodePacked(NothingArrived.selector);
            amount = (owed - sum) * owed / sum + 1;
        }
    }

    function _settle(IPoolManager manager, address token, uint256 amount) private returns (uint256 paid) {
        if (token == address(0)) return manager.settle{value: amount}();
        manager.sync(token);
        bytes memory reason = _pay(token, payment.payer, address(manager), amount, payment.flags);
        if (reason.length > 0) Calls.undo(reason);
        paid = manager.settle();
        arrived = paid;
        if (paid == 0) revert NothingArrived();
    }

    function _swapV4(Market memory m, bool forward, uint256 amount) private returns (uint256 used, uint256 out) {
        (address first, address second) = m.token < m.quote ? (m.token, m.quote) : (m.quote, m.token);
        PoolKey memory key = PoolKey(first, second, uint24(m.fee), int24(m.spacing), m.hooks);
        int256 delta = IPoolManager(m.pool).swap(
            key, SwapParams(forward, -int256(amount), _priceLimit(forward)), ""
        );
        int256 amount0 = delta >> 128;
        int256 amount1 = int256(int128(delta));
        (int256 paid, int256 got) = forward ? (amount0, amount1) : (amount1, amount0);
        return (paid < 0 ? uint256(-paid) : 0, got > 0 ? uint256(got) : 0);
    }

    function _buyQuote(Plan memory plan, uint256 amount) private {
        Market memory m = Market(KIND_V2, address(0), plan.market.quote, plan.wrapped, 3000, 0, address(0));
        _findFundingPool(plan, m);
        uint256 coins = Calls.balance(plan.wrapped, m.pool);
        if (m.pool == address(0) || coins == 0) return;
        if (m.kind == KIND_V2) {
            (uint256 reserveIn, uint256 reserveOut) = _reserves(m, true);
            uint256 out = Calls.least(amount, reserveOut / 2);
            uint256 cost = reserveIn * out * 1000 / ((reserveOut - out) * 997) + 1;
            _trade(m, true, Calls.least(cost, Calls.balance(plan.wrapped, address(this))), address(this), address(this), 0);
            return;
        }
        payment = Payment(m.pool, plan.wrapped, address(this), 0);
        bytes memory data = _encodeSwapV3(address(this), plan.wrapped < m.token, -int256(amount));
        Calls.run(m.pool, 0, data, STEP_GAS);
        payment.pool = address(0);
    }

    /// Find the pool of the quote token with the most wrapped coins.
    function _findFundingPool(Plan memory plan, Market memory m) private view {
        uint256 most = 0;
        if (plan.v2Factory != address(0)) {
            bytes memory data = abi.encodeCall(IFactory.getPair, (plan.wrapped, m.token));
            m.pool = address(uint160(Calls.read(plan.v2Factory, data)));
            most = m.pool == address(0) ? 0 : Calls.balance(plan.wrapped, m.pool);
        }
        if (plan.v3Factory == address(0)) return;
        uint24[4] memory fees = [uint24(500), 3000, 100, 2500];
        for (uint256 i = 0; i < 4; i++) {
            bytes memory data = abi.encodeCall(IFactory.getPool, (plan.wrapped, m.token, fees[i]));
            address pool = address(uint160(Calls.read(plan.v3Factory, data)));
            uint256 coins = pool == address(0) ? 0 : Calls.balance(plan.wrapped, pool);
            if (coins > most) (m.kind, m.pool, most) = (KIND_V3, pool, coins);
        }
    }
}
