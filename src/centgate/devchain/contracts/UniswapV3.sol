// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

import {ConcentratedLiquidity, Position, Ticks} from "./ConcentratedLiquidity.sol";
import {ILedger, SafeLedger} from "./Shared.sol";

interface IUniswapV3SwapCallback {
    function uniswapV3SwapCallback(int256 amount0Delta, int256 amount1Delta, bytes calldata data) external;
}

interface IPancakeV3SwapCallback {
    function pancakeV3SwapCallback(int256 amount0Delta, int256 amount1Delta, bytes calldata data) external;
}

/// Pool with the interface of Uniswap v3 for swaps of an exact input. It has one range of liquidity.
abstract contract ConcentratedPool {
    using SafeLedger for address;

    address public immutable factory = msg.sender;
    address public immutable token0;
    address public immutable token1;
    int24 public immutable tickSpacing;

    uint24 internal swapFee;
    Position internal position;
    int24 private tickLower;
    int24 private tickUpper;
    bool private locked;

    event Initialize(uint160 sqrtPriceX96, int24 tick);
    event Mint(
        address sender,
        address indexed owner,
        int24 indexed tickLower,
        int24 indexed tickUpper,
        uint128 amount,
        uint256 amount0,
        uint256 amount1
    );
    event Swap(
        address indexed sender,
        address indexed recipient,
        int256 amount0,
        int256 amount1,
        uint160 sqrtPriceX96,
        uint128 liquidity,
        int24 tick
    );

    constructor(address token0_, address token1_, uint24 fee_, int24 tickSpacing_) {
        (token0, token1, swapFee, tickSpacing) = (token0_, token1_, fee_, tickSpacing_);
    }

    /// Liquidity at the present price.
    function liquidity() public view returns (uint128) {
        return ConcentratedLiquidity.isActive(position) ? position.liquidity : 0;
    }

    function initialize(uint160 sqrtPriceX96) external {
        require(position.ratio == 0, "AI");
        position.ratio = sqrtPriceX96;
        emit Initialize(sqrtPriceX96, Ticks.tickOf(sqrtPriceX96));
    }

    /// Adds liquidity to the one range, and takes its tokens by allowance.
    function addLiquidity(int24 tickLower_, int24 tickUpper_, uint128 amount) external {
        require(tickLower_ < tickUpper_ && tickLower_ % tickSpacing == 0 && tickUpper_ % tickSpacing == 0, "TICKS");
        require(position.liquidity == 0 || (tickLower_ == tickLower && tickUpper_ == tickUpper), "ONE RANGE");
        (tickLower, tickUpper) = (tickLower_, tickUpper_);
        (position.lower, position.upper) = (Ticks.ratioAt(tickLower_), Ticks.ratioAt(tickUpper_));
        position.liquidity += amount;
        (uint256 amount0, uint256 amount1) = ConcentratedLiquidity.backing(position, amount);
        if (amount0 > 0) token0.pull(msg.sender, amount0);
        if (amount1 > 0) token1.pull(msg.sender, amount1);
        emit Mint(msg.sender, msg.sender, tickLower_, tickUpper_, amount, amount0, amount1);
    }

    function _swap(address recipient, bool zeroForOne, int256 amount, uint160 limit, bytes calldata data)
        internal
        returns (int256 amount0, int256 amount1)
    {
        require(amount != 0, "AS");
        require(amount > 0, "exact output is not supported");
        require(!locked, "LOK");
        uint160 ratio = position.ratio;
        require(
            zeroForOne ? limit < ratio && limit > Ticks.MIN_RATIO : limit > ratio && limit < Ticks.MAX_RATIO, "SPL"
        );
        locked = true;
        Position memory moved = position;
        (uint256 sold, uint256 bought) =
            ConcentratedLiquidity.swap(moved, zeroForOne, uint256(amount), limit, _fee());
        position.ratio = moved.ratio;
        (amount0, amount1) =
            zeroForOne ? (int256(sold), -int256(bought)) : (-int256(bought), int256(sold));
        if (bought > 0) (zeroForOne ? token1 : token0).send(recipient, bought);
        _collect(zeroForOne ? token0 : token1, sold, amount0, amount1, data);
        emit Swap(msg.sender, recipient, amount0, amount1, moved.ratio, liquidity(), Ticks.tickOf(moved.ratio));
        locked = false;
    }

    /// Fee of the next swap, in millionths.
    function _fee() internal view virtual returns (uint24) {
        return swapFee;
    }

    function _unlocked() internal view returns (bool) {
        return position.ratio != 0 && !locked;
    }

    function _callBack(int256 amount0, int256 amount1, bytes calldata data) internal virtual;

    /// Asks the caller to pay, and fails unless it has.
    function _collect(address token, uint256 owed, int256 amount0, int256 amount1, bytes calldata data) private {
        uint256 before = ILedger(token).balanceOf(address(this));
        _callBack(amount0, amount1, data);
        require(ILedger(token).balanceOf(address(this)) >= before + owed, "IIA");
    }
}

