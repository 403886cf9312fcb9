# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A contract that spends what it is allowed to
"""

interface Token:
    def transferFrom(owner: address, to: address, amount: uint256) -> bool: nonpayable


@external
def pull(token: address, owner: address, amount: uint256):
    extcall Token(token).transferFrom(owner, msg.sender, amount)
