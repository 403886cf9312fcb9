// SPDX-License-Identifier: Apache-2.0
// solc: viaIR
pragma solidity ^0.8.20;

// What a simulated trade needs, how it is recorded, and calls into strangers' code with limits.

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
uint256 constant AS_WALLET = 32; // approve without limit, as wallets do
uint256 constant GAS_SHIFT = 32; // flags above: the gas for a transfer of the token; 0 is STEP_GAS

uint256 constant STEP_GAS = 4_000_000;
uint256 constant READ_GAS = 500_000;
uint256 constant REASON_BYTES = 192;
uint256 constant SMALL_PART = 10_000; // a small trade is this part of the pool, a large one the next
uint256 constant LARGE_PART = 100;
uint256 constant FEW_UNITS = 4; // base units of a small trade at least, if the pool has more
uint256 constant MANY_UNITS = 1000; // base units of which a part can be sold without much rounding
uint256 constant BISECTIONS = 6;
uint256 constant NO_DECIMALS = 256;

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

/// Calls with limits, and records.
library Calls {
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
        return runToken(token, data, STEP_GAS);
    }

    function runToken(address token, bytes memory data, uint256 gasLimit)
        internal
        returns (bool ok, bytes memory answer)
    {
        (ok, answer) = run(token, 0, data, gasLimit);
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

    /// Decode what the decisions of the caller need: last stage, and tokens received.
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
