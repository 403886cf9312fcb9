"""contract-explain as it is bought: registries in turn, the chain beside them, and any of them may fail."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import httpx
import pytest
from buyer import ApiFactory, Buyer, pay, payment_note, sign_payment
from eth_abi.abi import encode
from fake_upstreams import FAULTS, FakeUpstreams, Fault, RecordedRequest, configure_providers, send_paid
from jsonschema import Draft202012Validator
from pydantic import SecretStr

from centgate.chains import CHAINS
from centgate.crypto.contract.bytecode import function_selector
from centgate.crypto.contract.proxies import (
    ADMIN_SLOT,
    BEACON_SLOT,
    FACETS_CALL,
    GET_OWNER_CALL,
    IMPLEMENTATION_CALL,
    IMPLEMENTATION_SLOT,
    OWNER_CALL,
    PROXIABLE_SLOT,
)
from centgate.crypto.contract.upgrade_events import DIAMOND_CUT_TOPIC, UPGRADED_TOPIC
from centgate.devchain.deployer import CONTRACTS
from centgate.services.contract_explain import contract_explain
from centgate.settings import ProviderSettings, Settings
from centgate.solidity import load_contract

PATH = "/services/contract-explain"
CONTRACT, LOGIC, ADMIN, OLD, CREATOR, OWNED = ("0x" + digit * 40 for digit in "a1bcd2")
PLAIN = "0x6080604052600080fd"
PROXY = "0x365f5f375f5f365f5f545af43d5f5f3e5f3d91602a57fd5bf3"
CLONE = f"0x363d3d373d3d3d363d73{LOGIC[2:]}5af43d82803e903d91602b57fd5bf3"
TRANSACTION = "0x" + "1f" * 32
DAY = 86_400
REGISTRIES = ("etherscan", "sourcify", "blockscout")
SOME_FAULTS: tuple[Fault, ...] = ("timeout", "500", "429", "200 page", "wrong types")

Body = dict[str, Any]


def word(address: str) -> str:
    return "0x" + address[2:].rjust(64, "0")


@dataclass
class Node:
    """A JSON-RPC node with these codes, storage words and answers to calls; a block a second until now."""

    codes: dict[str, str] = field(default_factory=lambda: {CONTRACT: PLAIN})
    slots: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    answers: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    ages: dict[int, float] = field(default_factory=dict[int, float])
    """Days ago that a block was made."""
    refuses: set[str] = field(default_factory=set[str])
    latest: int = 1_000
    """Number of the last block."""
    logs: list[Body] = field(default_factory=list[Body])

    def __call__(self, asked: RecordedRequest) -> tuple[int, Any]:
        """The answer to a request, or to a batch of them."""
        if isinstance(asked.body, dict):
            return 200, self.one(cast(Body, asked.body))
        return 200, [self.one(each) for each in cast(list[Body], asked.body)]

    def one(self, request: Body) -> Body:
        envelope = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] in self.refuses:
            return envelope | {"error": {"code": -32601, "message": "no such method"}}
        return envelope | {"result": self.result(request["method"], request["params"])}

    def result(self, method: str, params: list[Any]) -> Any:
        match method:
            case "eth_chainId":
                return hex(8453)
            case "eth_getTransactionCount":
                return "0x1"
            case "eth_getCode":
                return self.codes.get(params[0], "0x")
            case "eth_getStorageAt":
                return self.slots.get((params[0], params[1]), "0x" + "0" * 64)
            case "eth_call":
                known = {
                    (to, "0x" + function_selector(asked).hex()): said
                    for (to, asked), said in self.answers.items()
                }
                return known.get((params[0]["to"], params[0]["data"]), "0x")
            case "eth_getLogs":
                return [each for each in self.logs if self.has_log(each, params[0])]
            case "eth_getBlockByNumber":
                number = self.latest if params[0] == "latest" else int(params[0], 16)
                made = int(time.time() - self.ages.get(number, 0) * DAY)
                return {"number": hex(number), "timestamp": hex(made)}
            case _:
                raise AssertionError(method)

    @staticmethod
    def has_log(log: Body, wanted: Body) -> bool:
        """True if a log is in the blocks that are asked for."""
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        return first <= int(log["blockNumber"], 16) <= last

    def points(self, slot: str, target: str = LOGIC) -> None:
        """Make the contract a proxy to code that is there."""
        self.codes |= {CONTRACT: PROXY, target: PLAIN}
        self.slots[CONTRACT, slot] = word(target)


class World:
    """All sources, in which nothing is published until a test says so."""

    def __init__(self, upstreams: FakeUpstreams, settings: Settings) -> None:
        self.upstreams, self.settings = upstreams, settings
        self.timeout = 5.0
        self.node = Node()
        self.rows: dict[str, Body] = {}
        self.created: Body | None = None
        self.sourcify: dict[str, Body] = {}
        self.blockscout: dict[str, Body] = {}
        self.accounts: dict[str, Body] = {}
        self.times: dict[str, str] = {}
        self.logs: list[Body] = []
        upstreams.set_response_function("rpc", "/", self.node, method="POST")
        upstreams.set_response_function("etherscan", "/v2/api", self._etherscan)
        for address in (CONTRACT, LOGIC, OLD, ADMIN):
            for chain in (*(chain.id for chain in CHAINS), 84532):
                self._at("sourcify", f"/server/v2/contract/{chain}/{address}", address)
            self._at("blockscout", f"/api/v2/smart-contracts/{address}", address)
            self._at("accounts", f"/api/v2/addresses/{address}", address)
        self._at("times", f"/api/v2/transactions/{TRANSACTION}", TRANSACTION)

    def _at(self, what: str, path: str, key: str) -> None:
        def answer(_asked: RecordedRequest) -> tuple[int, Any]:
            known: Mapping[str, Any] = getattr(self, what)
            if key in known:
                return 200, {"timestamp": known[key]} if what == "times" else known[key]
            return 404, {"match": None} if what == "sourcify" else {"message": "Not found"}

        self.upstreams.set_response_function("sourcify" if what == "sourcify" else "blockscout", path, answer)

    def _etherscan(self, asked: RecordedRequest) -> tuple[int, Any]:
        if asked.params["action"] == "getcontractcreation":
            if self.created is None:
                return 200, {"status": "0", "message": "No data found", "result": None}
            return 200, {"status": "1", "message": "OK", "result": [self.created]}
        if asked.params["action"] == "getLogs":
            return 200, {
                "status": str(int(bool(self.logs))),
                "message": "No records found",
                "result": self.logs,
            }
        row = self.rows.get(
            asked.params["address"], {"SourceCode": "", "ABI": "Contract source code not verified"}
        )
        return 200, {"status": "1", "message": "OK", "result": [row]}

    def providers(self, *, key: bool = True, **more: ProviderSettings) -> dict[str, ProviderSettings]:
        given = {"timeout": self.timeout, "per_minute": 10_000}
        found = self.upstreams.provider_settings("sourcify", "blockscout", **given)
        found |= self.upstreams.provider_settings(
            "etherscan", key=SecretStr("secret") if key else None, **given
        )
        found["rpc"] = ProviderSettings(timeout=self.timeout)
        # each deployment would start a process for it
        found["bytecode"] = ProviderSettings(enabled=False)
        ids = [*(chain.id for chain in CHAINS), 84532]
        return (
            found
            | {f"rpc_{each}": ProviderSettings(url=self.upstreams.url_of("rpc") + "/") for each in ids}
            | more
        )

    def breaks(self, fault: Fault, *names: str) -> None:
        """Let sources fail; who waits for an answer that never comes does so briefly."""
        self.upstreams.faults |= dict.fromkeys(names, fault)
        self.timeout = 0.3 if fault == "timeout" else self.timeout

    def asked(self, name: str) -> int:
        return len(self.upstreams.requests_of(name))


@pytest.fixture
def world(upstreams: FakeUpstreams, settings: Settings) -> World:
    return World(upstreams, settings)


@pytest.fixture
def ask(world: World, api: ApiFactory) -> Any:
    """Buys an answer: `ask(chain_id=…, key=…)`."""

    def ask(chain_id: int = 8453, *, key: bool = True, **more: ProviderSettings) -> httpx.Response:
        client = api(configure_providers(world.settings, world.providers(key=key, **more)))
        return send_paid(client, PATH, {"chainId": chain_id, "contractAddress": CONTRACT})

    return ask


def row(**more: Any) -> Body:
    """A verified contract as Etherscan tells it."""
    told: Body = {
        "SourceCode": "contract Vault {}",
        "ABI": "[]",
        "ContractName": "Vault",
        "CompilerVersion": "v0.8.17+commit.8df45f5f",
        "LicenseType": "MIT",
        "Proxy": "0",
        "Implementation": "",
        "SimilarMatch": "",
    }
    return told | more


def match(level: str = "exact_match", **more: Any) -> Body:
    """A verified contract as Sourcify tells it."""
    told: Body = {"match": level, "abi": [], "compilation": {"language": "Solidity", "name": "Vault"}}
    return told | more


def created(days: float) -> Body:
    """A contract's creation as Etherscan tells it."""
    stamp = str(int(time.time() - days * DAY))
    return {"contractCreator": CREATOR, "txHash": TRANSACTION, "timestamp": stamp}


