"""Classify the owner of a contract from its code and from what it answers. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from centgate.chains import is_burn_address
from centgate.crypto.abi import encode_uint, function_selector
from centgate.crypto.contract.account_kinds import WALLET_KINDS, classify_code
from centgate.crypto.contract.bytecode import delegation_target
from centgate.crypto.contract.owners import Owner

MODULES_CALL = "getModulesPaginated(address,uint256)"
OWNER_CALLS: Mapping[str, bytes] = {
    signature: function_selector(signature)
    for signature in (
        "getThreshold()",
        "getOwners()",
        "VERSION()",
        "getMinDelay()",
        "delay()",
        "votingDelay()",
        "votingPeriod()",
    )
} | {MODULES_CALL: function_selector(MODULES_CALL) + encode_uint(1) * 2}
"""Call data by function, for the calls that tell a Safe (getThreshold, getOwners, VERSION), a timelock of
OpenZeppelin (getMinDelay) or Compound (delay), and a governor (votingDelay, votingPeriod) apart.

A Safe's list of modules starts at the address 1; its first page of one module says whether it has any.
"""
SAFE_SINGLETONS = frozenset(
    {
        "0xb6029ea3b2c51d09a50b53ca8012feeb05bda35a",
        "0x34cfac646f301356faa8b21e94227e3583fe3f5f",
        "0x6851d6fdfafd08c0295c392436245e5bc78b0185",
        "0xd9db270c1b5e3bd161e8c8503c55ceabee709552",
        "0x69f4d1788e39c87893c980c06edf4b7f686e2938",
        "0x3e5c63644e683549055b9be8653de26e0b4cd36e",
        "0xfb1bffc9d739b8d520daf37df666da4c687191ea",
        "0x41675c099f32341bf84bfc5382af534df5c7461a",
        "0x29fcb43b46531bca003ddc8fcb67ffe91900c762",
        "0xff51a5898e281db6dfc7855790607438df2ca44b",
        "0xedd160febbd92e350d4d398fb636302fccd67c7e",
    }
)
"""Contracts with the code of Safe 1.0.0 to 1.5.0, in lower case; a Safe's slot 0 names one of them.

Source: the npm package @safe-global/safe-deployments, `safe.json` and `safe_l2.json` of each version.
"""
SAFE_PROXY_CODE = bytes.fromhex(
    "608060405273ffffffffffffffffffffffffffffffffffffffff600054167fa619486e"
    + "00" * 28
    + "60003514156050578060005260206000f35b3660008037600080366000845af43d6000803e60008114156070573d6000fd5b3d"
    "6000f3fe"
)
"""Code of a Safe's proxy before its metadata, the same in the releases 1.3.0 and 1.4.1.

Source: the npm packages @gnosis.pm/safe-contracts 1.3.0 and @safe-global/safe-contracts 1.4.1.
"""
MAX_SAFE_OWNERS = 200
MAX_DELAY_SECONDS = 10 * 365 * 86_400
"""A longer delay is no delay of a timelock."""


def classify_owner(
    address: str | None,
    *,
    code: bytes | None,
    singleton: str | None,
    answers: Mapping[str, bytes | None],
) -> Owner:
    """Return the owner at an address; `code` is None if it was not read, `address` None without an owner.

    `singleton` is the address in storage slot 0. A contract that answers like a Safe but does not run the
    code of a published Safe is of kind `contract`. The result has the threshold and the number of owners that
    it claims. A timelock and a governor are known by their answers alone, which any contract can give.
    """
    if address is None:
        return Owner(None, "none")
    if is_burn_address(address):
        return Owner(address, "renounced")
    if code is None:
        return Owner(address, "unknown")
    if classify_code(code) in WALLET_KINDS:
        return Owner(address, "wallet", delegate_address=delegation_target(code))
    is_safe_code = code.startswith(SAFE_PROXY_CODE) and singleton in SAFE_SINGLETONS
    return _classify_contract(address, answers, is_safe_code=is_safe_code)


def _classify_contract(address: str, answers: Mapping[str, bytes | None], *, is_safe_code: bool) -> Owner:
    threshold, owner_count = _read_number(answers.get("getThreshold()")), _count_owners(answers)
    if threshold and owner_count and threshold <= owner_count and answers.get("VERSION()"):
        if not is_safe_code:
            return Owner(address, "contract", threshold=threshold, owner_count=owner_count)
        modules = _has_modules(answers)
        return Owner(address, "safe", threshold=threshold, owner_count=owner_count, has_modules=modules)
    if _read_number(answers.get("votingDelay()")) is not None and _read_number(answers.get("votingPeriod()")):
        return Owner(address, "governor")
    delays = (_read_number(answers.get(call)) for call in ("getMinDelay()", "delay()"))
    delay = next((each for each in delays if each is not None), None)
    if delay is not None and delay <= MAX_DELAY_SECONDS:
        return Owner(address, "timelock", delay_seconds=delay)
    return Owner(address, "contract")


def _has_modules(answers: Mapping[str, bytes | None]) -> bool | None:
    """True if the first page of a Safe's modules, an array and the next address, is not empty."""
    returned = answers.get(MODULES_CALL) or b""
    if len(returned) < 96 or int.from_bytes(returned[:32]) != 64:
        return None
    return any(returned[64:96])


def _read_number(returned: bytes | None) -> int | None:
    """Return the integer that a call returned; None for anything but one word."""
    return int.from_bytes(returned) if returned is not None and len(returned) == 32 else None


def _count_owners(answers: Mapping[str, bytes | None]) -> int | None:
    """Return the length of the address list of `getOwners()`; None unless it is whole."""
    returned = answers.get("getOwners()") or b""
    if len(returned) < 64 or int.from_bytes(returned[:32]) != 32:
        return None
    count = int.from_bytes(returned[32:64])
    return count if 0 < count <= MAX_SAFE_OWNERS and len(returned) == 64 + 32 * count else None
