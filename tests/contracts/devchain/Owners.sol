// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

/// Runs calls for its owner kinds below: each is a contract that may own others.
abstract contract CallRunner {
    function _run(address target, uint256 value, bytes calldata data) internal {
        (bool ok, bytes memory answer) = target.call{value: value}(data);
        if (!ok) {
            assembly {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    receive() external payable {}
}

/// Wallet of several owners with the view functions of Safe. One owner alone executes here, without signatures.
contract Safe is CallRunner {
    string public constant VERSION = "1.4.1";
    uint256 public nonce;
    uint256 private threshold;
    address[] private owners;
    mapping(address => bool) public isOwner;
    address[] private modules;

    event SafeSetup(address indexed initiator, address[] owners, uint256 threshold);

    constructor(address[] memory owners_, uint256 threshold_) {
        require(threshold_ > 0 && threshold_ <= owners_.length, "GS201");
        owners = owners_;
        threshold = threshold_;
        for (uint256 i = 0; i < owners_.length; i++) isOwner[owners_[i]] = true;
        emit SafeSetup(msg.sender, owners_, threshold_);
    }

    function getOwners() external view returns (address[] memory) {
        return owners;
    }

    function getThreshold() external view returns (uint256) {
        return threshold;
    }

    function enableModule(address module) external {
        require(isOwner[msg.sender], "not an owner");
        modules.push(module);
    }

    /// First page of the modules; Safe continues at any module, this contract only starts, at address 1.
    function getModulesPaginated(address start, uint256 pageSize)
        external
        view
        returns (address[] memory page, address next)
    {
        require(start == address(1) && pageSize > 0, "GS105");
        page = new address[](modules.length < pageSize ? modules.length : pageSize);
        for (uint256 i = 0; i < page.length; i++) page[i] = modules[i];
        next = page.length < modules.length ? page[page.length - 1] : address(1);
    }

    function execute(address target, uint256 value, bytes calldata data) external {
        require(isOwner[msg.sender], "not an owner");
        nonce += 1;
        _run(target, value, data);
    }
}

/// Delayed execution with the interface of OpenZeppelin's TimelockController.
contract TimelockController is CallRunner {
    bytes32 public constant DEFAULT_ADMIN_ROLE = 0x00;
    bytes32 public constant PROPOSER_ROLE = keccak256("PROPOSER_ROLE");
    bytes32 public constant EXECUTOR_ROLE = keccak256("EXECUTOR_ROLE");
    bytes32 public constant CANCELLER_ROLE = keccak256("CANCELLER_ROLE");

    uint256 private minDelay;
    mapping(bytes32 => mapping(address => bool)) public hasRole;
    mapping(bytes32 => uint256) public getTimestamp;

    event RoleGranted(bytes32 indexed role, address indexed account, address indexed sender);
    event MinDelayChange(uint256 oldDuration, uint256 newDuration);
    event CallScheduled(
        bytes32 indexed id,
        uint256 indexed index,
        address target,
        uint256 value,
        bytes data,
        bytes32 predecessor,
        uint256 delay
    );
    event CallExecuted(bytes32 indexed id, uint256 indexed index, address target, uint256 value, bytes data);

    constructor(uint256 delay, address[] memory proposers, address[] memory executors, address admin) {
        _grant(DEFAULT_ADMIN_ROLE, address(this));
        if (admin != address(0)) _grant(DEFAULT_ADMIN_ROLE, admin);
        for (uint256 i = 0; i < proposers.length; i++) {
            _grant(PROPOSER_ROLE, proposers[i]);
            _grant(CANCELLER_ROLE, proposers[i]);
        }
        for (uint256 i = 0; i < executors.length; i++) _grant(EXECUTOR_ROLE, executors[i]);
        emit MinDelayChange(0, delay);
        minDelay = delay;
    }

    function getMinDelay() external view returns (uint256) {
        return minDelay;
    }

    function hashOperation(
        address target,
        uint256 value,
        bytes calldata data,
        bytes32 predecessor,
        bytes32 salt
    ) public pure returns (bytes32) {
        return keccak256(abi.encode(target, value, data, predecessor, salt));
    }

    function schedule(
        address target,
        uint256 value,
        bytes calldata data,
        bytes32 predecessor,
        bytes32 salt,
        uint256 delay
    ) external {
        require(hasRole[PROPOSER_ROLE][msg.sender], "not a proposer");
        require(delay >= minDelay, "insufficient delay");
        bytes32 id = hashOperation(target, value, data, predecessor, salt);
        require(getTimestamp[id] == 0, "scheduled already");
        getTimestamp[id] = block.timestamp + delay;
        emit CallScheduled(id, 0, target, value, data, predecessor, delay);
    }

    function execute(address target, uint256 value, bytes calldata data, bytes32 predecessor, bytes32 salt)
        external
        payable
    {
        require(hasRole[EXECUTOR_ROLE][address(0)] || hasRole[EXECUTOR_ROLE][msg.sender], "not an executor");
        bytes32 id = hashOperation(target, value, data, predecessor, salt);
        require(getTimestamp[id] > 1 && getTimestamp[id] <= block.timestamp, "not ready");
        getTimestamp[id] = 1; // done
        _run(target, value, data);
        emit CallExecuted(id, 0, target, value, data);
    }

    function _grant(bytes32 role, address account) private {
        hasRole[role][account] = true;
        emit RoleGranted(role, account, msg.sender);
    }
}

/// The settings of a DAO's governor with the view functions of OpenZeppelin's Governor; it holds no votes.
contract Governor {
    string public name;
    string public constant version = "1";
    string public constant COUNTING_MODE = "support=bravo&quorum=for,abstain";
    uint256 public votingDelay;
    uint256 public votingPeriod;
    uint256 public proposalThreshold;
    address public token;
    address public timelock;
    uint256 private quorumVotes;

    constructor(
        string memory name_,
        uint256 votingDelay_,
        uint256 votingPeriod_,
        uint256 quorum_,
        address token_,
        address timelock_
    ) {
        name = name_;
        votingDelay = votingDelay_;
        votingPeriod = votingPeriod_;
        quorumVotes = quorum_;
        token = token_;
        timelock = timelock_;
    }

    /// Number of votes that a proposal needs; the same at all times.
    function quorum(uint256) external view returns (uint256) {
        return quorumVotes;
    }

    function CLOCK_MODE() external pure returns (string memory) {
        return "mode=blocknumber&from=default";
    }

    function clock() external view returns (uint48) {
        return uint48(block.number);
    }
}
