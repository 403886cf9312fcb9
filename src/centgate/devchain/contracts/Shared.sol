// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

/// The part of ERC-20 that exchanges use.
interface ILedger {
    function balanceOf(address holder) external view returns (uint256);
    function decimals() external view returns (uint8);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Transfers that fail if the token says so, and accept tokens that say nothing.
library SafeLedger {
    function send(address token, address to, uint256 amount) internal {
        _require(token, abi.encodeCall(ILedger.transfer, (to, amount)));
    }

    function pull(address token, address from, uint256 amount) internal {
        move(token, from, address(this), amount);
    }

    function move(address token, address from, address to, uint256 amount) internal {
        _require(token, abi.encodeCall(ILedger.transferFrom, (from, to, amount)));
    }

    function _require(address token, bytes memory data) private {
        (bool ok, bytes memory answer) = token.call(data);
        require(ok && (answer.length == 0 || abi.decode(answer, (bool))), "TRANSFER_FAILED");
    }
}

library SquareRoot {
    /// The largest number whose square is at most `value`.
    function floor(uint256 value) internal pure returns (uint256 root) {
        if (value == 0) return 0;
        // a power of two above the root, then Newton's method downward
        root = 2;
        uint256 rest = value;
        for (uint256 bits = 128; bits > 1; bits /= 2) {
            if (rest >> bits > 0) {
                rest >>= bits;
                root <<= bits / 2;
            }
        }
        uint256 next = (value / root + root) / 2;
        while (next < root) {
            root = next;
            next = (value / next + next) / 2;
        }
    }
}

library FullProduct {
    /// a * b / divisor, rounded down, with the product in 512 bits. Reverts if the result has more than 256 bits.
    function divide(uint256 a, uint256 b, uint256 divisor) internal pure returns (uint256) {
        unchecked {
            uint256 low = a * b;
            uint256 modulo = mulmod(a, b, type(uint256).max);
            uint256 high = modulo - low - (modulo < low ? 1 : 0);
            if (high == 0) return low / divisor;
            require(high < divisor, "result exceeds 256 bits");
            uint256 remainder = mulmod(a, b, divisor);
            // make the product a multiple of the divisor
            if (remainder > low) high -= 1;
            low -= remainder;
            // divide both by the largest power of two in the divisor, which leaves an odd divisor
            uint256 power = divisor & (~divisor + 1);
            divisor /= power;
            low = low / power + high * ((~power + 1) / power + 1);
            return low * _inverse(divisor);
        }
    }

    function divideUp(uint256 a, uint256 b, uint256 divisor) internal pure returns (uint256 result) {
        result = divide(a, b, divisor);
        if (mulmod(a, b, divisor) > 0) result += 1;
    }

    /// Inverse of an odd number modulo 2**256; each of Newton's steps doubles the correct bits, from 3.
    function _inverse(uint256 odd) private pure returns (uint256 inverse) {
        unchecked {
            inverse = odd;
            for (uint256 bits = 3; bits < 256; bits *= 2) inverse *= 2 - odd * inverse;
        }
    }
}
