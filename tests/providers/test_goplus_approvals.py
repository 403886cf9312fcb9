"""GoPlus's approval index: parsing of rows, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider, recorded_case

from centgate.crypto.approvals.reported import UNLIMITED_ALLOWANCE, ReportedApproval, ReportedApprovals
from centgate.errors import CentgateError, NoData, ProviderError, ProviderRateLimited, ProviderRefused
from centgate.providers.goplus import GoPlus
from centgate.providers.goplus_approvals import parse_goplus_approvals

WALLET = "0x85f6be9460291e86e0fb49b07d0a83cc5f7206cd"
TOKEN = "0x55d398326f99059ff775485246999027b3197955"
SPENDER = "0x10ed43c718714eb63d5aa57b78b54704e256024e"
NO_AMOUNTS: tuple[Any, ...] = (
    *("Unlimited", "NaN", "inf", "-1", "1e400", "1e999999999", "", "many"),
    *([], None, True, {}),
)
PATH = "/api/v2/token_approval_security/56"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch):
    """Retry without a pause."""
    monkeypatch.setattr(GoPlus, "RETRY_PAUSE", 0.0)


START = 1_700_000_000
"""A time in seconds since 1970, after the start of all chains."""


def build_entry(**fields: Any) -> dict[str, Any]:
    """Return one spender of a row; `fields` replace its own."""
    info: dict[str, Any] = {
        "contract_name": "Router",
        "is_contract": 1,
        "is_open_source": 1,
        "malicious_behavior": [],
    }
    return {
        "approved_contract": SPENDER,
        "approved_amount": "12.5",
        "approved_time": 1_737_626_832,
        "address_info": info,
    } | fields


def build_row(*entries: Any, **fields: Any) -> dict[str, Any]:
    """Return one token of the index."""
    own = {"token_address": TOKEN, "token_symbol": "USDT", "decimals": 18, "approved_list": list(entries)}
    return own | fields


def parse_row(*entries: Any, **fields: Any) -> tuple[ReportedApproval, ...]:
    """Parse one row."""
    return parse_goplus_approvals(1, [build_row(*entries, **fields)], partial=False).entries


async def fetch_approvals(
    upstreams: FakeUpstreams, folder: Path, body: Any, status: int = 200
) -> ReportedApprovals:
    """Query a provider whose upstream returns this."""
    upstreams.set_response("goplus", PATH, body, status=status)
    timeout = 1 if upstreams.faults.get("goplus") == "timeout" else 8
    async with open_provider(GoPlus, folder, url=upstreams.url_of("goplus"), timeout=timeout) as goplus:
        return await goplus.approvals(56, WALLET.upper().replace("0X", "0x"))


async def test_row_is_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    approvals = await fetch_approvals(
        upstreams, tmp_path, {"code": 1, "message": "ok", "result": [build_row(build_entry())]}
    )

    (approval,) = approvals.entries
    assert approval.pair == (TOKEN, SPENDER)
    assert (approval.amount, approval.amount_text, approval.unlimited) == (
        12_500_000_000_000_000_000,
        "12.5",
        False,
    )
    assert approval.changed_at == 1_737_626_832
    assert (approval.spender.name, approval.spender.is_contract, approval.spender.trusted) == (
        "Router",
        True,
        None,
    )
    assert (approvals.tokens, approvals.partial, approvals.unreadable) == (1, False, 0)
    assert upstreams.requests_of("goplus")[0].params == {"addresses": WALLET}


async def test_no_approvals_are_answer(upstreams: FakeUpstreams, tmp_path: Path):
    approvals = await fetch_approvals(upstreams, tmp_path, {"code": 1, "message": "ok", "result": []})

    assert approvals == ReportedApprovals((), 0)


@pytest.mark.parametrize("result", [[build_row(build_entry())], [], None])
async def test_collecting_index_is_partial_with_warning(
    upstreams: FakeUpstreams, tmp_path: Path, result: Any
):
    upstreams.set_response("goplus", PATH, {"code": 2, "message": "partial data obtained", "result": result})

    async with open_provider(GoPlus, tmp_path, url=upstreams.url_of("goplus")) as goplus:
        approvals = await goplus.approvals(56, WALLET)

    assert approvals.partial
    assert len(approvals.entries) == len(result or [])
    assert any("still collecting" in warning for warning in goplus.trace.warnings)


async def test_unreadable_rows_are_omitted_and_counted(upstreams: FakeUpstreams, tmp_path: Path):
    rows = [
        7,
        None,
        build_row(token_address="USDT"),
        build_row(approved_list="none"),
        build_row(approved_list=None),
        {"token_address": TOKEN},
        build_row("x", build_entry(approved_contract=None), build_entry()),
    ]
    upstreams.set_response("goplus", PATH, {"code": 1, "result": rows})

    async with open_provider(GoPlus, tmp_path, url=upstreams.url_of("goplus")) as goplus:
        approvals = await goplus.approvals(56, WALLET)

    assert [approval.pair for approval in approvals.entries] == [(TOKEN, SPENDER)]
    assert approvals.unreadable == 8
    assert goplus.trace.warnings == ["Entries of GoPlus Security's list that could not be read: 8"]


@pytest.mark.parametrize(
    ("value", "decimals", "amount"),
    [
        ("0", 18, 0),
        ("12.5", 6, 12_500_000),
        (12.5, 6, 12_500_000),
        (3, "6", 3_000_000),
        ("1e-7", 6, 0),
        ("1.5E+3", 2, 150_000),
        ("1.157920892373162e+59", 18, UNLIMITED_ALLOWANCE),
        (
            "115792089237316195423570985008687907853269984665640564039457.584007913129639935",
            18,
            UNLIMITED_ALLOWANCE,
        ),
        ("0.1234567890123456789012345678901234567890", 40, 1234567890123456789012345678901234567890),
        *((said, 18, None) for said in NO_AMOUNTS),
        ("0", None, 0),
        ("5", None, None),
        ("5", -1, None),
        ("5", 256, None),
    ],
    ids=repr,
)
def test_amount_is_parsed_exactly_or_not_at_all(value: Any, decimals: Any, amount: int | None):
    (approval,) = parse_row(build_entry(approved_amount=value), decimals=decimals)

    assert approval.amount == amount


@pytest.mark.parametrize("value", ["Unlimited", "unlimited", " UNLIMITED "])
def test_word_unlimited_is_parsed(value: str):
    (approval,) = parse_row(build_entry(approved_amount=value))

    assert approval.unlimited


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (1, True),
        ("1", True),
        (True, True),
        (0, False),
        ("0", False),
        (None, None),
        (2, None),
        (0.5, None),
        ("2", None),
        ("0.5", None),
        ("-1", None),
        ("x", None),
        ([], None),
    ],
    ids=repr,
)
def test_flag_is_number_text_or_unknown(value: Any, known: Any):
    (approval,) = parse_row(
        build_entry(address_info={"trust_list": value, "is_contract": value, "doubt_list": value})
    )

    spender = approval.spender
    assert (spender.trusted, spender.is_contract, spender.is_doubtful) == (known, known, known)


@pytest.mark.parametrize(
    "value", [0, "0", None, "soon", -5, 1_737_626_832_000, "9" * 5000], ids=lambda said: repr(said)[:20]
)
def test_invalid_time_is_unknown(value: Any):
    (approval,) = parse_row(build_entry(approved_time=value, address_info={"deployed_time": value}))

    assert approval.changed_at is None
    assert approval.spender.deployed_at is None


@pytest.mark.parametrize(
    "info", [None, [], "x", {}, {"contract_name": None, "tag": 7, "malicious_behavior": None}]
)
def test_spender_without_data_is_unknown(info: Any):
    (approval,) = parse_row(build_entry(address_info=info))

    spender = approval.spender
    assert (spender.name, spender.project, spender.is_contract, spender.misconduct) == (None, None, None, ())


def test_names_and_misconduct_are_cleaned():
    hostile = "Te\u202ether\n\u200bUSD " + "x" * 500
    (approval,) = parse_row(
        build_entry(
            address_info={"contract_name": hostile, "tag": hostile, "malicious_behavior": [hostile, 7, None]}
        ),
        token_symbol=hostile,
        malicious_behavior=["reinit"] * 99,
    )

    texts = [
        approval.token.symbol,
        approval.spender.name,
        approval.spender.project,
        *approval.spender.misconduct,
    ]
    assert len(texts) == 4
    assert all(text and text.startswith("Tether USD x") and len(text) <= 64 for text in texts)
    assert len(approval.token.misconduct) == 10


async def test_approvals_of_other_chain_are_failure(upstreams: FakeUpstreams, tmp_path: Path) -> None:
    foreign = build_row(build_entry()) | {"chain_id": "1"}

    with pytest.raises(ProviderError):
        await fetch_approvals(upstreams, tmp_path, {"code": 1, "message": "ok", "result": [foreign]})


@pytest.mark.parametrize("value", [1, 1_400_000_000, 4_000_000_000])
def test_impossible_times_are_unknown(value: int) -> None:
    (approval,) = parse_row(build_entry(approved_time=value, address_info={"deployed_time": value}))

    assert approval.changed_at is None
    assert approval.spender.deployed_at is None


def test_latest_row_of_token_and_spender_counts():
    rows = [
        build_row(
            build_entry(approved_amount="1", approved_time=START + 5),
            build_entry(approved_amount="2", approved_time=START + 9),
        ),
        build_row(
            build_entry(approved_amount="3", approved_time=START + 7),
            token_address=TOKEN.upper().replace("0X", "0x"),
        ),
    ]

    approvals = parse_goplus_approvals(1, rows, partial=False)

    assert [approval.amount_text for approval in approvals.entries] == ["2"]
    assert approvals.tokens == 1


@pytest.mark.parametrize("result", [{}, "x", 7, None, True])
async def test_result_that_is_no_list_is_failure(upstreams: FakeUpstreams, tmp_path: Path, result: Any):
    with pytest.raises(ProviderError):
        await fetch_approvals(upstreams, tmp_path, {"code": 1, "result": result})


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        (4029, ProviderRateLimited),
        (4012, ProviderRefused),
        (5000, ProviderError),
        (5006, ProviderError),
        (2018, NoData),
    ],
)
async def test_error_code_is_never_empty_list(
    upstreams: FakeUpstreams, tmp_path: Path, code: int, failure: type[CentgateError]
):
    with pytest.raises(failure):
        await fetch_approvals(upstreams, tmp_path, {"code": code, "message": "no", "result": []})


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults_are_failures(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["goplus"] = fault

    with pytest.raises(CentgateError) as raised:
        await fetch_approvals(upstreams, tmp_path, {})

    assert raised.value.code == FAULTS[fault][1]


async def test_saved_unlimited_approval_of_router_is_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    reported = await fetch_approvals(upstreams, tmp_path, load_body("goplus_approvals", "unlimited_trusted"))

    (approval,) = reported.entries
    assert approval.pair == (TOKEN, SPENDER)
    assert (approval.unlimited, approval.amount) == (True, None)
    assert (approval.token.symbol, approval.changed_at) == ("USDT", 1_750_000_000)
    assert (approval.spender.name, approval.spender.project) == ("PancakeRouter", "Pancakeswap")
    assert (approval.spender.trusted, approval.spender.is_doubtful) == (True, False)
    assert approval.spender.deployed_at == 1_650_000_000


async def test_replayed_router_is_parsed(recordings_url: str, tmp_path: Path):
    async with open_provider(GoPlus, tmp_path, url=f"{recordings_url}/goplus_approvals") as goplus:
        approvals = await goplus.approvals(56, WALLET)

    (approval,) = approvals.entries
    assert approval.unlimited
    assert approval.amount is None
    assert approval.token.symbol == "USDT"
    assert (approval.spender.name, approval.spender.project) == ("PancakeRouter", "Pancakeswap")
    assert (approval.spender.trusted, approval.spender.is_doubtful) == (True, False)
    assert approval.spender.deployed_at == 1_600_000_000


async def test_saved_wallet_without_approvals_is_answer(upstreams: FakeUpstreams, tmp_path: Path):
    assert (
        await fetch_approvals(upstreams, tmp_path, load_body("goplus_approvals", "no_approvals"))
    ).entries == ()


async def test_replayed_wallet_without_approvals_is_answer(recordings_url: str, tmp_path: Path):
    async with open_provider(GoPlus, tmp_path, url=f"{recordings_url}/goplus_approvals") as goplus:
        approvals = await goplus.approvals(1, "0x" + "00" * 20)

    assert approvals.entries == ()


@pytest.mark.parametrize(
    ("case", "project"),
    [("doubtful_spender", "Example Farm"), recorded_case("v1_spender_doubt_and_phishing", "ALPACA")],
)
def test_saved_doubtful_spender_is_parsed(case: str, project: str):
    info = load_body("goplus_approvals", case)["result"]

    (approval,) = parse_row(build_entry(address_info=info))

    assert approval.spender.is_doubtful
    assert approval.spender.misconduct == ("phishing_activities",)
    assert approval.spender.project == project
