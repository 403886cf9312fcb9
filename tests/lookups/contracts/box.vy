# pragma version 0.4.3
# pragma evm-version cancun
"""
@title What proxies run: code that says where it runs
"""


@view
@external
def whereabouts() -> address:
    return self


@pure
@external
def answer() -> uint256:
    return 42
