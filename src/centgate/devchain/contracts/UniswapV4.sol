// SPDX-License-Identifier: CC0-1.0
// solc: viaIR
pragma solidity ^0.8.20;

import {ConcentratedLiquidity, Position, Ticks} from "./ConcentratedLiquidity.sol";
import {ILedger, SafeLedger} from "./Shared.sol";

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

interface IUnlockCallback {
    function unlockCallback(bytes calldata data) external returns (bytes memory);
}

interface IHooks {
    function beforeSwap(address sender, PoolKey calldata key, SwapParams calldata params, bytes calldata hookData)
        external
        returns (bytes4, int256, uint24);
}

/// Pools with the interface of Uniswap v4's PoolManager for swaps of an exact input.
/// Each pool has one range of liquidity; of the hooks, `beforeSwap` is called, without amounts of its own.
contract PoolManager {
    using SafeLedger for address;

    struct ModifyLiquidityParams {
        int24 tickLower;
        int24 tickUpper;
        int256 liquidityDelta;
        bytes32 salt;
    }

    error AlreadyUnlocked();
    error CurrenciesOutOfOrderOrEqual(address currency0, address currency1);
    error CurrencyNotSettled();
    error ManagerLocked();
    error NonzeroNativeValue();
    error PoolNotInitialized();
    error PriceLimitAlreadyExceeded(uint160 sqrtPriceCurrentX96, uint160 sqrtPriceLimitX96);
    error PriceLimitOutOfBounds(uint160 sqrtPriceLimitX96);
    error SwapAmountCannotBeZero();

    event Initialize(
        bytes32 indexed id,
        address indexed currency0,
        address indexed currency1,
        uint24 fee,
        int24 tickSpacing,
        address hooks,
        uint160 sqrtPriceX96,
        int24 tick
    );
    event ModifyLiquidity(
        bytes32 indexed id,
        address indexed sender,
        int24 tickLower,
        int24 tickUpper,
        int256 liquidityDelta,
        bytes32 salt
    );
    event Swap(
        bytes32 indexed id,
        address indexed sender,
        int128 amount0,
        int128 amount1,
        uint160 sqrtPriceX96,
        uint128 liquidity,
        int24 tick,
        uint24 fee
    );

    uint24 private constant DYNAMIC_FEE = 0x800000;
    uint24 private constant OVERRIDE_FEE = 0x400000;
    uint160 private constant BEFORE_SWAP = 1 << 7;

    /// State of a pool, up to `positions` laid out as published, since readers load it by `extsload`.
    struct Pool {
        uint160 ratio;
        int24 tick;
        uint24 protocolFee;
        uint24 lpFee;
        uint256 feeGrowthGlobal0X128;
        uint256 feeGrowthGlobal1X128;
        uint128 activeLiquidity;
        bytes32[3] positions;
        uint160 lower;
        uint160 upper;
        uint128 liquidity;
    }

    bytes32[6] private published;
    mapping(bytes32 => Pool) private pools; // in slot 6
    mapping(address => mapping(address => int256)) private deltas;
    uint256 private unsettled;
    bool private unlocked;
    address private synced;
    uint256 private syncedBalance;

    modifier onlyUnlocked() {
        if (!unlocked) revert ManagerLocked();
        _;
    }

    function initialize(PoolKey calldata key, uint160 sqrtPriceX96) external returns (int24 tick) {
        if (key.currency0 >= key.currency1) revert CurrenciesOutOfOrderOrEqual(key.currency0, key.currency1);
        bytes32 id = keccak256(abi.encode(key));
        require(pools[id].ratio == 0, "PoolAlreadyInitialized");
        pools[id].lpFee = key.fee == DYNAMIC_FEE ? 0 : key.fee;
        tick = Ticks.tickOf(sqrtPriceX96);
        (pools[id].ratio, pools[id].tick) = (sqrtPriceX96, tick);
        emit Initialize(
            id, key.currency0, key.currency1, key.fee, key.tickSpacing, key.hooks, sqrtPriceX96, tick
        );
    }

    function unlock(bytes calldata data) external returns (bytes memory result) {
        if (unlocked) revert AlreadyUnlocked();
        unlocked = true;
        result = IUnlockCallback(msg.sender).unlockCallback(data);
        if (unsettled != 0) revert CurrencyNotSettled();
        unlocked = false;
    }

    /// Adds to the one range of a pool. The caller owes the amounts.
    function modifyLiquidity(PoolKey calldata key, ModifyLiquidityParams calldata params, bytes calldata)
        external
        onlyUnlocked
        returns (int256 callerDelta, int256 feesAccrued)
    {
        bytes32 id = keccak256(abi.encode(key));
        Position memory position = _load(id);
        (uint160 lower, uint160 upper) = (Ticks.ratioAt(params.tickLower), Ticks.ratioAt(params.tickUpper));
        require(position.liquidity == 0 || (position.lower == lower && position.upper == upper), "ONE RANGE");
        require(params.liquidityDelta > 0 && lower < upper, "liquidity can only be added");
        uint128 liquidity = uint128(uint256(params.liquidityDelta));
        (position.lower, position.upper) = (lower, upper);
        position.liquidity += liquidity;
        (pools[id].lower, pools[id].upper, pools[id].liquidity) = (lower, upper, position.liquidity);
        _store(id, position);
        (uint256 amount0, uint256 amount1) = ConcentratedLiquidity.backing(position, liquidity);
        callerDelta = _account(key, -int256(amount0), -int256(amount1));
        emit ModifyLiquidity(
            id, msg.sender, params.tickLower, params.tickUpper, params.liquidityDelta, params.salt
        );
        return (callerDelta, 0);
    }

    /// Negative amounts of the returned delta are owed by the caller: amount0 in the upper 128 bits, amount1 below.
    function swap(PoolKey calldata key, SwapParams calldata params, bytes calldata hookData)
        external
        onlyUnlocked
        returns (int256 swapDelta)
    {
        if (params.amountSpecified == 0) revert SwapAmountCannotBeZero();
        require(params.amountSpecified < 0, "exact output is not supported");
        bytes32 id = keccak256(abi.encode(key));
        Position memory position = _load(id);
        uint24 fee = _feeOf(key, params, hookData, id);
        _checkLimit(position.ratio, params);
        (uint256 sold, uint256 bought) = ConcentratedLiquidity.swap(
            position, params.zeroForOne, uint256(-params.amountSpecified), params.sqrtPriceLimitX96, fee
        );
        _store(id, position);
        (int256 amount0, int256 amount1) =
            params.zeroForOne ? (-int256(sold), int256(bought)) : (int256(bought), -int256(sold));
        swapDelta = _account(key, amount0, amount1);
        _logSwap(id, amount0, amount1, fee);
    }

    function sync(address currency) external {
        synced = currency;
        if (currency != address(0)) syncedBalance = ILedger(currency).balanceOf(address(this));
    }

    function settle() external payable onlyUnlocked returns (uint256 paid) {
        address currency = synced;
        if (currency == address(0)) {
            paid = msg.value;
        } else {
            if (msg.value > 0) revert NonzeroNativeValue();
            paid = ILedger(currency).balanceOf(address(this)) - syncedBalance;
            synced = address(0);
        }
        _accountOne(currency, int256(paid));
    }

    function take(address currency, address to, uint256 amount) external onlyUnlocked {
        _accountOne(currency, -int256(amount));
        if (currency != address(0)) return currency.send(to, amount);
        (bool ok,) = to.call{value: amount}("");
        require(ok, "NativeTransferFailed");
    }

    /// Sets the fee of a pool that has a dynamic one; its hooks may do so.
    function updateDynamicLPFee(PoolKey calldata key, uint24 fee) external {
        require(key.fee == DYNAMIC_FEE && msg.sender == key.hooks, "UnauthorizedDynamicLPFeeUpdate");
        pools[keccak256(abi.encode(key))].lpFee = fee;
    }

    function extsload(bytes32 slot) external view returns (bytes32 value) {
        assembly {
            value := sload(slot)
        }
    }

    function _load(bytes32 id) private view returns (Position memory) {
        Pool storage pool = pools[id];
        if (pool.ratio == 0) revert PoolNotInitialized();
        return Position(pool.ratio, pool.lower, pool.upper, pool.liquidity);
    }

    function _store(bytes32 id, Position memory position) private {
        Pool storage pool = pools[id];
        (pool.ratio, pool.tick) = (position.ratio, Ticks.tickOf(position.ratio));
        pool.activeLiquidity = ConcentratedLiquidity.isActive(position) ? position.liquidity : 0;
    }

    function _checkLimit(uint160 ratio, SwapParams calldata params) private pure {
        uint160 limit = params.sqrtPriceLimitX96;
        if (params.zeroForOne ? limit >= ratio : limit <= ratio) revert PriceLimitAlreadyExceeded(ratio, limit);
        if (limit <= Ticks.MIN_RATIO || limit >= Ticks.MAX_RATIO) revert PriceLimitOutOfBounds(limit);
    }

    function _feeOf(PoolKey calldata key, SwapParams calldata params, bytes calldata hookData, bytes32 id)
        private
        returns (uint24 fee)
    {
        fee = pools[id].lpFee;
        if (uint160(key.hooks) & BEFORE_SWAP == 0 || msg.sender == key.hooks) return fee;
        (bytes4 selector, int256 delta, uint24 changed) =
            IHooks(key.hooks).beforeSwap(msg.sender, key, params, hookData);
        require(selector == IHooks.beforeSwap.selector, "InvalidHookResponse");
        require(delta == 0, "amounts of hooks are not supported");
        if (key.fee == DYNAMIC_FEE && changed & OVERRIDE_FEE != 0) fee = changed & ~OVERRIDE_FEE;
    }

    function _logSwap(bytes32 id, int256 amount0, int256 amount1, uint24 fee) private {
        Pool storage pool = pools[id];
        emit Swap(
            id,
            msg.sender,
            int128(amount0),
            int128(amount1),
            pool.ratio,
            pool.activeLiquidity,
            pool.tick,
            fee
        );
    }

    function _account(PoolKey calldata key, int256 amount0, int256 amount1) private returns (int256) {
        _accountOne(key.currency0, amount0);
        _accountOne(key.currency1, amount1);
        return (amount0 << 128) | int256(uint256(uint128(int128(amount1))));
    }

    function _accountOne(address currency, int256 amount) private {
        int256 before = deltas[msg.sender][currency];
        int256 after_ = before + amount;
        if (before == 0 && after_ != 0) unsettled += 1;
        if (before != 0 && after_ == 0) unsettled -= 1;
        deltas[msg.sender][currency] = after_;
    }
}
