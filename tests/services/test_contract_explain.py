"""contract-explain through the paid API: registries in turn beside the chain, and failures of each."""

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
from exchange_market import TEST_CONTRACTS
from fake_upstreams import FAULTS, FakeUpstreams, Fault, RecordedRequest, configure_providers, send_paid
from jsonschema import Draft202012Validator
from lookups import proxycode
from pydantic import SecretStr

from centgate.chains import CHAINS
from centgate.crypto.abi import function_selector
from centgate.crypto.contract.diamonds import FACETS_CALL
from centgate.crypto.contract.owners import GET_OWNER_CALL, OWNER_CALL
from centgate.crypto.contract.proxy_standards import (
    ADMIN_SLOT,
    BEACON_SLOT,
    IMPLEMENTATION_CALL,
    IMPLEMENTATION_SLOT,
    PROXIABLE_SLOT,
)
from centgate.crypto.contract.upgrade_events import DIAMOND_CUT_TOPIC, UPGRADED_TOPIC
from centgate.crypto.token.exchange_tables import PRICE_FEEDS
from centgate.services.contract_explain import contract_explain
from centgate.settings import ProviderSettings, Settings
from centgate.solidity import load_contract

PATH = "/services/contract-explain"
CONTRACT, LOGIC, ADMIN, OLD, CREATOR, OWNED = ("0x" + digit * 40 for digit in "a1bcd2")
PLAIN = "0x6080604052600080fd"
PROXY = "0x365f5f375f5f365f5f545af43d5f5f3e5f3d91602a57fd5bf3"
CLONE = f"0x363d3d373d3d3d363d73{LOGIC[2:]}5af43d82803e903d91602b57fd5bf3"
TRANSACTION = "0x" + "1f" * 32
LATEST_ROUND = "0x" + function_selector("latestRoundData()").hex()
DAY = 86_400
REGISTRIES = ("etherscan", "sourcify", "blockscout")
SOME_FAULTS: tuple[Fault, ...] = ("timeout", "500", "429", "200 page", "wrong types")

Body = dict[str, Any]


def encode_address(address: str) -> str:
    return "0x" + address[2:].rjust(64, "0")


@dataclass
class Node:
    """Fake JSON-RPC node with these codes, storage words and call results; one block a second until now."""

    codes: dict[str, str] = field(default_factory=lambda: {CONTRACT: PLAIN})
    slots: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    answers: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    ages: dict[int, float] = field(default_factory=dict[int, float])
    """Age of blocks in days, by number."""
    refuses: set[str] = field(default_factory=set[str])
    lost_codes: set[str] = field(default_factory=set[str])
    """Addresses whose code it does not tell."""
    latest: int = 1_000
    """Number of the last block."""
    wei: int = 3 * 10**18
    feed_age: float = 0
    """Age of the native coin's price, 2,000 dollars, in seconds."""
    logs: list[Body] = field(default_factory=list[Body])

    def __call__(self, asked: RecordedRequest) -> tuple[int, Any]:
        """Answer a request, or a batch of them."""
        if isinstance(asked.body, dict):
            return 200, self.answer_request(cast(Body, asked.body))
        return 200, [self.answer_request(each) for each in cast(list[Body], asked.body)]

    def answer_request(self, request: Body) -> Body:
        envelope = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] in self.refuses:
            return envelope | {"error": {"code": -32601, "message": "no such method"}}
        if request["method"] == "eth_getCode" and request["params"][0] in self.lost_codes:
            return envelope | {"error": {"code": -32000, "message": "missing trie node"}}
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
            case "eth_getBalance":
                return hex(self.wei)
            case "eth_call" if params[0]["data"] == LATEST_ROUND:
                return self.read_feed(params[0]["to"])
            case "eth_call":
                known = {
                    (to, "0x" + function_selector(asked).hex()): said
                    for (to, asked), said in self.answers.items()
                }
                return known.get((params[0]["to"], params[0]["data"]), "0x")
            case "eth_createAccessList":
                return {"accessList": [], "gasUsed": "0x0"}
            case "eth_getLogs":
                return [each for each in self.logs if self.has_log(each, params[0])]
            case "eth_getBlockByNumber":
                number = self.latest if params[0] == "latest" else int(params[0], 16)
                made = int(time.time() - self.ages.get(number, 0) * DAY)
                return {"number": hex(number), "timestamp": hex(made)}
            case _:
                raise AssertionError(method)

    def read_feed(self, feed: str) -> str:
        """Return the latest round of a price feed, or that of a sequencer which is up."""
        now = int(time.time())
        is_price = feed in {each.native_usd for each in PRICE_FEEDS.values()}
        answer, updated_at = (2_000 * 10**8, int(now - self.feed_age)) if is_price else (0, now)
        return "0x" + encode(["uint256"] * 5, [1, answer, now - DAY, updated_at, 1]).hex()

    @staticmethod
    def has_log(log: Body, wanted: Body) -> bool:
        """Return True if a log is in the requested blocks."""
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        return first <= int(log["blockNumber"], 16) <= last

    def set_proxy(self, slot: str, target: str = LOGIC) -> None:
        """Make the contract a proxy of existing code."""
        self.codes |= {CONTRACT: PROXY, target: PLAIN}
        self.slots[CONTRACT, slot] = encode_address(target)


class World:
    """All sources, without any published contract at first."""

    def __init__(self, upstreams: FakeUpstreams, settings: Settings) -> None:
        self.upstreams, self.settings = upstreams, settings
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
        def answer(_request: RecordedRequest) -> tuple[int, Any]:
            known: Mapping[str, Any] = getattr(self, what)
            if key in known:
                return 200, {"timestamp": known[key]} if what == "times" else known[key]
            return 404, {"match": None} if what == "sourcify" else {"message": "Not found"}

        self.upstreams.set_response_function("sourcify" if what == "sourcify" else "blockscout", path, answer)

    def _etherscan(self, request: RecordedRequest) -> tuple[int, Any]:
        if request.params["action"] == "getcontractcreation":
            if self.created is None:
                return 200, {"status": "0", "message": "No data found", "result": None}
            return 200, {"status": "1", "message": "OK", "result": [self.created]}
        if request.params["action"] == "getLogs":
            return 200, {
                "status": str(int(bool(self.logs))),
                "message": "No records found",
                "result": self.logs,
            }
        row = self.rows.get(
            request.params["address"], {"SourceCode": "", "ABI": "Contract source code not verified"}
        )
        return 200, {"status": "1", "message": "OK", "result": [row]}

    def providers(self, *, key: bool = True, **more: ProviderSettings) -> dict[str, ProviderSettings]:
        options = {"per_minute": 10_000}
        found = self.upstreams.provider_settings("sourcify", "blockscout", **options)
        found |= self.upstreams.provider_settings(
            "etherscan", key=SecretStr("secret") if key else None, **options
        )
        found["rpc"] = ProviderSettings(**self.upstreams.time_limit("rpc"))
        # each deployment would start a process for it
        found["bytecode"] = ProviderSettings(enabled=False)
        ids = [*(chain.id for chain in CHAINS), 84532]
        return (
            found
            | {f"rpc_{each}": ProviderSettings(url=self.upstreams.url_of("rpc") + "/") for each in ids}
            | more
        )

    def fail_sources(self, fault: Fault, *names: str) -> None:
        """Let sources fail."""
        self.upstreams.faults |= dict.fromkeys(names, fault)

    def requests_of(self, name: str) -> int:
        return len(self.upstreams.requests_of(name))


