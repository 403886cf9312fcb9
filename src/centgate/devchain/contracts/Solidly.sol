// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

import {ILedger, SafeLedger, SquareRoot} from "./Shared.sol";

/// Volatile and stable pools with the interface of Solidly's descendants (Velodrome v2, Aerodrome v2).
contract SolidlyFactory {
    uint256 public constant stableFee = 5;
    uint256 public constant volatileFee = 30;

    mapping(address => mapping(address => mapping(bool => address))) private pools;
    mapping(address => bool) public isPool;
    mapping(address => uint256) public customFee;
    address[] public allPools;

    event PoolCreated(
        address indexed token0, address indexed token1, bool indexed stable, address pool, uint256 poolCount
    );
    event SetCustomFee(address indexed pool, uint256 fee);

    function getPool(address tokenA, address tokenB, bool stable) external view returns (address) {
        return pools[tokenA][tokenB][stable];
    }

    function allPoolsLength() external view returns (uint256) {
        return allPools.length;
    }

    /// Fee of a pool in hundredths of a percent.
    function getFee(address pool, bool stable) external view returns (uint256) {
        if (customFee[pool] != 0) return customFee[pool];
        return stable ? stableFee : volatileFee;
    }

    /// Anyone may set the fee of a pool here.
    function setCustomFee(address pool, uint256 fee) external {
        require(fee <= 300 && isPool[pool], "bad fee or pool");
        customFee[pool] = fee;
        emit SetCustomFee(pool, fee);
    }

    function createPool(address tokenA, address tokenB, bool stable) external returns (address pool) {
        (address token0, address token1) = tokenA < tokenB ? (tokenA, tokenB) : (tokenB, tokenA);
        require(token0 != address(0) && token0 != token1, "bad tokens");
        require(pools[token0][token1][stable] == address(0), "pool exists");
        bytes32 salt = keccak256(abi.encodePacked(token0, token1, stable));
        pool = address(new SolidlyPool{salt: salt}(token0, token1, stable));
        pools[token0][token1][stable] = pool;
        pools[token1][token0][stable] = pool;
        isPool[pool] = true;
        allPools.push(pool);
        emit PoolCreated(token0, token1, stable, pool, allPools.length);
    }
}

/// Keeps the fees of a pool, which are not part of its reserves.
contract SolidlyPoolFees {}

