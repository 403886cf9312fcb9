# pragma version 0.4.3
# pragma evm-version cancun
"""
@title As much of a diamond (EIP-2535) as its loupe tells
"""

facets: DynArray[address, 8]


@deploy
def __init__(facets: DynArray[address, 8]):
    self.facets = facets


@view
@external
def facetAddresses() -> DynArray[address, 8]:
    return self.facets
