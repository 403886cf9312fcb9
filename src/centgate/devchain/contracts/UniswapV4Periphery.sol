// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

import {Ticks} from "./ConcentratedLiquidity.sol";
import {SafeLedger} from "./Shared.sol";
import {IUnlockCallback, PoolKey, PoolManager, SwapParams} from "./UniswapV4.sol";

/// Views of pools with the interface of Uniswap v4's StateView.
contract StateView {
    PoolManager public poolManager;

    constructor(PoolManager manager) {
        poolManager = manager;
    }

    function getSlot0(bytes32 id)
        external
        view
        returns (uint160 sqrtPriceX96, int24 tick, uint24 protocolFee, uint24 lpFee)
    {
        uint256 word = uint256(poolManager.extsload(_slot(id)));
        return (uint160(word), int24(uint24(word >> 160)), uint24(word >> 184), uint24(word >> 208));
    }

    function getLiquidity(bytes32 id) external view returns (uint128) {
        return uint128(uint256(poolManager.extsload(bytes32(uint256(_slot(id)) + 3))));
    }

    /// First slot of a pool's state: the manager has its pools in a mapping in slot 6.
    function _slot(bytes32 id) private pure returns (bytes32) {
        return keccak256(abi.encode(id, uint256(6)));
    }
}

/// Quotes with the interface of Uniswap v4's V4Quoter: a swap that is undone by its own callback.
contract V4Quoter is IUnlockCallback {
    struct QuoteExactSingleParams {
        PoolKey poolKey;
        bool zeroForOne;
        uint128 exactAmount;
        bytes hookData;
    }

    error QuoteSwap(uint256 amount);

    PoolManager public poolManager;

    constructor(PoolManager manager) {
        poolManager = manager;
    }

    function quoteExactInputSingle(QuoteExactSingleParams calldata params)
        external
        returns (uint256 amountOut, uint256 gasEstimate)
    {
        uint256 gas = gasleft();
        try poolManager.unlock(abi.encode(params)) {}
        catch (bytes memory answer) {
            if (bytes4(answer) != QuoteSwap.selector) {
                assembly {
                    revert(add(answer, 32), mload(answer))
                }
            }
            assembly {
                amountOut := mload(add(answer, 36))
            }
        }
        gasEstimate = gas - gasleft();
    }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        QuoteExactSingleParams memory params = abi.decode(data, (QuoteExactSingleParams));
        uint160 limit = params.zeroForOne ? Ticks.MIN_RATIO + 1 : Ticks.MAX_RATIO - 1;
        int256 delta = poolManager.swap(
            params.poolKey,
            SwapParams(params.zeroForOne, -int256(uint256(params.exactAmount)), limit),
            params.hookData
        );
        revert QuoteSwap(uint128(params.zeroForOne ? int128(delta) : int128(delta >> 128)));
    }
}

/// Adds liquidity and swaps for its caller, who pays by allowance or with native coin. A stand-in of its own.
contract V4Router is IUnlockCallback {
    using SafeLedger for address;

    PoolManager public poolManager;

    constructor(PoolManager manager) {
        poolManager = manager;
    }

    receive() external payable {}

    function addLiquidity(PoolKey calldata key, int24 tickLower, int24 tickUpper, uint128 liquidity)
        external
        payable
    {
        PoolManager.ModifyLiquidityParams memory params =
            PoolManager.ModifyLiquidityParams(tickLower, tickUpper, int256(uint256(liquidity)), 0);
        _run(key, abi.encodeCall(PoolManager.modifyLiquidity, (key, params, "")));
    }

    function swap(PoolKey calldata key, bool zeroForOne, uint128 amount) external payable {
        uint160 limit = zeroForOne ? Ticks.MIN_RATIO + 1 : Ticks.MAX_RATIO - 1;
        SwapParams memory params = SwapParams(zeroForOne, -int256(uint256(amount)), limit);
        _run(key, abi.encodeCall(PoolManager.swap, (key, params, "")));
    }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        require(msg.sender == address(poolManager), "not the manager");
        (address payer, PoolKey memory key, bytes memory call) = abi.decode(data, (address, PoolKey, bytes));
        (bool ok, bytes memory answer) = address(poolManager).call(call);
        if (!ok) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
        int256 delta = abi.decode(answer, (int256));
        _balance(key.currency0, delta >> 128, payer);
        _balance(key.currency1, int128(delta), payer);
        return "";
    }

    function _run(PoolKey calldata key, bytes memory call) private {
        poolManager.unlock(abi.encode(msg.sender, key, call));
        (bool ok,) = msg.sender.call{value: address(this).balance}("");
        require(ok, "native transfer failed");
    }

    /// Pays what is owed, or takes what is due.
    function _balance(address currency, int256 delta, address payer) private {
        if (delta > 0) return poolManager.take(currency, payer, uint256(delta));
        uint256 owed = uint256(-delta);
        poolManager.sync(currency);
        if (currency != address(0)) currency.move(payer, address(poolManager), owed);
        poolManager.settle{value: currency == address(0) ? owed : 0}();
    }
}
