"""Contracts and wallets on a separate development chain, with the expected facts about them."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from eth_abi.abi import encode
from eth_account import Account as Wallet
from eth_utils.crypto import keccak
from lookups import proxycode as code

from centgate.devchain.accounts import BUYER_ACCOUNTS, FACILITATOR_ACCOUNT, GAS_BALANCE
from centgate.devchain.chain import EvmChain, GenesisAccount
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.exchanges import CONTRACTS as DEVCHAIN_CONTRACTS
from centgate.devchain.http_server import serve_app
from centgate.devchain.rpc import create_rpc_app
from centgate.devchain.rpc_client import initial_token_storage
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS, runtime_code
from centgate.solidity import load_contract

CONTRACTS = Path(__file__).with_name("contracts")
MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
PERMIT2 = "0x000000000022d473030f116ddee9f6b43ac78ba3"
UNLIMITED = 2**256 - 1
ETHER = 10**18
DAY = 86_400
DAYS_AGO = 200
"""Age of the first block, in days."""
OFFCHAIN_SOURCES = ("alchemy", "blockscout", "defillama", "etherscan", "goplus", "sourcify")
"""Sources without data on a development chain, which must not be queried about it."""
BAIT = "Visit \u202ehttps://claim-\u200breward.example\u202c to claim\u2066 your bonus\u2069"


@dataclass(frozen=True)
class KeyedWallet:
    """Test wallet whose key is derived from its name."""

    address: str
    key: bytes = field(repr=False)


@dataclass(frozen=True)
class Proxy:
    """Proxy contract, in the terms of contract-explain."""

    address: str
    kind: str
    implementations: tuple[str, ...]
    admin: str | None = None
    admin_kind: str | None = None
    beacon: str | None = None
    upgradeable: bool | None = None
    """True if the code behind it can be changed; None if the chain alone does not show it."""


@dataclass(frozen=True)
class ChainTransfer:
    """Transfer on the chain; `token` is None for the native coin."""

    transaction: str
    block: int
    token: str | None
    sender: str
    receiver: str
    amount: int


@dataclass(frozen=True)
class ChainApproval:
    """Final state of an allowance."""

    token: str
    spender: str
    allowance: int | None
    """None if the token does not report it."""
    block: int


@dataclass(frozen=True)
class World:
    """Contents of the chain; addresses are lower case."""

    chain: DevChain
    people: dict[str, KeyedWallet]
    contracts: dict[str, str]
    tokens: dict[str, str]
    proxies: dict[str, Proxy]
    transfers: list[ChainTransfer]
    """Transfers of the holder, oldest first."""
    approvals: dict[str, ChainApproval]
    """Approvals of the approver, by their special property."""
    grants: dict[str, ChainApproval]
    """Grants of the grantor inside Permit2, by their special property."""
    times: dict[int, int]
    """Block times by number, in seconds since 1970."""


class Clock:
    """System clock, set back by some days."""

    def __init__(self, days: float = 0) -> None:
        self.days = days

    def __call__(self) -> float:
        return time.time() - self.days * DAY


class Builder:
    """Sends transactions directly into a chain that is not served yet."""

    def __init__(self, chain: EvmChain) -> None:
        self.chain = chain
        self._nonces: dict[str, int] = {}

    def send(self, sender: KeyedWallet, to: str | None, data: bytes = b"", **more: Any) -> str:
        """Send and mine a transaction, which must succeed, and return its hash."""
        nonce = self._nonces.get(sender.address, 0)
        self._nonces[sender.address] = nonce + 1
        transaction = {
            "chainId": CHAIN_ID,
            "nonce": nonce,
            "to": _to_bytes(to) if to else b"",
            "data": data,
            **more,
        }
        fees = {"gas": 6_000_000, "maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1}
        signed = Wallet.from_key(sender.key).sign_transaction(transaction | fees)
        sent = self.chain.send_transaction(signed.raw_transaction)
        assert self.chain.mined_transactions[sent].receipt.state_root == b"\x01", (
            "a transaction of the world failed"
        )
        return "0x" + sent.hex()

    def deploy(self, deployer: KeyedWallet, contract: str, types: str = "", *values: Any) -> str:
        """Deploy a contract and return its address."""
        content = encode([each for each in types.split(",") if each], values) if types else b""
        sent = self.send(deployer, None, compile_contract(contract)["bytecode"] + content)
        created = self.chain.mined_transactions[bytes.fromhex(sent[2:])].created
        assert created
        return "0x" + created.hex()


@cache
def compile_contract(contract: str) -> dict[str, bytes]:
    """Compile a contract to `bytecode` and `runtime`; all of them take about a second."""
    vyper: Any = import_module("vyper")  # it has no useful types
    source = (CONTRACTS / f"{contract}.vy").read_text()
    output = vyper.compile_code(source, output_formats=["bytecode", "bytecode_runtime"])
    return {
        "bytecode": bytes.fromhex(output["bytecode"][2:]),
        "runtime": bytes.fromhex(output["bytecode_runtime"][2:]),
    }


def derive_wallet(name: str) -> KeyedWallet:
    """Return the test wallet of a name."""
    key = sha256(f"somebody called {name}".encode()).digest()
    return KeyedWallet(Wallet.from_key(key).address.lower(), key)


def derive_address(name: str) -> str:
    """Return an address derived from a name, without a known key."""
    return "0x" + sha256(f"the place of {name}".encode()).digest()[:20].hex()


def encode_call(signature: str, *values: Any) -> bytes:
    """Encode call data for a function, `name(type,…)`."""
    types = signature.partition("(")[2].removesuffix(")")
    return keccak(text=signature)[:4] + encode([each for each in types.split(",") if each], values)


def lookalike_address(address: str) -> str:
    """Return another address with the same first and last six characters."""
    return address[:8] + derive_address("a forger")[8:-6] + address[-6:]


@contextmanager
def open_world() -> Generator[World]:
    """Build the chain, with blocks 200 days old and of today, then serve it together with a facilitator."""
    clock = Clock(DAYS_AGO)
    chain = EvmChain(CHAIN_ID, _list_seeds(), clock=clock)
    build = Builder(chain)
    people = {name: derive_wallet(name) for name in PEOPLE}
    tokens, contracts = _deploy_tokens(build, people), _deploy_contracts(build, people)
    old = _stale_approval(build, people, tokens, contracts)
    clock.days = 0
    grants = _give_grants(build, people, tokens, contracts)
    contracts["lure"] = _lure_wallet(build, people, tokens)
    proxies = _deploy_proxies(build, people, contracts)
    transfers = _send_transfers(build, people, tokens)
    approvals = old | _give_approvals(build, people, tokens, contracts)
    times = {int(block.number): block.header.timestamp for block in chain.blocks}
    with serve_app(create_rpc_app(chain), 0) as url, open_devchain(rpc=url) as running:
        yield World(running, people, contracts, tokens, proxies, transfers, approvals, grants, times)


PEOPLE = (
    "deployer",
    "holder",
    "approver",
    "friend",
    "forger",
    "admin",
    "spender",
    "delegator",
    "newcomer",
    "grantor",
    "lured",
)
"""Names of the test wallets; the newcomer has no transactions and no funds."""
_POOR = ("newcomer",)


def _list_seeds() -> dict[str, GenesisAccount]:
    usdc = GenesisAccount(code=bytes.fromhex(runtime_code()[2:]), storage=initial_token_storage())
    rich = {
        account.address: GenesisAccount(GAS_BALANCE) for account in (*BUYER_ACCOUNTS, FACILITATOR_ACCOUNT)
    }
    people = {
        derive_wallet(name).address: GenesisAccount(100 * ETHER) for name in PEOPLE if name not in _POOR
    }
    box = compile_contract("box")["runtime"]
    fixed = {
        TOKEN_ADDRESS: usdc,
        MULTICALL: GenesisAccount(code=compile_contract("multicall3")["runtime"]),
        PERMIT2: GenesisAccount(code=load_contract(DEVCHAIN_CONTRACTS, "Permit2").runtime_code),
        derive_address("box"): GenesisAccount(code=box),
        derive_address("other box"): GenesisAccount(code=box),
        derive_address("uups box"): GenesisAccount(code=compile_contract("uups")["runtime"]),
        derive_address("burner"): GenesisAccount(code=b"\xfe"),
    }
    return rich | people | fixed | _list_seeded_proxies()


def _list_seeded_proxies() -> dict[str, GenesisAccount]:
    """Return proxies whose storage is written before the first block, since that is simplest."""
    box, admin = int(derive_address("box"), 16), int(derive_wallet("admin").address, 16)
    eip1967 = code.slot_proxy(code.IMPLEMENTATION_SLOT)
    by_code = {
        "eip1167": code.minimal_proxy(derive_address("box")),
        "eip1167 push0": code.minimal_push0(derive_address("box")),
        "eip1167 vyper": code.minimal_vyper(derive_address("box")),
        "eip1167 arguments": code.minimal_with_arguments(derive_address("box"), b"\x01" * 40),
        "clone arguments": code.clone_with_arguments(derive_address("box"), b"\x02" * 32),
    }
    by_storage = {
        "eip1967": GenesisAccount(
            code=eip1967,
            storage={code.IMPLEMENTATION_SLOT: box, code.ADMIN_SLOT: int(derive_address("other box"), 16)},
        ),
        "eip1967 wallet admin": GenesisAccount(
            code=eip1967, storage={code.IMPLEMENTATION_SLOT: box, code.ADMIN_SLOT: admin}
        ),
        "eip1967 no admin": GenesisAccount(code=eip1967, storage={code.IMPLEMENTATION_SLOT: box}),
        "eip1822": GenesisAccount(
            code=code.slot_proxy(code.PROXIABLE_SLOT), storage={code.PROXIABLE_SLOT: box}
        ),
        "zeppelinos": GenesisAccount(
            code=code.slot_proxy(code.ZEPPELIN_SLOT),
            storage={code.ZEPPELIN_SLOT: box, code.ZEPPELIN_ADMIN_SLOT: admin},
        ),
        "safe": GenesisAccount(code=code.safe_proxy(), storage={0: box}),
        "uups": GenesisAccount(
            code=eip1967, storage={code.IMPLEMENTATION_SLOT: int(derive_address("uups box"), 16), 0: admin}
        ),
    }
    seeds = (
        {name: GenesisAccount(code=runtime) for name, runtime in by_code.items()}
        | by_storage
        | _list_odd_contracts()
    )
    return {derive_address(name): seed for name, seed in seeds.items()}


def _list_odd_contracts() -> dict[str, GenesisAccount]:
    """Return contracts that resemble proxies, or return values that no proxy returns."""
    eip1967, beacon = code.slot_proxy(code.IMPLEMENTATION_SLOT), code.beacon_proxy()
    box = int(derive_address("box"), 16)
    return {
        "empty target": GenesisAccount(
            code=eip1967, storage={code.IMPLEMENTATION_SLOT: int(derive_address("nothing"), 16)}
        ),
        "dirty slot": GenesisAccount(code=eip1967, storage={code.IMPLEMENTATION_SLOT: box | 1 << 200}),
        "own target": GenesisAccount(
            code=eip1967, storage={code.IMPLEMENTATION_SLOT: int(derive_address("own target"), 16)}
        ),
        "beacon nowhere": GenesisAccount(
            code=beacon, storage={code.BEACON_SLOT: int(derive_address("nothing"), 16)}
        ),
        "beacon mute": GenesisAccount(code=beacon, storage={code.BEACON_SLOT: box}),
        "named slot": GenesisAccount(
            code=code.decoy_proxy(code.IMPLEMENTATION_SLOT),
            storage={code.IMPLEMENTATION_SLOT: box, 0: int(derive_address("burner"), 16)},
        ),
        "library user": GenesisAccount(
            code=code.library_user(code.BEACON_SLOT, "3659cfe6"),
            storage={code.BEACON_SLOT: int(derive_address("ones"), 16), code.PROXIABLE_SLOT: box, 0: box},
        ),
        "ones": GenesisAccount(code=code.ONES),
        "zeros": GenesisAccount(code=code.ZEROS),
    }


def _deploy_tokens(build: Builder, people: dict[str, KeyedWallet]) -> dict[str, str]:
    deployer = people["deployer"]

    def erc20(
        name: str, symbol: str, decimals: int, supply: int = 10**24, *, tax: int = 0, talks: bool = False
    ) -> str:
        types = "string,string,uint8,uint256,uint256,bool"
        return build.deploy(deployer, "erc20", types, name, symbol, decimals, supply, tax, talks)

    return {
        "plain": erc20("Plain Token", "PLAIN", 18),
        "talking": erc20("Talking Token", "TALK", 6, talks=True),
        "tax": erc20("Taxed Token", "TAX", 18, tax=500),
        "whole": erc20("Whole Units", "WHOLE", 0, 1000),
        "bait": erc20(BAIT, "GIFT\u200b", 18),
        "false usdc": erc20("USD Coin", "USDC", 6),
        "bytes32": build.deploy(deployer, "bytes32_token", "uint256", 10**24),
        "lying": build.deploy(deployer, "lying_token"),
        "shy": build.deploy(deployer, "shy_token"),
        "nft": build.deploy(deployer, "nft"),
    }


def _deploy_contracts(build: Builder, people: dict[str, KeyedWallet]) -> dict[str, str]:
    deployer = people["deployer"]
    placed = ("box", "other box", "burner", "nothing", *_list_odd_contracts())
    return {name: derive_address(name) for name in placed} | {
        "spender": build.deploy(deployer, "spender"),
        "factory": build.deploy(deployer, "factory"),
        "beacon": build.deploy(deployer, "beacon", "address", derive_address("box")),
        "roles": build.deploy(
            deployer,
            "roles",
            "address,address[],address[]",
            *(people["admin"].address, [people["admin"].address], [people["friend"].address]),
        ),
    }


def _deploy_proxies(
    build: Builder, people: dict[str, KeyedWallet], contracts: dict[str, str]
) -> dict[str, Proxy]:
    box, admin = contracts["box"], people["admin"].address
    seeds: dict[str, dict[str, Any]] = {
        "eip1167": {"kind": "eip1167", "upgradeable": False},
        "eip1167 push0": {"kind": "eip1167", "upgradeable": False},
        "eip1167 vyper": {"kind": "eip1167", "upgradeable": False},
        "eip1167 arguments": {"kind": "clone_with_immutable_args", "upgradeable": False},
        "clone arguments": {"kind": "clone_with_immutable_args", "upgradeable": False},
        "eip1967": {
            "kind": "eip1967",
            "admin": contracts["other box"],
            "admin_kind": "contract",
            "upgradeable": True,
        },
        "eip1967 wallet admin": {
            "kind": "eip1967",
            "admin": admin,
            "admin_kind": "wallet",
            "upgradeable": True,
        },
        "eip1967 no admin": {"kind": "eip1967"},
        "eip1822": {"kind": "eip1822"},
        "zeppelinos": {"kind": "zeppelinos", "admin": admin, "admin_kind": "wallet", "upgradeable": True},
        "safe": {"kind": "safe"},
    }
    return {
        name: Proxy(derive_address(name), implementations=(box,), **facts) for name, facts in seeds.items()
    } | {
        "factory's": Proxy(_deploy_clones(build, people, contracts), "eip1167", (box,), upgradeable=False),
        "beacon": Proxy(
            _beacon_proxy(build, people, contracts),
            "eip1967_beacon",
            (box,),
            admin=people["deployer"].address,
            admin_kind="wallet",
            beacon=contracts["beacon"],
            upgradeable=True,
        ),
        "uups": Proxy(derive_address("uups"), "eip1967", (derive_address("uups box"),), upgradeable=True),
        "diamond": Proxy(
            build.deploy(people["deployer"], "diamond", "address[]", [box, contracts["other box"]]),
            "eip2535",
            (box, contracts["other box"]),
        ),
        "delegated wallet": Proxy(_delegate_wallet(build, people, box), "eip7702", (box,), upgradeable=True),
    }


def _deploy_clones(build: Builder, people: dict[str, KeyedWallet], contracts: dict[str, str]) -> str:
    sent = build.send(
        people["deployer"], contracts["factory"], encode_call("clone(address)", contracts["box"])
    )
    block = build.chain.mined_transactions[bytes.fromhex(sent[2:])].block.number
    state = build.chain.state_at(block)
    return "0x" + state.get_storage(_to_bytes(contracts["factory"]), 0).to_bytes(20, "big").hex()


def _beacon_proxy(build: Builder, people: dict[str, KeyedWallet], contracts: dict[str, str]) -> str:
    """Deploy a proxy whose constructor writes the beacon's address into its slot."""
    runtime = code.beacon_proxy()
    # sstore(slot, beacon); codecopy(0, offset of the runtime, its size); return(0, its size)
    writing = f"73{contracts['beacon'][2:]}7f{code.BEACON_SLOT:064x}55"
    start = len(writing) // 2 + 13
    copying = f"61{len(runtime):04x}6100{start:02x}5f3961{len(runtime):04x}5ff3"
    sent = build.send(people["deployer"], None, bytes.fromhex(writing + copying) + runtime)
    created = build.chain.mined_transactions[bytes.fromhex(sent[2:])].created
    assert created
    return "0x" + created.hex()


