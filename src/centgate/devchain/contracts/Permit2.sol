// SPDX-License-Identifier: CC0-1.0
pragma solidity ^0.8.20;

import {SafeLedger} from "./Shared.sol";

/// Allowances with an end, with the interface of the AllowanceTransfer part of Permit2.
contract Permit2 {
    struct PackedAllowance {
        uint160 amount;
        uint48 expiration;
        uint48 nonce;
    }

    struct PermitDetails {
        address token;
        uint160 amount;
        uint48 expiration;
        uint48 nonce;
    }

    struct PermitSingle {
        PermitDetails details;
        address spender;
        uint256 sigDeadline;
    }

    struct TokenSpenderPair {
        address token;
        address spender;
    }

    error AllowanceExpired(uint256 deadline);
    error InsufficientAllowance(uint256 amount);
    error InvalidNonce();
    error InvalidSigner();
    error SignatureExpired(uint256 signatureDeadline);

    event Approval(
        address indexed owner, address indexed token, address indexed spender, uint160 amount, uint48 expiration
    );
    event Permit(
        address indexed owner,
        address indexed token,
        address indexed spender,
        uint160 amount,
        uint48 expiration,
        uint48 nonce
    );
    event Lockdown(address indexed owner, address token, address spender);
    event NonceInvalidation(
        address indexed owner, address indexed token, address indexed spender, uint48 newNonce, uint48 oldNonce
    );

    bytes32 private constant DETAILS_TYPEHASH =
        keccak256("PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)");
    bytes32 private constant SINGLE_TYPEHASH = keccak256(
        "PermitSingle(PermitDetails details,address spender,uint256 sigDeadline)"
        "PermitDetails(address token,uint160 amount,uint48 expiration,uint48 nonce)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");

    mapping(address => mapping(address => mapping(address => PackedAllowance))) public allowance;

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Permit2"), block.chainid, address(this)));
    }

    function approve(address token, address spender, uint160 amount, uint48 expiration) external {
        PackedAllowance storage allowed = allowance[msg.sender][token][spender];
        allowed.amount = amount;
        allowed.expiration = _end(expiration);
        emit Approval(msg.sender, token, spender, amount, expiration);
    }

    /// Grants what the owner has signed by EIP-712, with a signature of 65 bytes.
    function permit(address owner, PermitSingle calldata signed, bytes calldata signature) external {
        if (block.timestamp > signed.sigDeadline) revert SignatureExpired(signed.sigDeadline);
        bytes32 hashed = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), _hash(signed)));
        if (signature.length != 65 || _signer(hashed, signature) != owner) revert InvalidSigner();
        PermitDetails calldata details = signed.details;
        PackedAllowance storage allowed = allowance[owner][details.token][signed.spender];
        if (allowed.nonce != details.nonce) revert InvalidNonce();
        allowed.amount = details.amount;
        allowed.expiration = _end(details.expiration);
        allowed.nonce = details.nonce + 1;
        emit Permit(
            owner, details.token, signed.spender, details.amount, details.expiration, details.nonce
        );
    }

    function transferFrom(address from, address to, uint160 amount, address token) external {
        PackedAllowance storage allowed = allowance[from][token][msg.sender];
        if (block.timestamp > allowed.expiration) revert AllowanceExpired(allowed.expiration);
        if (allowed.amount != type(uint160).max) {
            if (amount > allowed.amount) revert InsufficientAllowance(allowed.amount);
            allowed.amount -= amount;
        }
        SafeLedger.move(token, from, to, amount);
    }

    function lockdown(TokenSpenderPair[] calldata approvals) external {
        for (uint256 i = 0; i < approvals.length; i++) {
            (address token, address spender) = (approvals[i].token, approvals[i].spender);
            allowance[msg.sender][token][spender].amount = 0;
            emit Lockdown(msg.sender, token, spender);
        }
    }

    function invalidateNonces(address token, address spender, uint48 newNonce) external {
        uint48 oldNonce = allowance[msg.sender][token][spender].nonce;
        if (newNonce <= oldNonce) revert InvalidNonce();
        allowance[msg.sender][token][spender].nonce = newNonce;
        emit NonceInvalidation(msg.sender, token, spender, newNonce, oldNonce);
    }

    /// An expiration of 0 is the end of this block.
    function _end(uint48 expiration) private view returns (uint48) {
        return expiration == 0 ? uint48(block.timestamp) : expiration;
    }

    function _hash(PermitSingle calldata signed) private pure returns (bytes32) {
        bytes32 details = keccak256(abi.encode(DETAILS_TYPEHASH, signed.details));
        return keccak256(abi.encode(SINGLE_TYPEHASH, details, signed.spender, signed.sigDeadline));
    }

    function _signer(bytes32 hashed, bytes calldata signature) private pure returns (address) {
        return ecrecover(hashed, uint8(signature[64]), bytes32(signature[:32]), bytes32(signature[32:64]));
    }
}
