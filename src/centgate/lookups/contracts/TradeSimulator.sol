// SPDX-License-Identifier: Apache-2.0
// solc: viaIR
pragma solidity ^0.8.20;

// Buys and sells a token in one eth_call, on the pool itself, without a router.
//
// TradeSimulator is sent as a call without recipient: its constructor trades and returns the records as code.
// HolderTrader is installed at an account by a code override. Every attempt is undone by a revert that carries
// its record, so that attempts do not influence one another.
//
// Strangers' code runs here: each call has a limit of gas, and at most REASON_BYTES of its answer are copied.

/// A pool and the two sides of its trade. `quote` is zero for the native coin of a v4 pool.
struct Market {
    uint256 kind;
    address pool;
    address token;
    address quote;
    uint256 fee; // millionths; for v2 0 is unknown
    int256 spacing;
    address hooks;
}

/// A market, and where its quote token is bought for the trade.
struct Plan {
    Market market;
    address wrapped; // wrapped native coin
    address v2Factory; // of pools with the wrapped coin; may be zero, as the next
    address v3Factory;
}

/// Record of one attempt. Amounts are in base units.
struct Trade {
    uint256 stage; // last stage that was reached
    uint256 quoteIn;
    uint256 pairOut; // tokens that the pool sent to the buyer
    uint256 received; // tokens that reached the buyer
    uint256 amount; // tokens that were to be sold
    uint256 left; // tokens that left the seller
    uint256 pairIn; // tokens that reached the pool, or the recipient of a transfer
    uint256 quoteOut;
    uint256 gasUsed; // by the sale
    bytes reason; // why the next stage was not reached
}

uint256 constant STAGE_NONE = 0;
uint256 constant STAGE_FUNDED = 1;
uint256 constant STAGE_BOUGHT = 2;
uint256 constant STAGE_APPROVED = 3;
uint256 constant STAGE_SOLD = 4;

uint256 constant KIND_V2 = 0;
uint256 constant KIND_SOLIDLY = 1;
uint256 constant KIND_V3 = 2; // and Algebra
uint256 constant KIND_V4 = 3;

uint256 constant WITH_CODE = 1; // the account has code
uint256 constant DIRECT = 2; // the seller itself sends the tokens to the pool
uint256 constant TRANSFER = 4; // send to a third address instead of selling
uint256 constant TOP_UP = 8; // send more until the pool has what it demands
uint256 constant BUY_ONLY = 16;

uint256 constant STEP_GAS = 4_000_000;
uint256 constant READ_GAS = 500_000;
uint256 constant REASON_BYTES = 192;
uint256 constant SMALL_PART = 10_000; // a small trade is this part of the pool, a large one the next
uint256 constant LARGE_PART = 100;
uint256 constant BISECTIONS = 6;
uint256 constant NO_DECIMALS = 256;
address constant THIRD = address(0x7E57000000000000000000000000000000007E57);

error ReturnedFalse();
error NothingArrived();
error NothingReceived();
error NothingPaid();
error NoCapital();
error ApprovalIgnored();
error NotActive();

interface IToken {
    function balanceOf(address) external view returns (uint256);
    function decimals() external view returns (uint8);
    function transfer(address, uint256) external returns (bool);
    function transferFrom(address, address, uint256) external returns (bool);
    function approve(address, uint256) external returns (bool);
    function allowance(address, address) external view returns (uint256);
    function deposit() external payable;
}

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

