// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IWrapped {
    function deposit() external payable;
    function transfer(address, uint256) external returns (bool);
}

interface IPool {
    function token0() external view returns (address);
    function getReserves() external view returns (uint112, uint112, uint32);
    function swap(uint256, uint256, address, bytes calldata) external;
}

/// Buys in a v2 pair for the sender, as the router of an exchange does.
contract TestRouter {
    function buy(address wrapped, address pair) external payable {
        IWrapped(wrapped).deposit{value: msg.value}();
        IWrapped(wrapped).transfer(pair, msg.value);
        (uint256 first, uint256 second,) = IPool(pair).getReserves();
        bool isFirst = IPool(pair).token0() == wrapped;
        (uint256 reserveIn, uint256 reserveOut) = isFirst ? (first, second) : (second, first);
        uint256 net = msg.value * 997;
        uint256 out = net * reserveOut / (reserveIn * 1000 + net);
        IPool(pair).swap(isFirst ? 0 : out, isFirst ? out : 0, msg.sender, "");
    }
}
