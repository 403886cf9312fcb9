# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Diamond (EIP-2535) with a loupe, which runs the code of its first facet
"""

facets: DynArray[address, 8]


@deploy
def __init__(facets: DynArray[address, 8]):
    self.facets = facets


@view
@external
def facetAddresses() -> DynArray[address, 8]:
    return self.facets


@payable
@external
def __default__():
    raw_call(self.facets[0], msg.data, is_delegate_call=True)