/// Calls with limits, and records.
library Safe {
    /// Call, and copy at most REASON_BYTES of the answer.
    function run(address to, uint256 value, bytes memory data, uint256 gasLimit)
        internal
        returns (bool ok, bytes memory answer)
    {
        uint256 limit = REASON_BYTES;
        assembly {
            ok := call(gasLimit, to, value, add(data, 32), mload(data), 0, 0)
            let size := returndatasize()
            if gt(size, limit) { size := limit }
            answer := mload(0x40)
            mstore(answer, size)
            // the rest of the last word must be zero
            mstore(add(add(answer, 32), size), 0)
            returndatacopy(add(answer, 32), 0, size)
            mstore(0x40, add(answer, and(add(size, 95), not(31))))
        }
    }

    /// Call a function of a token that may return nothing or a boolean.
    function runToken(address token, bytes memory data) internal returns (bool ok, bytes memory answer) {
        (ok, answer) = run(token, 0, data, STEP_GAS);
        if (!ok) return (false, answer);
        if (answer.length == 0) ok = token.code.length > 0;
        else ok = answer.length >= 32 && word(answer, 0) != 0;
        if (!ok) answer = abi.encodePacked(ReturnedFalse.selector);
    }

    /// Read one word; zero if the call fails or returns less.
    function read(address to, bytes memory data) internal view returns (uint256 value) {
        assembly {
            let scratch := mload(0x40)
            if staticcall(READ_GAS, to, add(data, 32), mload(data), scratch, 32) {
                if gt(returndatasize(), 31) { value := mload(scratch) }
            }
        }
    }

    /// Read two words; zeros if the call fails or returns less.
    function readPair(address to, bytes memory data) internal view returns (uint256 first, uint256 second) {
        assembly {
            let scratch := mload(0x40)
            if staticcall(READ_GAS, to, add(data, 32), mload(data), scratch, 64) {
                if gt(returndatasize(), 63) {
                    first := mload(scratch)
                    second := mload(add(scratch, 32))
                }
            }
        }
    }

    function balance(address token, address account) internal view returns (uint256) {
        return token == address(0) ? account.balance : read(token, abi.encodeCall(IToken.balanceOf, (account)));
    }

    function word(bytes memory data, uint256 index) internal pure returns (uint256 value) {
        assembly {
            value := mload(add(add(data, 32), mul(index, 32)))
        }
    }

    function minus(uint256 a, uint256 b) internal pure returns (uint256) {
        return a > b ? a - b : 0;
    }

    function least(uint256 a, uint256 b) internal pure returns (uint256) {
        return a < b ? a : b;
    }

    /// Encode a record in 16 words: nine numbers, the length of the reason, and its first REASON_BYTES.
    function encode(Trade memory t) internal pure returns (bytes memory) {
        bytes memory reason = new bytes(REASON_BYTES);
        uint256 size = least(t.reason.length, REASON_BYTES);
        bytes memory source = t.reason;
        // a reason ends with zeros up to its last word
        assembly {
            for { let at := 32 } lt(at, add(size, 32)) { at := add(at, 32) } {
                mstore(add(reason, at), mload(add(source, at)))
            }
        }
        return abi.encodePacked(
            abi.encode(t.stage, t.quoteIn, t.pairOut, t.received, t.amount, t.left, t.pairIn, t.quoteOut, t.gasUsed),
            size,
            reason
        );
    }

    /// Decode what the decisions of the caller need.
    function decode(bytes memory data) internal pure returns (uint256 stage, uint256 received) {
        if (data.length < 512) return (STAGE_NONE, 0);
        return (word(data, 0), word(data, 3));
    }

    function undo(bytes memory data) internal pure {
        assembly {
            revert(add(data, 32), mload(data))
        }
    }
}

