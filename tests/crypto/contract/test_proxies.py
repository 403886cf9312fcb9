"""Classification of proxies by code, storage and call results, and who can change their code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from fake_upstreams import load_body
from hypothesis import given
from hypothesis import strategies as st

from centgate.crypto.abi import function_selector, parse_address_word
from centgate.crypto.contract.account_finding import AccountFinding
from centgate.crypto.contract.account_reads import encode_call, next_reads
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.bytecode import (
    delegation_target,
    has_account_constant,
    has_delegatecall,
    list_opcodes,
    match_clone,
)
from centgate.crypto.contract.contracts import MAX_IMPLEMENTATIONS, NamedAddress, ProxyClaim, SourceRegistry
from centgate.crypto.contract.diamonds import CUT_FACET_CALL, FACETS_CALL, MAX_FACETS
from centgate.crypto.contract.owners import OWNER_CALL
from centgate.crypto.contract.proxies import classify_account, is_slot_call_needed
from centgate.crypto.contract.proxy_claims import apply_registry_claims
from centgate.crypto.contract.proxy_standards import (
    ADMIN_SLOT,
    BEACON_SLOT,
    FIRST_SLOT,
    IMPLEMENTATION_CALL,
    IMPLEMENTATION_SLOT,
    POINTER_SLOTS,
    PROXIABLE_SLOT,
    SLOTS,
    ZEPPELIN_ADMIN_SLOT,
    ZEPPELIN_SLOT,
)

ZERO = "0x" + "0" * 40
ME, LOGIC, ADMIN, BEACON, OWNED, OTHER = ("0x" + digit * 40 for digit in "a1b2c3")
PLAIN = bytes.fromhex("6080604052600080fd")
DELEGATING = bytes.fromhex("365f5f375f5f365f5f545af43d5f5f3e5f3d91602a57fd5bf3")
UPGRADING = PLAIN + function_selector("upgradeTo(address)")
CREATING = DELEGATING + b"\xf0"
SAFE = bytes.fromhex("7fa619486e" + "00" * 28) + DELEGATING
ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()).filter(lambda a: int(a, 16))
FORMS = {
    "EIP-1167": "363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3",
    "PUSH0": "365f5f375f5f365f73{}5af43d5f5f3e5f3d91602a57fd5bf3",
    "PUSH0, other order": "5f5f365f5f37365f73{}5af43d5f5f3e6029573d5ffd5b3d5ff3",
    "44 bytes": "3d3d3d3d363d3d37363d73{}5af43d3d93803e602a57fd5bf3",
    "Vyper": "366000600037611000600036600073{}5af4602c57600080fd5b6110006000f3",
    "before the standard": "3660008037602060003660003473{}61235a5a03f21560015760206000f3",
    "payable, other order": "36602c57343d527f9e4ac34f21c619cefc926c8bd93b54bf5a39c7ab2127a895af1cc0691d7e3dff"
    "593da1005b363d3d373d3d3d3d363d73{}5af43d3d93803e605757fd5bf3",
    "payable": "36602c57343d527f9e4ac34f21c619cefc926c8bd93b54bf5a39c7ab2127a895af1cc0691d7e3dff593da1005b"
    "363d3d373d3d3d363d73{}5af43d82803e903d91605857fd5bf3",
}


def encode_address(address: str) -> bytes:
    return bytes.fromhex(address[2:]).rjust(32, b"\0")


def encode_addresses(*named: str) -> bytes:
    """Encode the result of a call that returns `address[]`."""
    return (32).to_bytes(32, "big") + len(named).to_bytes(32, "big") + b"".join(map(encode_address, named))


@dataclass
class World:
    """Chain with these codes, storage words and call results; everything else is empty."""

    codes: dict[str, bytes]
    slots: dict[str, bytes] = field(default_factory=dict[str, bytes])
    answers: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    elsewhere: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    rounds: int = 0
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def read_state(self, address: str = ME) -> ChainState:
        state = ChainState(address)
        while further := next_reads(state):
            self.rounds += 1
            self.calls += further.calls
            assert self.rounds <= 5
            state.codes |= {each: self.codes.get(each, b"") for each in further.codes}
            words = {(ME, slot): word for slot, word in self.slots.items()} | self.elsewhere
            state.slots |= {each: words.get(each, b"").rjust(32, b"\0") for each in further.slots}
            state.call_results |= {each: self.answers.get(each) for each in further.calls}
        return state

    def classify(self, address: str = ME) -> AccountFinding:
        found = classify_account(self.read_state(address))
        assert found
        return found


def build_proxy(slot: str, *, code: bytes = DELEGATING, **slots: bytes) -> World:
    return World({ME: code, LOGIC: PLAIN}, {slot: encode_address(LOGIC), **slots})


def test_address_without_code_is_wallet_after_one_round():
    world = World({})

    assert world.classify() == AccountFinding("wallet", is_proxy=False, has_delegatecall=False)
    assert world.rounds == 1


def test_pointer_of_address_without_code_leaves_proxy_open():
    found = build_proxy(IMPLEMENTATION_SLOT, code=b"").classify()

    assert (found.account, found.is_proxy, found.upgradeable) == ("unknown", None, None)
    assert any("the node did not tell its code" in note for note in found.notes)


@pytest.mark.parametrize("number", [0, 1, 9, 0x100])
def test_reserved_low_address_is_not_wallet(number: int):
    found = World({}).classify(f"0x{number:040x}")

    assert found.account == "unknown"
    assert "reserved" in found.notes[0]


def test_delegated_wallet_is_classified():
    found = World({ME: bytes.fromhex("ef0100" + LOGIC[2:]), LOGIC: PLAIN}).classify()

    assert (found.account, found.kind, found.implementations) == ("delegated_wallet", "eip7702", (LOGIC,))
    assert (found.upgradeable, found.upgrader) == (True, ME)
    assert "wallet with delegated code" in found.notes[0]


@pytest.mark.parametrize("form", FORMS)
@given(address=ADDRESSES)
def test_minimal_proxy_forms_have_their_target(form: str, address: str):
    assert match_clone(bytes.fromhex(FORMS[form].format(address[2:]))) == (address, "eip1167")


@pytest.mark.parametrize(("push", "length"), [("72", 19), ("71", 18), ("70", 17), ("6f", 16)])
def test_shorter_push_omits_leading_zeros(push: str, length: int):
    short = "1" * 2 * length
    code = bytes.fromhex(f"363d3d373d3d3d363d{push}{short}5af43d82803e903d9160{43 - 20 + length:02x}57fd5bf3")

    assert match_clone(code) == ("0x" + short.rjust(40, "0"), "eip1167")


@pytest.mark.parametrize("form", ["EIP-1167", "PUSH0"])
def test_arguments_after_minimal_proxy_are_returned(form: str):
    code = bytes.fromhex(FORMS[form].format(LOGIC[2:])) + b"\1" * 40

    assert match_clone(code) == (LOGIC, "clone_with_immutable_args")


def test_clone_with_arguments_after_call_data_is_classified():
    code = f"3d3d3d3d363d3d3761002a603736393661002a013d73{LOGIC[2:]}5af43d3d93803e603557fd5bf3" + "02" * 42

    assert match_clone(bytes.fromhex(code)) == (LOGIC, "clone_with_immutable_args")


def test_clone_with_metadata_after_call_data_is_classified():
    code = f"363d3d373d3d3d3d60368038038091363936013d73{LOGIC[2:]}5af43d3d93803e603457fd5bf3" + "07" * 64

    assert match_clone(bytes.fromhex(code)) == (LOGIC, "clone_with_immutable_args")


def test_factory_that_contains_pattern_is_no_clone():
    pattern = bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:]))

    assert match_clone(PLAIN + pattern) is None
    assert match_clone(b"\x7f" + pattern) is None


@pytest.mark.recorded
def test_recorded_minimal_proxy_is_classified():
    code = bytes.fromhex(load_body("json_rpc", "getcode_eip1167_proxy")["result"][2:])

    assert match_clone(code) == ("0x9ec1c3dcf667f2035fb4cd2eb42a1566fd54d2b7", "eip1167")


@pytest.mark.recorded
def test_recorded_old_forwarder_is_classified():
    code = bytes.fromhex(load_body("etherscan", "getcode_old_style_minimal_forwarder")["result"][2:])

    assert match_clone(code) == ("0x273930d21e01ee25e4c219b63259d214872220a2", "eip1167")


@pytest.mark.recorded
def test_recorded_plain_contract_is_no_proxy():
    code = bytes.fromhex(load_body("json_rpc", "getcode_no_proxy")["result"][2:])

    assert World({ME: code}).classify().is_proxy is False


@pytest.mark.recorded
def test_recorded_usdc_is_zeppelinos_proxy():
    code = bytes.fromhex(load_body("json_rpc", "getcode_usdc_zos_proxy")["result"][2:])

    found = build_proxy(ZEPPELIN_SLOT, code=code, **{ZEPPELIN_ADMIN_SLOT: encode_address(ADMIN)}).classify()

    assert (found.kind, found.implementations, found.upgrader) == ("zeppelinos", (LOGIC,), ADMIN)


def test_clone_is_not_upgradeable():
    world = World({ME: bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:])), LOGIC: PLAIN})

    assert world.classify().upgradeable is False
    assert world.rounds == 2


def test_clone_of_proxy_may_be_upgradeable():
    code = bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:]))
    found = World(
        {ME: code, LOGIC: DELEGATING}, elsewhere={(LOGIC, IMPLEMENTATION_SLOT): encode_address(OTHER)}
    ).classify()

    assert found.upgradeable is None
    assert any("may be a proxy itself" in note for note in found.notes)


def test_clone_of_unread_target_may_be_upgradeable():
    state = ChainState(ME, codes={ME: bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:])), LOGIC: PLAIN})

    found = classify_account(state)

    assert found
    assert (found.kind, found.upgradeable) == ("eip1167", None)


def test_clone_of_delegating_code_may_be_upgradeable():
    # the storage slot of the other code's address is unknown
    world = World({ME: bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:])), LOGIC: DELEGATING})

    found = world.classify()

    assert found.upgradeable is None
    assert any(f"of {LOGIC}, may be a proxy itself" in note for note in found.notes)


@pytest.mark.parametrize("outer", ["clone", "clone of a clone", "slot", "slot without an admin"])
def test_delegated_wallet_is_upgradeable(outer: str):
    world = build_proxy(
        IMPLEMENTATION_SLOT, **{ADMIN_SLOT: encode_address(ZERO[:-4] + "dead")} if "admin" in outer else {}
    )
    wallet = LOGIC
    if outer.startswith("clone"):
        world = World({ME: bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:]))})
    if outer == "clone of a clone":
        wallet = OTHER
        world.codes[LOGIC] = bytes.fromhex(FORMS["EIP-1167"].format(OTHER[2:]))
    world.codes[wallet] = bytes.fromhex("ef0100" + OWNED[2:])

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (True, wallet)
    assert any(f"of {wallet}, is that of a wallet" in note for note in found.notes)


@pytest.mark.parametrize("levels", [1, 2])
def test_clone_of_empty_address_may_get_any_code(levels: int):
    codes = {ME: bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:]))}
    if levels == 2:
        codes[LOGIC] = bytes.fromhex(FORMS["EIP-1167"].format(OTHER[2:]))

    found = World(codes).classify()

    assert found.upgradeable is None
    assert any("which has none" in note for note in found.notes)


@pytest.mark.parametrize(
    ("slot", "kind"),
    [(IMPLEMENTATION_SLOT, "eip1967"), (PROXIABLE_SLOT, "eip1822"), (ZEPPELIN_SLOT, "zeppelinos")],
)
def test_slot_determines_kind_and_implementation(slot: str, kind: str):
    found = build_proxy(slot).classify()

    assert (found.is_proxy, found.kind, found.implementations) == (True, kind, (LOGIC,))
    assert (found.evidence[0].field, found.evidence[0].value) == (
        f"storage {slot}",
        "0x" + encode_address(LOGIC).hex(),
    )
    assert found.upgradeable is None


def test_safe_needs_slot_and_code():
    assert build_proxy(FIRST_SLOT, code=SAFE).classify().kind == "safe"
    assert build_proxy(FIRST_SLOT).classify().is_proxy is None


@pytest.mark.parametrize("slot", [*(slot for slot, _ in POINTER_SLOTS), FIRST_SLOT])
@pytest.mark.parametrize("bad", ["dirty", "no code"])
def test_slot_without_contract_is_ignored(slot: str, bad: str):
    world = build_proxy(slot, code=SAFE)
    if bad == "dirty":
        world.slots[slot] = b"\1" + encode_address(LOGIC)[1:]
    else:
        del world.codes[LOGIC]

    found = world.classify()

    assert found.is_proxy is None
    assert found.implementations == ()


def test_ignored_slot_is_reported():
    world = build_proxy(IMPLEMENTATION_SLOT)
    del world.codes[LOGIC]

    assert any("not a contract's address" in note for note in world.classify().notes)


@pytest.mark.parametrize("slot", [IMPLEMENTATION_SLOT, ZEPPELIN_SLOT])
def test_upgrade_by_single_wallet_is_reported(slot: str):
    admin = ADMIN_SLOT if slot == IMPLEMENTATION_SLOT else ZEPPELIN_ADMIN_SLOT
    found = build_proxy(slot, **{admin: encode_address(ADMIN)}).classify()

    assert (found.upgradeable, found.upgrader) == (True, ADMIN)
    assert any("single wallet" in note for note in found.notes)


def test_admin_contract_is_returned_with_owner():
    world = build_proxy(IMPLEMENTATION_SLOT, **{ADMIN_SLOT: encode_address(ADMIN)})
    world.codes[ADMIN] = PLAIN
    world.answers[ADMIN, OWNER_CALL] = encode_address(OWNED)

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (True, ADMIN)
    assert any(f"a contract, whose owner() is {OWNED}, a wallet" in note for note in found.notes)
    assert found.evidence[-1].value == OWNED


@pytest.mark.parametrize("slot", [IMPLEMENTATION_SLOT, ZEPPELIN_SLOT])
@pytest.mark.parametrize("burned", [ZERO[:-1] + "1", ZERO[:-4] + "dead", "0x" + "dead" * 10])
def test_burned_admin_leaves_upgradeability_unknown(slot: str, burned: str):
    admin = ADMIN_SLOT if slot == IMPLEMENTATION_SLOT else ZEPPELIN_ADMIN_SLOT
    found = build_proxy(slot, **{admin: encode_address(burned)}).classify()

    # the code may obey an account that it keeps elsewhere
    assert (found.upgradeable, found.upgrader) == (None, None)
    assert any(f"stores is a burn address ({burned})" in note for note in found.notes)
    assert found.evidence[-1].value == "0x" + encode_address(burned).hex()


def test_low_address_contract_can_be_admin():
    timelock = ZERO[:-4] + "2006"
    world = build_proxy(IMPLEMENTATION_SLOT, **{ADMIN_SLOT: encode_address(timelock)})
    world.codes[timelock] = PLAIN

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (True, timelock)


@pytest.mark.parametrize("owner", [ZERO, ZERO[:-4] + "dead"])
def test_proxy_admin_without_owner_leaves_upgradeability_unknown(owner: str):
    world = build_proxy(IMPLEMENTATION_SLOT, **{ADMIN_SLOT: encode_address(ADMIN)})
    world.codes[ADMIN] = PLAIN + function_selector("upgradeAndCall(address,address,bytes)")
    world.answers[ADMIN, OWNER_CALL] = encode_address(owner)

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (None, None)
    assert any(f"whose owner() is a burn address ({owner})" in note for note in found.notes)
    assert found.evidence[-1].value == owner


def test_unknown_admin_contract_may_be_controlled_by_others():
    world = build_proxy(IMPLEMENTATION_SLOT, **{ADMIN_SLOT: encode_address(ADMIN)})
    world.codes[ADMIN] = PLAIN
    world.answers[ADMIN, OWNER_CALL] = encode_address(ZERO)

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (None, None)
    assert any("whether any account can make it do that is not known" in note for note in found.notes)


def test_uups_implementation_may_upgrade_without_admin():
    world = build_proxy(IMPLEMENTATION_SLOT, **{ADMIN_SLOT: encode_address(ZERO[:-4] + "dead")})
    world.codes[LOGIC] = UPGRADING

    assert world.classify().upgradeable is True


def test_burned_owner_of_uups_leaves_upgradeability_unknown():
    world = build_proxy(IMPLEMENTATION_SLOT)
    world.codes[LOGIC] = UPGRADING
    world.answers[ME, OWNER_CALL] = encode_address(ZERO)

    found = world.classify()

    assert found.upgradeable is None
    assert any("that is a burn address" in note for note in found.notes)


@pytest.mark.parametrize("who", [ME, LOGIC])
def test_proxy_with_upgrade_function_in_its_code_is_upgradeable(who: str):
    world = build_proxy(IMPLEMENTATION_SLOT)
    world.codes[who] += function_selector("upgradeToAndCall(address,bytes)")
    world.answers[ME, OWNER_CALL] = encode_address(OWNED)

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (True, None)
    assert any(OWNED in note for note in found.notes)


def build_beacon_proxy(code: bytes) -> World:
    world = World({ME: DELEGATING, BEACON: code, LOGIC: PLAIN}, {BEACON_SLOT: encode_address(BEACON)})
    world.answers = {
        (BEACON, IMPLEMENTATION_CALL): encode_address(LOGIC),
        (BEACON, OWNER_CALL): encode_address(OWNED),
    }
    return world


def test_beacon_implementation_is_read():
    found = build_beacon_proxy(PLAIN).classify()

    assert (found.kind, found.beacon, found.implementations) == ("eip1967_beacon", BEACON, (LOGIC,))
    assert (found.upgradeable, found.upgrader) == (None, None)


def test_owner_of_upgradeable_beacon_controls_its_proxies():
    found = build_beacon_proxy(UPGRADING).classify()

    assert (found.upgradeable, found.upgrader) == (True, OWNED)
    assert any("the beacon: a single wallet" in note for note in found.notes)


def test_burned_owner_of_beacon_leaves_upgradeability_unknown():
    world = build_beacon_proxy(UPGRADING)
    world.answers[BEACON, OWNER_CALL] = encode_address(ZERO)

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (None, None)
    assert found.evidence[-1].value == ZERO
    assert any("by the owner() of the beacon, a burn address" in note for note in found.notes)


def test_beacon_of_unknown_owner_is_upgradeable():
    world = build_beacon_proxy(UPGRADING)
    del world.answers[BEACON, OWNER_CALL]

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (True, None)
    assert any("by whom is not known" in note for note in found.notes)


@pytest.mark.parametrize("result", [None, encode_address(OTHER), b"\1" * 32, b"", encode_addresses(LOGIC)])
def test_beacon_without_contract_is_no_proxy(result: bytes | None):
    world = build_beacon_proxy(PLAIN)
    del world.answers[BEACON, IMPLEMENTATION_CALL]
    if result is not None:
        world.answers[BEACON, IMPLEMENTATION_CALL] = result

    assert world.classify().is_proxy is None


def test_diamond_is_returned_with_facets():
    world = World({ME: DELEGATING, LOGIC: PLAIN, OTHER: PLAIN})
    world.answers = {(ME, FACETS_CALL): encode_addresses(LOGIC, OTHER, ME, ADMIN, LOGIC)}

    found = world.classify()

    assert (found.kind, found.implementations, found.upgradeable) == ("eip2535", (LOGIC, OTHER), None)


def test_functions_that_diamond_may_not_use_are_noted():
    world = World({ME: DELEGATING, LOGIC: PLAIN})
    world.answers = {(ME, FACETS_CALL): encode_addresses(LOGIC)}

    notes = world.classify().notes

    assert "functions are those in the code of its facets, of which it may use a part only" in notes


def test_diamond_with_cut_is_upgradeable_by_owner():
    world = World({ME: DELEGATING, LOGIC: PLAIN})
    world.answers = {
        (ME, FACETS_CALL): encode_addresses(LOGIC),
        (ME, CUT_FACET_CALL): encode_address(LOGIC),
        (ME, OWNER_CALL): encode_address(OWNED),
    }

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (True, OWNED)
    assert any("as it says itself" in note for note in found.notes)


def test_burned_owner_of_diamond_leaves_upgradeability_unknown():
    world = World({ME: DELEGATING, LOGIC: PLAIN})
    world.answers = {
        (ME, FACETS_CALL): encode_addresses(LOGIC),
        (ME, CUT_FACET_CALL): encode_address(LOGIC),
        (ME, OWNER_CALL): encode_address(ZERO),
    }

    found = world.classify()

    assert (found.upgradeable, found.upgrader) == (None, None)
    assert any("by the owner() of the diamond, a burn address" in note for note in found.notes)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\1" * 31,
        encode_addresses(),
        encode_addresses(LOGIC)[:-1],
        b"\xff" * 96,
        (32).to_bytes(32, "big") * 2,
    ],
)
def test_empty_loupe_is_no_diamond(answer: bytes):
    world = World({ME: DELEGATING, LOGIC: PLAIN}, answers={(ME, FACETS_CALL): answer})

    assert world.classify().kind is None


def test_number_of_facets_is_limited():
    many = [f"0x{number:040x}" for number in range(0x1000, 0x1000 + 200)]
    world = World(
        {ME: DELEGATING} | dict.fromkeys(many, PLAIN), answers={(ME, FACETS_CALL): encode_addresses(*many)}
    )

    found = world.classify()

    assert len(found.implementations) == MAX_FACETS
    assert any("140 more facets" in note for note in found.notes)


@pytest.mark.parametrize(
    "hint", [IMPLEMENTATION_CALL, "childImplementation()", "comptrollerImplementation()"]
)
def test_delegating_contract_that_names_implementation_is_proxy(hint: str):
    found = World({ME: DELEGATING, LOGIC: PLAIN}, answers={(ME, hint): encode_address(LOGIC)}).classify()

    assert (found.is_proxy, found.kind, found.implementations) == (True, "other", (LOGIC,))
    assert any("as it says itself" in note for note in found.notes)


@pytest.mark.parametrize(("code", "verdict"), [(PLAIN, False), (CREATING, None)])
def test_beacon_and_factory_with_implementation_are_no_proxies(*, code: bytes, verdict: bool | None):
    found = World(
        {ME: code, LOGIC: PLAIN}, answers={(ME, IMPLEMENTATION_CALL): encode_address(LOGIC)}
    ).classify()

    assert found.is_proxy is verdict
    assert found.implementations == ()


def test_hints_are_read_only_as_last_resort():
    world = build_proxy(IMPLEMENTATION_SLOT)
    world.classify()

    assert (ME, IMPLEMENTATION_CALL) not in world.calls


def test_code_without_delegatecall_is_no_proxy():
    assert World({ME: PLAIN}).classify().is_proxy is False
    assert World({ME: DELEGATING}).classify().is_proxy is None


@pytest.mark.parametrize("slot", [slot for slot, _ in POINTER_SLOTS])
def test_decoy_in_slot_is_no_proxy(slot: str):
    answers = {(LOGIC, IMPLEMENTATION_CALL): encode_address(OTHER)}
    found = World({ME: PLAIN, LOGIC: PLAIN, OTHER: PLAIN}, {slot: encode_address(LOGIC)}, answers).classify()

    assert (found.is_proxy, found.implementations) == (False, ())
    assert f"it stores {LOGIC}" in found.notes[0]


def test_loupe_without_delegatecall_is_no_diamond():
    found = World({ME: PLAIN, LOGIC: PLAIN}, answers={(ME, FACETS_CALL): encode_addresses(LOGIC)}).classify()

    assert (found.is_proxy, found.implementations) == (False, ())
    assert "lists facets" in found.notes[0]


@pytest.mark.parametrize(
    ("code", "is_doubted"), [(b"", True), (bytes.fromhex(IMPLEMENTATION_SLOT[2:]), False)]
)
def test_code_that_does_not_name_slot_is_doubted(*, code: bytes, is_doubted: bool):
    found = build_proxy(IMPLEMENTATION_SLOT, code=DELEGATING + code).classify()

    assert found.implementations == (LOGIC,)
    assert any("does not name the storage slot" in note for note in found.notes) is is_doubted


@pytest.mark.parametrize("slot", [slot for slot, _ in POINTER_SLOTS])
def test_slot_that_no_call_reads_makes_no_proxy(slot: str):
    code = DELEGATING + bytes.fromhex(slot[2:])
    answers = {(LOGIC, IMPLEMENTATION_CALL): encode_address(OTHER)}
    world = World({ME: code, LOGIC: PLAIN, OTHER: PLAIN}, {slot: encode_address(LOGIC)}, answers)
    state = world.read_state()

    unknown = classify_account(state)
    assert unknown
    assert unknown.is_proxy is True
    assert is_slot_call_needed(state)
    state.called_slots = frozenset({FIRST_SLOT})
    unread = classify_account(state)
    assert unread
    assert (unread.is_proxy, unread.implementations) == (None, ())
    assert any("a call to it does not read" in note for note in unread.notes)
    state.called_slots = frozenset({slot})
    read = classify_account(state)
    assert read
    assert read.is_proxy is True
    assert not any("storage slot" in note for note in read.notes)


def test_slot_that_call_reads_needs_no_name_in_code():
    state = build_proxy(IMPLEMENTATION_SLOT, code=DELEGATING).read_state()
    state.called_slots = frozenset({IMPLEMENTATION_SLOT})

    found = classify_account(state)

    assert found
    assert not any("does not name the storage slot" in note for note in found.notes)


@pytest.mark.parametrize(
    ("code", "slot"),
    [
        (PLAIN, IMPLEMENTATION_SLOT),
        (DELEGATING, ADMIN_SLOT),
        (bytes.fromhex(FORMS["EIP-1167"].format(LOGIC[2:])), IMPLEMENTATION_SLOT),
        (SAFE, FIRST_SLOT),
    ],
    ids=["no delegatecall", "no pointer", "clone", "safe"],
)
def test_slots_of_other_code_need_no_call(code: bytes, slot: str):
    assert not is_slot_call_needed(build_proxy(slot, code=code).read_state())


SOLIDITY = "a264697066735822{}64736f6c63430008180033"
"""Metadata of the compiler, with a hash of 34 bytes."""


def test_push_data_and_metadata_are_no_instructions():
    metadata = bytes.fromhex(SOLIDITY.format("f4" * 34))

    assert not has_delegatecall(bytes.fromhex("63f4f4f4f400"))
    assert not has_delegatecall(PLAIN + metadata)
    assert has_delegatecall(DELEGATING)
    assert list_opcodes(b"") == frozenset()


@pytest.mark.parametrize(
    "entries",
    [
        "a165627a7a72305820" + "f4" * 32,
        "a365627a7a72315820" + "f4" * 32 + "6c6578706572696d656e74616cf564736f6c6343000511",
        "a264697066735822" + "f4" * 34 + "64736f6c63781e" + b"0.8.25-nightly.2024.1.15+commi".hex(),
        "a165767970657283000309",
    ],
    ids=["0.4", "experimental", "prerelease", "Vyper"],
)
def test_metadata_of_each_compiler_is_no_code(entries: str):
    metadata = bytes.fromhex(entries)

    code = PLAIN + metadata + len(metadata).to_bytes(2)

    assert list_opcodes(code) == list_opcodes(PLAIN)


@pytest.mark.parametrize(
    "end",
    ["a15b5f355af4ff0007", SOLIDITY.format("5b5f355af4" + "00" * 29)],
    ids=["no metadata", "in the hash"],
)
def test_code_in_metadata_counts_if_jumped_to(end: str):
    start = 4 + bytes.fromhex(end).index(b"\x5b")
    hidden = bytes.fromhex(f"60{start:02x}56fe{end}")

    assert has_delegatecall(hidden)
    assert World({ME: hidden}).classify().is_proxy is None


def test_account_in_metadata_counts_if_jumped_to():
    end = bytes.fromhex(SOLIDITY.format("5b73" + "ab" * 20 + "00" * 12))
    start = 4 + end.index(b"\x5b")

    jumping, other = (bytes([0x60, place, 0x56, 0xFE]) + end for place in (start, start + 1))

    assert has_account_constant(jumping)
    assert not has_account_constant(other)


@pytest.mark.parametrize("gas", ["603556", "61123556", "6035565b00"])
@pytest.mark.parametrize("jump", ["36", "37"])
def test_old_clone_with_other_jump_is_none(gas: str, jump: str):
    """A jump in the place of the gas, or one to what follows, leads to code outside of the pattern."""
    start = f"3660008037602060003660003473{LOGIC[2:]}{gas}5a03f21560{jump}5760206000f3"

    assert match_clone(bytes.fromhex(start + "5b" * 9 + "00")) is None


@given(
    code=st.binary(max_size=120),
    words=st.lists(st.binary(min_size=32, max_size=32), min_size=len(SLOTS), max_size=len(SLOTS)),
    answer=st.one_of(st.none(), st.binary(max_size=200)),
    target=st.sampled_from([b"", PLAIN, UPGRADING]),
)
def test_any_state_is_classified_and_implementations_have_code(
    code: bytes, words: list[bytes], answer: bytes | None, target: bytes
):
    state = ChainState(ME)
    rounds = 0
    while further := next_reads(state):
        rounds += 1
        assert rounds <= 5
        state.codes |= {each: code if each == ME else target for each in further.codes}
        state.slots |= {each: words[SLOTS.index(each[1])] for each in further.slots}
        state.call_results |= dict.fromkeys(further.calls, answer)

    found = classify_account(state)

    assert found
    assert bool(found.implementations) == (found.is_proxy is True)
    if found.kind not in ("eip7702", "eip1167", "clone_with_immutable_args"):
        assert all(state.codes[each] for each in found.implementations)


@given(st.binary(max_size=40))
def test_address_word_starts_with_twelve_zero_bytes(raw: bytes):
    address = parse_address_word(raw)

    assert (address is not None) == (len(raw) == 32 and not any(raw[:12]) and any(raw))


def test_delegation_has_23_bytes():
    code = bytes.fromhex("ef0100" + LOGIC[2:])

    assert delegation_target(code) == LOGIC
    assert delegation_target(code + b"\0") is None
    assert delegation_target(b"\xef\x01\x01" + code[3:]) is None


def test_selectors_match_standards():
    named = {OWNER_CALL: "8da5cb5b", IMPLEMENTATION_CALL: "5c60da1b", FACETS_CALL: "52ef6b2c"}

    assert {question: encode_call(question).hex() for question in named} == named
    assert encode_call(CUT_FACET_CALL).hex().startswith("cdffacc61f931c1c")
    assert len(encode_call(CUT_FACET_CALL)) == 36


@pytest.mark.parametrize("looked", [0, 1, 2])
def test_unread_state_gives_no_claim(looked: int):
    state = ChainState(ME)
    world = build_proxy(IMPLEMENTATION_SLOT)
    if looked:
        state.codes[ME] = DELEGATING
    if looked > 1:
        state.slots = {(ME, slot): word.rjust(32, b"\0") for slot, word in world.slots.items()}

    found = classify_account(state)

    assert found is None if not looked else found and found.is_proxy is None


def build_claim(*implementations: str, is_proxy: bool = True, kind: Any = None) -> ProxyClaim:
    named = tuple(NamedAddress(each, None) for each in implementations)
    return ProxyClaim(is_proxy, kind, named, "Proxy", "1")


def test_outdated_registry_claim_is_contradicted_by_slot():
    found = apply_registry_claims(
        build_proxy(IMPLEMENTATION_SLOT).classify(), [("etherscan", build_claim(OTHER))]
    )

    assert found.implementations == (LOGIC,)
    assert any(f"etherscan gives {OTHER} as implementation, the slot has {LOGIC}" in n for n in found.notes)


def test_agreeing_registry_claim_changes_nothing():
    found = build_proxy(IMPLEMENTATION_SLOT).classify()

    told = apply_registry_claims(
        found, [("etherscan", build_claim(LOGIC)), ("sourcify", build_claim(is_proxy=False))]
    )

    assert told == apply_registry_claims(found, [])


def test_registry_claim_adds_unseen_proxy():
    found = apply_registry_claims(
        World({ME: DELEGATING}).classify(), [("sourcify", build_claim(LOGIC, kind="other"))]
    )

    assert (found.is_proxy, found.kind, found.implementations) == (True, "other", (LOGIC,))
    assert any("only sourcify reports" in note for note in found.notes)


def test_registry_claim_cannot_make_plain_code_proxy():
    found = apply_registry_claims(World({ME: PLAIN}).classify(), [("etherscan", build_claim(LOGIC))])

    assert found.is_proxy is False
    assert any("cannot run other code" in note for note in found.notes)


def test_registry_claim_is_not_denied_by_unknown_code():
    unread = build_proxy(IMPLEMENTATION_SLOT, code=b"").classify()

    found = apply_registry_claims(unread, [("etherscan", build_claim(LOGIC))])

    assert not any("cannot run other code" in note for note in found.notes)
    assert (found.account, found.is_proxy, found.has_delegatecall) == ("unknown", True, None)
    assert any("only etherscan reports" in note for note in found.notes)
    assert apply_registry_claims(unread, []) == unread


def test_registry_denial_is_reported_for_possible_proxy():
    delegating = World({ME: DELEGATING}).classify()

    assert apply_registry_claims(delegating, [("sourcify", build_claim(is_proxy=False))]).is_proxy is False
    assert apply_registry_claims(delegating, []).is_proxy is None


@pytest.mark.parametrize("slot", [IMPLEMENTATION_SLOT, PROXIABLE_SLOT, ZEPPELIN_SLOT])
def test_unknown_upgrader_is_reported(slot: str):
    found = apply_registry_claims(build_proxy(slot).classify(), [])

    assert found.upgradeable is None
    assert any("and by whom, is not known" in note for note in found.notes)


def test_claim_with_kind_is_preferred_without_chain():
    claims: list[tuple[SourceRegistry, ProxyClaim]] = [
        ("etherscan", build_claim(OTHER)),
        ("sourcify", build_claim(LOGIC, kind="eip1967")),
    ]

    found = apply_registry_claims(None, claims)

    assert (found.kind, found.implementations) == ("eip1967", (LOGIC,))


def test_number_of_claimed_implementations_is_limited():
    many = [NamedAddress(f"0x{number:040x}", None) for number in range(1, 20_001)]
    told = ProxyClaim.from_registry("eip2535", many, "proxyResolution", "DiamondProxy", is_proxy=True)

    found = apply_registry_claims(None, [("sourcify", told)])

    assert len(found.implementations) == MAX_IMPLEMENTATIONS
    assert found.evidence[0].value
    assert found.evidence[0].value.endswith("and 19940 more")
    assert any("19940 more implementations" in note for note in found.notes)


def test_registry_claims_are_used_without_chain():
    found = apply_registry_claims(None, [("blockscout", build_claim(LOGIC, kind="eip1967"))])

    assert (found.is_proxy, found.kind, found.upgradeable) == (True, "eip1967", None)
    assert apply_registry_claims(None, [("etherscan", build_claim(LOGIC))]).kind is None
    assert apply_registry_claims(None, [("etherscan", build_claim(is_proxy=False))]).is_proxy is False
    assert apply_registry_claims(None, []).is_proxy is None


def test_jump_to_other_code_is_no_clone():
    hidden = "363d3d373d3d3d363d73" + "11" * 20 + "5af43d82803e903d91602d57fd5bf3" + "5b3d3d3d3d"

    assert match_clone(bytes.fromhex(hidden)) is None