@pytest.fixture
def world(upstreams: FakeUpstreams, settings: Settings) -> World:
    return World(upstreams, settings)


@pytest.fixture
def buy(world: World, api: ApiFactory) -> Any:
    """Function that buys an answer: `buy(chain_id=…, key=…)`."""

    def buy(chain_id: int = 8453, *, key: bool = True, **more: ProviderSettings) -> httpx.Response:
        client = api(configure_providers(world.settings, world.providers(key=key, **more)))
        return send_paid(client, PATH, {"chainId": chain_id, "contractAddress": CONTRACT})

    return buy


def etherscan_row(**more: Any) -> Body:
    """Return a verified contract in Etherscan's format."""
    body: Body = {
        "SourceCode": "contract Vault {}",
        "ABI": "[]",
        "ContractName": "Vault",
        "CompilerVersion": "v0.8.17+commit.8df45f5f",
        "LicenseType": "MIT",
        "Proxy": "0",
        "Implementation": "",
        "SimilarMatch": "",
    }
    return body | more


def sourcify_match(level: str = "exact_match", **more: Any) -> Body:
    """Return a verified contract in Sourcify's format."""
    body: Body = {"match": level, "abi": [], "compilation": {"language": "Solidity", "name": "Vault"}}
    return body | more


def etherscan_creation(days: float) -> Body:
    """Return a contract's creation in Etherscan's format."""
    stamp = str(int(time.time() - days * DAY))
    return {"contractCreator": CREATOR, "txHash": TRANSACTION, "timestamp": stamp}