contract SolidlyPool {
    using SafeLedger for address;

    uint256 public constant MINIMUM_LIQUIDITY = 1000;
    uint8 public constant decimals = 18;

    SolidlyFactory public immutable factory = SolidlyFactory(msg.sender);
    address public immutable poolFees = address(new SolidlyPoolFees());
    address public immutable token0;
    address public immutable token1;
    bool public immutable stable;
    uint256 private immutable unit0;
    uint256 private immutable unit1;

    uint256 public reserve0;
    uint256 public reserve1;
    uint256 public blockTimestampLast;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    bool private locked;

    event Approval(address indexed owner, address indexed spender, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 amount);
    event Mint(address indexed sender, uint256 amount0, uint256 amount1);
    event Fees(address indexed sender, uint256 amount0, uint256 amount1);
    event Swap(
        address indexed sender,
        address indexed to,
        uint256 amount0In,
        uint256 amount1In,
        uint256 amount0Out,
        uint256 amount1Out
    );
    event Sync(uint256 reserve0, uint256 reserve1);

    modifier lock() {
        require(!locked, "reentrant");
        locked = true;
        _;
        locked = false;
    }

    constructor(address token0_, address token1_, bool stable_) {
        token0 = token0_;
        token1 = token1_;
        stable = stable_;
        unit0 = 10 ** ILedger(token0_).decimals();
        unit1 = 10 ** ILedger(token1_).decimals();
    }

    function symbol() external view returns (string memory) {
        return stable ? "sAMM" : "vAMM";
    }

    function tokens() external view returns (address, address) {
        return (token0, token1);
    }

    function metadata() external view returns (uint256, uint256, uint256, uint256, bool, address, address) {
        return (unit0, unit1, reserve0, reserve1, stable, token0, token1);
    }

    function getReserves() external view returns (uint256, uint256, uint256) {
        return (reserve0, reserve1, blockTimestampLast);
    }

    function getAmountOut(uint256 amountIn, address tokenIn) external view returns (uint256) {
        amountIn -= amountIn * factory.getFee(address(this), stable) / 10_000;
        (uint256 reserveIn, uint256 reserveOut) = tokenIn == token0 ? (reserve0, reserve1) : (reserve1, reserve0);
        if (!stable) return amountIn * reserveOut / (reserveIn + amountIn);
        (uint256 unitIn, uint256 unitOut) = tokenIn == token0 ? (unit0, unit1) : (unit1, unit0);
        uint256 k = _k(reserve0, reserve1);
        uint256 y = _solve((amountIn + reserveIn) * 1e18 / unitIn, k, reserveOut * 1e18 / unitOut);
        return (reserveOut * 1e18 / unitOut - y) * unitOut / 1e18;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) allowance[from][msg.sender] = allowed - amount;
        _move(from, to, amount);
        return true;
    }

    function mint(address to) external lock returns (uint256 liquidity) {
        (uint256 balance0, uint256 balance1) = _balances();
        uint256 amount0 = balance0 - reserve0;
        uint256 amount1 = balance1 - reserve1;
        if (totalSupply == 0) {
            liquidity = SquareRoot.floor(amount0 * amount1) - MINIMUM_LIQUIDITY;
            _mint(address(1), MINIMUM_LIQUIDITY);
        } else {
            uint256 by0 = amount0 * totalSupply / reserve0;
            uint256 by1 = amount1 * totalSupply / reserve1;
            liquidity = by0 < by1 ? by0 : by1;
        }
        require(liquidity > 0, "insufficient liquidity minted");
        _mint(to, liquidity);
        _update(balance0, balance1);
        emit Mint(msg.sender, amount0, amount1);
    }

    function swap(uint256 amount0Out, uint256 amount1Out, address to, bytes calldata) external lock {
        require(amount0Out > 0 || amount1Out > 0, "insufficient output");
        require(amount0Out < reserve0 && amount1Out < reserve1, "insufficient liquidity");
        require(to != token0 && to != token1, "bad recipient");
        if (amount0Out > 0) token0.send(to, amount0Out);
        if (amount1Out > 0) token1.send(to, amount1Out);
        (uint256 balance0, uint256 balance1) = _balances();
        uint256 amount0In = _excess(balance0, reserve0 - amount0Out);
        uint256 amount1In = _excess(balance1, reserve1 - amount1Out);
        require(amount0In > 0 || amount1In > 0, "insufficient input");
        _takeFees(amount0In, amount1In);
        (balance0, balance1) = _balances();
        require(_k(balance0, balance1) >= _k(reserve0, reserve1), "K");
        _update(balance0, balance1);
        emit Swap(msg.sender, to, amount0In, amount1In, amount0Out, amount1Out);
    }

    function skim(address to) external lock {
        (uint256 balance0, uint256 balance1) = _balances();
        token0.send(to, balance0 - reserve0);
        token1.send(to, balance1 - reserve1);
    }

    function sync() external lock {
        (uint256 balance0, uint256 balance1) = _balances();
        _update(balance0, balance1);
    }

    function _takeFees(uint256 amount0In, uint256 amount1In) private {
        uint256 fee = factory.getFee(address(this), stable);
        (uint256 fee0, uint256 fee1) = (amount0In * fee / 10_000, amount1In * fee / 10_000);
        if (fee0 > 0) token0.send(poolFees, fee0);
        if (fee1 > 0) token1.send(poolFees, fee1);
        emit Fees(msg.sender, fee0, fee1);
    }

    /// The value that no swap may lower: xy, or x³y + xy³ with 18 decimals each.
    function _k(uint256 amount0, uint256 amount1) private view returns (uint256) {
        if (!stable) return amount0 * amount1;
        return _stableK(amount0 * 1e18 / unit0, amount1 * 1e18 / unit1);
    }

    function _stableK(uint256 x, uint256 y) private pure returns (uint256) {
        return (x * y / 1e18) * (x * x / 1e18 + y * y / 1e18) / 1e18;
    }

    /// The least y with k at least as given, from a y that is large enough: Newton's method from above.
    function _solve(uint256 x, uint256 k, uint256 y) private pure returns (uint256) {
        for (uint256 round = 0; round < 255; round++) {
            uint256 excess = _stableK(x, y) - k;
            // dk/dy = x³ + 3xy²
            uint256 slope = x * x / 1e18 * x / 1e18 + 3 * x * (y * y / 1e18) / 1e18;
            uint256 step = excess * 1e18 / slope;
            while (step > 0 && _stableK(x, y - step) < k) step -= 1;
            if (step == 0) break;
            y -= step;
        }
        return y;
    }

    function _excess(uint256 balance, uint256 expected) private pure returns (uint256) {
        return balance > expected ? balance - expected : 0;
    }

    function _balances() private view returns (uint256, uint256) {
        return (ILedger(token0).balanceOf(address(this)), ILedger(token1).balanceOf(address(this)));
    }

    function _update(uint256 balance0, uint256 balance1) private {
        reserve0 = balance0;
        reserve1 = balance1;
        blockTimestampLast = block.timestamp;
        emit Sync(balance0, balance1);
    }

    function _mint(address to, uint256 amount) private {
        totalSupply += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function _move(address from, address to, uint256 amount) private {
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}
