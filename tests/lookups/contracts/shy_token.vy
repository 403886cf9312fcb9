# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that will not say how many decimals it has
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

name: public(constant(String[16])) = "Shy"
symbol: public(constant(String[16])) = "SHY"
totalSupply: public(constant(uint256)) = 1_000_000
balanceOf: public(HashMap[address, uint256])


@deploy
def __init__():
    self.balanceOf[msg.sender] = totalSupply


@view
@external
def decimals() -> uint8:
    raise "no decimals"


@external
def transfer(to: address, amount: uint256) -> bool:
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[to] += amount
    log Transfer(sender=msg.sender, receiver=to, value=amount)
    return True
