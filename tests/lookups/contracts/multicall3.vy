# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Multicall3's aggregate3: many reads in one call, each allowed to fail on its own
@notice Unlike the real one it cuts what a call returns after 2048 bytes.
"""

struct Call3:
    target: address
    allowFailure: bool
    callData: Bytes[1024]

struct Result:
    success: bool
    returnData: Bytes[2048]


@external
@payable
def aggregate3(calls: DynArray[Call3, 160]) -> DynArray[Result, 160]:
    results: DynArray[Result, 160] = []
    for call: Call3 in calls:
        success: bool = False
        returned: Bytes[2048] = b""
        success, returned = raw_call(call.target, call.callData, max_outsize=2048, revert_on_failure=False)
        assert success or call.allowFailure, "Multicall3: call failed"
        results.append(Result(success=success, returnData=returned))
    return results
