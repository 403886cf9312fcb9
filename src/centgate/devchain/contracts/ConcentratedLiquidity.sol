// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

import {FullProduct} from "./Shared.sol";

/// Square roots of prices at ticks: sqrt(1.0001 ** tick) with 96 binary places.
library Ticks {
    int24 internal constant MIN = -887272;
    int24 internal constant MAX = 887272;
    uint160 internal constant MIN_RATIO = 4295128739;
    uint160 internal constant MAX_RATIO = 1461446703485210103287273052203988822378723970342;

    function ratioAt(int24 tick) internal pure returns (uint160) {
        unchecked {
            uint256 steps = uint256(int256(tick < 0 ? -tick : tick));
            require(steps <= uint256(int256(MAX)), "T");
            // each factor is 1.0001 ** (-0.5 * 2 ** bit) with 128 binary places
            uint256 ratio = 1 << 128;
            if (steps & 0x1 != 0) ratio = (ratio * 0xfffcb933bd6fad37aa2d162d1a594001) >> 128;
            if (steps & 0x2 != 0) ratio = (ratio * 0xfff97272373d413259a46990580e213a) >> 128;
            if (steps & 0x4 != 0) ratio = (ratio * 0xfff2e50f5f656932ef12357cf3c7fdcc) >> 128;
            if (steps & 0x8 != 0) ratio = (ratio * 0xffe5caca7e10e4e61c3624eaa0941cd0) >> 128;
            if (steps & 0x10 != 0) ratio = (ratio * 0xffcb9843d60f6159c9db58835c926644) >> 128;
            if (steps & 0x20 != 0) ratio = (ratio * 0xff973b41fa98c081472e6896dfb254c0) >> 128;
            if (steps & 0x40 != 0) ratio = (ratio * 0xff2ea16466c96a3843ec78b326b52861) >> 128;
            if (steps & 0x80 != 0) ratio = (ratio * 0xfe5dee046a99a2a811c461f1969c3053) >> 128;
            if (steps & 0x100 != 0) ratio = (ratio * 0xfcbe86c7900a88aedcffc83b479aa3a4) >> 128;
            if (steps & 0x200 != 0) ratio = (ratio * 0xf987a7253ac413176f2b074cf7815e54) >> 128;
            if (steps & 0x400 != 0) ratio = (ratio * 0xf3392b0822b70005940c7a398e4b70f3) >> 128;
            if (steps & 0x800 != 0) ratio = (ratio * 0xe7159475a2c29b7443b29c7fa6e889d9) >> 128;
            if (steps & 0x1000 != 0) ratio = (ratio * 0xd097f3bdfd2022b8845ad8f792aa5825) >> 128;
            if (steps & 0x2000 != 0) ratio = (ratio * 0xa9f746462d870fdf8a65dc1f90e061e5) >> 128;
            if (steps & 0x4000 != 0) ratio = (ratio * 0x70d869a156d2a1b890bb3df62baf32f7) >> 128;
            if (steps & 0x8000 != 0) ratio = (ratio * 0x31be135f97d08fd981231505542fcfa6) >> 128;
            if (steps & 0x10000 != 0) ratio = (ratio * 0x9aa508b5b7a84e1c677de54f3e99bc9) >> 128;
            if (steps & 0x20000 != 0) ratio = (ratio * 0x5d6af8dedb81196699c329225ee604) >> 128;
            if (steps & 0x40000 != 0) ratio = (ratio * 0x2216e584f5fa1ea926041bedfe98) >> 128;
            if (steps & 0x80000 != 0) ratio = (ratio * 0x48a170391f7dc42444e8fa2) >> 128;
            if (tick > 0) ratio = type(uint256).max / ratio;
            return uint160((ratio >> 32) + (ratio % (1 << 32) == 0 ? 0 : 1));
        }
    }

    /// The greatest tick whose ratio is at most as given.
    function tickOf(uint160 ratio) internal pure returns (int24 tick) {
        require(ratio >= MIN_RATIO && ratio < MAX_RATIO, "R");
        // the logarithm to base sqrt(1.0001), with an error of less than two ticks
        tick = int24((_log2(ratio) * 255738958999603826347141) >> 128);
        if (tick < MIN) tick = MIN;
        while (ratioAt(tick) > ratio) tick -= 1;
        while (tick < MAX && ratioAt(tick + 1) <= ratio) tick += 1;
    }

    /// Logarithm to base 2 of a ratio with 96 binary places; the result has 64, of which 14 are right.
    function _log2(uint160 ratio) private pure returns (int256 result) {
        unchecked {
            uint256 rest = ratio;
            uint256 exponent = 0;
            for (uint256 bits = 128; bits > 0; bits /= 2) {
                if (rest >> bits > 0) {
                    rest >>= bits;
                    exponent += bits;
                }
            }
            result = (int256(exponent) - 96) << 64;
            rest = exponent > 127 ? uint256(ratio) >> (exponent - 127) : uint256(ratio) << (127 - exponent);
            for (uint256 place = 63; place > 49; place--) {
                rest = rest * rest >> 127;
                uint256 bit = rest >> 128;
                result |= int256(bit << place);
                rest >>= bit;
            }
        }
    }
}

