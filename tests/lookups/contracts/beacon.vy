# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A beacon (EIP-1967): tells its proxies which code they run
"""

implementation: public(address)
owner: public(address)


@deploy
def __init__(implementation: address):
    self.implementation = implementation
    self.owner = msg.sender


@external
def upgradeTo(implementation: address):
    assert msg.sender == self.owner
    self.implementation = implementation
