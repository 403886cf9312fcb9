# pragma version 0.4.3
# pragma evm-version cancun
"""
@title As much of an ERC-721 as its interface (ERC-165) and its events: four topics and no data
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    token_id: indexed(uint256)

event Approval:
    owner: indexed(address)
    approved: indexed(address)
    token_id: indexed(uint256)

name: public(constant(String[16])) = "Pictures"
symbol: public(constant(String[16])) = "PIC"
ownerOf: public(HashMap[uint256, address])
balanceOf: public(HashMap[address, uint256])


@external
def mint(to: address, token_id: uint256):
    self.ownerOf[token_id] = to
    self.balanceOf[to] += 1
    log Transfer(sender=empty(address), receiver=to, token_id=token_id)


@view
@external
def supportsInterface(interface_id: bytes4) -> bool:
    return interface_id == 0x01ffc9a7 or interface_id == 0x80ac58cd


@external
def approve(approved: address, token_id: uint256):
    log Approval(owner=msg.sender, approved=approved, token_id=token_id)