def valid_data(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    validator: Any = Draft202012Validator(contract_explain.output_schema)
    validator.validate(data)
    return data


def provider_statuses(response: httpx.Response) -> dict[str, str]:
    return {each["name"]: each["status"] for each in response.json()["providers"]}


def has_warning(data: Any, words: str) -> bool:
    return any(words in sentence for sentence in data["warnings"])


@pytest.mark.extended
@pytest.mark.parametrize("chain_id", [chain.id for chain in CHAINS])
def test_verified_contract_is_explained_on_every_chain(world: World, buy: Any, chain_id: int):
    world.rows[CONTRACT] = etherscan_row()
    world.created = etherscan_creation(400)

    response = buy(chain_id)
    data = valid_data(response)

    assert (data["verified"], data["contractName"]) == (True, "Vault")
    assert (data["sourceAvailable"], data["abiAvailable"]) == (True, True)
    assert (data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == ("contract", False)
    assert data["links"]["explorer"].endswith(f"/address/{CONTRACT}#code")
    assert data["links"]["creation"]["creatorAddress"] == CREATOR
    assert data["warnings"] == [NOT_ANALYSED]
    assert response.json()["warnings"] == [NOT_ANALYSED]
    idle = "skipped"
    assert provider_statuses(response) == {
        "etherscan": "ok",
        "sourcify": "ok",
        "blockscout": idle,
        "rpc": "ok",
        "bytecode": "unconfigured",
    }


def test_native_balance_is_read_with_first_round(world: World, buy: Any):
    world.node.wei = 1_500_000_000_000_000_001

    balance = valid_data(buy(1))["nativeBalance"]

    assert balance["worth"].pop("pricedAt")
    assert balance == {
        "symbol": "ETH",
        "amountBaseUnits": "1500000000000000001",
        "decimals": 18,
        "amount": 1.5,
        "worth": {
            "priceUsd": 2000,
            "valueUsd": 3000,
            "confidence": None,
            "doubtful": False,
            "source": "chainlink",
        },
        "source": "rpc",
    }
    requests = world.upstreams.requests_of("rpc")
    batches = [cast(list[Body], each.body) for each in requests if isinstance(each.body, list)]
    first, *later = ({request["method"] for request in batch} for batch in batches)
    assert first == {"eth_getCode", "eth_getStorageAt", "eth_getBalance", "eth_call"}
    assert not any("eth_getBalance" in methods for methods in later)


def test_balance_without_reliable_price_has_no_value(world: World, buy: Any):
    world.node.feed_age = 3 * 3600

    data = valid_data(buy(137))

    balance = data["nativeBalance"]
    assert (balance["symbol"], balance["amount"], balance["worth"]) == ("POL", 3, None)
    assert has_warning(data, "Chainlink's price of the native coin is missing or too old")


@pytest.mark.parametrize("wei", [None, 2**256], ids=["refused", "impossible"])
def test_unknown_balance_affects_nothing_else(world: World, buy: Any, wei: int | None):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    if wei is None:
        world.node.refuses = {"eth_getBalance"}
    else:
        world.node.wei = wei

    data = valid_data(buy())

    assert (data["nativeBalance"], data["proxy"]["kind"]) == (None, "eip1967")
    assert has_warning(data, "the native balance is unknown: the node did not tell it")
    assert not has_warning(data, "could not be read")


def test_balance_is_unknown_without_node(world: World, buy: Any):
    data = valid_data(buy(**dict.fromkeys(("rpc", "rpc_8453"), ProviderSettings(enabled=False))))

    assert data["nativeBalance"] is None
    assert has_warning(data, "the native balance is unknown: no node is configured for the chain")


def test_implementation_has_name_of_explorer(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.blockscout[CONTRACT] = {
        "is_verified": False,
        "proxy_type": "eip1967",
        "implementations": [{"address_hash": LOGIC, "name": "LogicByName"}],
        "deployed_bytecode": "0x6001",
    }

    data = valid_data(buy())

    assert data["proxy"]["implementations"] == [
        {"address": LOGIC, "name": "LogicByName", "verified": False, "functionCount": None}
    ]


def test_proxy_takes_four_calls_of_explorer(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.rows = {CONTRACT: etherscan_row(ContractName="Proxy"), LOGIC: etherscan_row(ContractName="Logic")}
    world.node.slots[CONTRACT, ADMIN_SLOT] = encode_address(ADMIN)

    data = valid_data(buy())

    assert data["proxy"]["kind"] == "eip1967"
    assert data["proxy"]["implementations"] == [
        {"address": LOGIC, "name": "Logic", "verified": True, "functionCount": None}
    ]
    assert data["proxy"]["upgrade"] == {"possible": True, "byAddress": ADMIN, "byKind": "wallet"}
    assert has_warning(data, f"changed at any time by a single wallet, {ADMIN}")
    assert world.requests_of("etherscan") == 4
    assert data["upgradeController"]["kind"] == "wallet"


def upgrade_log(block: int, implementation: str, *, by: str = CONTRACT) -> Body:
    """Return an event of a proxy or beacon in Etherscan's format."""
    return build_log(block, by, [UPGRADED_TOPIC, encode_address(implementation), None])


def build_log(block: int, address: str, topics: list[str | None], data: str = "0x") -> Body:
    return {
        "address": address,
        "topics": topics,
        "data": data,
        "blockNumber": hex(block),
        "timeStamp": hex(1_700_000_000 + block),
        "logIndex": "0x",
        "transactionHash": TRANSACTION,
    }


def test_upgrades_are_listed_latest_first(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.logs = [upgrade_log(5, OLD), upgrade_log(900, LOGIC), {"address": "nonsense"}]

    upgrades = valid_data(buy())["upgrades"]

    assert [each["implementationAddress"] for each in upgrades["events"]] == [LOGIC, OLD]
    assert upgrades["events"][0] == {
        "implementationAddress": LOGIC,
        "blockNumber": 900,
        "at": "2023-11-14T22:28:20Z",
        "transactionHash": TRANSACTION,
    }
    assert upgrades["fromBlock"] == 0


def test_beacon_proxy_has_upgrades_of_its_beacon(world: World, buy: Any):
    world.node.codes |= {CONTRACT: PROXY, ADMIN: PLAIN, LOGIC: PLAIN}
    world.node.slots[CONTRACT, BEACON_SLOT] = encode_address(ADMIN)
    world.node.answers[ADMIN, IMPLEMENTATION_CALL] = encode_address(LOGIC)
    world.logs = [upgrade_log(5, OLD, by=ADMIN), upgrade_log(900, LOGIC, by=ADMIN)]

    upgrades = valid_data(buy())["upgrades"]

    assert [each["implementationAddress"] for each in upgrades["events"]] == [LOGIC, OLD]


@pytest.mark.parametrize(("latest", "lies"), [(OLD, True), (LOGIC, False)])
def test_implementation_unlike_latest_upgrade_is_doubted(world: World, buy: Any, latest: str, *, lies: bool):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.logs = [upgrade_log(5, LOGIC), upgrade_log(6, OLD), upgrade_log(900, latest)]

    data = valid_data(buy())

    assert has_warning(data, "this proxy shows") is lies


def test_beacon_code_unlike_latest_upgrade_is_doubted(world: World, buy: Any):
    world.node.codes |= {CONTRACT: PROXY, ADMIN: PLAIN, LOGIC: PLAIN}
    world.node.slots[CONTRACT, BEACON_SLOT] = encode_address(ADMIN)
    world.node.answers[ADMIN, IMPLEMENTATION_CALL] = encode_address(LOGIC)
    world.logs = [upgrade_log(5, LOGIC, by=ADMIN), upgrade_log(900, OLD, by=ADMIN)]

    assert has_warning(valid_data(buy()), f"names {OLD}, but this proxy shows {LOGIC}")


def test_gap_in_event_logs_prevents_contradiction(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    # a full page of the explorer, so that newer logs may be missing up to the node's last hour
    world.logs = [upgrade_log(block, OLD) for block in range(1, 1_001)]
    world.node.latest = 10_000_000

    data = valid_data(buy())

    assert data["upgrades"]["fromBlock"] > 1_000
    assert not has_warning(data, "this proxy shows")


def facet_cut(*cuts: tuple[str, int]) -> str:
    """Return the data of a DiamondCut event: facets with their actions (0 adds, 1 replaces, 2 removes)."""
    selectors = [bytes(4)]
    rows = [(address, action, selectors) for address, action in cuts]
    return "0x" + encode(["(address,uint8,bytes4[])[]", "address", "bytes"], [rows, OWNED, b""]).hex()


def set_diamond(world: World) -> None:
    """Make the contract a diamond with one facet."""
    world.node.codes |= {CONTRACT: PROXY, LOGIC: PLAIN}
    world.node.answers[CONTRACT, FACETS_CALL] = f"0x{32:064x}{1:064x}{encode_address(LOGIC)[2:]}"


def test_diamond_has_its_cuts_as_upgrades(world: World, buy: Any):
    set_diamond(world)
    nobody = "0x" + "0" * 40
    world.logs = [
        build_log(5, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((OLD, 0), (ADMIN, 0), (OLD, 0))),
        build_log(900, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((LOGIC, 1), (nobody, 2))),
        build_log(901, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((nobody, 2))),
    ]

    upgrades = valid_data(buy())["upgrades"]

    rows = [(each["blockNumber"], each["implementationAddress"]) for each in upgrades["events"]]
    assert rows == [(901, None), (900, LOGIC), (5, OLD), (5, ADMIN)]


def test_cut_to_removed_facets_contradicts_nothing(world: World, buy: Any):
    set_diamond(world)
    world.logs = [build_log(5, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((OLD, 0)))]

    assert not has_warning(valid_data(buy()), "this proxy shows")


@pytest.mark.parametrize(
    "data", ["0x", "0x" + "ff" * 128, "0x" + f"{32:064x}" * 4, facet_cut((OLD, 0))[:322]]
)
def test_unreadable_cut_is_counted(world: World, buy: Any, data: str):
    set_diamond(world)
    world.logs = [
        build_log(5, CONTRACT, [DIAMOND_CUT_TOPIC], data),
        build_log(6, CONTRACT, [DIAMOND_CUT_TOPIC], facet_cut((LOGIC, 0))),
    ]

    answer = valid_data(buy())

    assert [each["blockNumber"] for each in answer["upgrades"]["events"]] == [6]
    assert has_warning(answer, "not all event logs could be read")


def test_proxy_without_events_is_not_called_unchanged(world: World, buy: Any):
    world.node.set_proxy(PROXIABLE_SLOT)

    data = valid_data(buy())

    assert data["proxy"]["kind"] == "eip1822"
    assert data["upgrades"] is None
    assert has_warning(data, "upgrades of this proxy are not known")


def test_event_logs_of_node_have_times(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.node.logs = [upgrade_log(900, LOGIC) | {"logIndex": "0x0", "timeStamp": None}]
    world.node.ages[900] = 3

    (event,) = valid_data(buy(key=False))["upgrades"]["events"]

    assert datetime.now(UTC) - datetime.fromisoformat(event["at"]) > timedelta(days=2.9)


def test_plain_contract_has_no_upgrades(buy: Any):
    assert valid_data(buy())["upgrades"] is None


def test_upgrades_are_unknown_without_event_logs(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.node.refuses = {"eth_getLogs", "eth_getBlockByNumber"}

    data = valid_data(buy(key=False))

    assert data["upgrades"] is None
    assert has_warning(data, "upgrades of this proxy are not known")


def build_abi(*functions: tuple[str, list[str]]) -> list[Body]:
    """Return an ABI of functions with their argument types."""
    return [
        {"type": "function", "name": name, "inputs": [{"type": each} for each in types]}
        for name, types in functions
    ]


def test_functions_have_names_of_their_own_abi(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.node.codes[LOGIC] = "0x" + load_contract(TEST_CONTRACTS, "Owners", "Safe").runtime_code.hex()
    world.sourcify = {
        CONTRACT: sourcify_match(abi=build_abi(("nonce", []), ("getOwners", []))),
        LOGIC: sourcify_match(abi=build_abi(("isOwner", ["address"]), ("madeUp", []))),
    }

    data = valid_data(buy(bytecode=ProviderSettings()))

    rows = {(each["signature"], each["signatureSource"]) for each in data["functions"]}
    assert rows == {("isOwner(address)", "abi"), ("execute(address,uint256,bytes)", "common"), (None, None)}
    assert data["proxy"]["implementations"][0]["functionCount"] == data["functionCount"] == 8


def test_functions_of_proxy_itself_are_listed(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    own = proxycode.proxy_with_function(proxycode.IMPLEMENTATION_SLOT, "40c10f19")
    world.node.codes[CONTRACT] = "0x" + own.hex()
    world.node.codes[LOGIC] = "0x" + load_contract(TEST_CONTRACTS, "Owners", "Safe").runtime_code.hex()

    data = valid_data(buy(bytecode=ProviderSettings()))

    rows = {(each["signature"], each["contractAddress"]) for each in data["functions"] if each["power"]}
    assert rows == {("mint(address,uint256)", CONTRACT), ("execute(address,uint256,bytes)", LOGIC)}
    assert data["functionCount"] == data["proxy"]["implementations"][0]["functionCount"] + 1


def test_admin_contract_is_returned_with_owner(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.node.slots[CONTRACT, ADMIN_SLOT] = encode_address(ADMIN)
    world.node.codes[ADMIN] = PLAIN
    world.node.answers[ADMIN, OWNER_CALL] = encode_address(OWNED)

    data = valid_data(buy())

    assert data["proxy"]["upgrade"]["byKind"] == "contract"
    assert has_warning(data, f"whose owner() is {OWNED}, a wallet")
    controller = data["upgradeController"]
    assert (controller["address"], controller["kind"]) == (ADMIN, "contract")
    assert (controller["owner"]["address"], controller["owner"]["kind"]) == (OWNED, "wallet")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("answers", "kind", "address"),
    [
        ({OWNER_CALL: encode_address(OWNED)}, "wallet", OWNED),
        ({GET_OWNER_CALL: encode_address(OWNED)}, "wallet", OWNED),
        ({OWNER_CALL: "0x" + "0" * 64, GET_OWNER_CALL: encode_address(OWNED)}, "wallet", OWNED),
        ({OWNER_CALL: "0x" + "0" * 64}, "renounced", "0x" + "0" * 40),
        ({}, "none", None),
    ],
)
@pytest.mark.parametrize("code", [PLAIN, CLONE])
def test_owner_is_stated_by_contract_or_clone(
    world: World, buy: Any, code: str, answers: dict[str, str], kind: str, address: str | None
):
    world.node.codes |= {CONTRACT: code, LOGIC: PLAIN}
    world.node.answers = {(CONTRACT, call): answer for call, answer in answers.items()}

    owner = valid_data(buy())["owner"]

    assert (owner["kind"], owner["address"], owner["owner"]) == (kind, address, None)


def test_unreadable_owner_is_unknown(world: World, buy: Any):
    world.node.refuses = {"eth_call"}

    assert valid_data(buy())["owner"] is None


def test_next_registry_is_queried_if_explorer_has_no_source(world: World, buy: Any):
    world.sourcify[CONTRACT] = sourcify_match("match")

    response = buy()
    data = valid_data(response)

    assert data["verified"] is True
    levels = [(each["source"], each["matchLevel"]) for each in data["links"]["verifications"]]
    assert levels == [("etherscan", "none"), ("sourcify", "bytecode")]
    assert not [each for each in world.upstreams.requests_of("blockscout") if "smart-contracts" in each.path]


def test_source_match_is_reported_beside_explorer(world: World, buy: Any):
    world.rows[CONTRACT] = etherscan_row()
    world.sourcify[CONTRACT] = sourcify_match("exact_match")

    verifications = valid_data(buy())["links"]["verifications"]

    assert [(each["source"], each["matchLevel"]) for each in verifications] == [
        ("etherscan", "unspecified"),
        ("sourcify", "exact"),
    ]
    assert verifications[1]["url"].startswith("https://repo.sourcify.dev/8453/0x")


@pytest.mark.extended
def test_explorer_and_registry_are_queried_concurrently(world: World, buy: Any):
    world.rows[CONTRACT] = etherscan_row()
    world.created = etherscan_creation(400)
    world.sourcify[CONTRACT] = sourcify_match()
    world.upstreams.delay = 0.5

    valid_data(buy())

    request = [each.at for name in ("etherscan", "sourcify") for each in world.upstreams.requests_of(name)]
    assert len(request) == 3
    assert max(request) - min(request) < 0.4


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_failed_registry_beside_explorer_affects_only_match(world: World, buy: Any, fault: Fault):
    world.rows[CONTRACT] = etherscan_row()
    world.created = etherscan_creation(400)
    world.fail_sources(fault, "sourcify")

    response = buy()
    data = valid_data(response)

    assert (data["verified"], data["contractName"]) == (True, "Vault")
    assert [each["source"] for each in data["links"]["verifications"]] == ["etherscan"]
    assert any("Sourcify" in each for each in response.json()["warnings"])


@pytest.mark.parametrize("days_ahead", [11_600_000, 2.0**230, 0.1, 400, -20_000])
def test_impossible_block_time_dates_no_contract(world: World, buy: Any, days_ahead: float):
    world.sourcify[CONTRACT] = sourcify_match(deployment={"blockNumber": "7"})
    world.node.ages[7] = -days_ahead

    data = valid_data(buy(key=False))

    assert data["verified"] is True
    assert data["links"]["creation"]["createdAt"] is None
    assert has_warning(data, "the creation time of this contract is not known")


@pytest.mark.extended
@pytest.mark.parametrize(
    "odd", ["2024-11-02T10:15:47", "2020-11-02T10:15:47Z", "0001-01-01T00:00:00+14:00", "soon"]
)
def test_impossible_transaction_time_dates_no_contract(world: World, buy: Any, odd: str):
    world.accounts[CONTRACT] = {"is_contract": True, "creation_transaction_hash": TRANSACTION}
    world.times[TRANSACTION] = odd

    data = valid_data(buy(key=False))

    assert data["links"]["creation"] == {
        "createdAt": None,
        "creatorAddress": None,
        "transactionHash": TRANSACTION,
    }


NOT_ANALYSED = (
    "Built-in bytecode analysis is not configured on this deployment, so functions, standards and roles are "
    "missing"
)
BEYOND_PLAN = "Free API access is not supported for this chain. Please upgrade your api plan"


def limit_plan(world: World) -> None:
    """Let the explorer return source alone."""

    def answer(request: RecordedRequest) -> tuple[int, Any]:
        if request.params["action"] == "getcontractcreation":
            return 200, {"status": "0", "message": "NOTOK", "result": BEYOND_PLAN}
        return 200, {"status": "1", "message": "OK", "result": [etherscan_row()]}

    world.upstreams.set_response_function("etherscan", "/v2/api", answer)


def test_block_of_deployment_dates_contract_outside_plan(world: World, buy: Any):
    limit_plan(world)
    world.sourcify[CONTRACT] = sourcify_match(deployment={"blockNumber": "7"})
    world.node.ages[7] = 2.5

    response = buy()
    data = valid_data(response)

    assert has_warning(data, "this contract is new: it was created 2 days ago")
    assert (provider_statuses(response)["etherscan"], response.json()["warnings"]) == ("ok", [NOT_ANALYSED])


def test_contract_of_47_hours_is_less_than_two_days_old(world: World, buy: Any):
    limit_plan(world)
    world.sourcify[CONTRACT] = sourcify_match(deployment={"blockNumber": "7"})
    world.node.ages[7] = 47 / 24

    assert has_warning(valid_data(buy()), "it was created less than two days ago")


def test_other_explorer_dates_contract_outside_plan(world: World, buy: Any):
    limit_plan(world)
    world.accounts[CONTRACT] = {
        "is_contract": True,
        "creator_address_hash": CREATOR,
        "creation_transaction_hash": TRANSACTION,
    }
    world.times[TRANSACTION] = "2024-11-02T10:15:47Z"

    creation = valid_data(buy())["links"]["creation"]

    assert creation == {
        "createdAt": "2024-11-02T10:15:47Z",
        "creatorAddress": CREATOR,
        "transactionHash": TRANSACTION,
    }


def test_unknown_creation_is_reported(world: World, buy: Any):
    limit_plan(world)

    response = buy()
    data = valid_data(response)

    assert data["links"]["creation"] is None
    assert has_warning(data, "the creation time of this contract is not known")
    assert (provider_statuses(response)["etherscan"], response.json()["warnings"]) == ("ok", [NOT_ANALYSED])


def test_admin_without_owner_leaves_upgradeability_unknown(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.node.slots[CONTRACT, ADMIN_SLOT] = encode_address(ADMIN)
    world.node.codes[ADMIN] = PLAIN + function_selector("upgrade(address,address)").hex()
    world.node.answers[ADMIN, OWNER_CALL] = "0x" + "0" * 64

    data = valid_data(buy())

    assert data["proxy"]["upgrade"] == {"possible": None, "byAddress": None, "byKind": None}
    assert data["proxy"]["evidence"][-1]["value"] == "0x" + "0" * 40
    assert has_warning(data, "whose owner() is a burn address")
    assert has_warning(data, "whether the code behind this proxy can be changed, and by whom, is not known")


def test_number_of_implementations_is_limited(world: World, buy: Any):
    world.node.codes = {CONTRACT: PROXY}
    many = [{"address": f"0x{number:040x}"} for number in range(0x1000, 0x1000 + 20_000)]
    world.sourcify[CONTRACT] = sourcify_match(
        proxyResolution={"isProxy": True, "proxyType": "DiamondProxy", "implementations": many}
    )

    response = buy()
    data = valid_data(response)

    assert len(data["proxy"]["implementations"]) == 60
    assert has_warning(data, "19940 more implementations")
    assert len(response.content) < 20_000


def test_unverified_needs_answers_of_all_registries(world: World, buy: Any):
    data = valid_data(buy())

    assert (data["verified"], data["contractName"]) == (False, None)
    assert (data["sourceAvailable"], data["abiAvailable"]) == (False, False)
    assert [each["source"] for each in data["links"]["verifications"]] == [*REGISTRIES]
    assert has_warning(data, "closed source")


@pytest.mark.extended
@pytest.mark.parametrize("chain_id", [1, 56])
def test_sourcify_is_primary_without_key(world: World, buy: Any, chain_id: int):
    world.sourcify[CONTRACT] = sourcify_match(deployment={"blockNumber": "7"})
    world.node.ages[7] = 100

    response = buy(chain_id, key=False)
    data = valid_data(response)

    assert data["verified"] is True
    assert data["links"]["creation"]["createdAt"]
    assert provider_statuses(response)["etherscan"] == "unconfigured"
    assert response.json()["warnings"] == [NOT_ANALYSED]


def test_blockscout_is_used_if_others_have_no_source(world: World, buy: Any):
    world.blockscout[CONTRACT] = {"is_verified": True, "name": "Vault", "source_code": "x", "abi": []}
    world.accounts[CONTRACT] = {"is_contract": True, "creation_transaction_hash": TRANSACTION}
    world.times[TRANSACTION] = "2024-11-02T10:15:47.000000Z"

    data = valid_data(buy(key=False))

    assert data["verified"] is True
    assert data["links"]["creation"]["createdAt"] == "2024-11-02T10:15:47Z"


def test_source_of_twin_is_ignored(world: World, buy: Any):
    world.rows[CONTRACT] = etherscan_row(SimilarMatch=OLD)

    data = valid_data(buy())

    assert (data["verified"], data["contractName"]) == (False, "Vault")
    assert data["links"]["verifications"][0]["similarAddress"] == OLD
    assert has_warning(data, f"of {OLD}, another contract with the same code")


def test_twin_with_source_in_other_registry_counts(world: World, buy: Any):
    world.rows[CONTRACT] = etherscan_row(SimilarMatch=OLD)
    world.sourcify[CONTRACT] = sourcify_match()

    data = valid_data(buy())

    assert data["verified"] is True
    assert not has_warning(data, "same code")


def test_outdated_explorer_is_contradicted(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.rows[CONTRACT] = etherscan_row(Proxy="1", Implementation=OLD)

    data = valid_data(buy())

    assert [each["address"] for each in data["proxy"]["implementations"]] == [LOGIC]
    assert has_warning(data, f"etherscan gives {OLD} as implementation, the slot has {LOGIC}")
    assert has_warning(data, f"no source is published for the implementation {LOGIC}")


def test_published_proxy_does_not_verify_implementation(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.rows[CONTRACT] = etherscan_row()

    data = valid_data(buy())

    assert data["verified"] is True
    assert [each["verified"] for each in data["proxy"]["implementations"]] == [False]
    assert has_warning(data, f"no source is published for the implementation {LOGIC}")


def test_at_most_three_facets_are_looked_up(world: World, buy: Any):
    many = [f"0x{number:040x}" for number in range(0x1000, 0x1005)]
    world.node.codes |= {CONTRACT: PROXY} | dict.fromkeys(many, PLAIN)
    words = [f"{32:064x}", f"{5:064x}", *(encode_address(each)[2:] for each in many)]
    world.node.answers[CONTRACT, FACETS_CALL] = "0x" + "".join(words)
    world.rows = {CONTRACT: etherscan_row()} | {each: etherscan_row(ContractName="Facet") for each in many}

    data = valid_data(buy())

    assert data["proxy"]["kind"] == "eip2535"
    assert [each["verified"] for each in data["proxy"]["implementations"]] == [True, True, True, None, None]
    assert has_warning(data, "the first 3 of 5 implementations")


def test_wallet_is_no_unverified_contract(world: World, buy: Any):
    world.node.codes = {}

    data = valid_data(buy())

    assert (data["verified"], data["sourceAvailable"], data["abiAvailable"]) == (None, None, None)
    assert (data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == ("wallet", False)
    assert data["warnings"] == []


def test_delegated_wallet_is_reported(world: World, buy: Any):
    world.node.codes = {CONTRACT: "0xef0100" + LOGIC[2:], LOGIC: PLAIN}
    world.rows = {
        CONTRACT: etherscan_row(ContractName="Delegate"),
        LOGIC: etherscan_row(ContractName="Delegate"),
    }

    data = valid_data(buy())

    assert (data["verified"], data["contractName"]) == (None, None)
    assert (data["proxy"]["accountKind"], data["proxy"]["kind"]) == ("delegated_wallet", "eip7702")
    assert data["proxy"]["implementations"][0]["verified"] is True
    assert data["proxy"]["upgrade"]["byKind"] == "delegated_wallet"
    assert has_warning(data, "wallet with delegated code")


def test_clone_is_not_upgradeable(world: World, buy: Any):
    world.node.codes |= {CONTRACT: CLONE, LOGIC: PLAIN}

    upgrade = valid_data(buy())["proxy"]["upgrade"]

    assert upgrade == {"possible": False, "byAddress": None, "byKind": None}


@pytest.mark.parametrize("is_published", [True, False])
def test_clone_of_published_code_is_not_called_closed(world: World, buy: Any, *, is_published: bool):
    world.node.codes |= {CONTRACT: CLONE, LOGIC: PLAIN}
    world.rows = {LOGIC: etherscan_row()} if is_published else {}

    data = valid_data(buy())

    assert data["verified"] is False
    assert has_warning(data, "closed source") is not is_published
    warning = "no source is published for this clone itself; that of the code which it runs is"
    assert (warning in data["warnings"]) is is_published


@pytest.mark.parametrize(
    ("codes", "published", "warning"),
    [
        ({LOGIC: PROXY}, LOGIC, "is, but this code may run other code, whose source was not looked up"),
        ({LOGIC: "0xef0100" + OLD[2:]}, LOGIC, "is, but this code may run other code"),
        ({}, LOGIC, "closed source"),
        ({LOGIC: CLONE}, LOGIC, "closed source"),
        ({LOGIC: CLONE.replace(LOGIC[2:], OLD[2:]), OLD: PLAIN}, OLD, "that of the code which it runs is"),
    ],
    ids=["of proxy", "of delegated wallet", "of nothing", "of itself", "of clone"],
)
def test_clone_of_code_that_is_not_all_published(
    world: World, buy: Any, *, codes: dict[str, str], published: str, warning: str
):
    world.node.codes |= {CONTRACT: CLONE} | codes
    world.rows = {published: etherscan_row()}

    data = valid_data(buy())

    assert has_warning(data, warning)
    assert has_warning(data, "closed source") is (warning == "closed source")


def test_clone_of_published_code_that_the_node_does_not_tell_is_not_called_closed(world: World, buy: Any):
    world.node.codes |= {CONTRACT: CLONE, LOGIC: PLAIN}
    world.node.lost_codes = {LOGIC}
    world.rows = {LOGIC: etherscan_row()}

    data = valid_data(buy())

    assert not has_warning(data, "closed source")
    assert has_warning(data, "that of the code which it runs is, but this code may run other code")


@pytest.mark.parametrize("outer", ["slot", "clone"])
def test_code_of_cloned_contract_is_looked_up(world: World, buy: Any, outer: str):
    world.node.codes |= {LOGIC: CLONE.replace(LOGIC[2:], OLD[2:]), OLD: PLAIN}
    if outer == "slot":
        world.node.set_proxy(IMPLEMENTATION_SLOT)
        world.node.codes[LOGIC] = CLONE.replace(LOGIC[2:], OLD[2:])
    else:
        world.node.codes[CONTRACT] = CLONE
    world.rows = {CONTRACT: etherscan_row(), LOGIC: etherscan_row()}

    data = valid_data(buy())

    assert [(each["address"], each["verified"]) for each in data["proxy"]["implementations"]] == [
        (LOGIC, True),
        (OLD, False),
    ]
    assert data["proxy"]["upgrade"]["possible"] is (None if outer == "slot" else False)
    assert has_warning(data, f"of {LOGIC}, is a minimal proxy itself, which runs the code of {OLD}")
    assert has_warning(data, f"no source is published for the implementation {OLD}")


def test_long_chain_of_clones_may_be_upgradeable(world: World, buy: Any):
    chain = [CONTRACT, LOGIC, OLD, ADMIN, OWNED]
    for each, target in itertools.pairwise(chain):
        world.node.codes[each] = CLONE.replace(LOGIC[2:], target[2:])

    data = valid_data(buy())

    assert data["proxy"]["upgrade"]["possible"] is None
    assert has_warning(data, f"runs the code of {OWNED}: that code was not looked at")


def test_registry_failure_for_implementation_keeps_proxy_answer(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.upstreams.set_response("sourcify", f"/server/v2/contract/8453/{LOGIC}", "x", status=500)

    data = valid_data(buy())

    assert data["verified"] is False
    assert data["proxy"]["implementations"][0]["verified"] is None
    assert has_warning(
        data, "whether the source of an implementation is published is not known: Sourcify (no answer)"
    )


def test_explorer_that_fails_for_implementation_alone_is_not_replaced(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.rows[CONTRACT] = etherscan_row()
    world.rows[LOGIC] = {"ContractName": "Logic"}

    response = buy()

    assert provider_statuses(response)["etherscan"] == "error"
    assert not any("a fallback source was used" in each for each in response.json()["warnings"])


def test_destroyed_contract_is_no_wallet(world: World, buy: Any):
    world.node.codes = {}
    world.rows[CONTRACT] = etherscan_row()

    data = valid_data(buy())

    assert (data["verified"], data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == (
        None,
        "unknown",
        None,
    )
    assert has_warning(data, "there is no code now")


@pytest.mark.parametrize(
    ("flag", "words"),
    [("is_self_destructed", "destroyed itself"), ("is_changed_bytecode", "has changed since")],
)
def test_outdated_source_verifies_nothing(world: World, buy: Any, flag: str, words: str):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    outdated = {"is_verified": True, "is_fully_verified": True, "source_code": "x", flag: True}
    world.blockscout |= {CONTRACT: outdated, LOGIC: outdated}

    data = valid_data(buy())

    assert data["verified"] is False
    assert [each["verified"] for each in data["proxy"]["implementations"]] == [False]
    assert has_warning(data, f"this contract {words}") or has_warning(data, f"of this contract {words}")
    assert has_warning(data, f"the implementation {LOGIC} {words}")
    assert not has_warning(data, "no source is published")


@pytest.mark.parametrize("flag", ["is_self_destructed", "is_changed_bytecode"])
def test_outdated_source_is_named_if_registries_are_unread(world: World, buy: Any, flag: str):
    world.blockscout[CONTRACT] = {"is_verified": True, "source_code": "x", flag: True}

    data = valid_data(buy(key=False))

    assert data["verified"] is None
    assert has_warning(data, "the source found is outdated, but not all registries were read")


@pytest.mark.extended
@pytest.mark.parametrize(("days", "new"), [(0.1, True), (6.9, True), (7.1, False)])
def test_new_contract_is_marked(world: World, buy: Any, days: float, *, new: bool):
    world.rows[CONTRACT] = etherscan_row()
    world.created = etherscan_creation(days)

    assert has_warning(valid_data(buy()), "this contract is new") is new


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_next_registry_replaces_failed_one(world: World, buy: Any, fault: Fault):
    world.fail_sources(fault, "etherscan")
    world.sourcify[CONTRACT] = sourcify_match()

    response = buy()
    data = valid_data(response)

    assert data["verified"] is True
    status = {"timeout": "timeout", "429": "rate_limited"}.get(fault, "error")
    assert provider_statuses(response)["etherscan"] == status
    fallback = "a fallback source was used: Sourcify instead of Etherscan, which failed"
    assert fallback in response.json()["warnings"]
    assert data["warnings"][: len(response.json()["warnings"])] == response.json()["warnings"]


@pytest.mark.extended
@pytest.mark.parametrize("registry", ["etherscan", "sourcify", "blockscout"])
def test_failed_registry_leaves_verification_open(world: World, buy: Any, registry: str):
    world.upstreams.faults[registry] = "500"

    data = valid_data(buy())

    assert (data["verified"], data["sourceAvailable"], data["abiAvailable"]) == (None, None, None)
    assert has_warning(data, f"{registry.capitalize()} (no answer)")
    assert not has_warning(data, "closed source")


def test_registry_without_key_leaves_verification_open(world: World, buy: Any):
    data = valid_data(buy(key=False))

    assert data["verified"] is None
    assert has_warning(data, "Etherscan (not configured)")
    assert not has_warning(data, "closed source")


def test_code_known_to_explorer_alone_is_contract(world: World, buy: Any):
    world.upstreams.faults |= {"etherscan": "500", "sourcify": "500", "rpc": "500"}
    world.blockscout[CONTRACT] = {"is_verified": False, "deployed_bytecode": "0x6001"}

    data = valid_data(buy())

    assert (data["proxy"]["accountKind"], data["verified"]) == ("contract", None)
    assert has_warning(data, "Etherscan (no answer), Sourcify (no answer)")


def test_failed_creation_query_affects_nothing_else(world: World, buy: Any):
    world.rows[CONTRACT] = etherscan_row()
    world.created = {"timestamp": "x" * 5, "contractCreator": 7, "txHash": None}

    data = valid_data(buy())

    assert data["verified"] is True
    assert data["links"]["creation"] == {"createdAt": None, "creatorAddress": None, "transactionHash": None}


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
def test_first_registry_is_named_if_all_sources_fail(world: World, buy: Any, fault: Fault):
    world.fail_sources(fault, *REGISTRIES, "rpc")

    response = buy()

    status, code = FAULTS[fault]
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.json()["error"]["provider"] == "etherscan"
    assert payment_note(response)["retry"] == "same_payment"


@pytest.mark.parametrize("key", [True, False])
def test_chain_answers_if_all_registries_fail(world: World, buy: Any, *, key: bool):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    world.fail_sources("500", *REGISTRIES)

    response = buy(key=key)
    data = valid_data(response)

    assert (data["verified"], data["sourceAvailable"], data["proxy"]["kind"]) == (None, None, "eip1967")
    reason = "no answer" if key else "not configured"
    warning = (
        "no registry of published source could be read, so `verified` is null: "
        f"Etherscan ({reason}), Sourcify (no answer), Blockscout (no answer)"
    )
    assert warning in data["warnings"]
    assert warning in response.json()["warnings"]


def test_answer_of_chain_alone_has_short_ttl(world: World, api: ApiFactory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("centgate.cache.response_cache.MAX_DEGRADED_TTL", 0.0)
    client = api(configure_providers(world.settings, world.providers()))
    body = {"chainId": 8453, "contractAddress": CONTRACT}
    world.rows[CONTRACT] = etherscan_row()
    world.fail_sources("500", *REGISTRIES)
    first = send_paid(client, PATH, body)
    world.upstreams.faults.clear()

    second = send_paid(client, PATH, body)

    assert [each.json()["data"]["verified"] for each in (first, second)] == [None, True]


def test_same_payment_is_answered_after_recovery(world: World, api: ApiFactory):
    client = api(configure_providers(world.settings, world.providers()))
    body = {"chainId": 8453, "contractAddress": CONTRACT}
    payment = sign_payment(client, Buyer(), PATH, body)
    world.fail_sources("500", *REGISTRIES, "rpc")
    first = pay(client, payment, PATH, body)
    world.upstreams.faults.clear()

    assert (first.status_code, pay(client, payment, PATH, body).status_code) == (502, 200)


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_registries_describe_proxy_without_chain(world: World, buy: Any, fault: Fault):
    world.fail_sources(fault, "rpc")
    world.rows = {
        CONTRACT: etherscan_row(Proxy="1", Implementation=LOGIC),
        LOGIC: etherscan_row(ContractName="Logic"),
    }

    data = valid_data(buy())

    assert data["verified"] is True
    assert (data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == ("contract", True)
    assert data["proxy"]["implementations"] == [
        {"address": LOGIC, "name": "Logic", "verified": True, "functionCount": None}
    ]
    assert data["proxy"]["upgrade"]["possible"] is None
    assert has_warning(data, "the chain itself could not be read")


def test_existence_is_unknown_without_chain(world: World, buy: Any):
    world.upstreams.faults["rpc"] = "500"

    data = valid_data(buy())

    assert (data["verified"], data["proxy"]["accountKind"], data["proxy"]["isProxy"]) == (
        None,
        "unknown",
        None,
    )
    assert data["nativeBalance"] is None
    assert has_warning(data, "whether there is a contract at this address is not known")


def test_unread_registries_are_named_without_chain(world: World, buy: Any):
    world.upstreams.faults |= {"rpc": "500", "blockscout": "500"}

    data = valid_data(buy(key=False))

    assert (data["verified"], data["proxy"]["accountKind"]) == (None, "unknown")
    assert has_warning(data, "so `verified` is null: Etherscan (not configured), Blockscout (no answer)")


def test_unconfigured_registries_are_named(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)
    off = ProviderSettings(enabled=False)

    data = valid_data(buy(key=False, sourcify=off, blockscout=off))

    registries = "Etherscan (not configured), Sourcify (not configured), Blockscout (not configured)"
    assert data["verified"] is None
    assert has_warning(data, f"is configured for this chain, so `verified` is null: {registries}")
    assert has_warning(data, f"an implementation is published is not known: {registries}")


@pytest.mark.extended
def test_explorer_identifies_contract_without_chain(world: World, buy: Any):
    world.upstreams.faults["rpc"] = "500"
    world.accounts[CONTRACT] = {"is_contract": True}
    contract = valid_data(buy())
    world.accounts[CONTRACT] = {"is_contract": False}
    wallet = valid_data(buy())

    assert (contract["verified"], contract["proxy"]["accountKind"]) == (False, "contract")
    assert (wallet["verified"], wallet["proxy"]["accountKind"]) == (None, "wallet")


@pytest.mark.extended
@pytest.mark.parametrize("method", ["eth_call", "eth_getStorageAt"])
def test_partial_chain_answers_give_partial_data(world: World, buy: Any, method: str):
    world.node.set_proxy(PROXIABLE_SLOT)
    world.node.refuses = {method}

    data = valid_data(buy())

    assert data["proxy"]["accountKind"] == "contract"
    assert has_warning(data, "could not be read in full")


@pytest.mark.extended
def test_development_chain_is_explained_by_chain_alone(world: World, buy: Any):
    world.node.set_proxy(IMPLEMENTATION_SLOT)

    response = buy(84532)
    data = valid_data(response)

    assert (data["verified"], data["sourceAvailable"], data["links"]["explorer"]) == (None, None, None)
    assert (data["proxy"]["kind"], data["links"]["verifications"]) == ("eip1967", [])
    assert (data["nativeBalance"]["amount"], data["nativeBalance"]["worth"]) == (3, None)
    assert has_warning(data, "no registry of published source is configured")
    assert {world.requests_of(each) for each in REGISTRIES} == {0}


@pytest.mark.extended
@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_development_chain_has_no_fallback(world: World, buy: Any, fault: Fault):
    world.fail_sources(fault, "rpc")

    response = buy(84532)

    status, code = FAULTS[fault]
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.json()["error"]["provider"] == "rpc"


def test_own_explorer_explains_development_chain(world: World, buy: Any):
    world.blockscout[CONTRACT] = {"is_verified": True, "name": "Vault", "source_code": "x", "abi": []}
    own = ProviderSettings(url=world.upstreams.url_of("blockscout"))

    data = valid_data(buy(84532, blockscout_84532=own))

    assert (data["verified"], data["contractName"]) == (True, "Vault")


@pytest.mark.extended
def test_nothing_is_charged_without_sources(world: World, api: ApiFactory):
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
def test_invalid_request_is_refused_before_payment(world: World, api: ApiFactory, body: Body):
    client = api(configure_providers(world.settings, world.providers()))

    response = client.post(PATH, json=body)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")


@pytest.mark.extended
def test_repeated_request_is_served_from_cache(world: World, api: ApiFactory):
    world.rows[CONTRACT] = etherscan_row()
    client = api(configure_providers(world.settings, world.providers()))
    body = {"chainId": 8453, "contractAddress": CONTRACT}
    first = send_paid(client, PATH, body)
    calls = world.requests_of("etherscan")
    again = send_paid(client, PATH, {**body, "contractAddress": CONTRACT.upper().replace("0X", "0x")})

    assert first.json()["data"] == again.json()["data"]
    assert world.requests_of("etherscan") == calls


@pytest.mark.extended
@pytest.mark.parametrize("names", [("rpc", "rpc_8453"), ("rpc_8453",)])
def test_disabled_chain_gives_warnings(world: World, buy: Any, names: tuple[str, ...]):
    world.rows[CONTRACT] = etherscan_row()

    response = buy(**dict.fromkeys(names, ProviderSettings(enabled=False)))

    assert any("the chain itself could not be read" in each for each in response.json()["warnings"])
    assert has_warning(valid_data(response), "the chain itself could not be read")


def test_disabled_registries_give_warnings(world: World, buy: Any):
    response = buy(**dict.fromkeys(REGISTRIES, ProviderSettings(enabled=False)))

    assert any("no registry of published source" in each for each in response.json()["warnings"])
    assert has_warning(valid_data(response), "no registry of published source")
