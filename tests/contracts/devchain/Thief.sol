// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

interface IPool {
    function swap(address recipient, bool zeroForOne, int256 amount, uint160 limit, bytes calldata data) external;
}

interface IManager {
    function unlock(bytes calldata data) external returns (bytes memory);
    function take(address currency, address to, uint256 amount) external;
}

/// Takes from pools without paying, which must fail.
contract Thief {
    function swap(IPool pool) external {
        pool.swap(address(this), true, 1e15, 4295128740, "");
    }

    function uniswapV3SwapCallback(int256, int256, bytes calldata) external {}

    function take(IManager manager, address currency) external {
        manager.unlock(abi.encode(currency));
    }

    function unlockCallback(bytes calldata data) external returns (bytes memory) {
        IManager(msg.sender).take(abi.decode(data, (address)), address(this), 1);
        return "";
    }
}

/// Hook of Uniswap v4 that decides the fee of each swap, and refuses sales of the first currency if told to.
contract FeeHook {
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

    uint24 private fee;
    bool private refuses;

    function set(uint24 fee_, bool refuses_) external {
        (fee, refuses) = (fee_, refuses_);
    }

    function beforeSwap(address, PoolKey calldata, SwapParams calldata params, bytes calldata)
        external
        view
        returns (bytes4, int256, uint24)
    {
        require(!refuses || !params.zeroForOne, "sales are refused");
        return (this.beforeSwap.selector, 0, fee | 0x400000);
    }
}