def data_of(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    validator: Any = Draft202012Validator(contract_explain.output_schema)
    validator.validate(data)
    return data


def statuses(response: httpx.Response) -> dict[str, str]:
    return {each["name"]: each["status"] for each in response.json()["providers"]}


def says(data: Any, words: str) -> bool:
    return any(words in sentence for sentence in data["warnings"])


@pytest.mark.extended
@pytest.mark.parametrize("chain_id", [chain.id for chain in CHAINS])
def test_a_verified_contract_is_told_on_every_chain(world: World, ask: Any, chain_id: int):
    world.rows[CONTRACT] = row()
    world.created = created(400)

    response = ask(chain_id)
    data = data_of(response)

    assert (data["verified"], data["contractName"]) == (True, "Vault")
    assert (data["sourceAvailable"], data["abiAvailable"]) == (True, True)
    assert (data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == ("contract", False)
    assert data["links"]["explorer"].endswith(f"/address/{CONTRACT}#code")
    assert data["links"]["creation"]["creatorAddress"] == CREATOR
    assert data["warnings"] == []
    assert response.json()["warnings"] == []
    idle = "skipped"
    assert statuses(response) == {
        "etherscan": "ok",
        "sourcify": "ok",
        "blockscout": idle,
        "rpc": "ok",
        "bytecode": "unconfigured",
    }


def test_implementation_has_the_name_that_an_explorer_gives(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.blockscout[CONTRACT] = {
        "is_verified": False,
        "proxy_type": "eip1967",
        "implementations": [{"address_hash": LOGIC, "name": "LogicByName"}],
        "deployed_bytecode": "0x6001",
    }

    data = data_of(ask())

    assert data["proxy"]["implementations"] == [
        {"address": LOGIC, "name": "LogicByName", "verified": False, "functionCount": None}
    ]


def test_a_proxy_costs_four_calls_of_the_explorer(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.rows = {CONTRACT: row(ContractName="Proxy"), LOGIC: row(ContractName="Logic")}
    world.node.slots[CONTRACT, ADMIN_SLOT] = word(ADMIN)

    data = data_of(ask())

    assert data["proxy"]["kind"] == "eip1967"
    assert data["proxy"]["implementations"] == [
        {"address": LOGIC, "name": "Logic", "verified": True, "functionCount": None}
    ]
    assert data["proxy"]["upgrade"] == {"possible": True, "byAddress": ADMIN, "byKind": "wallet"}
    assert says(data, f"changed at any time by a single wallet, {ADMIN}")
    assert world.asked("etherscan") == 4
    assert data["upgradeController"]["kind"] == "wallet"


def upgraded(block: int, implementation: str, *, by: str = CONTRACT) -> Body:
    """An event of a proxy or beacon, as Etherscan tells it."""
    return log(block, by, [UPGRADED_TOPIC, word(implementation), None])


def log(block: int, address: str, topics: list[str | None], data: str = "0x") -> Body:
    return {
        "address": address,
        "topics": topics,
        "data": data,
        "blockNumber": hex(block),
        "timeStamp": hex(1_700_000_000 + block),
        "logIndex": "0x",
        "transactionHash": TRANSACTION,
    }


def test_the_upgrades_of_a_proxy_are_listed_the_latest_first(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.logs = [upgraded(5, OLD), upgraded(900, LOGIC), {"address": "nonsense"}]

    upgrades = data_of(ask())["upgrades"]

    assert [each["implementationAddress"] for each in upgrades["events"]] == [LOGIC, OLD]
    assert upgrades["events"][0] == {
        "implementationAddress": LOGIC,
        "blockNumber": 900,
        "at": "2023-11-14T22:28:20Z",
        "transactionHash": TRANSACTION,
    }
    assert upgrades["fromBlock"] == 0


def test_the_upgrades_of_a_beacon_proxy_are_those_of_its_beacon(world: World, ask: Any):
    world.node.codes |= {CONTRACT: PROXY, ADMIN: PLAIN, LOGIC: PLAIN}
    world.node.slots[CONTRACT, BEACON_SLOT] = word(ADMIN)
    world.node.answers[ADMIN, IMPLEMENTATION_CALL] = word(LOGIC)
    world.logs = [upgraded(5, OLD, by=ADMIN), upgraded(900, LOGIC, by=ADMIN)]

    upgrades = data_of(ask())["upgrades"]

    assert [each["implementationAddress"] for each in upgrades["events"]] == [LOGIC, OLD]


@pytest.mark.parametrize(("latest", "lies"), [(OLD, True), (LOGIC, False)])
def test_an_implementation_other_than_that_of_the_latest_upgrade_is_doubted(
    world: World, ask: Any, latest: str, *, lies: bool
):
    world.node.points(IMPLEMENTATION_SLOT)
    world.logs = [upgraded(5, LOGIC), upgraded(6, OLD), upgraded(900, latest)]

    data = data_of(ask())

    assert says(data, "this proxy shows") is lies


def test_a_beacon_that_shows_other_code_than_its_latest_upgrade_is_doubted(world: World, ask: Any):
    world.node.codes |= {CONTRACT: PROXY, ADMIN: PLAIN, LOGIC: PLAIN}
    world.node.slots[CONTRACT, BEACON_SLOT] = word(ADMIN)
    world.node.answers[ADMIN, IMPLEMENTATION_CALL] = word(LOGIC)
    world.logs = [upgraded(5, LOGIC, by=ADMIN), upgraded(900, OLD, by=ADMIN)]

    assert says(data_of(ask()), f"names {OLD}, but this proxy shows {LOGIC}")


def test_an_upgrade_before_a_gap_in_the_event_logs_contradicts_nothing(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    # a whole page of the explorer, so that newer ones may be missing up to the node's last hour
    world.logs = [upgraded(block, OLD) for block in range(1, 1_001)]
    world.node.latest = 10_000_000

    data = data_of(ask())

    assert data["upgrades"]["fromBlock"] > 1_000
    assert not says(data, "this proxy shows")


def facet_cut(*cuts: tuple[str, int]) -> str:
    """The data of a DiamondCut event: facets with what is done (0 adds, 1 replaces, 2 removes)."""
    selectors = [bytes(4)]
    rows = [(address, action, selectors) for address, action in cuts]
    return "0x" + encode(["(address,uint8,bytes4[])[]", "address", "bytes"], [rows, OWNED, b""]).hex()


def diamond(world: World) -> None:
    """Make the contract a diamond with one facet."""
    world.node.codes |= {CONTRACT: PROXY, LOGIC: PLAIN}
    world.node.answers[CONTRACT, FACETS_CALL] = f"0x{32:064x}{1:064x}{word(LOGIC)[2:]}"


def test_the_upgrades_of_a_diamond_are_its_cuts(world: World, ask: Any):
    diamond(world)
    nobody = "0x" + "0" * 40
    world.logs = [
        log(5, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((OLD, 0), (ADMIN, 0), (OLD, 0))),
        log(900, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((LOGIC, 1), (nobody, 2))),
        log(901, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((nobody, 2))),
    ]

    upgrades = data_of(ask())["upgrades"]

    told = [(each["blockNumber"], each["implementationAddress"]) for each in upgrades["events"]]
    assert told == [(901, None), (900, LOGIC), (5, OLD), (5, ADMIN)]


def test_a_cut_to_facets_that_are_gone_contradicts_nothing(world: World, ask: Any):
    diamond(world)
    world.logs = [log(5, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((OLD, 0)))]

    assert not says(data_of(ask()), "this proxy shows")


@pytest.mark.parametrize(
    "data", ["0x", "0x" + "ff" * 128, "0x" + f"{32:064x}" * 4, facet_cut((OLD, 0))[:322]]
)
def test_a_cut_that_cannot_be_read_is_counted(world: World, ask: Any, data: str):
    diamond(world)
    world.logs = [
        log(5, CONTRACT, [DIAMOND_CUT_TOPIC], data),
        log(6, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((LOGIC, 0))),
    ]

    answer = data_of(ask())

    assert [each["blockNumber"] for each in answer["upgrades"]["events"]] == [6]
    assert says(answer, "not all event logs could be read")


def test_a_proxy_of_a_kind_without_published_events_is_not_said_to_be_unchanged(world: World, ask: Any):
    world.node.points(PROXIABLE_SLOT)

    data = data_of(ask())

    assert data["proxy"]["kind"] == "eip1822"
    assert data["upgrades"] is None
    assert says(data, "upgrades of this proxy are not known")


def test_a_node_that_gives_event_logs_is_asked_for_their_times(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.node.logs = [upgraded(900, LOGIC) | {"logIndex": "0x0", "timeStamp": None}]
    world.node.ages[900] = 3

    (event,) = data_of(ask(key=False))["upgrades"]["events"]

    assert datetime.now(UTC) - datetime.fromisoformat(event["at"]) > timedelta(days=2.9)


def test_a_contract_that_is_no_proxy_has_no_upgrades(ask: Any):
    assert data_of(ask())["upgrades"] is None


def test_without_event_logs_the_upgrades_are_unknown(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.node.refuses = {"eth_getLogs", "eth_getBlockByNumber"}

    data = data_of(ask(key=False))

    assert data["upgrades"] is None
    assert says(data, "upgrades of this proxy are not known")


def abi(*functions: tuple[str, list[str]]) -> list[Body]:
    """An ABI of functions with the types of their arguments."""
    return [
        {"type": "function", "name": name, "inputs": [{"type": each} for each in types]}
        for name, types in functions
    ]


def test_functions_have_the_names_of_the_abi_of_their_own_contract(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.node.codes[LOGIC] = "0x" + load_contract(CONTRACTS, "Owners", "Safe").runtime_code.hex()
    world.sourcify = {
        CONTRACT: match(abi=abi(("nonce", []), ("getOwners", []))),
        LOGIC: match(abi=abi(("isOwner", ["address"]), ("madeUp", []))),
    }

    data = data_of(ask(bytecode=ProviderSettings()))

    told = {(each["signature"], each["signatureSource"]) for each in data["functions"]}
    assert told == {("isOwner(address)", "abi"), ("execute(address,uint256,bytes)", "common"), (None, None)}
    assert data["proxy"]["implementations"][0]["functionCount"] == data["functionCount"] == 6


def test_an_admin_contract_is_told_with_its_owner(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.node.slots[CONTRACT, ADMIN_SLOT] = word(ADMIN)
    world.node.codes[ADMIN] = PLAIN
    world.node.answers[ADMIN, OWNER_CALL] = word(OWNED)

    data = data_of(ask())

    assert data["proxy"]["upgrade"]["byKind"] == "contract"
    assert says(data, f"whose owner() is {OWNED}, a wallet")
    controller = data["upgradeController"]
    assert (controller["address"], controller["kind"]) == (ADMIN, "contract")
    assert (controller["owner"]["address"], controller["owner"]["kind"]) == (OWNED, "wallet")


@pytest.mark.parametrize(
    ("answers", "kind", "address"),
    [
        ({OWNER_CALL: word(OWNED)}, "wallet", OWNED),
        ({GET_OWNER_CALL: word(OWNED)}, "wallet", OWNED),
        ({OWNER_CALL: "0x" + "0" * 64, GET_OWNER_CALL: word(OWNED)}, "renounced", "0x" + "0" * 40),
        ({}, "none", None),
    ],
)
@pytest.mark.parametrize("code", [PLAIN, CLONE])
def test_the_owner_is_the_one_that_a_contract_or_clone_states(
    world: World, ask: Any, code: str, answers: dict[str, str], kind: str, address: str | None
):
    world.node.codes |= {CONTRACT: code, LOGIC: PLAIN}
    world.node.answers = {(CONTRACT, call): told for call, told in answers.items()}

    owner = data_of(ask())["owner"]

    assert (owner["kind"], owner["address"], owner["owner"]) == (kind, address, None)


def test_an_owner_that_the_node_does_not_tell_is_unknown(world: World, ask: Any):
    world.node.refuses = {"eth_call"}

    assert data_of(ask())["owner"] is None


def test_what_the_explorer_has_not_the_next_registry_may_have(world: World, ask: Any):
    world.sourcify[CONTRACT] = match("match")

    response = ask()
    data = data_of(response)

    assert data["verified"] is True
    levels = [(each["source"], each["matchLevel"]) for each in data["links"]["verifications"]]
    assert levels == [("etherscan", "none"), ("sourcify", "bytecode")]
    assert not [each for each in world.upstreams.requests_of("blockscout") if "smart-contracts" in each.path]


def test_how_closely_the_source_matches_is_told_beside_the_explorer(world: World, ask: Any):
    world.rows[CONTRACT] = row()
    world.sourcify[CONTRACT] = match("exact_match")

    verifications = data_of(ask())["links"]["verifications"]

    assert [(each["source"], each["matchLevel"]) for each in verifications] == [
        ("etherscan", "unspecified"),
        ("sourcify", "exact"),
    ]
    assert verifications[1]["url"].startswith("https://repo.sourcify.dev/8453/0x")


@pytest.mark.extended
def test_explorer_and_registry_are_asked_at_once(world: World, ask: Any):
    world.rows[CONTRACT] = row()
    world.created = created(400)
    world.sourcify[CONTRACT] = match()
    world.upstreams.delay = 0.5

    data_of(ask())

    asked = [each.at for name in ("etherscan", "sourcify") for each in world.upstreams.requests_of(name)]
    assert len(asked) == 3
    assert max(asked) - min(asked) < 0.4


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_a_registry_that_fails_beside_the_explorer_costs_the_match_alone(
    world: World, ask: Any, fault: Fault
):
    world.rows[CONTRACT] = row()
    world.created = created(400)
    world.breaks(fault, "sourcify")

    response = ask()
    data = data_of(response)

    assert (data["verified"], data["contractName"]) == (True, "Vault")
    assert [each["source"] for each in data["links"]["verifications"]] == ["etherscan"]
    assert any("Sourcify" in each for each in response.json()["warnings"])


@pytest.mark.parametrize("days_ahead", [11_600_000, 2.0**230, 0.1, 400, -20_000])
def test_a_block_with_an_impossible_time_dates_no_contract(world: World, ask: Any, days_ahead: float):
    world.sourcify[CONTRACT] = match(deployment={"blockNumber": "7"})
    world.node.ages[7] = -days_ahead

    data = data_of(ask(key=False))

    assert data["verified"] is True
    assert data["links"]["creation"]["createdAt"] is None
    assert says(data, "the creation time of this contract is not known")


@pytest.mark.extended
@pytest.mark.parametrize(
    "odd", ["2024-11-02T10:15:47", "2020-11-02T10:15:47Z", "0001-01-01T00:00:00+14:00", "soon"]
)
def test_a_transaction_with_an_impossible_time_dates_no_contract(world: World, ask: Any, odd: str):
    world.accounts[CONTRACT] = {"is_contract": True, "creation_transaction_hash": TRANSACTION}
    world.times[TRANSACTION] = odd

    data = data_of(ask(key=False))

    assert data["links"]["creation"] == {
        "createdAt": None,
        "creatorAddress": None,
        "transactionHash": TRANSACTION,
    }


BEYOND_PLAN = "Free API access is not supported for this chain. Please upgrade your api plan"


def beyond_plan(world: World) -> None:
    """Let the explorer tell of source alone."""

    def answer(asked: RecordedRequest) -> tuple[int, Any]:
        if asked.params["action"] == "getcontractcreation":
            return 200, {"status": "0", "message": "NOTOK", "result": BEYOND_PLAN}
        return 200, {"status": "1", "message": "OK", "result": [row()]}

    world.upstreams.set_response_function("etherscan", "/v2/api", answer)


def test_where_the_plan_lacks_creation_the_block_of_deployment_tells_its_time(world: World, ask: Any):
    beyond_plan(world)
    world.sourcify[CONTRACT] = match(deployment={"blockNumber": "7"})
    world.node.ages[7] = 2.5

    response = ask()
    data = data_of(response)

    assert says(data, "this contract is new: it was created 2 days ago")
    assert (statuses(response)["etherscan"], response.json()["warnings"]) == ("ok", [])


def test_where_the_plan_lacks_creation_another_explorer_tells_it(world: World, ask: Any):
    beyond_plan(world)
    world.accounts[CONTRACT] = {
        "is_contract": True,
        "creator_address_hash": CREATOR,
        "creation_transaction_hash": TRANSACTION,
    }
    world.times[TRANSACTION] = "2024-11-02T10:15:47Z"

    creation = data_of(ask())["links"]["creation"]

    assert creation == {
        "createdAt": "2024-11-02T10:15:47Z",
        "creatorAddress": CREATOR,
        "transactionHash": TRANSACTION,
    }


def test_a_creation_that_nobody_can_tell_is_named(world: World, ask: Any):
    beyond_plan(world)

    response = ask()
    data = data_of(response)

    assert data["links"]["creation"] is None
    assert says(data, "the creation time of this contract is not known")
    assert (statuses(response)["etherscan"], response.json()["warnings"]) == ("ok", [])


def test_an_admin_that_nobody_owns_changes_no_code(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.node.slots[CONTRACT, ADMIN_SLOT] = word(ADMIN)
    world.node.codes[ADMIN] = PLAIN + function_selector("upgrade(address,address)").hex()
    world.node.answers[ADMIN, OWNER_CALL] = "0x" + "0" * 64

    data = data_of(ask())

    assert data["proxy"]["upgrade"] == {"possible": False, "byAddress": None, "byKind": None}
    assert data["proxy"]["evidence"][-1]["value"] == "0x" + "0" * 40
    assert says(data, "whose owner() is a burn address")


def test_of_very_many_implementations_the_first_are_told(world: World, ask: Any):
    world.node.codes = {CONTRACT: PROXY}
    many = [{"address": f"0x{number:040x}"} for number in range(0x1000, 0x1000 + 20_000)]
    world.sourcify[CONTRACT] = match(
        proxyResolution={"isProxy": True, "proxyType": "DiamondProxy", "implementations": many}
    )

    response = ask()
    data = data_of(response)

    assert len(data["proxy"]["implementations"]) == 60
    assert says(data, "19940 more implementations")
    assert len(response.content) < 20_000


def test_unverified_is_said_after_all_registries_were_asked(world: World, ask: Any):
    data = data_of(ask())

    assert (data["verified"], data["contractName"]) == (False, None)
    assert (data["sourceAvailable"], data["abiAvailable"]) == (False, False)
    assert [each["source"] for each in data["links"]["verifications"]] == [*REGISTRIES]
    assert says(data, "closed source")


@pytest.mark.extended
@pytest.mark.parametrize("chain_id", [1, 56])
def test_without_a_key_sourcify_leads(world: World, ask: Any, chain_id: int):
    world.sourcify[CONTRACT] = match(deployment={"blockNumber": "7"})
    world.node.ages[7] = 100

    response = ask(chain_id, key=False)
    data = data_of(response)

    assert data["verified"] is True
    assert data["links"]["creation"]["createdAt"]
    assert statuses(response)["etherscan"] == "unconfigured"
    assert response.json()["warnings"] == []


def test_blockscout_knows_what_the_others_do_not(world: World, ask: Any):
    world.blockscout[CONTRACT] = {"is_verified": True, "name": "Vault", "source_code": "x", "abi": []}
    world.accounts[CONTRACT] = {"is_contract": True, "creation_transaction_hash": TRANSACTION}
    world.times[TRANSACTION] = "2024-11-02T10:15:47.000000Z"

    data = data_of(ask(key=False))

    assert data["verified"] is True
    assert data["links"]["creation"]["createdAt"] == "2024-11-02T10:15:47Z"


def test_source_of_a_twin_does_not_count(world: World, ask: Any):
    world.rows[CONTRACT] = row(SimilarMatch=OLD)

    data = data_of(ask())

    assert (data["verified"], data["contractName"]) == (False, "Vault")
    assert data["links"]["verifications"][0]["similarAddress"] == OLD
    assert says(data, f"of {OLD}, another contract with the same code")


def test_a_twin_with_source_of_its_own_elsewhere_counts(world: World, ask: Any):
    world.rows[CONTRACT] = row(SimilarMatch=OLD)
    world.sourcify[CONTRACT] = match()

    data = data_of(ask())

    assert data["verified"] is True
    assert not says(data, "same code")


def test_an_explorer_that_is_behind_is_contradicted(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.rows[CONTRACT] = row(Proxy="1", Implementation=OLD)

    data = data_of(ask())

    assert [each["address"] for each in data["proxy"]["implementations"]] == [LOGIC]
    assert says(data, f"etherscan gives {OLD} as implementation, the slot has {LOGIC}")
    assert says(data, f"no source is published for the implementation {LOGIC}")


def test_a_published_proxy_does_not_vouch_for_the_code_that_runs(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.rows[CONTRACT] = row()

    data = data_of(ask())

    assert data["verified"] is True
    assert [each["verified"] for each in data["proxy"]["implementations"]] == [False]
    assert says(data, f"no source is published for the implementation {LOGIC}")


def test_of_many_facets_three_are_looked_up(world: World, ask: Any):
    many = [f"0x{number:040x}" for number in range(0x1000, 0x1005)]
    world.node.codes |= {CONTRACT: PROXY} | dict.fromkeys(many, PLAIN)
    words = [f"{32:064x}", f"{5:064x}", *(word(each)[2:] for each in many)]
    world.node.answers[CONTRACT, FACETS_CALL] = "0x" + "".join(words)
    world.rows = {CONTRACT: row()} | {each: row(ContractName="Facet") for each in many}

    data = data_of(ask())

    assert data["proxy"]["kind"] == "eip2535"
    assert [each["verified"] for each in data["proxy"]["implementations"]] == [True, True, True, None, None]
    assert says(data, "the first 3 of 5 implementations")


def test_a_wallet_is_no_unverified_contract(world: World, ask: Any):
    world.node.codes = {}

    data = data_of(ask())

    assert (data["verified"], data["sourceAvailable"], data["abiAvailable"]) == (None, None, None)
    assert (data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == ("wallet", False)
    assert data["warnings"] == []


def test_a_wallet_with_delegated_code_is_named_so(world: World, ask: Any):
    world.node.codes = {CONTRACT: "0xef0100" + LOGIC[2:], LOGIC: PLAIN}
    world.rows = {CONTRACT: row(ContractName="Delegate"), LOGIC: row(ContractName="Delegate")}

    data = data_of(ask())

    assert (data["verified"], data["contractName"]) == (None, None)
    assert (data["proxy"]["accountKind"], data["proxy"]["kind"]) == ("delegated_wallet", "eip7702")
    assert data["proxy"]["implementations"][0]["verified"] is True
    assert data["proxy"]["upgrade"]["byKind"] == "delegated_wallet"
    assert says(data, "wallet with delegated code")


def test_a_clone_cannot_be_changed(world: World, ask: Any):
    world.node.codes |= {CONTRACT: CLONE, LOGIC: PLAIN}

    upgrade = data_of(ask())["proxy"]["upgrade"]

    assert upgrade == {"possible": False, "byAddress": None, "byKind": None}


@pytest.mark.parametrize("outer", ["slot", "clone"])
def test_the_code_behind_a_clone_is_looked_at(world: World, ask: Any, outer: str):
    world.node.codes |= {LOGIC: CLONE.replace(LOGIC[2:], OLD[2:]), OLD: PLAIN}
    if outer == "slot":
        world.node.points(IMPLEMENTATION_SLOT)
        world.node.codes[LOGIC] = CLONE.replace(LOGIC[2:], OLD[2:])
    else:
        world.node.codes[CONTRACT] = CLONE
    world.rows = {CONTRACT: row(), LOGIC: row()}

    data = data_of(ask())

    assert [(each["address"], each["verified"]) for each in data["proxy"]["implementations"]] == [
        (LOGIC, True),
        (OLD, False),
    ]
    assert data["proxy"]["upgrade"]["possible"] is (None if outer == "slot" else False)
    assert says(data, f"of {LOGIC}, is a minimal proxy itself, which runs the code of {OLD}")
    assert says(data, f"no source is published for the implementation {OLD}")


def test_a_clone_of_too_many_clones_is_not_called_unchangeable(world: World, ask: Any):
    chain = [CONTRACT, LOGIC, OLD, ADMIN, OWNED]
    for each, target in itertools.pairwise(chain):
        world.node.codes[each] = CLONE.replace(LOGIC[2:], target[2:])

    data = data_of(ask())

    assert data["proxy"]["upgrade"]["possible"] is None
    assert says(data, f"runs the code of {OWNED}: that code was not looked at")


def test_a_registry_that_fails_for_the_implementation_leaves_the_proxy_s_own_answer(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)
    world.upstreams.set_response("sourcify", f"/server/v2/contract/8453/{LOGIC}", "x", status=500)

    data = data_of(ask())

    assert data["verified"] is False
    assert data["proxy"]["implementations"][0]["verified"] is None
    assert says(
        data, "whether the source of an implementation is published is not known: Sourcify (no answer)"
    )


def test_code_that_is_gone_is_not_called_a_wallet(world: World, ask: Any):
    world.node.codes = {}
    world.rows[CONTRACT] = row()

    data = data_of(ask())

    assert (data["verified"], data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == (
        None,
        "unknown",
        None,
    )
    assert says(data, "there is no code now")


@pytest.mark.parametrize(
    ("flag", "words"),
    [("is_self_destructed", "destroyed itself"), ("is_changed_bytecode", "has changed since")],
)
def test_what_the_explorer_says_of_the_code_is_told(world: World, ask: Any, flag: str, words: str):
    world.blockscout[CONTRACT] = {"is_verified": True, "source_code": "x", flag: True}

    assert says(data_of(ask(key=False)), words)


@pytest.mark.extended
@pytest.mark.parametrize(("days", "new"), [(0.1, True), (6.9, True), (7.1, False)])
def test_a_new_contract_deserves_a_second_look(world: World, ask: Any, days: float, *, new: bool):
    world.rows[CONTRACT] = row()
    world.created = created(days)

    assert says(data_of(ask()), "this contract is new") is new


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_the_next_registry_stands_in_for_the_first(world: World, ask: Any, fault: Fault):
    world.breaks(fault, "etherscan")
    world.sourcify[CONTRACT] = match()

    response = ask()
    data = data_of(response)

    assert data["verified"] is True
    status = {"timeout": "timeout", "429": "rate_limited"}.get(fault, "error")
    assert statuses(response)["etherscan"] == status
    assert any("Etherscan" in each for each in response.json()["warnings"])
    assert data["warnings"][: len(response.json()["warnings"])] == response.json()["warnings"]


@pytest.mark.parametrize("registry", ["etherscan", "sourcify", "blockscout"])
def test_registry_that_fails_leaves_verification_open(world: World, ask: Any, registry: str):
    world.upstreams.faults[registry] = "500"

    data = data_of(ask())

    assert (data["verified"], data["sourceAvailable"], data["abiAvailable"]) == (None, None, None)
    assert says(data, f"{registry.capitalize()} (no answer)")
    assert not says(data, "closed source")


def test_registry_without_key_leaves_verification_open(world: World, ask: Any):
    data = data_of(ask(key=False))

    assert data["verified"] is None
    assert says(data, "Etherscan (not configured)")
    assert not says(data, "closed source")


def test_code_that_only_an_explorer_saw_is_a_contract(world: World, ask: Any):
    world.upstreams.faults |= {"etherscan": "500", "sourcify": "500", "rpc": "500"}
    world.blockscout[CONTRACT] = {"is_verified": False, "deployed_bytecode": "0x6001"}

    data = data_of(ask())

    assert (data["proxy"]["accountKind"], data["verified"]) == ("contract", None)
    assert says(data, "Etherscan (no answer), Sourcify (no answer)")


def test_creation_that_fails_loses_nothing_else(world: World, ask: Any):
    world.rows[CONTRACT] = row()
    world.created = {"timestamp": "x" * 5, "contractCreator": 7, "txHash": None}

    data = data_of(ask())

    assert data["verified"] is True
    assert data["links"]["creation"] == {"createdAt": None, "creatorAddress": None, "transactionHash": None}


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
def test_when_all_registries_fail_the_first_is_named(world: World, ask: Any, fault: Fault):
    world.breaks(fault, *REGISTRIES)

    response = ask()

    status, code = FAULTS[fault]
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.json()["error"]["provider"] == "etherscan"
    assert payment_note(response)["retry"] == "same_payment"


def test_the_same_payment_gets_the_answer_once_the_registries_are_back(world: World, api: ApiFactory):
    client = api(configure_providers(world.settings, world.providers()))
    body = {"chainId": 8453, "contractAddress": CONTRACT}
    payment = sign_payment(client, Buyer(), PATH, body)
    world.upstreams.faults |= dict.fromkeys(REGISTRIES, "500")
    first = pay(client, payment, PATH, body)
    world.upstreams.faults.clear()

    assert (first.status_code, pay(client, payment, PATH, body).status_code) == (502, 200)


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_without_the_chain_registries_tell_of_the_proxy(world: World, ask: Any, fault: Fault):
    world.breaks(fault, "rpc")
    world.rows = {CONTRACT: row(Proxy="1", Implementation=LOGIC), LOGIC: row(ContractName="Logic")}

    data = data_of(ask())

    assert data["verified"] is True
    assert (data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == ("contract", True)
    assert data["proxy"]["implementations"] == [
        {"address": LOGIC, "name": "Logic", "verified": True, "functionCount": None}
    ]
    assert data["proxy"]["upgrade"]["possible"] is None
    assert says(data, "the chain itself could not be read")


def test_without_the_chain_nobody_knows_whether_there_is_a_contract(world: World, ask: Any):
    world.upstreams.faults["rpc"] = "500"

    data = data_of(ask())

    assert (data["verified"], data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == (
        None,
        "unknown",
        None,
    )
    assert says(data, "whether there is a contract at this address is not known")


@pytest.mark.extended
def test_without_the_chain_an_explorer_can_tell_a_contract_from_a_wallet(world: World, ask: Any):
    world.upstreams.faults["rpc"] = "500"
    world.accounts[CONTRACT] = {"is_contract": True}
    contract = data_of(ask())
    world.accounts[CONTRACT] = {"is_contract": False}
    wallet = data_of(ask())

    assert (contract["verified"], contract["proxy"]["accountKind"]) == (False, "contract")
    assert (wallet["verified"], wallet["proxy"]["accountKind"]) == (None, "wallet")


@pytest.mark.extended
@pytest.mark.parametrize("method", ["eth_call", "eth_getStorageAt"])
def test_a_chain_that_answers_in_part_is_told_in_part(world: World, ask: Any, method: str):
    world.node.points(PROXIABLE_SLOT)
    world.node.refuses = {method}

    data = data_of(ask())

    assert data["proxy"]["accountKind"] == "contract"
    assert says(data, "could not be read in full")


@pytest.mark.extended
def test_a_development_chain_is_explained_by_the_chain_alone(world: World, ask: Any):
    world.node.points(IMPLEMENTATION_SLOT)

    response = ask(84532)
    data = data_of(response)

    assert (data["verified"], data["sourceAvailable"], data["links"]["explorer"]) == (None, None, None)
    assert (data["proxy"]["kind"], data["links"]["verifications"]) == ("eip1967", [])
    assert says(data, "no registry of published source is configured")
    assert {world.asked(each) for each in REGISTRIES} == {0}


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_on_a_development_chain_nothing_stands_in_for_the_chain(world: World, ask: Any, fault: Fault):
    world.breaks(fault, "rpc")

    response = ask(84532)

    status, code = FAULTS[fault]
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.json()["error"]["provider"] == "rpc"


def test_an_explorer_of_ones_own_explains_a_development_chain(world: World, ask: Any):
    world.blockscout[CONTRACT] = {"is_verified": True, "name": "Vault", "source_code": "x", "abi": []}
    own = ProviderSettings(url=world.upstreams.url_of("blockscout"))

    data = data_of(ask(84532, blockscout_84532=own))

    assert (data["verified"], data["contractName"]) == (True, "Vault")


@pytest.mark.extended
def test_without_any_source_nothing_is_charged(world: World, api: ApiFactory):
    off = ProviderSettings(enabled=False)
    names = (*REGISTRIES, "rpc", "rpc_8453")
    client = api(configure_providers(world.settings, world.providers(**dict.fromkeys(names, off))))

    response = send_paid(client, PATH, {"chainId": 8453, "contractAddress": CONTRACT})

    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")
    assert payment_note(response)["charged"] is False


@pytest.mark.extended
@pytest.mark.parametrize(
    "body",
    [
        {"chainId": 8453},
        {"chainId": 5, "contractAddress": CONTRACT},
        {"chainId": 1, "contractAddress": "0x"},
    ],
)
def test_what_cannot_be_asked_is_refused_for_free(world: World, api: ApiFactory, body: Body):
    client = api(configure_providers(world.settings, world.providers()))

    response = client.post(PATH, json=body)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")


@pytest.mark.extended
def test_the_same_question_is_answered_from_the_cache(world: World, api: ApiFactory):
    world.rows[CONTRACT] = row()
    client = api(configure_providers(world.settings, world.providers()))
    body = {"chainId": 8453, "contractAddress": CONTRACT}
    first = send_paid(client, PATH, body)
    calls = world.asked("etherscan")
    again = send_paid(client, PATH, {**body, "contractAddress": CONTRACT.upper().replace("0X", "0x")})

    assert first.json()["data"] == again.json()["data"]
    assert world.asked("etherscan") == calls


@pytest.mark.extended
@pytest.mark.parametrize("names", [("rpc", "rpc_8453"), ("rpc_8453",)])
def test_a_chain_that_is_switched_off_weakens_the_answer(world: World, ask: Any, names: tuple[str, ...]):
    world.rows[CONTRACT] = row()

    response = ask(**dict.fromkeys(names, ProviderSettings(enabled=False)))

    assert any("the chain itself could not be read" in each for each in response.json()["warnings"])
    assert says(data_of(response), "the chain itself could not be read")


def test_registries_that_are_switched_off_weaken_the_answer(world: World, ask: Any):
    response = ask(**dict.fromkeys(REGISTRIES, ProviderSettings(enabled=False)))

    assert any("no registry of published source" in each for each in response.json()["warnings"])
    assert says(data_of(response), "no registry of published source")