/// One position in a range of prices, and what swaps exchange with it. Ratios are roots of prices.
struct Position {
    uint160 ratio;
    uint160 lower;
    uint160 upper;
    uint128 liquidity;
}

/// Maths of swaps of an exact input against one position, rounded in the pool's favour at each step.
library ConcentratedLiquidity {
    uint256 private constant ONE = 1 << 96;
    uint256 private constant WHOLE_FEE = 1e6;

    function isActive(Position memory position) internal pure returns (bool) {
        return position.lower <= position.ratio && position.ratio < position.upper;
    }

    /// Amounts of both tokens that back an amount of liquidity at the present price.
    function backing(Position memory position, uint128 liquidity) internal pure returns (uint256, uint256) {
        (uint160 ratio, uint160 lower, uint160 upper) = (position.ratio, position.lower, position.upper);
        uint160 within = ratio < lower ? lower : ratio > upper ? upper : ratio;
        return (amount0(within, upper, liquidity, true), amount1(lower, within, liquidity, true));
    }

    /// Swap at most `amount` until a limit. Changes the ratio; returns what came in, with the fee, and went out.
    function swap(Position memory position, bool zeroForOne, uint256 amount, uint160 limit, uint24 fee)
        internal
        pure
        returns (uint256 amountIn, uint256 amountOut)
    {
        (uint160 near, uint160 far) =
            zeroForOne ? (position.upper, position.lower) : (position.lower, position.upper);
        // no liquidity before the range: the price moves there without amounts
        if (_isBeyond(near, position.ratio, zeroForOne)) {
            position.ratio = _isBeyond(near, limit, zeroForOne) ? limit : near;
        }
        uint160 target = _isBeyond(far, limit, zeroForOne) ? limit : far;
        if (_isBeyond(position.ratio, target, zeroForOne)) return (0, 0);
        if (position.ratio != target && position.liquidity > 0) {
            (amountIn, amountOut) = _step(position, zeroForOne, amount, target, fee);
        }
        // none after it either
        if (amountIn < amount) position.ratio = limit;
    }

    function amount0(uint160 a, uint160 b, uint128 liquidity, bool up) internal pure returns (uint256) {
        if (a > b) (a, b) = (b, a);
        uint256 product = uint256(liquidity) << 96;
        if (!up) return FullProduct.divide(product, b - a, b) / a;
        uint256 rounded = FullProduct.divideUp(product, b - a, b);
        return rounded / a + (rounded % a == 0 ? 0 : 1);
    }

    function amount1(uint160 a, uint160 b, uint128 liquidity, bool up) internal pure returns (uint256) {
        if (a > b) (a, b) = (b, a);
        return up ? FullProduct.divideUp(liquidity, b - a, ONE) : FullProduct.divide(liquidity, b - a, ONE);
    }

    /// True if the first ratio is reached later than the second.
    function _isBeyond(uint160 ratio, uint160 other, bool zeroForOne) private pure returns (bool) {
        return zeroForOne ? ratio < other : ratio > other;
    }

    function _step(Position memory position, bool zeroForOne, uint256 amount, uint160 target, uint24 fee)
        private
        pure
        returns (uint256 amountIn, uint256 amountOut)
    {
        (uint160 ratio, uint128 liquidity) = (position.ratio, position.liquidity);
        uint256 net = FullProduct.divide(amount, WHOLE_FEE - fee, WHOLE_FEE);
        uint256 needed = zeroForOne
            ? amount0(target, ratio, liquidity, true)
            : amount1(ratio, target, liquidity, true);
        if (net >= needed) {
            position.ratio = target;
            amountIn = needed + FullProduct.divideUp(needed, fee, WHOLE_FEE - fee);
        } else {
            position.ratio = _moved(ratio, liquidity, net, zeroForOne);
            amountIn = amount;
        }
        amountOut = zeroForOne
            ? amount1(position.ratio, ratio, liquidity, false)
            : amount0(ratio, position.ratio, liquidity, false);
    }

    /// The ratio after an amount came in, without fee.
    function _moved(uint160 ratio, uint128 liquidity, uint256 amount, bool zeroForOne)
        private
        pure
        returns (uint160)
    {
        uint256 product = uint256(liquidity) << 96;
        if (!zeroForOne) return uint160(ratio + FullProduct.divide(amount, ONE, liquidity));
        if (amount <= (type(uint256).max - product) / ratio) {
            return uint160(FullProduct.divideUp(product, ratio, product + amount * ratio));
        }
        uint256 divisor = product / ratio + amount;
        return uint160(product / divisor + (product % divisor == 0 ? 0 : 1));
    }
}
