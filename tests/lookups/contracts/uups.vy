# pragma version 0.4.3
# pragma evm-version cancun
"""
@title What a proxy runs that leaves upgrading to the code behind it (UUPS); its owner is in the first slot
"""

owner: public(address)


@view
@external
def whereabouts() -> address:
    return self


@pure
@external
def answer() -> uint256:
    return 42


@external
@payable
def upgradeToAndCall(implementation: address, data: Bytes[1024]):
    assert msg.sender == self.owner