/// Account of a buyer: like a wallet it has no code, since its constructor makes its one call and leaves nothing.
contract Account {
    constructor(address target, bytes memory data) {
        if (target == address(0)) return; // keeps its code
        (bool ok, bytes memory answer) = Safe.runToken(target, data);
        if (!ok) Safe.undo(answer);
        assembly {
            return(0, 0)
        }
    }

    function execute(address target, bytes calldata data) external {
        (bool ok, bytes memory answer) = Safe.runToken(target, data);
        if (!ok) Safe.undo(answer);
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
        if (reason.length > 0) Safe.undo(reason);
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
            uint256 amount = sale == 0 ? t.received : Safe.least(sale, t.received);
            if (flags & TRANSFER != 0) _transfer(m, account, amount, t);
            else if (_approve(m, account, amount, flags, t)) _sell(m, account, amount, flags, t);
        }
        Safe.undo(Safe.encode(t));
    }

    /// Buy for `to`. Returns the record.
    function buy(Market calldata m, uint256 spend, address to) external returns (bytes memory) {
        Trade memory t;
        _buy(m, spend, to, t);
        return Safe.encode(t);
    }

    /// Sell the tokens of `from`, which has approved them or pays by `execute`. Returns the record.
    function sell(Market calldata m, address from, uint256 amount, uint256 flags)
        external
        returns (bytes memory)
    {
        Trade memory t;
        _sell(m, from, amount, flags, t);
        return Safe.encode(t);
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

    function _buy(Market memory m, uint256 spend, address to, Trade memory t) private {
        t.stage = STAGE_FUNDED;
        t.quoteIn = Safe.least(spend, Safe.balance(m.quote, address(this)));
        if (t.quoteIn == 0) {
            t.stage = STAGE_NONE;
            t.reason = abi.encodePacked(NoCapital.selector);
            return;
        }
        uint256 before = Safe.balance(m.token, to);
        bytes memory reason;
        (t.pairOut, reason) = _trade(m, true, t.quoteIn, address(this), to, 0);
        t.received = Safe.minus(Safe.balance(m.token, to), before);
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
            uint256 approved = flags & TOP_UP != 0 ? type(uint256).max : amount;
            t.reason = _execute(account, m.token, abi.encodeCall(IToken.approve, (address(this), approved)));
            if (t.reason.length > 0) return false;
        }
        t.stage = STAGE_APPROVED;
        return true;
    }

    function _sell(Market memory m, address from, uint256 amount, uint256 flags, Trade memory t) private {
        t.amount = amount;
        uint256 before = Safe.balance(m.token, from);
        uint256 quotes = Safe.balance(m.quote, address(this));
        uint256 gas = gasleft();
        arrived = 0;
        (, t.reason) = _trade(m, false, amount, from, address(this), flags);
        t.gasUsed = gas - gasleft();
        t.left = Safe.minus(before, Safe.balance(m.token, from));
        t.pairIn = arrived;
        t.quoteOut = Safe.minus(Safe.balance(m.quote, address(this)), quotes);
        if (t.reason.length == 0 && t.quoteOut == 0) t.reason = abi.encodePacked(NothingPaid.selector);
        if (t.reason.length == 0) t.stage = STAGE_SOLD;
    }

    function _transfer(Market memory m, address account, uint256 amount, Trade memory t) private {
        t.amount = amount;
        uint256 before = Safe.balance(m.token, account);
        uint256 third = Safe.balance(m.token, THIRD);
        t.reason = _execute(account, m.token, abi.encodeCall(IToken.transfer, (THIRD, amount)));
        t.left = Safe.minus(before, Safe.balance(m.token, account));
        t.pairIn = Safe.minus(Safe.balance(m.token, THIRD), third);
        if (t.reason.length == 0) t.stage = STAGE_SOLD;
    }

    /// Let an account make a call. Returns the reason if it fails.
    function _execute(address account, address target, bytes memory data) private returns (bytes memory) {
        if (account.code.length > 0) {
            (bool ok, bytes memory answer) = Safe.run(
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
        (bool ok, bytes memory answer) = Safe.runToken(token, data);
        if (ok) return "";
        return isIgnored ? abi.encodePacked(ApprovalIgnored.selector) : _reasonOf(answer);
    }

    function _allowance(address token, address payer) private view returns (uint256) {
        return Safe.read(token, abi.encodeCall(IToken.allowance, (payer, address(this))));
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
        (bool ok, bytes memory answer) = Safe.run(m.pool, 0, data, STEP_GAS + STEP_GAS);
        payment.pool = address(0);
        if (!ok) return (0, _reasonOf(answer));
        if (m.kind == KIND_V3) out = uint256(-int256(Safe.word(answer, forward ? 1 : 0)));
        else out = Safe.word(answer, 2); // after offset and length of the bytes
    }

    function _tradeV2(Market memory m, bool buying, uint256 amount, address payer, address to, uint256 flags)
        private
        returns (uint256 out, bytes memory reason)
    {
        address tokenIn = buying ? m.quote : m.token;
        (uint256 reserve,) = _reserves(m, buying);
        uint256 excess = Safe.minus(Safe.balance(tokenIn, m.pool), reserve);
        reason = _pay(tokenIn, payer, m.pool, amount, flags);
        if (reason.length > 0) return (0, reason);
        (uint256 reserveIn, uint256 reserveOut) = _reserves(m, buying);
        arrived = Safe.minus(Safe.balance(tokenIn, m.pool), reserveIn);
        // if the token itself traded meanwhile, the pool has counted the excess
        if (reserveIn == reserve) arrived = Safe.minus(arrived, excess);
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
        (bool ok, bytes memory answer) = Safe.run(m.pool, 0, data, STEP_GAS + STEP_GAS);
        return ok ? bytes("") : _reasonOf(answer);
    }

    function _reserves(Market memory m, bool buying) private view returns (uint256 reserveIn, uint256 reserveOut) {
        (uint256 first, uint256 second) = Safe.readPair(m.pool, abi.encodeCall(IPool.getReserves, ()));
        return (buying ? m.quote < m.token : m.token < m.quote) ? (first, second) : (second, first);
    }

    function _amountOut(Market memory m, address tokenIn, uint256 amount, uint256 reserveIn, uint256 reserveOut)
        private
        view
        returns (uint256)
    {
        if (m.kind == KIND_SOLIDLY || m.fee == 0) {
            uint256 out = Safe.read(m.pool, abi.encodeCall(IPool.getAmountOut, (amount, tokenIn)));
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
        uint256 before = Safe.balance(p.token, p.pool);
        uint256 amount = owed;
        for (uint256 i = 0; i < 4; i++) {
            reason = _pay(p.token, p.payer, p.pool, amount, p.flags);
            uint256 sum = Safe.minus(Safe.balance(p.token, p.pool), before);
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
        if (reason.length > 0) Safe.undo(reason);
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
        uint256 coins = Safe.balance(plan.wrapped, m.pool);
        if (m.pool == address(0) || coins == 0) return;
        if (m.kind == KIND_V2) {
            (uint256 reserveIn, uint256 reserveOut) = _reserves(m, true);
            uint256 out = Safe.least(amount, reserveOut / 2);
            uint256 cost = reserveIn * out * 1000 / ((reserveOut - out) * 997) + 1;
            _trade(m, true, Safe.least(cost, Safe.balance(plan.wrapped, address(this))), address(this), address(this), 0);
            return;
        }
        payment = Payment(m.pool, plan.wrapped, address(this), 0);
        bytes memory data = _encodeSwapV3(address(this), plan.wrapped < m.token, -int256(amount));
        Safe.run(m.pool, 0, data, STEP_GAS);
        payment.pool = address(0);
    }

    /// Find the pool of the quote token with the most wrapped coins.
    function _findFundingPool(Plan memory plan, Market memory m) private view {
        uint256 most = 0;
        if (plan.v2Factory != address(0)) {
            bytes memory data = abi.encodeCall(IFactory.getPair, (plan.wrapped, m.token));
            m.pool = address(uint160(Safe.read(plan.v2Factory, data)));
            most = m.pool == address(0) ? 0 : Safe.balance(plan.wrapped, m.pool);
        }
        if (plan.v3Factory == address(0)) return;
        uint24[4] memory fees = [uint24(500), 3000, 100, 2500];
        for (uint256 i = 0; i < 4; i++) {
            bytes memory data = abi.encodeCall(IFactory.getPool, (plan.wrapped, m.token, fees[i]));
            address pool = address(uint160(Safe.read(plan.v3Factory, data)));
            uint256 coins = pool == address(0) ? 0 : Safe.balance(plan.wrapped, pool);
            if (coins > most) (m.kind, m.pool, most) = (KIND_V3, pool, coins);
        }
    }
}

/// Size of a market.
library Depth {
    /// Return what the pool holds of each side; for v4 the amounts at the current price that count.
    function measure(Market memory m) internal view returns (uint256 quotes, uint256 tokens) {
        quotes = Safe.balance(m.quote, m.pool);
        tokens = Safe.balance(m.token, m.pool);
        if (m.kind != KIND_V4) return (quotes, tokens);
        (uint256 root, uint256 liquidity) = _readV4(m);
        if (root == 0) return (quotes, tokens);
        uint256 first = (liquidity << 96) / root;
        uint256 second = liquidity * (root >> 32) >> 64;
        (uint256 q, uint256 t) = m.quote < m.token ? (first, second) : (second, first);
        return (Safe.least(q, quotes), Safe.least(t, tokens));
    }

    function _readV4(Market memory m) private view returns (uint256 root, uint256 liquidity) {
        (address first, address second) = m.token < m.quote ? (m.token, m.quote) : (m.quote, m.token);
        bytes32 id = keccak256(abi.encode(first, second, uint24(m.fee), int24(m.spacing), m.hooks));
        // slot of `pools` in the PoolManager: StateLibrary of Uniswap's v4-core
        uint256 slot = uint256(keccak256(abi.encode(id, uint256(6))));
        root = uint160(Safe.read(m.pool, abi.encodeCall(IPoolManager.extsload, (bytes32(slot)))));
        liquidity = uint128(Safe.read(m.pool, abi.encodeCall(IPoolManager.extsload, (bytes32(slot + 3)))));
    }
}

/// Buys and sells for new accounts. Returns as code: quote and token in the pool, their decimals, capital, 0;
/// then records: small, large, transfer, account with code, other way of sale, largest buy, largest sale.
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
        (bool ok,) = Safe.run(
            address(trader), address(this).balance, abi.encodeCall(Trader.fund, (plan, large)), STEP_GAS + STEP_GAS
        );
        Market memory m = plan.market;
        uint256 capital = ok ? Safe.balance(m.quote, address(trader)) : 0;
        large = Safe.least(large, capital);
        bytes memory header = abi.encode(quotes, tokens, _decimals(m.quote), _decimals(m.token), capital, 0);
        return abi.encodePacked(header, _run(trader, m, quotes / SMALL_PART, large));
    }

    /// Return the decimals of a token; NO_DECIMALS if it tells none.
    function _decimals(address token) private view returns (uint256) {
        if (token == address(0)) return 18;
        (bool ok, bytes memory answer) =
            token.staticcall{gas: READ_GAS}(abi.encodeCall(IToken.decimals, ()));
        return ok && answer.length >= 32 ? Safe.word(answer, 0) : NO_DECIMALS;
    }

    function _run(Trader trader, Market memory m, uint256 small, uint256 large) private returns (bytes memory) {
        bytes[7] memory records;
        if (small == 0) small = large;
        records[0] = _attempt(trader, m, 0, small, 0);
        (uint256 smallStage, uint256 smallReceived) = Safe.decode(records[0]);
        if (smallStage >= STAGE_BOUGHT) {
            records[1] = _attempt(trader, m, 0, large, 0);
            records[2] = _attempt(trader, m, TRANSFER, small, 0);
            uint256 other = smallStage == STAGE_SOLD ? WITH_CODE : m.kind == KIND_V3 ? TOP_UP : DIRECT;
            uint256 sale = other == TOP_UP ? smallReceived / 4 : 0;
            records[other == WITH_CODE ? 3 : 4] = _attempt(trader, m, other, small, sale);
            (uint256 stage, uint256 received) = Safe.decode(records[1]);
            if (stage < STAGE_BOUGHT) records[5] = _bisect(trader, m, BUY_ONLY, small, large);
            else if (smallStage == STAGE_SOLD && stage < STAGE_SOLD) {
                records[6] = _bisectSale(trader, m, large, smallReceived, received);
            }
        }
        bytes memory all;
        for (uint256 i = 0; i < 7; i++) {
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
            (uint256 stage,) = Safe.decode(record);
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
            (uint256 stage,) = Safe.decode(record);
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
        uint256 balance = Safe.balance(m.token, address(this));
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
        (uint256 quotes,) = Depth.measure(plan.market);
        uint256 spend = quotes / SMALL_PART;
        bytes memory data = abi.encodeCall(Trader.fund, (plan, spend));
        Safe.run(address(trader), address(this).balance, data, STEP_GAS + STEP_GAS);
        bytes memory bought = trader.buy(plan.market, spend, address(this));
        (uint256 stage, uint256 received) = Safe.decode(bought);
        bytes memory sold = new bytes(512);
        if (stage == STAGE_BOUGHT) sold = _attempt(trader, plan.market, received, 0);
        _return(abi.encodePacked(bought, sold.length == 512 ? sold : new bytes(512)));
    }

    /// Approve the sale, sell, and revert with the record. A direct sale must work after an approval too.
    function attempt(Trader trader, Market calldata m, uint256 amount, uint256 flags) external {
        uint256 approved = flags & TOP_UP != 0 ? type(uint256).max : amount;
        (bool ok, bytes memory answer) =
            Safe.runToken(m.token, abi.encodeCall(IToken.approve, (address(trader), approved)));
        if (!ok && flags & DIRECT == 0) {
            Trade memory t;
            t.stage = STAGE_BOUGHT;
            t.amount = amount;
            t.reason = answer.length > 0 ? answer : new bytes(1);
            Safe.undo(Safe.encode(t));
        }
        Safe.undo(trader.sell(m, address(this), amount, flags));
    }

    function execute(address target, bytes calldata data) external {
        (bool ok, bytes memory answer) = Safe.runToken(target, data);
        if (!ok) Safe.undo(answer);
    }

    function _sellParts(Market calldata m, uint256 balance, uint256 depth, bytes[3] memory records)
        private
        returns (uint256 largest)
    {
        Trader trader = new Trader();
        uint256 small = Safe.least(balance, depth / SMALL_PART + 1);
        uint256 full = Safe.least(balance, depth);
        records[0] = _attempt(trader, m, small, 0);
        (uint256 stage,) = Safe.decode(records[0]);
        if (stage < STAGE_SOLD) {
            records[2] = _attempt(trader, m, small, m.kind == KIND_V3 ? TOP_UP : DIRECT);
            return 0;
        }
        if (full <= small) return small;
        records[1] = _attempt(trader, m, full, 0);
        (stage,) = Safe.decode(records[1]);
        return stage == STAGE_SOLD ? full : _bisect(trader, m, small, full);
    }

    function _bisect(Trader trader, Market calldata m, uint256 low, uint256 high) private returns (uint256) {
        for (uint256 i = 0; i < BISECTIONS; i++) {
            uint256 middle = (low + high) / 2;
            (uint256 stage,) = Safe.decode(_attempt(trader, m, middle, 0));
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
