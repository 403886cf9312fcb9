// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

/// ERC-20 token that takes a share of each sale, or lets nobody but its owner sell.
contract RestrictedToken {
    string public name;
    string public symbol;
    uint8 public constant decimals = 18;
    address public owner;
    uint256 public totalSupply;
    uint256 public immutable saleTax;
    bool public immutable blocksSales;

    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => bool) public isPool;

    event Approval(address indexed owner, address indexed spender, uint256 amount);
    event Transfer(address indexed from, address indexed to, uint256 amount);

    /// The tax is in percent of a sale.
    constructor(string memory name_, string memory symbol_, uint256 supply, uint256 saleTax_, bool blocksSales_) {
        name = name_;
        symbol = symbol_;
        owner = msg.sender;
        saleTax = saleTax_;
        blocksSales = blocksSales_;
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function addPool(address pool) external {
        require(msg.sender == owner, "not the owner");
        isPool[pool] = true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _transfer(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        allowance[from][msg.sender] -= amount;
        _transfer(from, to, amount);
        return true;
    }

    function _transfer(address from, address to, uint256 amount) private {
        uint256 tax = 0;
        if (isPool[to] && from != owner) {
            require(!blocksSales, "TRANSFER_FAILED");
            tax = (amount * saleTax) / 100;
        }
        balanceOf[from] -= amount;
        balanceOf[to] += amount - tax;
        balanceOf[owner] += tax;
        emit Transfer(from, to, amount - tax);
        if (tax > 0) {
            emit Transfer(from, owner, tax);
        }
    }
}
