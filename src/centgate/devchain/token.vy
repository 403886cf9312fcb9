# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize gas
"""
@title A stand-in for USDC on a development chain
@notice An ERC-20 token whose transfers can be authorized by signature (EIP-3009), with the
        revert strings clients of the real one know. It has no owner and no mint: balances are
        written into its storage before the first block.
@dev    The runtime code holds no immutables and works out its EIP-712 domain when asked, so
        that it is right at whatever address and on whatever chain it is installed.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

event AuthorizationUsed:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

event AuthorizationCanceled:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

name: public(constant(String[4])) = "USDC"
symbol: public(constant(String[4])) = "USDC"
version: public(constant(String[1])) = "2"
decimals: public(constant(uint8)) = 6

DOMAIN_TYPEHASH: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
TRANSFER_WITH_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
RECEIVE_WITH_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256(
    "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
CANCEL_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256(
    "CancelAuthorization(address authorizer,bytes32 nonce)"
)

# half of the order of secp256k1: a signature with a greater s is its own mirror image
HALF_ORDER: constant(uint256) = 57896044618658097711785492504343953926418782139537452191302581570759080747168
ERC1271_VALID: constant(bytes4) = 0x1626ba7e
IDENTITY: constant(address) = 0x0000000000000000000000000000000000000004
SIGNATURE_LIMIT: constant(uint256) = 2048
CALL_LIMIT: constant(uint256) = 4 + 8 * 32 + SIGNATURE_LIMIT

balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])
totalSupply: public(uint256)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    assert spender != empty(address), "ERC20: approve to the zero address"
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@external
def transferFrom(owner: address, to: address, amount: uint256) -> bool:
    allowed: uint256 = self.allowance[owner][msg.sender]
    assert amount <= allowed, "ERC20: transfer amount exceeds allowance"
    self.allowance[owner][msg.sender] = allowed - amount
    self._move(owner, to, amount)
    return True


@external
def transferWithAuthorization(
    payer: address,
    to: address,
    amount: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: bytes32,
    v: uint8,
    r: bytes32,
    s: bytes32,
):
    self._transfer_authorized(payer, to, amount, validAfter, validBefore, nonce, self._packed(v, r, s))


@external
def __default__():
    # transferWithAuthorization with the signature as bytes. The language knows no overloads, so
    # the second form of that name is read here, from a copy of the call data.
    assert len(msg.data) >= 4
    assert slice(msg.data, 0, 4) == method_id(
        "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)",
        output_type=Bytes[4],
    )
    assert len(msg.data) <= CALL_LIMIT
    call: Bytes[CALL_LIMIT] = raw_call(IDENTITY, msg.data, max_outsize=CALL_LIMIT, is_static_call=True)
    payer: address = empty(address)
    to: address = empty(address)
    amount: uint256 = 0
    validAfter: uint256 = 0
    validBefore: uint256 = 0
    nonce: bytes32 = empty(bytes32)
    signature: Bytes[SIGNATURE_LIMIT] = b""
    payer, to, amount, validAfter, validBefore, nonce, signature = abi_decode(
        slice(call, 4, len(call) - 4),
        (address, address, uint256, uint256, uint256, bytes32, Bytes[SIGNATURE_LIMIT]),
    )
    self._transfer_authorized(payer, to, amount, validAfter, validBefore, nonce, signature)


@external
def receiveWithAuthorization(
    payer: address,
    to: address,
    amount: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: bytes32,
    v: uint8,
    r: bytes32,
    s: bytes32,
):
    assert to == msg.sender, "FiatTokenV2: caller must be the payee"
    self._require_valid(payer, nonce, validAfter, validBefore)
    terms: bytes32 = keccak256(
        abi_encode(RECEIVE_WITH_AUTHORIZATION_TYPEHASH, payer, to, amount, validAfter, validBefore, nonce)
    )
    self._require_signed(payer, terms, self._packed(v, r, s))
    self._use(payer, nonce)
    self._move(payer, to, amount)


@external
def cancelAuthorization(authorizer: address, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    self._require_unused(authorizer, nonce)
    terms: bytes32 = keccak256(abi_encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce))
    self._require_signed(authorizer, terms, self._packed(v, r, s))
    self.authorizationState[authorizer][nonce] = True
    log AuthorizationCanceled(authorizer=authorizer, nonce=nonce)


@external
@view
def DOMAIN_SEPARATOR() -> bytes32:
    return self._domain_separator()


@internal
def _transfer_authorized(
    payer: address,
    to: address,
    amount: uint256,
    validAfter: uint256,
    validBefore: uint256,
    nonce: bytes32,
    signature: Bytes[SIGNATURE_LIMIT],
):
    self._require_valid(payer, nonce, validAfter, validBefore)
    terms: bytes32 = keccak256(
        abi_encode(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, payer, to, amount, validAfter, validBefore, nonce)
    )
    self._require_signed(payer, terms, signature)
    self._use(payer, nonce)
    self._move(payer, to, amount)


@internal
@view
def _require_valid(authorizer: address, nonce: bytes32, validAfter: uint256, validBefore: uint256):
    assert block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid"
    assert block.timestamp < validBefore, "FiatTokenV2: authorization is expired"
    self._require_unused(authorizer, nonce)


@internal
@view
def _require_unused(authorizer: address, nonce: bytes32):
    assert not self.authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled"


@internal
@view
def _require_signed(signer: address, terms: bytes32, signature: Bytes[SIGNATURE_LIMIT]):
    digest: bytes32 = keccak256(concat(b"\x19\x01", self._domain_separator(), terms))
    if signer.codesize > 0:
        # an account with code speaks through it, ERC-7702 delegations included (ERC-1271)
        assert self._approved_by_contract(signer, digest, signature), "FiatTokenV2: invalid signature"
    else:
        assert self._recovered(digest, signature) == signer, "FiatTokenV2: invalid signature"


@internal
@view
def _approved_by_contract(signer: address, digest: bytes32, signature: Bytes[SIGNATURE_LIMIT]) -> bool:
    success: bool = False
    answer: Bytes[32] = b""
    success, answer = raw_call(
        signer,
        abi_encode(digest, signature, method_id=method_id("isValidSignature(bytes32,bytes)")),
        max_outsize=32,
        is_static_call=True,
        revert_on_failure=False,
    )
    return success and len(answer) == 32 and extract32(answer, 0) == convert(ERC1271_VALID, bytes32)


@internal
@view
def _recovered(digest: bytes32, signature: Bytes[SIGNATURE_LIMIT]) -> address:
    assert len(signature) == 65, "ECRecover: invalid signature length"
    s: uint256 = extract32(signature, 32, output_type=uint256)
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    assert s <= HALF_ORDER, "ECRecover: invalid signature 's' value"
    assert v == 27 or v == 28, "ECRecover: invalid signature 'v' value"
    signer: address = ecrecover(digest, v, extract32(signature, 0, output_type=uint256), s)
    assert signer != empty(address), "ECRecover: invalid signature"
    return signer


@internal
@pure
def _packed(v: uint8, r: bytes32, s: bytes32) -> Bytes[65]:
    return concat(r, s, convert(v, bytes1))


@internal
@view
def _domain_separator() -> bytes32:
    return keccak256(
        abi_encode(DOMAIN_TYPEHASH, keccak256(name), keccak256(version), chain.id, self)
    )


@internal
def _use(authorizer: address, nonce: bytes32):
    self.authorizationState[authorizer][nonce] = True
    log AuthorizationUsed(authorizer=authorizer, nonce=nonce)


@internal
def _move(sender: address, to: address, amount: uint256):
    assert sender != empty(address), "ERC20: transfer from the zero address"
    assert to != empty(address), "ERC20: transfer to the zero address"
    held: uint256 = self.balanceOf[sender]
    assert amount <= held, "ERC20: transfer amount exceeds balance"
    self.balanceOf[sender] = held - amount
    self.balanceOf[to] += amount
    log Transfer(sender=sender, receiver=to, value=amount)
