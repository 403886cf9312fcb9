// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

import {Ticks} from "./ConcentratedLiquidity.sol";
import {ConcentratedPool, IUniswapV3SwapCallback, UndoingQuoter} from "./UniswapV3.sol";

interface IAlgebraSwapCallback {
    function algebraSwapCallback(int256 amount0Delta, int256 amount1Delta, bytes calldata data) external;
}

/// Pools by tick spacing with the interface of Slipstream (Aerodrome, Velodrome).
contract SlipstreamFactory {
    mapping(address => mapping(address => mapping(int24 => address))) public getPool;
    mapping(int24 => uint24) public tickSpacingToFee;
    mapping(address => uint24) private customFees;

    event PoolCreated(address indexed token0, address indexed token1, int24 indexed tickSpacing, address pool);

    constructor() {
        (tickSpacingToFee[1], tickSpacingToFee[50]) = (100, 500);
        (tickSpacingToFee[100], tickSpacingToFee[200], tickSpacingToFee[2000]) = (500, 3000, 10_000);
    }

    function createPool(address tokenA, address tokenB, int24 tickSpacing, uint160 sqrtPriceX96)
        external
        returns (address pool)
    {
        (address token0, address token1) = tokenA < tokenB ? (tokenA, tokenB) : (tokenB, tokenA);
        require(token0 != address(0) && token0 != token1, "bad tokens");
        require(tickSpacingToFee[tickSpacing] != 0, "bad tick spacing");
        require(getPool[token0][token1][tickSpacing] == address(0), "pool exists");
        SlipstreamPool created = new SlipstreamPool(token0, token1, tickSpacing);
        created.initialize(sqrtPriceX96);
        pool = address(created);
        getPool[token0][token1][tickSpacing] = pool;
        getPool[token1][token0][tickSpacing] = pool;
        emit PoolCreated(token0, token1, tickSpacing, pool);
    }

    /// Fee of a pool in millionths.
    function getSwapFee(address pool) external view returns (uint24) {
        if (customFees[pool] != 0) return customFees[pool];
        return tickSpacingToFee[SlipstreamPool(pool).tickSpacing()];
    }

    /// Anyone may set the fee of a pool here.
    function setCustomFee(address pool, uint24 fee) external {
        customFees[pool] = fee;
    }
}

contract SlipstreamPool is ConcentratedPool {
    constructor(address token0_, address token1_, int24 tickSpacing_)
        ConcentratedPool(token0_, token1_, 0, tickSpacing_)
    {}

    function fee() public view returns (uint24) {
        return SlipstreamFactory(factory).getSwapFee(address(this));
    }

    function slot0() external view returns (uint160, int24, uint16, uint16, uint16, bool) {
        return (position.ratio, Ticks.tickOf(position.ratio), 0, 1, 1, _unlocked());
    }

    function swap(address recipient, bool zeroForOne, int256 amount, uint160 limit, bytes calldata data)
        external
        returns (int256, int256)
    {
        return _swap(recipient, zeroForOne, amount, limit, data);
    }

    function _fee() internal view override returns (uint24) {
        return fee();
    }

    function _callBack(int256 amount0, int256 amount1, bytes calldata data) internal override {
        IUniswapV3SwapCallback(msg.sender).uniswapV3SwapCallback(amount0, amount1, data);
    }
}

/// Quotes with the interface of Slipstream's QuoterV2.
contract SlipstreamQuoter is UndoingQuoter, IUniswapV3SwapCallback {
    struct QuoteExactInputSingleParams {
        address tokenIn;
        address tokenOut;
        uint256 amountIn;
        int24 tickSpacing;
        uint160 sqrtPriceLimitX96;
    }

    SlipstreamFactory public factory;

    constructor(SlipstreamFactory factory_) {
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
            factory.getPool(params.tokenIn, params.tokenOut, params.tickSpacing),
            abi.encodeCall(
                SlipstreamPool.swap, (address(this), zeroForOne, int256(params.amountIn), limit, "")
            )
        );
        gasEstimate -= gasleft();
        initializedTicksCrossed = 0;
    }

    function uniswapV3SwapCallback(int256 amount0, int256 amount1, bytes calldata) external view {
        _undo(amount0, amount1, SlipstreamPool.slot0.selector);
    }
}

/// One pool for each pair, with the interface of Algebra 1.9 (QuickSwap v3).
contract AlgebraFactory {
    mapping(address => mapping(address => address)) public poolByPair;

    event Pool(address indexed token0, address indexed token1, address pool);

    function createPool(address tokenA, address tokenB) external returns (address pool) {
        (address token0, address token1) = tokenA < tokenB ? (tokenA, tokenB) : (tokenB, tokenA);
        require(token0 != address(0) && token0 != token1, "bad tokens");
        require(poolByPair[token0][token1] == address(0), "pool exists");
        pool = address(new AlgebraPool(token0, token1));
        poolByPair[token0][token1] = pool;
        poolByPair[token1][token0] = pool;
        emit Pool(token0, token1, pool);
    }
}

contract AlgebraPool is ConcentratedPool {
    event Fee(uint16 fee);

    constructor(address token0_, address token1_) ConcentratedPool(token0_, token1_, 100, 60) {}

    function globalState() external view returns (uint160, int24, uint16, uint16, uint8, uint8, bool) {
        return (position.ratio, Ticks.tickOf(position.ratio), uint16(swapFee), 0, 0, 0, _unlocked());
    }

    /// The published pool changes its fee by volatility; here anyone sets it, in millionths.
    function setFee(uint16 fee) external {
        swapFee = fee;
        emit Fee(fee);
    }

    function swap(address recipient, bool zeroToOne, int256 amount, uint160 limit, bytes calldata data)
        external
        returns (int256, int256)
    {
        return _swap(recipient, zeroToOne, amount, limit, data);
    }

    function _callBack(int256 amount0, int256 amount1, bytes calldata data) internal override {
        IAlgebraSwapCallback(msg.sender).algebraSwapCallback(amount0, amount1, data);
    }
}

/// Quotes with the interface of Algebra's Quoter.
contract AlgebraQuoter is UndoingQuoter, IAlgebraSwapCallback {
    AlgebraFactory public factory;

    constructor(AlgebraFactory factory_) {
        factory = factory_;
    }

    function quoteExactInputSingle(address tokenIn, address tokenOut, uint256 amountIn, uint160 limitSqrtPrice)
        external
        returns (uint256 amountOut, uint16 fee)
    {
        bool zeroToOne = tokenIn < tokenOut;
        AlgebraPool pool = AlgebraPool(factory.poolByPair(tokenIn, tokenOut));
        (,, fee,,,,) = pool.globalState();
        uint160 limit = _limit(zeroToOne, limitSqrtPrice);
        (amountOut,) = _quote(
            address(pool),
            abi.encodeCall(AlgebraPool.swap, (address(this), zeroToOne, int256(amountIn), limit, ""))
        );
    }

    function algebraSwapCallback(int256 amount0, int256 amount1, bytes calldata) external view {
        _undo(amount0, amount1, AlgebraPool.globalState.selector);
    }
}
