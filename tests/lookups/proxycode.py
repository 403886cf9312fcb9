"""Bytecode of proxies: published byte patterns, and small ones assembled here."""

from __future__ import annotations

IMPLEMENTATION_SLOT = 0x360894A13BA1A3210667C828492DB98DCA3E2076CC3735A920A3CA505D382BBC
ADMIN_SLOT = 0xB53127684A568B3173AE13B9F8A6016E243E63B6E8EE1178D6A717850B5D6103
BEACON_SLOT = 0xA3F0AD74E5423AEBFD80D3EF4346578335A9A72AEAEE59FF6CB3582B35133D50
"""EIP-1967: keccak of `eip1967.proxy.…` minus one."""
PROXIABLE_SLOT = 0xC5F16F0FCC639FA48A6947836D9850F504798523BF8C9A3A87D5876CF622BCF7
"""EIP-1822: keccak of `PROXIABLE`."""
ZEPPELIN_SLOT = 0x7050C9E0F4CA769C69BD3A8EF740BC37934F8E2C036E5A723FD8EE048ED3F8C3
ZEPPELIN_ADMIN_SLOT = 0x10D6A54A4754C8869D6886B5F5D7FBFA5B4522237EA5C60D11BC4E7A1FF9390B
"""ZeppelinOS, before EIP-1967: keccak of `org.zeppelinos.proxy.implementation` and `….admin`."""

_IMPLEMENTATION = "5c60da1b"  # implementation()
_MASTER_COPY = "a619486e"  # masterCopy()
_LOAD_CALL = "365f5f37"  # calldatacopy(0, 0, calldatasize)
_ARGUMENTS = "5f5f365f"  # for delegatecall: out size, out offset, in size, in offset
_DELEGATE = "5af43d5f5f3e"  # delegatecall(gas, …), returndatacopy(0, 0, returndatasize)


def slot_proxy(slot: int) -> bytes:
    """Proxy to the code whose address is in a storage slot."""
    return _append_result(f"{_LOAD_CALL}{_ARGUMENTS}7f{slot:064x}54{_DELEGATE}")


def proxy_with_function(slot: int, selector: str) -> bytes:
    """Proxy as above whose own code has a function, which logs an event."""

    def build_code(place: int) -> bytes:
        start = f"5f3560e01c63{selector}1460{place:02x}57"
        return _append_result(f"{start}{_LOAD_CALL}{_ARGUMENTS}7f{slot:064x}54{_DELEGATE}")

    return build_code(len(build_code(0))) + bytes.fromhex("5b5f5fa000")


def decoy_proxy(slot: int) -> bytes:
    """Proxy to the code whose address is in slot 0, that names another slot and never reads it."""
    return _append_result(f"7f{slot:064x}50{_LOAD_CALL}{_ARGUMENTS}5f54{_DELEGATE}")


def reading_decoy(slot: int, hidden: str, *, ask: str = "") -> bytes:
    """Proxy to hidden code that reads the address in a slot, and drops it; `ask` may use it before."""
    return _append_result(f"7f{slot:064x}54{ask}50{_LOAD_CALL}{_ARGUMENTS}73{hidden[2:]}{_DELEGATE}")


def library_user(slot: int, selector: str) -> bytes:
    """Code that names a slot without reading it, and in one function runs the code named in slot 0."""
    start = f"7f{slot:064x}505f3560e01c63{selector}1460{51:02x}575f5ff35b"
    return _append_result(f"{start}{_LOAD_CALL}{_ARGUMENTS}5f54{_DELEGATE}")


def beacon_proxy(slot: int = BEACON_SLOT) -> bytes:
    """Proxy to the code named by the beacon in a storage slot."""
    # the selector into memory, staticcall to the address in the slot, its result from memory
    ask = f"63{_IMPLEMENTATION}5f5260205f6004601c7f{slot:064x}545afa505f51"
    return _append_result(
        f"{ask}{_LOAD_CALL}{_ARGUMENTS}84{_DELEGATE}"
    )  # 84: the address, from below the arguments


def safe_proxy() -> bytes:
    """Proxy to the code whose address is in slot 0, answering masterCopy() itself, like Safe's proxies."""
    test = f"5f357f{_MASTER_COPY:0<64}14"  # calldataload(0) == masterCopy()
    answer = "5f545f5260205ff3"
    # overwrites the result, unless masterCopy() is called
    skip = f"1560{len(bytes.fromhex(test + answer)) + 4:02x}57"
    start = test + skip + answer + "5b"
    return _append_result(f"{start}{_LOAD_CALL}{_ARGUMENTS}5f54{_DELEGATE}")


def minimal_proxy(address: str) -> bytes:
    """EIP-1167 proxy."""
    return bytes.fromhex(f"363d3d373d3d3d363d73{address[2:]}5af43d82803e903d91602b57fd5bf3")


def minimal_push0(address: str) -> bytes:
    """EIP-1167 with the opcode PUSH0, as Solady writes it."""
    return bytes.fromhex(f"365f5f375f5f365f73{address[2:]}5af43d5f5f3e5f3d91602a57fd5bf3")


def minimal_vyper(address: str) -> bytes:
    """Proxy by create_forwarder_to of early Vyper, which always returns 4,096 bytes."""
    return bytes.fromhex(f"366000600037611000600036600073{address[2:]}5af4602c57600080fd5b6110006000f3")


def minimal_with_arguments(address: str, arguments: bytes) -> bytes:
    """EIP-1167 with immutable arguments behind it, as OpenZeppelin's Clones write it."""
    return minimal_proxy(address) + arguments


def clone_with_arguments(address: str, arguments: bytes) -> bytes:
    """clones-with-immutable-args: the arguments and their length follow the call data."""
    extra = len(arguments) + 2
    code = (
        f"3d3d3d3d363d3d3761{extra:04x}603736393661{extra:04x}013d73{address[2:]}5af43d3d93803e603557fd5bf3"
    )
    return bytes.fromhex(code) + arguments + extra.to_bytes(2, "big")


ONES = bytes.fromhex("5f195f525f1960205260405ff3")
"""Answers every call with 64 bytes of ones."""
ZEROS = bytes.fromhex("60205f52610bb8602052620177405ff3")
"""Answers every call with a list of 3,000 zeros."""


def delegation(address: str) -> bytes:
    """EIP-7702: the code of a wallet that is delegated to a contract."""
    return bytes.fromhex("ef0100" + address[2:])


def _append_result(code: str) -> bytes:
    """Return code that leaves 1 for success on the stack, then returns or reverts with the returned data."""
    onward = len(bytes.fromhex(code)) + 6
    return bytes.fromhex(f"{code}60{onward:02x}573d5ffd5b3d5ff3")
