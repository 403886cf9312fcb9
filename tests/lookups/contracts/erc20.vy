# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An ERC-20 token that can be made to behave like several kinds in the wild
@notice `tax` hundredths of a percent of each transfer are burnt. With `talks` spending an allowance emits
        Approval, and lowers one without limit too; otherwise it does neither.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

name: public(String[128])
symbol: public(String[128])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
tax: uint256
talks: bool


@deploy
def __init__(name: String[128], symbol: String[128], decimals: uint8, supply: uint256, tax: uint256, talks: bool):
    self.name = name
    self.symbol = symbol
    self.decimals = decimals
    self.tax = tax
    self.talks = talks
    self.totalSupply = supply
    self.balanceOf[msg.sender] = supply
    log Transfer(sender=empty(address), receiver=msg.sender, value=supply)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@external
def transferFrom(owner: address, to: address, amount: uint256) -> bool:
    allowed: uint256 = self.allowance[owner][msg.sender]
    if self.talks or allowed != max_value(uint256):
        self.allowance[owner][msg.sender] = allowed - amount
    if self.talks:
        log Approval(owner=owner, spender=msg.sender, value=allowed - amount)
    self._move(owner, to, amount)
    return True


@internal
def _move(sender: address, receiver: address, amount: uint256):
    burnt: uint256 = amount * self.tax // 10_000
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount - burnt
    self.totalSupply -= burnt
    log Transfer(sender=sender, receiver=receiver, value=amount - burnt)
    if burnt > 0:
        log Transfer(sender=sender, receiver=empty(address), value=burnt)
