"""Roles of contracts with OpenZeppelin's AccessControl: what to ask for, and who holds them. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from centgate.crypto.abi import encode_address, encode_uint, function_selector, parse_address_word
from centgate.signing.evm import keccak

DEFAULT_ADMIN_ROLE = "DEFAULT_ADMIN_ROLE"
ROLE_NAMES = (
    DEFAULT_ADMIN_ROLE,
    *("ADMIN_ROLE", "UPGRADER_ROLE", "MINTER_ROLE", "PAUSER_ROLE", "BURNER_ROLE", "BLACKLISTER_ROLE"),
    *("FREEZER_ROLE", "MANAGER_ROLE", "OPERATOR_ROLE", "GOVERNOR_ROLE", "WITHDRAWER_ROLE", "DEPOSITOR_ROLE"),
    *("PROPOSER_ROLE", "EXECUTOR_ROLE", "CANCELLER_ROLE"),
)
"""Roles in common use. A contract has a getter for each; its value is the hash of the name by convention, and
zero for the first one, which can grant and revoke the others."""
MAX_ROLES = 12
MAX_LISTED_MEMBERS = 5
"""Members of a role that are read where the contract lists them (AccessControlEnumerable)."""
_HAS_ROLE, _ADMIN = "hasRole(bytes32,address)", "getRoleAdmin(bytes32)"
_COUNT, _MEMBER = "getRoleMemberCount(bytes32)", "getRoleMember(bytes32,uint256)"


class RoleMembers(Struct, frozen=True):
    """A role and the accounts that hold it, as the contract answers."""

    name: str
    role: bytes
    """32 bytes."""
    admin_role: bytes | None
    """Role whose members grant and revoke this one; None is unknown."""
    count: int | None
    """Number of members; None if the contract does not list them."""
    members: tuple[str, ...]
    """Lower case; of roles that are not listed, those of the asked accounts that hold it."""


def list_role_calls(
    selectors: Collection[bytes], candidates: Sequence[str]
) -> dict[tuple[str, str, str], bytes]:
    """Return the call data of all questions about roles, by role, function and argument.

    `candidates` are addresses, lower case, that may hold roles, for contracts that list no members.
    """
    roles = [
        name
        for name in ROLE_NAMES
        if name == DEFAULT_ADMIN_ROLE or function_selector(f"{name}()") in selectors
    ]
    lists_members = {function_selector(_COUNT), function_selector(_MEMBER)} <= frozenset(selectors)
    calls: dict[tuple[str, str, str], bytes] = {}
    for name in roles[:MAX_ROLES]:
        role = _conventional_role(name)
        if name != DEFAULT_ADMIN_ROLE:
            calls[name, "getter", ""] = function_selector(f"{name}()")
        calls[name, _ADMIN, ""] = function_selector(_ADMIN) + role
        if lists_members:
            calls[name, _COUNT, ""] = function_selector(_COUNT) + role
            for number in range(MAX_LISTED_MEMBERS):
                calls[name, _MEMBER, str(number)] = function_selector(_MEMBER) + role + encode_uint(number)
        for each in dict.fromkeys(candidates):
            calls[name, _HAS_ROLE, each] = function_selector(_HAS_ROLE) + role + encode_address(each)
    return calls


def parse_roles(answers: Mapping[tuple[str, str, str], bytes | None]) -> list[RoleMembers]:
    """Return the roles from the answers to `list_role_calls`; None stands for a call that failed."""
    return [_parse_role(name, answers) for name in dict.fromkeys(role for role, _, _ in answers)]


def _parse_role(name: str, answers: Mapping[tuple[str, str, str], bytes | None]) -> RoleMembers:
    role, getter = _conventional_role(name), _word(answers.get((name, "getter", "")))
    if getter is not None and getter != role:
        # the other answers are about a role that this contract does not mean by the name
        return RoleMembers(name, getter, admin_role=None, count=None, members=())
    listed = [
        address
        for number in range(MAX_LISTED_MEMBERS)
        if (address := parse_address_word(_word(answers.get((name, _MEMBER, str(number))))))
    ]
    held = [
        argument
        for (asked, function, argument), returned in answers.items()
        if (asked, function) == (name, _HAS_ROLE) and returned == encode_uint(1)
    ]
    count = _word(answers.get((name, _COUNT, "")))
    number = int.from_bytes(count) if count is not None else None
    return RoleMembers(
        name,
        role,
        _word(answers.get((name, _ADMIN, ""))),
        number if number is not None and len(listed) <= number < 2**32 else None,
        tuple(dict.fromkeys((*listed, *held))),
    )


def _conventional_role(name: str) -> bytes:
    return bytes(32) if name == DEFAULT_ADMIN_ROLE else keccak(name.encode())


def _word(returned: bytes | None) -> bytes | None:
    return returned if returned is not None and len(returned) == 32 else None
