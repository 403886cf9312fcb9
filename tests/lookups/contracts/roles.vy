# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Roles whose members are listed, as AccessControlEnumerable of OpenZeppelin tells them; it has an owner too
"""

MINTER_ROLE: public(constant(bytes32)) = keccak256("MINTER_ROLE")
PAUSER_ROLE: public(constant(bytes32)) = keccak256("the pauser of another convention")

owner: public(address)
members: HashMap[bytes32, DynArray[address, 8]]


@deploy
def __init__(owner: address, admins: DynArray[address, 8], minters: DynArray[address, 8]):
    self.owner = owner
    self.members[empty(bytes32)] = admins
    self.members[MINTER_ROLE] = minters


@view
@external
def hasRole(role: bytes32, account: address) -> bool:
    return account in self.members[role]


@view
@external
def getRoleAdmin(role: bytes32) -> bytes32:
    return empty(bytes32)


@view
@external
def getRoleMemberCount(role: bytes32) -> uint256:
    return len(self.members[role])


@view
@external
def getRoleMember(role: bytes32, index: uint256) -> address:
    return self.members[role][index]


@external
def grantRole(role: bytes32, account: address):
    assert msg.sender in self.members[empty(bytes32)]
    self.members[role].append(account)


@external
def revokeRole(role: bytes32, account: address):
    assert msg.sender in self.members[empty(bytes32)]
    self.members[role] = []
