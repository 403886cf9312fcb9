"""Members of AccessControl roles: the calls that are made, and the results that are accepted."""

from __future__ import annotations

from collections.abc import Mapping

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.roles import (
    DEFAULT_ADMIN_ROLE,
    MAX_LISTED_MEMBERS,
    MAX_ROLES,
    ROLE_NAMES,
    RoleMembers,
    list_role_calls,
    parse_roles,
)
from centgate.signing.evm import keccak

ALICE, BOB = "0x" + "a1" * 20, "0x" + "b0" * 20
GRANTED, MINTER = (1).to_bytes(32), keccak(b"MINTER_ROLE")
PLAIN = frozenset(map(function_selector, ("hasRole(bytes32,address)", "MINTER_ROLE()")))
LISTED = PLAIN | frozenset(
    map(function_selector, ("getRoleMemberCount(bytes32)", "getRoleMember(bytes32,uint256)"))
)


def encode_address(address: str) -> bytes:
    return bytes.fromhex(address[2:]).rjust(32, b"\0")


def parse_answers(
    selectors: frozenset[bytes], answers: Mapping[bytes, bytes], *candidates: str
) -> dict[str, RoleMembers]:
    """Return the roles read from call results by call data; calls without a result fail."""
    calls = list_role_calls(selectors, candidates)
    return {each.name: each for each in parse_roles({key: answers.get(data) for key, data in calls.items()})}


def encode_role_call(signature: str, role: bytes, argument: bytes = b"") -> bytes:
    return function_selector(signature) + role + argument


def test_listed_members_are_read() -> None:
    member = "getRoleMember(bytes32,uint256)"
    answers = {
        encode_role_call("getRoleMemberCount(bytes32)", MINTER): (2).to_bytes(32),
        encode_role_call(member, MINTER, (0).to_bytes(32)): encode_address(ALICE),
        encode_role_call(member, MINTER, (1).to_bytes(32)): encode_address(BOB),
    }

    role = parse_answers(LISTED, answers)["MINTER_ROLE"]

    assert (role.count, role.members, role.admin_role) == (2, (ALICE, BOB), None)


def test_only_candidates_are_members_without_enumeration() -> None:
    has_role = "hasRole(bytes32,address)"
    answers = {
        encode_role_call(has_role, bytes(32), encode_address(ALICE)): GRANTED,
        encode_role_call(has_role, bytes(32), encode_address(BOB)): bytes(32),
        encode_role_call("getRoleAdmin(bytes32)", MINTER): bytes(32),
    }

    roles = parse_answers(PLAIN, answers, ALICE, BOB)

    assert (roles[DEFAULT_ADMIN_ROLE].members, roles[DEFAULT_ADMIN_ROLE].count) == ((ALICE,), None)
    assert (roles["MINTER_ROLE"].members, roles["MINTER_ROLE"].admin_role) == ((), bytes(32))


def test_role_with_other_id_has_no_candidates() -> None:
    other = b"\x07" * 32
    answers = {
        function_selector("MINTER_ROLE()"): other,
        encode_role_call("hasRole(bytes32,address)", MINTER, encode_address(ALICE)): GRANTED,
    }

    role = parse_answers(PLAIN, answers, ALICE)["MINTER_ROLE"]

    assert (role.role, role.members, role.count) == (other, (), None)


def test_implausible_member_count_is_ignored() -> None:
    count = encode_role_call("getRoleMemberCount(bytes32)", MINTER)
    first = {encode_role_call("getRoleMember(bytes32,uint256)", MINTER, bytes(32)): encode_address(ALICE)}

    for claimed in (bytes(32), b"\xff" * 32, b"", b"\x01"):
        role = parse_answers(LISTED, {count: claimed, **first})["MINTER_ROLE"]

        assert (role.count, role.members) == (None, (ALICE,))


def test_number_of_calls_is_limited() -> None:
    everything = LISTED | frozenset(function_selector(f"{name}()") for name in ROLE_NAMES)

    calls = list_role_calls(everything, [ALICE, ALICE, BOB])

    assert len({role for role, _, _ in calls}) == MAX_ROLES
    assert len(calls) <= MAX_ROLES * (MAX_LISTED_MEMBERS + 5)
    assert {role for role, _, _ in list_role_calls(frozenset(), [])} == {DEFAULT_ADMIN_ROLE}
