"""Powers inferred from bytecode, and their absence in honest tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import centgate
from centgate.crypto.abi import function_selector
from centgate.crypto.contract.bytecode import list_opcodes
from centgate.crypto.contract.code_analysis import CodeAnalysis, CodeFunction, StorageVariable, analyze_code
from centgate.crypto.token.powers import ContractPower, has_other_controllers, infer_flags, infer_powers
from centgate.crypto.token.security import TokenFlags
from centgate.solidity import load_contract

DEVCHAIN = Path(centgate.__file__).parent / "devchain"


def code_of(name: str) -> bytes:
    return load_contract(DEVCHAIN / "contracts", name, name).runtime_code


def flags_of(code: bytes) -> TokenFlags:
    analysis = analyze_code(code)
    return infer_flags(analysis, is_proxy=False, powers=infer_powers(analysis))


def test_owner_check_makes_mint_a_power():
    analysis = analyze_code(code_of("Erc20"))

    assert infer_powers(analysis) == (ContractPower("mint", "0x40c10f19", "mint(address,uint256)", "owner"),)
    assert flags_of(code_of("Erc20")).mintable is True


def test_wrapped_coin_has_no_powers():
    code = code_of("WrappedNative")
    flags = flags_of(code)

    assert infer_powers(analyze_code(code)) == ()
    assert (flags.mintable, flags.pausable, flags.blacklists, flags.tax_modifiable) == (None,) * 4
    assert (flags.proxy, flags.self_destructs) == (False, False)


@pytest.mark.parametrize("opcode", [0x31, 0x32, 0x3A, 0x42, 0x48, 0x5A, 0xF5])
def test_code_with_external_state_proves_no_absence(opcode: int):
    analysis, plain = analyze_code(code_of("WrappedNative")), bytes([0x54, 0x55])  # SLOAD, SSTORE

    flags = [
        infer_flags(replace(analysis, opcodes=list_opcodes(code)), is_proxy=False, powers=())
        for code in (plain, plain + bytes([opcode]))
    ]

    assert [each.mintable for each in flags] == [False, None]


def test_unknown_function_leaves_flags_unknown():
    analysis = analyze_code(code_of("WrappedNative"))
    unknown = CodeFunction(bytes.fromhex("12345678"), "uint256", "nonpayable")
    more = replace(analysis, functions=(*analysis.functions, unknown))

    flags = infer_flags(more, is_proxy=False, powers=infer_powers(more))

    assert (flags.mintable, flags.pausable, flags.blacklists, flags.tax_modifiable) == (None,) * 4


@pytest.mark.parametrize(
    "function",
    [
        CodeFunction(bytes.fromhex("8456cb59"), "", "pure"),  # pause(): a long loop hides what it writes
        CodeFunction(bytes.fromhex("d0e30db0"), "", "nonpayable"),  # deposit() that costs nothing
    ],
    ids=["power that only reads", "free deposit"],
)
def test_function_that_cannot_be_honest_leaves_flags_unknown(function: CodeFunction):
    analysis = replace(analyze_code(code_of("WrappedNative")), opcodes=frozenset())
    functions = [each for each in analysis.functions if each.selector != function.selector]

    flags = infer_flags(
        replace(analysis, functions=(*functions, function)), is_proxy=False, powers=infer_powers(analysis)
    )

    assert infer_flags(analysis, is_proxy=False, powers=()).mintable is False
    assert flags.mintable is None


def test_plain_token_has_no_powers():
    assert infer_flags(plain_token(), is_proxy=False, powers=()).mintable is False


@pytest.mark.parametrize(
    ("signature", "writes_balances", "reads_allowances", "absent"),
    [
        ("transferOwnership(address)", True, False, None),
        ("renounceOwnership()", True, False, None),
        ("increaseAllowance(address,uint256)", True, True, None),
        ("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", True, True, None),
        ("burnFrom(address,uint256)", True, False, None),
        ("transferOwnership(address)", False, False, False),
        ("decreaseAllowance(address,uint256)", False, True, False),
        ("burnFrom(address,uint256)", True, True, False),
    ],
)
def test_harmless_name_counts_over_storage_of_its_kind_alone(
    signature: str, *, writes_balances: bool, reads_allowances: bool, absent: bool | None
):
    function = CodeFunction(function_selector(signature), "", "nonpayable")
    token = plain_token(function, writes_balances=writes_balances, reads_allowances=reads_allowances)

    flags = infer_flags(token, is_proxy=False, powers=())

    assert (flags.mintable, flags.pausable, flags.blacklists, flags.tax_modifiable) == (absent,) * 4


def plain_token(
    *functions: CodeFunction, writes_balances: bool = False, reads_allowances: bool = False
) -> CodeAnalysis:
    """Return the analysis of a token without powers, with more functions and what they do."""
    transfer, spend = map(
        function_selector, ("transfer(address,uint256)", "transferFrom(address,address,uint256)")
    )
    balance, supply = map(function_selector, ("balanceOf(address)", "totalSupply()"))
    moving, added = frozenset({transfer, spend}), frozenset(each.selector for each in functions)
    nothing = frozenset[bytes]()
    balances = StorageVariable(
        "0" * 64,
        0,
        "mapping(address => uint256)",
        moving | {balance},
        moving | (added if writes_balances else nothing),
    )
    allowances = StorageVariable(
        "0" * 63 + "1",
        0,
        "mapping(address => mapping(address => uint256))",
        frozenset({spend}) | (added if reads_allowances else nothing),
        frozenset({spend}),
    )
    own = [
        *(CodeFunction(each, "", "nonpayable") for each in (transfer, spend)),
        *(CodeFunction(each, "", "view") for each in (balance, supply)),
    ]
    return CodeAnalysis((*own, *functions), (balances, allowances))


@pytest.mark.parametrize(
    ("pushed", "is_account"),
    [
        ("73" + "ab" * 20, True),
        ("72" + "ab" * 19, True),  # an address that begins with a zero byte
        ("7f" + "ab" * 20 + "00" * 12, True),
        ("73" + "ff" * 20, False),  # the mask of an address
        ("7f" + "ab" * 32, False),  # the topic of an event
        ("7f4e487b71" + "00" * 28, False),  # the selector of an error
        ("73" + b"Insufficient balance".hex(), False),
        ("60" + "73" + "61abcd", False),
    ],
)
def test_account_in_code_is_found(pushed: str, is_account: bool):  # noqa: FBT001 - a table of truth
    assert analyze_code(bytes.fromhex(pushed)).names_account is is_account


def test_code_that_names_account_leaves_flags_unknown():
    analysis = replace(analyze_code(code_of("WrappedNative")), opcodes=frozenset())

    flags = infer_flags(replace(analysis, names_account=True), is_proxy=False, powers=())

    assert (flags.mintable, flags.pausable, flags.blacklists, flags.tax_modifiable) == (None,) * 4


@pytest.mark.parametrize(("readers", "is_named"), [("a9059cbb", True), ("70a08231", False)])
def test_pause_requires_read_by_transfers(readers: str, is_named: bool):  # noqa: FBT001 - a table of truth
    pause = CodeFunction(bytes.fromhex("8456cb59"), "", "nonpayable")
    switch = StorageVariable(
        "0" * 64, 0, "bool", frozenset({bytes.fromhex(readers)}), frozenset({pause.selector})
    )

    assert bool(infer_powers(CodeAnalysis((pause,), (switch,)))) is is_named


def test_delegatecall_is_proxy_only_with_target():
    delegating = bytes.fromhex("365f5f375f5f365f5f545af43d5f5f3e5f3d91602a57fd5bf3")

    assert flags_of(delegating) == TokenFlags()


def test_powers_without_owner_check_have_other_controllers():
    owned, coin = analyze_code(code_of("Erc20")), analyze_code(code_of("WrappedNative"))
    (power,) = infer_powers(owned)
    role = CodeFunction(bytes.fromhex("91d14854"), "bytes32,address", "view")  # hasRole(bytes32,address)
    with_roles = replace(owned, functions=(*owned.functions, role))

    assert not has_other_controllers(owned, (power,))
    assert not has_other_controllers(coin, ())
    assert has_other_controllers(with_roles, (power,))
    assert has_other_controllers(owned, (replace(power, caller="role"),))
    assert has_other_controllers(owned, (replace(power, caller=None),))
