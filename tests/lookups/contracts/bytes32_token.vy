# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token of the first days, whose name and symbol are 32 bytes and no strings
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

name: public(constant(bytes32)) = 0x4d616b6572000000000000000000000000000000000000000000000000000000
symbol: public(constant(bytes32)) = 0x4d4b520000000000000000000000000000000000000000000000000000000000
decimals: public(constant(uint256)) = 18
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@deploy
def __init__(supply: uint256):
    self.totalSupply = supply
    self.balanceOf[msg.sender] = supply


@external
def transfer(to: address, amount: uint256) -> bool:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=msg.sender, receiver=to, value=amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, value=amount)
    return True
