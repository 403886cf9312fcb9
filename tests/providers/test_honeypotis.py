"""honeypot.is provider: successful and failed simulations, their figures, and missing results."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import FAULTS, FakeUpstreams, Fault, load_body, open_provider, recorded_case

from centgate.chains import CHAINS
from centgate.crypto.token.security import HolderSales, Simulation, TradeLimit
from centgate.errors import NoData, ProviderError, ProviderFailure
from centgate.providers.honeypotis import HoneypotIs

TOKEN = "0x" + "ab" * 20
PATH = "/v2/IsHoneypot"
CNDL = "0x6EFb32bc7893b793603E39643D86594CE3638157"
NITRO = "0x95B6cD4aCb05A4e3B682f009FD323BB1D822F5cF"
WETH = "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"

Body = dict[str, Any]


def build_sale(**more: Any) -> Body:
    """Return the response for a successful sale."""
    body: Body = {
        "token": {"address": TOKEN.upper().replace("0X", "0x"), "decimals": 18},
        "summary": {"risk": "low", "riskLevel": 1, "flags": []},
        "simulationSuccess": True,
        "honeypotResult": {"isHoneypot": False},
        "simulationResult": {"buyTax": 1.5, "sellTax": 4.999999999999993, "transferTax": 0},
        "flags": [],
        "pair": {"liquidity": 5000.5, "createdAtTimestamp": "1715100863"},
    }
    return body | more


async def simulate(
    upstreams: FakeUpstreams, folder: Path, token: str = TOKEN, chain_id: int = 8453, **options: Any
) -> Simulation:
    async with open_provider(
        HoneypotIs, folder, url=upstreams.url_of("honeypotis"), **{"timeout": 5, **options}
    ) as honeypotis:
        return await honeypotis.simulate_trade(chain_id, token)


async def simulate_against(
    upstreams: FakeUpstreams, folder: Path, body: Any, token: str = TOKEN, chain_id: int = 8453
) -> Simulation:
    upstreams.set_response("honeypotis", PATH, body)
    return await simulate(upstreams, folder, token, chain_id)


async def test_coverage_is_three_chains(tmp_path: Path):
    async with open_provider(HoneypotIs, tmp_path) as honeypotis:
        assert [chain.slug for chain in CHAINS if honeypotis.supports_chain(chain.id)] == [
            "ethereum",
            "base",
            "bsc",
        ]


async def test_successful_sale_has_percent_and_usd(upstreams: FakeUpstreams, tmp_path: Path):
    found = await simulate_against(upstreams, tmp_path, build_sale())

    assert upstreams.requests_of("honeypotis")[0].params == {"address": TOKEN, "chainID": "8453"}
    assert (found.succeeded, found.honeypot, found.risk_level) == (True, False, 1)
    assert (found.buy_tax, found.sell_tax, found.transfer_tax) == (1.5, 5, 0)
    assert (found.liquidity_usd, found.pair_empty) == (5000.5, False)
    assert found.pair_created_at == datetime(2024, 5, 7, 16, 54, 23, tzinfo=UTC)
    assert found.raw["simulationResult.sellTax"] == "4.999999999999993"


async def test_token_states_name_symbol_and_decimals(upstreams: FakeUpstreams, tmp_path: Path):
    token = {"address": TOKEN, "name": "Some\u202eName", "symbol": "SOME", "decimals": 18}

    found = await simulate_against(upstreams, tmp_path, build_sale(token=token))

    assert (found.name, found.symbol, found.decimals) == ("SomeName", "SOME", 18)


async def test_missing_pair_is_no_data(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response("honeypotis", PATH, {"code": 404, "error": "No pairs found"}, status=404)

    with pytest.raises(NoData):
        await simulate(upstreams, tmp_path)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"code": 400, "error": "invalid token address"}),
        (404, "404 page not found"),
        (404, {"error": "no such route"}),
        (200, {}),
        (200, build_sale(simulationSuccess=None)),
        (200, build_sale(simulationSuccess="")),
        (200, build_sale(simulationSuccess=2)),
        (200, build_sale(simulationSuccess=[])),
    ],
    ids=str,
)
async def test_other_errors_and_formats_are_failures(
    upstreams: FakeUpstreams, tmp_path: Path, status: int, body: Any
):
    upstreams.set_response("honeypotis", PATH, body, status=status)

    with pytest.raises(ProviderError):
        await simulate(upstreams, tmp_path)


@pytest.mark.parametrize(
    ("code", "is_open"),
    [
        ({"openSource": False, "rootOpenSource": True}, True),
        ({"openSource": False, "rootOpenSource": True, "isProxy": True}, False),
        ({"openSource": True, "rootOpenSource": True, "isProxy": True}, True),
        ({"openSource": True, "rootOpenSource": False, "isProxy": True}, False),
        ({"rootOpenSource": True, "isProxy": True}, None),
        ({"openSource": True, "rootOpenSource": False}, False),
        ({"openSource": False}, False),
        (None, None),
    ],
    ids=str,
)
async def test_executed_code_decides_about_source(
    upstreams: FakeUpstreams, tmp_path: Path, code: Any, is_open: Any
):
    assert (await simulate_against(upstreams, tmp_path, build_sale(contractCode=code))).open_source is is_open


async def test_code_of_all_contracts_is_separate_from_token(upstreams: FakeUpstreams, tmp_path: Path):
    found = await simulate_against(
        upstreams, tmp_path, build_sale(contractCode={"openSource": False, "rootOpenSource": True})
    )

    assert (found.open_source, found.all_open_source, found.proxy) == (True, False, None)


@pytest.mark.parametrize("naming", [{"pairAddress": TOKEN}, {"pair": {"pair": {"address": TOKEN}}}], ids=str)
async def test_answer_about_paired_token_is_no_data(upstreams: FakeUpstreams, tmp_path: Path, naming: Body):
    with pytest.raises(NoData, match="pair"):
        await simulate_against(upstreams, tmp_path, build_sale(token={"address": "0x" + "cd" * 20}, **naming))


async def test_answer_about_other_token_is_failure(upstreams: FakeUpstreams, tmp_path: Path):
    with pytest.raises(ProviderError, match="another token"):
        await simulate_against(upstreams, tmp_path, build_sale(token={"address": "0x" + "cd" * 20}))


@pytest.mark.parametrize("naming", [{"chain": {"id": "1"}}, {"pair": {"chainId": 56}}], ids=str)
async def test_answer_about_other_chain_is_failure(upstreams: FakeUpstreams, tmp_path: Path, naming: Body):
    with pytest.raises(ProviderError, match="another chain"):
        await simulate_against(upstreams, tmp_path, build_sale(**naming))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("value", "honeypot"),
    [
        (1, True),
        ("1", True),
        ("True", True),
        (0, False),
        ("0", False),
        (None, None),
        ("yes", None),
        ([], None),
    ],
    ids=repr,
)
async def test_verdict_may_be_number(upstreams: FakeUpstreams, tmp_path: Path, value: Any, honeypot: Any):
    found = await simulate_against(upstreams, tmp_path, build_sale(honeypotResult={"isHoneypot": value}))

    assert found.honeypot is honeypot
    is_unreadable = honeypot is None and value is not None
    assert found.unreadable == (("honeypotResult.isHoneypot",) if is_unreadable else ())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("value", "succeeded"),
    [(1, True), ("1", True), ("true", True), (0, False), ("false", False)],
    ids=repr,
)
async def test_success_may_be_number(
    upstreams: FakeUpstreams, tmp_path: Path, value: Any, *, succeeded: bool
):
    taxes = {"buyTax": 0, "sellTax": 100, "transferTax": 0}

    found = await simulate_against(
        upstreams, tmp_path, build_sale(simulationSuccess=value, simulationResult=taxes)
    )

    assert (found.succeeded, found.sell_tax) == (succeeded, 100 if succeeded else None)


async def test_sales_of_holders_are_counted(upstreams: FakeUpstreams, tmp_path: Path):
    analysis = {"holders": "1000", "successful": "100", "failed": "900", "siphoned": "3"} | {
        "averageTax": 5.5,
        "highestTax": 97,
        "highTaxWallets": "12",
    }

    found = await simulate_against(upstreams, tmp_path, build_sale(holderAnalysis=analysis))

    assert found.holder_sales == HolderSales(1000, 900, 3, 5.5, 97, 12)


@pytest.mark.parametrize(
    ("value", "sales"),
    [
        ({"holders": 1000, "successful": 100}, HolderSales(tested=1000, failed=900)),
        ({"holders": 10, "successful": 12}, HolderSales(tested=10, failed=0)),
        ({"successful": 5, "failed": 2}, HolderSales(tested=7, failed=2)),
        ({"averageTax": 100, "highestTax": 100}, HolderSales(average_tax=100, highest_tax=100)),
    ],
    ids=str,
)
async def test_counts_of_sales_are_completed(
    upstreams: FakeUpstreams, tmp_path: Path, value: Any, sales: HolderSales
):
    assert (
        await simulate_against(upstreams, tmp_path, build_sale(holderAnalysis=value))
    ).holder_sales == sales


@pytest.mark.parametrize("value", [None, 7, {}, {"averageTax": 300}, {"holders": "many"}], ids=str)
async def test_holder_sales_are_unknown_without_counts(upstreams: FakeUpstreams, tmp_path: Path, value: Any):
    assert (
        await simulate_against(upstreams, tmp_path, build_sale(holderAnalysis=value))
    ).holder_sales is None


async def test_largest_trades_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    limits = {"maxBuy": {"token": 2000, "withToken": 7.5}, "maxSell": {"token": 5}}

    found = await simulate_against(upstreams, tmp_path, build_sale(simulationResult={"sellTax": 0, **limits}))

    assert (found.max_buy, found.max_sell) == (TradeLimit(2000, 7.5), TradeLimit(5, None))


# 2016-01-01 is before the first block of Base
@pytest.mark.parametrize("seconds", ["1", "1451606400", "99999999999"])
async def test_pair_with_impossible_time_has_no_age(upstreams: FakeUpstreams, tmp_path: Path, seconds: str):
    found = await simulate_against(upstreams, tmp_path, build_sale(pair={"createdAtTimestamp": seconds}))

    assert found.pair_created_at is None


async def test_impossible_taxes_are_named(upstreams: FakeUpstreams, tmp_path: Path):
    found = await simulate_against(
        upstreams, tmp_path, build_sale(simulationResult={"sellTax": 150, "buyTax": -5})
    )

    assert (found.sell_tax, found.buy_tax, found.transfer_tax) == (None, None, None)
    assert found.unreadable == ("simulationResult.buyTax", "simulationResult.sellTax")


@pytest.mark.parametrize(
    ("index", "severity"),
    [(20, "critical"), (16, "high"), ("12", "medium"), (8, "low"), (4, "info"), (99, "critical")],
)
async def test_severity_may_be_number(upstreams: FakeUpstreams, tmp_path: Path, index: Any, severity: str):
    listed = [{"flag": "mild", "severity": "info"}, {"flag": "new", "severityIndex": index}]

    found = await simulate_against(upstreams, tmp_path, build_sale(summary={"flags": listed}))

    assert {flag.name: flag.severity for flag in found.flags}["new"] == severity
    assert severity == "info" or found.flags[0].name == "new"


async def test_deeply_nested_values_are_skipped(upstreams: FakeUpstreams, tmp_path: Path):
    nested: Any = "end"
    for _ in range(900):
        nested = {"a": nested}

    found = await simulate_against(
        upstreams, tmp_path, build_sale(withToken=nested, flags=[nested, {"flag": [nested]}])
    )

    assert (found.succeeded, found.flags) == (True, ())


@pytest.mark.parametrize("value", [1e308, -5, "much"])
async def test_impossible_liquidity_is_unknown(upstreams: FakeUpstreams, tmp_path: Path, value: Any):
    assert (
        await simulate_against(upstreams, tmp_path, build_sale(pair={"liquidity": value}))
    ).liquidity_usd is None


async def test_failed_simulation_has_no_taxes(upstreams: FakeUpstreams, tmp_path: Path):
    found = await simulate_against(
        upstreams, tmp_path, build_sale(simulationSuccess=False, simulationError="no\nroute")
    )

    assert (found.buy_tax, found.sell_tax, found.transfer_tax, found.reason) == (None, None, None, "no route")


@pytest.mark.parametrize(("value", "tax"), [(-0.2, 0), (100.4, 100), (1e9, None), ("NaN", None), ("3", 3)])
async def test_tax_is_between_0_and_100_percent(
    upstreams: FakeUpstreams, tmp_path: Path, value: Any, tax: float | None
):
    assert (
        await simulate_against(upstreams, tmp_path, build_sale(simulationResult={"sellTax": value}))
    ).sell_tax == tax


@pytest.mark.parametrize(
    ("summary", "level"),
    [
        (None, None),
        ({"risk": "honeypot", "riskLevel": 95}, 95),
        ({"risk": "HONEYPOT"}, 90),
        ({"risk": "unknown"}, None),
        ({"riskLevel": 0}, 0),
    ],
    ids=str,
)
async def test_risk_is_level_or_start_of_its_word(
    upstreams: FakeUpstreams, tmp_path: Path, summary: Any, level: float | None
):
    assert (await simulate_against(upstreams, tmp_path, build_sale(summary=summary))).risk_level == level


@pytest.mark.parametrize("flags", [[None], [{"severity": "high"}], {"flag": "honeypot"}], ids=str)
async def test_flag_without_name_is_unreadable(upstreams: FakeUpstreams, tmp_path: Path, flags: Any):
    found = await simulate_against(upstreams, tmp_path, build_sale(summary={"flags": flags}))

    assert (found.flags, found.unreadable) == ((), ("flags",))


async def test_flags_are_parsed_from_both_lists(upstreams: FakeUpstreams, tmp_path: Path):
    listed = [{"flag": "CLOSED_SOURCE", "severity": "High", "description": "a\u202eb"}, {"flag": None}, 7]

    found = await simulate_against(
        upstreams, tmp_path, build_sale(summary={"flags": listed}, flags=["closed_source", "HIGH_TAX"])
    )

    assert [(flag.name, flag.severity, flag.description) for flag in found.flags] == [
        ("closed_source", "high", "ab"),
        ("high_tax", None, None),
    ]


@pytest.mark.parametrize(
    ("pair", "empty"),
    [
        ({"liquidity": 0}, True),
        ({"liquidity": 0.4, "reserves0": "9", "reserves1": "9"}, True),
        ({"liquidity": 12}, False),
        ({"reserves0": "1298907", "reserves1": "1"}, True),
        ({"reserves0": "1298907", "reserves1": "500"}, False),
        ({}, None),
        (None, None),
    ],
    ids=str,
)
async def test_pair_with_zero_liquidity_is_empty(
    upstreams: FakeUpstreams, tmp_path: Path, pair: Any, empty: Any
):
    assert (await simulate_against(upstreams, tmp_path, build_sale(pair=pair))).pair_empty is empty


@pytest.mark.parametrize(
    ("reason", "blocked"),
    [
        ("execution reverted: TransferHelper: TRANSFER_FROM_FAILED", True),
        ("execution reverted: UniswapV2: INSUFFICIENT_OUTPUT_AMOUNT", False),
        ("execution reverted: UniswapV2: TRANSFER_FAILED", True),
        (None, False),
    ],
)
def test_refused_transfer_is_distinguished_from_missing_money(reason: str | None, blocked: Any):
    assert Simulation(reason=reason).is_transfer_blocked is blocked


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["honeypotis"] = fault

    with pytest.raises(ProviderFailure) as failure:
        await simulate(upstreams, tmp_path, timeout=0.5 if fault == "timeout" else 5)

    assert failure.value.code == FAULTS[fault][1]


# saved bodies


async def parse_saved(upstreams: FakeUpstreams, folder: Path, case: str, token: str) -> Simulation:
    return await simulate_against(upstreams, folder, load_body("honeypot_is", case), token, 1)


@pytest.mark.parametrize(
    ("case", "token", "taxes"),
    [
        ("taxed", TOKEN, (3, 6.1235)),
        recorded_case("eth_cndl_5pct_taxes_max_buy", CNDL, (5, 4.9791)),
    ],
)
async def test_saved_token_with_taxes_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str, taxes: tuple[float, float]
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.honeypot, found.open_source) == (False, True)
    assert (found.buy_tax, found.sell_tax) == taxes


@pytest.mark.parametrize(
    ("case", "token"),
    [("liquidity_removed", TOKEN), recorded_case("eth_nitro_honeypot_liquidity_removed", NITRO)],
)
async def test_saved_pair_without_liquidity_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.honeypot, found.pair_empty, found.is_transfer_blocked) == (True, True, False)
    assert [flag.name for flag in found.flags] == ["extremely_high_taxes", "high_tax"]


@pytest.mark.parametrize(
    ("case", "token", "liquidity"),
    [
        ("no_holder_analysis", TOKEN, 80000.25),
        recorded_case("eth_weth_ok_no_holder_analysis", WETH, 99606174.27085423),
    ],
)
async def test_saved_token_without_holder_analysis_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str, liquidity: float
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.honeypot, found.sell_tax, found.liquidity_usd) == (False, 0, liquidity)


@pytest.mark.parametrize(
    "case", ["not_simulated", recorded_case("documented_summary_honeypot_closed_source")]
)
async def test_saved_honeypot_known_from_holders_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str
):
    found = await parse_saved(upstreams, tmp_path, case, TOKEN)

    assert (found.succeeded, found.honeypot, found.sell_tax, found.risk_level) == (False, True, None, 100)
    assert found.has_any_flag("high_fail_rate")


@pytest.mark.parametrize(
    ("case", "status", "failure"),
    [
        ("no_pairs", 404, NoData),
        ("address_invalid", 400, ProviderError),
        recorded_case("no_pairs_404", 404, NoData),
        recorded_case("invalid_address_400", 400, ProviderError),
    ],
)
async def test_saved_failure_is_of_its_kind(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, status: int, failure: type[Exception]
):
    upstreams.set_response("honeypotis", PATH, load_body("honeypot_is", case), status=status)

    with pytest.raises(failure):
        await simulate(upstreams, tmp_path)