contract UniswapV3Pool is ConcentratedPool {
    constructor(address token0_, address token1_, uint24 fee_, int24 tickSpacing_)
        ConcentratedPool(token0_, token1_, fee_, tickSpacing_)
    {}

    function fee() external view returns (uint24) {
        return swapFee;
    }

    function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool) {
        return (position.ratio, Ticks.tickOf(position.ratio), 0, 1, 1, 0, _unlocked());
    }

    function swap(address recipient, bool zeroForOne, int256 amount, uint160 limit, bytes calldata data)
        external
        returns (int256, int256)
    {
        return _swap(recipient, zeroForOne, amount, limit, data);
    }

    function _callBack(int256 amount0, int256 amount1, bytes calldata data) internal virtual override {
        IUniswapV3SwapCallback(msg.sender).uniswapV3SwapCallback(amount0, amount1, data);
    }
}

/// The same with the name that PancakeSwap gives to the callback.
contract PancakeV3Pool is UniswapV3Pool {
    constructor(address token0_, address token1_, uint24 fee_, int24 tickSpacing_)
        UniswapV3Pool(token0_, token1_, fee_, tickSpacing_)
    {}

    function _callBack(int256 amount0, int256 amount1, bytes calldata data) internal override {
        IPancakeV3SwapCallback(msg.sender).pancakeV3SwapCallback(amount0, amount1, data);
    }
}

abstract contract ConcentratedFactory {
    mapping(address => mapping(address => mapping(uint24 => address))) public getPool;
    mapping(uint24 => int24) public feeAmountTickSpacing;

    event PoolCreated(
        address indexed token0, address indexed token1, uint24 indexed fee, int24 tickSpacing, address pool
    );

    function createPool(address tokenA, address tokenB, uint24 fee) external returns (address pool) {
        (address token0, address token1) = tokenA < tokenB ? (tokenA, tokenB) : (tokenB, tokenA);
        require(token0 != address(0) && token0 != token1, "bad tokens");
        int24 tickSpacing = feeAmountTickSpacing[fee];
        require(tickSpacing != 0, "bad fee");
        require(getPool[token0][token1][fee] == address(0), "pool exists");
        pool = _create(token0, token1, fee, tickSpacing);
        getPool[token0][token1][fee] = pool;
        getPool[token1][token0][fee] = pool;
        emit PoolCreated(token0, token1, fee, tickSpacing, pool);
    }

    function _create(address token0, address token1, uint24 fee, int24 tickSpacing)
        internal
        virtual
        returns (address);
}

contract UniswapV3Factory is ConcentratedFactory {
    constructor() {
        (feeAmountTickSpacing[100], feeAmountTickSpacing[500]) = (1, 10);
        (feeAmountTickSpacing[3000], feeAmountTickSpacing[10000]) = (60, 200);
    }

    function _create(address token0, address token1, uint24 fee, int24 tickSpacing)
        internal
        override
        returns (address)
    {
        return address(new UniswapV3Pool(token0, token1, fee, tickSpacing));
    }
}

