// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

// A token as a diamond: interfaces, actions and storage positions are those of EIP-2535 and its reference
// implementations (eips.ethereum.org/EIPS/eip-2535).

interface IDiamond {
    enum FacetCutAction {
        Add,
        Replace,
        Remove
    }
    struct FacetCut {
        address facetAddress;
        FacetCutAction action;
        bytes4[] functionSelectors;
    }
    struct Facet {
        address facetAddress;
        bytes4[] functionSelectors;
    }
}

library DiamondStorage {
    bytes32 private constant POSITION = keccak256("diamond.standard.diamond.storage");

    struct Layout {
        address owner;
        address[] facets;
        mapping(address => bytes4[]) selectors;
        mapping(bytes4 => address) facetOf;
    }

    function load() internal pure returns (Layout storage found) {
        bytes32 position = POSITION;
        assembly {
            found.slot := position
        }
    }

    function requireOwner() internal view {
        require(msg.sender == load().owner, "not the owner");
    }

    function cut(IDiamond.FacetCut[] memory changes) internal {
        Layout storage store = load();
        for (uint256 i = 0; i < changes.length; i++) {
            bytes4[] memory changed = changes[i].functionSelectors;
            for (uint256 j = 0; j < changed.length; j++) {
                remove(store, changed[j]);
                if (changes[i].action != IDiamond.FacetCutAction.Remove) {
                    add(store, changed[j], changes[i].facetAddress);
                }
            }
        }
    }

    function add(Layout storage store, bytes4 selector, address facet) private {
        if (store.selectors[facet].length == 0) {
            store.facets.push(facet);
        }
        store.selectors[facet].push(selector);
        store.facetOf[selector] = facet;
    }

    function remove(Layout storage store, bytes4 selector) private {
        bytes4[] storage listed = store.selectors[store.facetOf[selector]];
        for (uint256 i = 0; i < listed.length; i++) {
            if (listed[i] == selector) {
                listed[i] = listed[listed.length - 1];
                listed.pop();
                break;
            }
        }
        delete store.facetOf[selector];
    }
}

library TokenStorage {
    bytes32 private constant POSITION = keccak256("token.storage");

    struct Layout {
        mapping(address => uint256) balances;
        mapping(address => mapping(address => uint256)) allowances;
        uint256 supply;
        uint256 tax;
        bool paused;
        mapping(address => bool) blacklisted;
    }

    function load() internal pure returns (Layout storage found) {
        bytes32 position = POSITION;
        assembly {
            found.slot := position
        }
    }
}

contract DiamondToken {
    constructor(IDiamond.FacetCut[] memory changes, uint256 supply) {
        DiamondStorage.load().owner = msg.sender;
        DiamondStorage.cut(changes);
        TokenStorage.load().supply = supply;
        TokenStorage.load().balances[msg.sender] = supply;
    }

    fallback() external payable {
        address facet = DiamondStorage.load().facetOf[msg.sig];
        require(facet != address(0), "no such function");
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), facet, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch done
            case 0 {
                revert(0, returndatasize())
            }
            default {
                return(0, returndatasize())
            }
        }
    }
}

contract CutFacet {
    // `init` is not called
    function diamondCut(IDiamond.FacetCut[] calldata changes, address, bytes calldata) external {
        DiamondStorage.requireOwner();
        DiamondStorage.cut(changes);
    }
}

contract LoupeFacet {
    function facets() external view returns (IDiamond.Facet[] memory found) {
        DiamondStorage.Layout storage store = DiamondStorage.load();
        found = new IDiamond.Facet[](store.facets.length);
        for (uint256 i = 0; i < found.length; i++) {
            found[i] = IDiamond.Facet(store.facets[i], store.selectors[store.facets[i]]);
        }
    }

    function facetAddresses() external view returns (address[] memory) {
        return DiamondStorage.load().facets;
    }

    function facetAddress(bytes4 selector) external view returns (address) {
        return DiamondStorage.load().facetOf[selector];
    }
}

contract OwnershipFacet {
    function owner() external view returns (address) {
        return DiamondStorage.load().owner;
    }

    function transferOwnership(address next) external {
        DiamondStorage.requireOwner();
        DiamondStorage.load().owner = next;
    }
}

contract TokenFacet {
    event Transfer(address indexed from, address indexed to, uint256 value);

    function symbol() external pure returns (string memory) {
        return "DIA";
    }

    function decimals() external pure returns (uint8) {
        return 18;
    }

    function totalSupply() external view returns (uint256) {
        return TokenStorage.load().supply;
    }

    function balanceOf(address account) external view returns (uint256) {
        return TokenStorage.load().balances[account];
    }

    function allowance(address account, address spender) external view returns (uint256) {
        return TokenStorage.load().allowances[account][spender];
    }

    function approve(address spender, uint256 value) external returns (bool) {
        TokenStorage.load().allowances[msg.sender][spender] = value;
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        TokenStorage.load().allowances[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    function move(address from, address to, uint256 value) private {
        TokenStorage.Layout storage store = TokenStorage.load();
        require(!store.paused && !store.blacklisted[from], "closed");
        store.balances[from] -= value;
        store.balances[to] += value - (value * store.tax) / 100;
        emit Transfer(from, to, value);
    }
}

contract PowerFacet {
    function mint(address to, uint256 value) external {
        DiamondStorage.requireOwner();
        TokenStorage.load().supply += value;
        TokenStorage.load().balances[to] += value;
    }

    function setPaused(bool paused) external {
        DiamondStorage.requireOwner();
        TokenStorage.load().paused = paused;
    }

    function setTax(uint256 tax) external {
        DiamondStorage.requireOwner();
        TokenStorage.load().tax = tax;
    }

    // anyone may call it
    function addToBlacklist(address account) external {
        TokenStorage.load().blacklisted[account] = true;
    }
}

// Describes functions of the diamond to explorers, which look for an implementation in the slot of EIP-1967.
contract Description {
    function mint(address, uint256) external {}
}
