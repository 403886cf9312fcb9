# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that says whatever makes it look rich: everybody holds a fortune, and events are free
@notice Its allowances cannot be read.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

name: public(constant(String[16])) = "Fortune"
symbol: public(constant(String[16])) = "FORT"
decimals: public(constant(uint8)) = 18
totalSupply: public(constant(uint256)) = 1000


@view
@external
def balanceOf(holder: address) -> uint256:
    return max_value(uint256) - 1


@view
@external
def allowance(owner: address, spender: address) -> uint256:
    raise "not today"


@external
def say_moved(sender: address, receiver: address, amount: uint256):
    log Transfer(sender=sender, receiver=receiver, value=amount)


@external
def say_approved(owner: address, spender: address, amount: uint256):
    log Approval(owner=owner, spender=spender, value=amount)