contract PancakeV3Factory is ConcentratedFactory {
    constructor() {
        (feeAmountTickSpacing[100], feeAmountTickSpacing[500]) = (1, 10);
        (feeAmountTickSpacing[2500], feeAmountTickSpacing[10000]) = (50, 200);
    }

    function _create(address token0, address token1, uint24 fee, int24 tickSpacing)
        internal
        override
        returns (address)
    {
        return address(new PancakeV3Pool(token0, token1, fee, tickSpacing));
    }
}

/// Quotes by a swap that is undone by its own callback.
abstract contract UndoingQuoter {
    /// The swap to undo, as a call of this contract to a pool; returns what went out and the price after it.
    function _quote(address pool, bytes memory swap) internal returns (uint256 amountOut, uint160 ratio) {
        (bool ok, bytes memory answer) = pool.call(swap);
        if (ok || answer.length != 64) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
        return abi.decode(answer, (uint256, uint160));
    }

    function _limit(bool zeroForOne, uint160 limit) internal pure returns (uint160) {
        if (limit != 0) return limit;
        return zeroForOne ? Ticks.MIN_RATIO + 1 : Ticks.MAX_RATIO - 1;
    }

    /// The price is the first word of `slot0()`, or of what a pool has in its place.
    function _undo(int256 amount0, int256 amount1, bytes4 priceSelector) internal view {
        (, bytes memory answer) = msg.sender.staticcall(abi.encodePacked(priceSelector));
        (uint256 amountOut, uint256 ratio) = (uint256(amount0 > 0 ? -amount1 : -amount0), 0);
        assembly {
            ratio := mload(add(answer, 32))
            mstore(0, amountOut)
            mstore(32, ratio)
            revert(0, 64)
        }
    }
}

/// Quotes with the interface of QuoterV2.
contract QuoterV2 is UndoingQuoter, IUniswapV3SwapCallback, IPancakeV3SwapCallback {
    struct QuoteExactInputSingleParams {
        address tokenIn;
        address tokenOut;
        uint256 amountIn;
        uint24 fee;
        uint160 sqrtPriceLimitX96;
    }

    ConcentratedFactory public factory;

    constructor(ConcentratedFactory factory_) {
        factory = factory_;
    }

    function quoteExactInputSingle(QuoteExactInputSingleParams memory params)
        external
        returns (uint256 amountOut, uint160 sqrtPriceX96After, uint32 initializedTicksCrossed, uint256 gasEstimate)
    {
        bool zeroForOne = params.tokenIn < params.tokenOut;
        uint160 limit = _limit(zeroForOne, params.sqrtPriceLimitX96);
        gasEstimate = gasleft();
        (amountOut, sqrtPriceX96After) = _quote(
            factory.getPool(params.tokenIn, params.tokenOut, params.fee),
            abi.encodeCall(
                UniswapV3Pool.swap, (address(this), zeroForOne, int256(params.amountIn), limit, "")
            )
        );
        gasEstimate -= gasleft();
        initializedTicksCrossed = 0;
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external view {
        _undo(amount0, amount1, UniswapV3Pool.slot0.selector);
    }

    function pancakeV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external view {
        _undo(amount0, amount1, UniswapV3Pool.slot0.selector);
    }
}

/// Swaps for its caller, who pays by allowance. A stand-in of its own.
contract V3Router {
    function swap(UniswapV3Pool pool, bool zeroForOne, uint256 amount) external returns (int256, int256) {
        uint160 limit = zeroForOne ? Ticks.MIN_RATIO + 1 : Ticks.MAX_RATIO - 1;
        return pool.swap(msg.sender, zeroForOne, int256(amount), limit, abi.encode(msg.sender));
    }

    /// Callback of a pool, by any name. Takes from whoever gave an allowance: good for test money only.
    fallback() external {
        (int256 amount0, int256 amount1, bytes memory data) = abi.decode(msg.data[4:], (int256, int256, bytes));
        UniswapV3Pool pool = UniswapV3Pool(msg.sender);
        (address token, int256 amount) = amount0 > 0 ? (pool.token0(), amount0) : (pool.token1(), amount1);
        SafeLedger.move(token, abi.decode(data, (address)), msg.sender, uint256(amount));
    }
}