def _delegate_wallet(build: Builder, people: dict[str, KeyedWallet], contract: str) -> str:
    """Delegate a wallet by EIP-7702, in a transaction of type 4 sent by another wallet."""
    delegator = people["delegator"]
    authorization: Any = Wallet.from_key(delegator.key).sign_authorization(
        {"chainId": CHAIN_ID, "address": _to_bytes(contract), "nonce": 0}
    )
    build.send(people["friend"], people["friend"].address, type=4, authorizationList=[authorization])
    return delegator.address


def _send_transfers(
    build: Builder, people: dict[str, KeyedWallet], tokens: dict[str, str]
) -> list[ChainTransfer]:
    """Send the transfers from and to the holder's wallet."""
    deployer, holder, friend = people["deployer"], people["holder"], people["friend"]
    forged = lookalike_address(friend.address)
    moved: list[ChainTransfer] = []

    def note(sent: str, token: str | None, sender: str, receiver: str, amount: int) -> None:
        block = build.chain.mined_transactions[bytes.fromhex(sent[2:])].block.number
        moved.append(ChainTransfer(sent, block, token, sender, receiver, amount))

    def give(
        sender: KeyedWallet, receiver: KeyedWallet, token: str, amount: int, *, arrives: int | None = None
    ) -> None:
        content = encode_call("transfer(address,uint256)", receiver.address, amount)
        sent = build.send(sender, tokens[token], content)
        arrived = amount if arrives is None else arrives
        note(sent, tokens[token], sender.address, receiver.address, arrived)

    give(deployer, holder, "plain", 1000 * ETHER)
    give(deployer, holder, "bytes32", 5 * ETHER)
    give(deployer, holder, "tax", 100 * ETHER, arrives=95 * ETHER)
    give(deployer, holder, "whole", 7)
    give(deployer, holder, "shy", 123)
    give(deployer, holder, "talking", 2_500_000)
    note(
        build.send(deployer, holder.address, value=2 * ETHER),
        None,
        deployer.address,
        holder.address,
        2 * ETHER,
    )
    give(deployer, holder, "bait", 50_000 * ETHER)
    give(deployer, holder, "false usdc", 9_999_000_000)
    lie = encode_call("say_moved(address,address,uint256)", deployer.address, holder.address, 777)
    note(build.send(deployer, tokens["lying"], lie), tokens["lying"], deployer.address, holder.address, 777)
    give(holder, friend, "plain", 40 * ETHER)
    note(
        build.send(holder, friend.address, value=ETHER // 2), None, holder.address, friend.address, ETHER // 2
    )
    poison = encode_call("transferFrom(address,address,uint256)", holder.address, forged, 0)
    note(build.send(people["forger"], tokens["plain"], poison), tokens["plain"], holder.address, forged, 0)
    poison = encode_call("transferFrom(address,address,uint256)", forged, holder.address, 0)
    note(build.send(people["forger"], tokens["plain"], poison), tokens["plain"], forged, holder.address, 0)
    return moved


def _approve(build: Builder, owner: KeyedWallet, token: str, spender: str, amount: int) -> ChainApproval:
    sent = build.send(owner, token, encode_call("approve(address,uint256)", spender, amount))
    return ChainApproval(
        token, spender, amount, build.chain.mined_transactions[bytes.fromhex(sent[2:])].block.number
    )


def _stale_approval(
    build: Builder, people: dict[str, KeyedWallet], tokens: dict[str, str], contracts: dict[str, str]
) -> dict[str, ChainApproval]:
    stale = _approve(build, people["approver"], tokens["bytes32"], contracts["spender"], UNLIMITED)
    return {"stale": stale}


def _give_approvals(
    build: Builder, people: dict[str, KeyedWallet], tokens: dict[str, str], contracts: dict[str, str]
) -> dict[str, ChainApproval]:
    """Give the approver's allowances; the approver holds 100 of the plain and of the talking token."""
    deployer, approver = people["deployer"], people["approver"]
    for token in ("plain", "talking"):
        give = encode_call("transfer(address,uint256)", approver.address, 100 * 10**6)
        build.send(deployer, tokens[token], give)

    def approve(token: str, spender: str, amount: int) -> ChainApproval:
        return _approve(build, approver, tokens[token], spender, amount)

    def pull(token: str, amount: int) -> None:
        content = encode_call("pull(address,address,uint256)", tokens[token], approver.address, amount)
        build.send(people["spender"], contracts["spender"], content)

    standing = {
        "unlimited to wallet": approve("plain", people["spender"].address, UNLIMITED),
        "unlimited to nothing": approve("plain", derive_address("an unused address"), UNLIMITED),
        "permit2": approve("plain", PERMIT2, UNLIMITED),
        "limited": approve("plain", contracts["box"], 500),
        "to delegated wallet": approve("tax", people["delegator"].address, 12 * ETHER),
        "revoked": approve("plain", contracts["other box"], 100),
        "used up": approve("plain", contracts["spender"], 50),
        "partly spent": approve("talking", contracts["spender"], UNLIMITED),
    }
    standing["revoked"] = approve("plain", contracts["other box"], 0)
    pull("plain", 50)
    pull("talking", 10)
    spent = standing["partly spent"]
    standing["partly spent"] = ChainApproval(spent.token, spent.spender, UNLIMITED - 10, build.chain.height)
    standing["used up"] = ChainApproval(tokens["plain"], contracts["spender"], 0, standing["used up"].block)
    lie = encode_call(
        "say_approved(address,address,uint256)", approver.address, contracts["spender"], UNLIMITED
    )
    build.send(deployer, tokens["lying"], lie)
    standing["untold"] = ChainApproval(tokens["lying"], contracts["spender"], None, build.chain.height)
    build.send(deployer, tokens["nft"], encode_call("mint(address,uint256)", approver.address, 1))
    build.send(approver, tokens["nft"], encode_call("approve(address,uint256)", contracts["spender"], 1))
    return standing


def _give_grants(
    build: Builder, people: dict[str, KeyedWallet], tokens: dict[str, str], contracts: dict[str, str]
) -> dict[str, ChainApproval]:
    """Give the grantor's grants; the grantor holds 1,000 of the plain and of the talking token."""
    grantor, soon = people["grantor"], int(time.time()) + 30 * DAY
    for token in ("plain", "talking"):
        give = encode_call("transfer(address,uint256)", grantor.address, 1000)
        build.send(people["deployer"], tokens[token], give)
    _approve(build, grantor, tokens["plain"], PERMIT2, UNLIMITED)

    def grant(token: str, spender: str, amount: int, end: int) -> ChainApproval:
        types = "approve(address,address,uint160,uint48)"
        build.send(grantor, PERMIT2, encode_call(types, tokens[token], spender, amount, end))
        return ChainApproval(tokens[token], spender, amount, build.chain.height)

    given = {
        "limited": grant("plain", contracts["box"], 300, soon),
        "unlimited to wallet": grant("plain", people["spender"].address, 2**160 - 1, soon + 3650 * DAY),
        "not usable": grant("talking", contracts["box"], 200, soon),
        "ended": grant("plain", contracts["spender"], 300, 0),
        "locked": grant("plain", contracts["other box"], 300, soon),
    }
    locked = (given["locked"].token, given["locked"].spender)
    selector = keccak(text="lockdown((address,address)[])")[:4]
    build.send(grantor, PERMIT2, selector + encode(["(address,address)[]"], [[locked]]))
    return given


def _lure_wallet(build: Builder, people: dict[str, KeyedWallet], tokens: dict[str, str]) -> str:
    """Have the lured wallet approve a contract that tries to use another approval while it is read."""
    deployer, lured = people["deployer"], people["lured"]
    lure = build.deploy(deployer, "lure")
    build.send(deployer, tokens["plain"], encode_call("transfer(address,uint256)", lured.address, 1000))
    _approve(build, lured, tokens["plain"], lure, 1000)
    build.send(deployer, lure, encode_call("lay_out(address,address)", lured.address, tokens["plain"]))
    return lure


def _to_bytes(address: str) -> Any:
    return bytes.fromhex(address[2:])
