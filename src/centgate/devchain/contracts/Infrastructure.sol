// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

/// Many calls in one, with the part of Multicall3's interface that readers use.
contract Multicall3 {
    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory data) = calls[i].target.call(calls[i].callData);
            require(success || calls[i].allowFailure, "Multicall3: call failed");
            results[i] = Result(success, data);
        }
    }

    function getEthBalance(address account) external view returns (uint256) {
        return account.balance;
    }

    function getBlockNumber() external view returns (uint256) {
        return block.number;
    }

    function getCurrentBlockTimestamp() external view returns (uint256) {
        return block.timestamp;
    }
}

/// Price or sequencer feed with the interface of Chainlink's aggregators. Anyone may set its answer.
contract PriceFeed {
    uint8 public decimals;
    string public description;
    uint256 public constant version = 4;

    uint80 private round = 1;
    int256 private answer;
    uint256 private startedAt;
    uint256 private updatedAt;

    event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt);

    /// A time of 0, here and in `set`, is always the present one.
    constructor(string memory description_, uint8 decimals_, int256 answer_, uint256 startedAt_) {
        description = description_;
        decimals = decimals_;
        answer = answer_;
        startedAt = startedAt_;
    }

    function set(int256 answer_, uint256 startedAt_, uint256 updatedAt_) external {
        round += 1;
        (answer, startedAt, updatedAt) = (answer_, startedAt_, updatedAt_);
        emit AnswerUpdated(answer, round, _time(updatedAt));
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (round, answer, _time(startedAt), _time(updatedAt), round);
    }

    function latestAnswer() external view returns (int256) {
        return answer;
    }

    function _time(uint256 time) private view returns (uint256) {
        return time == 0 ? block.timestamp : time;
    }
}

/// List of sanctioned addresses with the interface of Chainalysis' oracle. Anyone may extend it.
contract SanctionsList {
    mapping(address => bool) public isSanctioned;

    event SanctionedAddressesAdded(address[] addrs);
    event SanctionedAddressesRemoved(address[] addrs);

    function name() external pure returns (string memory) {
        return "Chainalysis sanctions oracle";
    }

    function addToSanctionsList(address[] calldata added) external {
        for (uint256 i = 0; i < added.length; i++) isSanctioned[added[i]] = true;
        emit SanctionedAddressesAdded(added);
    }

    function removeFromSanctionsList(address[] calldata removed) external {
        for (uint256 i = 0; i < removed.length; i++) isSanctioned[removed[i]] = false;
        emit SanctionedAddressesRemoved(removed);
    }
}

/// Names of addresses with the reverse part of the interface of ENS' UniversalResolver. Anyone may set one.
contract UniversalResolver {
    error ReverseAddressMismatch(string primary, bytes primaryAddress);

    uint256 private constant COIN_TYPE_ETHER = 60;

    mapping(address => string) private names;
    mapping(bytes32 => address) private owners;

    /// The name that an address claims, and the address that the name resolves to: they may differ.
    function setName(address account, string calldata name, address owner) external {
        names[account] = name;
        owners[keccak256(bytes(name))] = owner;
    }

    /// The name of an address; empty without one. Reverts if the name does not resolve to the address.
    function reverse(bytes calldata account, uint256 coinType)
        public
        view
        returns (string memory name, address resolver, address reverseResolver)
    {
        require(account.length == 20 && coinType == COIN_TYPE_ETHER, "unsupported address");
        name = names[address(bytes20(account))];
        if (bytes(name).length == 0) return ("", address(0), address(0));
        address owner = owners[keccak256(bytes(name))];
        if (owner != address(bytes20(account))) revert ReverseAddressMismatch(name, abi.encodePacked(owner));
        return (name, address(this), address(this));
    }

    function reverseWithGateways(bytes calldata account, uint256 coinType, string[] calldata)
        external
        view
        returns (string memory, address, address)
    {
        return reverse(account, coinType);
    }
}

/// Resolvers by node (the hash of a name), with a part of the interface of Basenames' Registry. Anyone may set one.
contract BasenameRegistry {
    mapping(bytes32 => address) public resolver;

    function setResolver(bytes32 node, address account) external {
        resolver[node] = account;
    }
}

/// Names and addresses by node, with a part of the interface of Basenames' L2Resolver. Anyone may set them.
contract BasenameResolver {
    uint256 private constant COIN_TYPE_ETHER = 60;
    mapping(bytes32 => string) public name;
    mapping(bytes32 => mapping(uint256 => bytes)) private addresses;

    function setName(bytes32 node, string calldata text) external {
        name[node] = text;
    }

    function setAddr(bytes32 node, address account) external {
        addresses[node][COIN_TYPE_ETHER] = abi.encodePacked(account);
    }

    function setAddr(bytes32 node, uint256 coinType, bytes calldata account) external {
        addresses[node][coinType] = account;
    }

    function addr(bytes32 node) external view returns (address) {
        return address(bytes20(addresses[node][COIN_TYPE_ETHER]));
    }

    function addr(bytes32 node, uint256 coinType) external view returns (bytes memory) {
        return addresses[node][coinType];
    }
}

/// Names by account, with a part of the interface of ENS' L2ReverseRegistrar.
contract L2ReverseRegistrar {
    mapping(address => string) public nameForAddr;

    function setName(string calldata text) external {
        nameForAddr[msg.sender] = text;
    }
}
