# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A factory of minimal proxies, with their pattern inside its own code
"""

latest: public(address)


@external
def clone(implementation: address) -> address:
    self.latest = create_minimal_proxy_to(implementation)
    return self.latest
