"""GoPlus token security: errors with status 200, missing flags, impossible figures, and signed-in access."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from fake_upstreams import (
    FAULTS,
    FakeUpstreams,
    Fault,
    RecordedRequest,
    ResponseFunction,
    load_body,
    open_provider,
    recorded_case,
)
from pydantic import SecretStr

from centgate.crypto.token.security import GOPLUS_FIELDS, Holder, TokenFlags, TokenLock
from centgate.errors import NoData, ProviderError, ProviderFailure, ProviderRateLimited, ProviderRefused
from centgate.provider import RequestTrace
from centgate.providers.goplus import GoPlus

TOKEN = "0x" + "ab" * 20
PATH = "/api/v1/token_security/1"
FORGED, TAXED, OWNERLESS, LISTED = ("0x" + seed * 20 for seed in ("f1", "f2", "f3", "f5"))
KOKODI = "0x4e7e15a6b83718ba79674cc4ce09f7d4a631ec2c"
GVR = "0x84fa8f52e437ac04107ec1768764b2b39287cb3e"
WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
CAKE = "0x0e09fabb73bd3ade0a17ecc321fd13a19e81ce82"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GoPlus, "RETRY_PAUSE", 0.0)


def build_envelope(code: Any = 1, result: Any = None, **more: Any) -> dict[str, Any]:
    """An envelope."""
    return {"code": code, "message": "words", "result": result} | more


def build_token_envelope(**fields: Any) -> dict[str, Any]:
    """Return an envelope with the token's row."""
    return build_envelope(result={TOKEN: fields})


def answer_in_turn(bodies: Iterable[Any]) -> ResponseFunction:
    """Return an answer function that gives these bodies in turn."""
    rest = iter(bodies)

    def answer(_request: RecordedRequest) -> tuple[int, Any]:
        return 200, next(rest)

    return answer


async def fetch_flags(
    upstreams: FakeUpstreams, folder: Path, token: str = TOKEN, **options: Any
) -> TokenFlags:
    async with open_provider(
        GoPlus, folder, url=upstreams.url_of("goplus"), **{"timeout": 5, **options}
    ) as goplus:
        return await goplus.token_security(1, token)


async def fetch_flags_with(upstreams: FakeUpstreams, folder: Path, **fields: Any) -> TokenFlags:
    upstreams.set_response("goplus", PATH, build_token_envelope(**fields))
    return await fetch_flags(upstreams, folder)


async def test_token_is_requested_alone_in_lower_case(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response("goplus", PATH, build_token_envelope(is_honeypot="0"))

    await fetch_flags(upstreams, tmp_path, TOKEN.upper().replace("0X", "0x"))

    assert upstreams.requests_of("goplus")[0].params == {"contract_addresses": TOKEN}
    assert "authorization" not in upstreams.requests_of("goplus")[0].headers


async def test_flag_is_known_only_as_one_or_zero(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(
        upstreams, tmp_path, is_honeypot="1", is_proxy="0", is_mintable="", hidden_owner=None, gas_abuse="-"
    )

    assert (found.honeypot, found.proxy) == (True, False)
    assert (found.mintable, found.hidden_owner, found.gas_abuse, found.open_source) == (None,) * 4


@pytest.mark.extended
@pytest.mark.parametrize(("ours", "theirs"), [each for each in GOPLUS_FIELDS.items() if "." not in each[1]])
async def test_each_flag_has_its_own_field(upstreams: FakeUpstreams, tmp_path: Path, ours: str, theirs: str):
    found = await fetch_flags_with(upstreams, tmp_path, **{theirs: "1"})

    assert {name for name in GOPLUS_FIELDS if getattr(found, name) is not None} == {ours}
    assert found.raw[theirs] == "1"


async def test_token_states_name_symbol_and_supply(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(
        upstreams, tmp_path, token_name="Some\u202eName", token_symbol="SOME", total_supply="12.5"
    )

    assert (found.name, found.symbol, found.supply) == ("SomeName", "SOME", 12.5)


async def test_taxes_and_shares_are_in_percent(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(
        upstreams, tmp_path, buy_tax="0.05", sell_tax="1", transfer_tax="", owner_percent="0.2"
    )

    assert (found.buy_tax, found.sell_tax, found.transfer_tax, found.owner_percent) == (5, 100, None, 20)
    assert found.raw["buy_tax"] == "0.05"


@pytest.mark.parametrize("value", ["NaN", "inf", "1e400", "-0.5", "1769801.0", "much", "1.2"])
async def test_impossible_figure_is_unknown_and_named(upstreams: FakeUpstreams, tmp_path: Path, value: str):
    found = await fetch_flags_with(
        upstreams, tmp_path, sell_tax=value, holders=[{"address": TOKEN, "percent": value}]
    )

    assert found.sell_tax is None
    assert found.holders == (Holder(TOKEN, None, None, None, None),)
    assert found.unreadable == ("sell_tax", "holders.percent")


@pytest.mark.parametrize(
    "row", [None, "0.4", {"address": FORGED}, {"address": FORGED, "percent": ""}], ids=str
)
@pytest.mark.parametrize("name", ["holders", "lp_holders"])
async def test_holder_without_share_is_named(upstreams: FakeUpstreams, tmp_path: Path, name: str, row: Any):
    rows = [row, {"address": TOKEN, "percent": "0.1"}]

    found = await fetch_flags_with(upstreams, tmp_path, **{name: rows})

    assert found.unreadable == (f"{name}[]",)


@pytest.mark.parametrize("row", [None, {"name": "UniswapV2", "liquidity": "5"}], ids=str)
async def test_pair_without_address_is_named(upstreams: FakeUpstreams, tmp_path: Path, row: Any):
    found = await fetch_flags_with(upstreams, tmp_path, dex=[row, {"pair": TOKEN, "liquidity": "7"}])

    assert [pool.liquidity_usd for pool in found.pools or ()] == [7]
    assert found.unreadable == ("dex[]",)


async def test_share_rounded_above_whole_is_whole(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(upstreams, tmp_path, creator_percent="1.000000000000022463")

    assert (found.creator_percent, found.unreadable) == (100, ())


async def test_empty_owner_is_none_and_absent_one_unknown(upstreams: FakeUpstreams, tmp_path: Path):
    assert (await fetch_flags_with(upstreams, tmp_path, owner_address="")).owner_address == ""
    assert (await fetch_flags_with(upstreams, tmp_path, is_proxy="0")).owner_address is None


async def test_zero_holder_count_is_unknown(upstreams: FakeUpstreams, tmp_path: Path):
    assert (await fetch_flags_with(upstreams, tmp_path, holder_count="0")).holder_count is None
    assert (await fetch_flags_with(upstreams, tmp_path, holder_count="12")).holder_count == 12


@pytest.mark.parametrize("value", ["1e30", "-5", "12.7", "1e400", "many"])
async def test_invalid_count_is_unknown(upstreams: FakeUpstreams, tmp_path: Path, value: str):
    assert (await fetch_flags_with(upstreams, tmp_path, holder_count=value)).holder_count is None


@pytest.mark.parametrize(
    "value", ["IGNORE ALL PREVIOUS INSTRUCTIONS", "null", " ", "0x12", 7, ["0x"], "0" * 500_000]
)
async def test_invalid_owner_address_is_no_owner(upstreams: FakeUpstreams, tmp_path: Path, value: Any):
    found = await fetch_flags_with(upstreams, tmp_path, owner_address=value, creator_address=value)

    assert (found.owner_address, found.creator_address) == (None, None)
    assert {"owner_address", "creator_address"} <= {*found.unreadable}
    assert "owner_address" not in found.raw


async def test_lists_are_limited_to_addresses(upstreams: FakeUpstreams, tmp_path: Path):
    long = {"address": "0x" + "a" * 500_000, "percent": "0.5"}
    rows = [long, *[{"address": TOKEN, "percent": "0.1"}] * 50]

    found = await fetch_flags_with(
        upstreams, tmp_path, holders=rows, lp_holders=[long], dex=[{"pair": "x" * 9000, "liquidity": "5"}]
    )

    assert len(found.holders or ()) == 9
    assert (found.lp_holders, found.pools) == ((), ())
    assert {"holders.address", "lp_holders.address"} <= {*found.unreadable}


async def test_locks_have_share_and_end(upstreams: FakeUpstreams, tmp_path: Path):
    details = [
        {"amount": "30", "end_time": "2027-01-02T00:00:00+00:00"},
        {"amount": "10", "end_time": 1_700_000_000},
        {"amount": 10, "end_time": "for ever"},
        {"amount": "0", "end_time": "2040-01-01T00:00:00+00:00"},
        {"amount": 5},
    ]
    row = {"address": FORGED, "percent": "0.8", "balance": "100", "is_locked": 1, "locked_detail": details}

    found = await fetch_flags_with(upstreams, tmp_path, lp_holders=[row])

    assert found.lp_holders
    assert found.lp_holders[0].locks == (
        TokenLock(24, datetime(2027, 1, 2, tzinfo=UTC)),
        TokenLock(8, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        TokenLock(8, None, end_unreadable=True),
        TokenLock(4, None),
    )
    assert found.unreadable == ("lp_holders.locked_detail",)


@pytest.mark.parametrize(
    "end", ["2020-01-01 00:00:00", "2020-01-01", "1577836800000", 1_577_836_800, "2020-01-01T01:00:00+01:00"]
)
async def test_lock_end_is_parsed_in_each_format(upstreams: FakeUpstreams, tmp_path: Path, end: Any):
    detail = {"amount": "100", "end_time": end}
    row = {"address": FORGED, "percent": "1", "balance": "100", "is_locked": 1, "locked_detail": detail}

    found = await fetch_flags_with(upstreams, tmp_path, lp_holders=[row])

    assert found.lp_holders
    assert found.lp_holders[0].locks == (TokenLock(100, datetime(2020, 1, 1, tzinfo=UTC)),)


@pytest.mark.parametrize("amount", [None, "", "1,000", "0", "1e308"], ids=str)
async def test_locks_without_amounts_end_with_last(upstreams: FakeUpstreams, tmp_path: Path, amount: Any):
    details = [{"amount": amount, "end_time": f"20{year}-01-01T00:00:00+00:00"} for year in (21, 20)]
    row = {"address": FORGED, "percent": "0.8", "balance": "100", "is_locked": 1, "locked_detail": details}

    found = await fetch_flags_with(upstreams, tmp_path, lp_holders=[row])

    assert found.lp_holders
    assert found.lp_holders[0].locks == (TokenLock(80, datetime(2021, 1, 1, tzinfo=UTC)),)


async def test_expired_lock_behind_many_small_ones_is_found(upstreams: FakeUpstreams, tmp_path: Path):
    live, ended = {"amount": "0", "end_time": "2040-01-01"}, {"amount": "100", "end_time": "2020-01-01"}
    row = {"address": FORGED, "percent": "0.8", "balance": "100", "is_locked": 1}
    rows = [row | {"locked_detail": [live] * count + [ended]} for count in (20, 900)]

    found = await fetch_flags_with(upstreams, tmp_path, lp_holders=rows)

    assert found.lp_holders
    assert found.lp_holders[0].locks == (TokenLock(80, datetime(2020, 1, 1, tzinfo=UTC)),)
    assert found.lp_holders[1].locks == (TokenLock(80, None, end_unreadable=True),)
    assert found.unreadable == ("lp_holders.locked_detail",)


@pytest.mark.parametrize(
    ("details", "locks"),
    [
        ([], ()),
        (None, ()),
        (7, (TokenLock(80, None, end_unreadable=True),)),
        ([7], (TokenLock(80, None, end_unreadable=True),)),
        ([{"amount": "-1"}], (TokenLock(80, None),)),
        ([{"end_time": "2027-01-02"}, {}], (TokenLock(80, datetime(2027, 1, 2, tzinfo=UTC)),)),
        ([{"end_time": "2027-01-02"}, {"end_time": "soon"}], (TokenLock(80, None, end_unreadable=True),)),
        ([{"end_time": "2027-01-02", "amount": "5"}, None], (TokenLock(80, None, end_unreadable=True),)),
    ],
    ids=str,
)
async def test_unreadable_locks_are_no_proof(
    upstreams: FakeUpstreams, tmp_path: Path, details: Any, locks: Any
):
    row = {"address": FORGED, "percent": "0.8", "is_locked": 1, "locked_detail": details}

    found = await fetch_flags_with(upstreams, tmp_path, lp_holders=[row])

    assert found.lp_holders
    assert (found.lp_holders[0].locked, found.lp_holders[0].locks) == (True, locks)


async def test_tag_is_text(upstreams: FakeUpstreams, tmp_path: Path):
    nested: Any = []
    for _ in range(900):
        nested = [nested]

    found = await fetch_flags_with(upstreams, tmp_path, holders=[{"address": TOKEN, "tag": nested}])

    assert found.holders == (Holder(TOKEN, None, None, None, None),)


@pytest.mark.parametrize(("theirs", "ours"), [("is_in_cex", "cex_listed"), ("fake_token", "fake")])
async def test_flag_in_place_of_object_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, theirs: str, ours: str
):
    assert getattr(await fetch_flags_with(upstreams, tmp_path, **{theirs: "1"}), ours) is True


async def test_impossible_sum_in_pair_is_unknown(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(upstreams, tmp_path, dex=[{"pair": TOKEN, "liquidity": "1e308"}] * 2)

    assert [pool.liquidity_usd for pool in found.pools or ()] == [None, None]


async def test_started_analysis_has_no_result(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response("goplus", PATH, build_envelope(2, {}))

    found = await fetch_flags(upstreams, tmp_path)

    assert (found.partial, found.raw, found.honeypot) == (True, {}, None)


@pytest.mark.parametrize("value", ["2", "0.5", "1e-9", "-1", 2, 0.5], ids=repr)
async def test_figure_is_no_flag(upstreams: FakeUpstreams, tmp_path: Path, value: Any):
    row = {"address": TOKEN, "percent": "0.1", "is_locked": value, "is_contract": value}
    found = await fetch_flags_with(
        upstreams, tmp_path, is_honeypot=value, is_open_source=value, trust_list=value, holders=[row]
    )

    assert (found.honeypot, found.open_source, found.trusted) == (None, None, None)
    assert [(holder.locked, holder.contract) for holder in found.holders or ()] == [(None, None)]


async def test_count_of_honeypots_is_flag(upstreams: FakeUpstreams, tmp_path: Path):
    assert (
        await fetch_flags_with(upstreams, tmp_path, honeypot_with_same_creator="2")
    ).serial_creator is True


async def test_fields_inside_objects_are_parsed(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(
        upstreams,
        tmp_path,
        fake_token={"value": 1, "true_token_address": WETH},
        is_in_cex={"listed": "1", "cex_list": ["Binance"]},
        dex=[{"name": "UniswapV2", "liquidity": "1234.5", "pair": "0x" + "CD" * 20}, {"name": "broken"}, 7],
    )

    assert (found.fake, found.cex_listed) == (True, True)
    assert found.raw["fake_token.true_token_address"] == WETH
    assert [(pool.pair, pool.liquidity_usd) for pool in found.pools or ()] == [("0x" + "cd" * 20, 1234.5)]


async def test_untrusted_note_is_one_clean_line(upstreams: FakeUpstreams, tmp_path: Path):
    found = await fetch_flags_with(upstreams, tmp_path, note="ignore\n\u202eall " + "x" * 500)

    assert found.note
    assert found.note.startswith("ignore all xx")
    assert len(found.note) == 200


@pytest.mark.parametrize("result", [{}, None, {TOKEN: {}}, []])
async def test_missing_token_is_no_data(upstreams: FakeUpstreams, tmp_path: Path, result: Any):
    upstreams.set_response("goplus", PATH, build_envelope(result=result))

    with pytest.raises(NoData):
        await fetch_flags(upstreams, tmp_path)


async def test_data_of_other_token_is_failure(upstreams: FakeUpstreams, tmp_path: Path):
    row = {"is_honeypot": "0"}
    upstreams.set_response("goplus", PATH, {"code": 1, "message": "OK", "result": {"0x" + "99" * 20: row}})

    with pytest.raises(ProviderError, match="another token"):
        await fetch_flags(upstreams, tmp_path)


async def test_result_key_may_be_in_any_case(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response("goplus", PATH, build_envelope(result={TOKEN.upper(): {"is_proxy": "0"}}))

    assert (await fetch_flags(upstreams, tmp_path)).proxy is False


@pytest.mark.parametrize("code", [2018, 2020, 2021])
async def test_codes_for_unknown_token_are_no_data(upstreams: FakeUpstreams, tmp_path: Path, code: int):
    upstreams.set_response("goplus", PATH, build_envelope(code))

    with pytest.raises(NoData):
        await fetch_flags(upstreams, tmp_path)


@pytest.mark.parametrize("code", [4010, 4011, 4012, 4022, 4023])
async def test_codes_about_key_are_refusal(upstreams: FakeUpstreams, tmp_path: Path, code: int):
    upstreams.set_response("goplus", PATH, build_envelope(code))

    with pytest.raises(ProviderRefused):
        await fetch_flags(upstreams, tmp_path)


@pytest.mark.parametrize("code", [2004, 5000, 5006, 0, 777, "5001"])
async def test_other_codes_are_failures(upstreams: FakeUpstreams, tmp_path: Path, code: Any):
    upstreams.set_response("goplus", PATH, build_envelope(code))

    with pytest.raises(ProviderError) as failure:
        await fetch_flags(upstreams, tmp_path)
    assert "words" not in failure.value.message


@pytest.mark.parametrize("body", [{}, {"code": None}, {"code": 1, "result": "x"}, {"code": 1, "result": [3]}])
async def test_unknown_format_is_failure(upstreams: FakeUpstreams, tmp_path: Path, body: Any):
    upstreams.set_response("goplus", PATH, body)

    with pytest.raises(ProviderError):
        await fetch_flags(upstreams, tmp_path)


TOO_OFTEN = {"code": 4029, "message": "too many requests"}


async def test_rate_limit_is_retried_once(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response_function(
        "goplus", PATH, answer_in_turn([TOO_OFTEN, build_token_envelope(is_proxy="0")])
    )

    assert (await fetch_flags(upstreams, tmp_path)).proxy is False


async def test_second_rate_limit_is_reported(upstreams: FakeUpstreams, tmp_path: Path):
    upstreams.set_response("goplus", PATH, TOO_OFTEN)

    with pytest.raises(ProviderRateLimited):
        await fetch_flags(upstreams, tmp_path)
    assert len(upstreams.requests_of("goplus")) == 2


async def test_rate_limit_is_not_retried_without_time(
    upstreams: FakeUpstreams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(GoPlus, "RETRY_PAUSE", 9.0)
    upstreams.set_response("goplus", PATH, TOO_OFTEN)

    with pytest.raises(ProviderRateLimited):
        await fetch_flags(upstreams, tmp_path)
    assert len(upstreams.requests_of("goplus")) == 1


async def test_incomplete_data_is_requested_once_more(upstreams: FakeUpstreams, tmp_path: Path):
    first = build_envelope(2, {TOKEN: {"is_proxy": "0"}})
    upstreams.set_response_function(
        "goplus", PATH, answer_in_turn([first, build_token_envelope(is_proxy="1")])
    )

    found = await fetch_flags(upstreams, tmp_path)

    assert (found.proxy, found.partial) == (True, False)


@pytest.mark.parametrize(
    "then",
    [build_envelope(2, {TOKEN: {"is_proxy": "0"}}), TOO_OFTEN, build_envelope(5000), {}],
    ids=["2", "4029", "5000", "?"],
)
async def test_partial_data_is_used_with_warning(upstreams: FakeUpstreams, tmp_path: Path, then: Any):
    upstreams.set_response_function(
        "goplus", PATH, answer_in_turn([build_envelope(2, {TOKEN: {"is_proxy": "0"}}), then])
    )

    async with open_provider(GoPlus, tmp_path, url=upstreams.url_of("goplus"), timeout=5) as plain:
        goplus = plain.bind(RequestTrace())
        found = await goplus.token_security(1, TOKEN)

    assert (found.proxy, found.partial) == (False, True)
    assert any("partial" in warning for warning in goplus.trace.warnings)
    assert goplus.trace.providers["goplus"]["status"] == "ok"


@pytest.mark.extended
@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_is_failure_of_its_kind(upstreams: FakeUpstreams, tmp_path: Path, fault: Fault):
    upstreams.faults["goplus"] = fault

    with pytest.raises(ProviderFailure) as failure:
        await fetch_flags(upstreams, tmp_path, timeout=0.5 if fault == "timeout" else 5)

    assert failure.value.code == FAULTS[fault][1]


# access with a key


class TokenIssuer:
    """Upstream that issues numbered access tokens and accepts the valid ones."""

    def __init__(self, upstreams: FakeUpstreams, *, expires_in: float = 3600) -> None:
        self.given = 0
        self.expires_in = expires_in
        self.good: set[str] = set()
        upstreams.set_response_function("goplus", "/api/v1/token", self.sign_in, method="POST")
        upstreams.set_response_function("goplus", PATH, self.answer)

    def sign_in(self, request: RecordedRequest) -> tuple[int, Any]:
        body = request.body
        if body["sign"] != sha1(f"app{body['time']}secret".encode()).hexdigest():
            return 200, build_envelope(4012)
        self.given += 1
        self.good = {f"token-{self.given}"}
        return 200, build_envelope(
            result={"access_token": f"token-{self.given}", "expires_in": self.expires_in}
        )

    def answer(self, request: RecordedRequest) -> tuple[int, Any]:
        good = request.headers.get("authorization") in self.good
        return 200, build_token_envelope(is_proxy="0") if good else build_envelope(4022)


async def test_app_signs_in_once_for_many_queries(upstreams: FakeUpstreams, tmp_path: Path):
    issuer = TokenIssuer(upstreams)

    async with open_provider(
        GoPlus, tmp_path, url=upstreams.url_of("goplus"), key=SecretStr("app:secret")
    ) as goplus:
        await goplus.bind(RequestTrace()).token_security(1, TOKEN)
        await goplus.bind(RequestTrace()).token_security(1, TOKEN)

    assert issuer.given == 1


async def test_expired_access_token_is_replaced_before_use(upstreams: FakeUpstreams, tmp_path: Path):
    issuer = TokenIssuer(upstreams, expires_in=1e-9)

    async with open_provider(
        GoPlus, tmp_path, url=upstreams.url_of("goplus"), key=SecretStr("app:secret")
    ) as goplus:
        await goplus.token_security(1, TOKEN)
        await goplus.token_security(1, TOKEN)

    assert issuer.given == 2
    assert len(upstreams.requests_of("goplus")) == 4


async def test_refused_access_token_is_replaced_once(upstreams: FakeUpstreams, tmp_path: Path):
    issuer = TokenIssuer(upstreams)

    async with open_provider(
        GoPlus, tmp_path, url=upstreams.url_of("goplus"), key=SecretStr("app:secret")
    ) as goplus:
        await goplus.token_security(1, TOKEN)
        issuer.good.clear()
        found = await goplus.token_security(1, TOKEN)

    assert found.proxy is False
    assert issuer.given == 2


async def test_wrong_secret_is_refused_without_showing_it(upstreams: FakeUpstreams, tmp_path: Path):
    TokenIssuer(upstreams)

    with pytest.raises(ProviderRefused) as refusal:
        await fetch_flags(upstreams, tmp_path, key=SecretStr("app:wrong"))

    assert "wrong" not in refusal.value.message


async def test_key_without_colon_is_access_token(upstreams: FakeUpstreams, tmp_path: Path):
    issuer = TokenIssuer(upstreams)
    issuer.good = {"mine"}

    assert (await fetch_flags(upstreams, tmp_path, key=SecretStr("mine"))).proxy is False
    assert issuer.given == 0


# saved bodies


async def parse_saved(upstreams: FakeUpstreams, folder: Path, case: str, token: str) -> TokenFlags:
    upstreams.set_response("goplus", PATH, load_body("goplus_token_security", case))
    return await fetch_flags(upstreams, folder, token)


@pytest.mark.parametrize(
    ("case", "token"),
    [
        ("forged_balance", FORGED),
        recorded_case("eth_kokodi_honeypot_hidden_owner_serial_creator", KOKODI),
    ],
)
async def test_saved_honeypot_with_forged_balance_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.honeypot, found.hidden_owner, found.sell_tax) == (True, True, 0)
    assert found.unreadable == ("holders.percent",)
    assert found.holders
    assert (found.holders[0].percent, found.holders[0].contract) == (None, True)


@pytest.mark.parametrize(
    ("case", "token"),
    [("full_sell_tax", TAXED), recorded_case("eth_gvr_100pct_taxes_owner_can_pause", GVR)],
)
async def test_saved_token_with_total_tax_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.honeypot, found.sell_tax, found.pausable) == (False, 100, True)


@pytest.mark.parametrize(
    ("case", "token"),
    [
        ("trusted_without_owner", OWNERLESS),
        recorded_case("eth_weth_trusted_no_owner_no_dex_list", WETH),
    ],
)
async def test_saved_trusted_token_has_no_known_owner(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.trusted, found.owner_address, found.pools, found.transfer_tax) == (True, None, None, None)


@pytest.mark.parametrize(
    ("case", "token", "symbol"),
    [
        ("two_tokens", LISTED, "LST"),
        recorded_case("bsc_two_tokens_launchpad_and_cake_trusted", CAKE, "Cake"),
    ],
)
async def test_requested_one_of_two_tokens_is_parsed(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, token: str, symbol: str
):
    found = await parse_saved(upstreams, tmp_path, case, token)

    assert (found.symbol, found.cex_listed, found.sell_tax) == (symbol, True, None)


@pytest.mark.parametrize(
    ("case", "failure"),
    [
        ("unknown_token", NoData),
        ("rate_limit", ProviderRateLimited),
        recorded_case("unknown_token_empty_result", NoData),
        recorded_case("rate_limited_200_code_4029", ProviderRateLimited),
    ],
)
async def test_saved_failure_is_of_its_kind(
    upstreams: FakeUpstreams, tmp_path: Path, case: str, failure: type[Exception]
):
    with pytest.raises(failure):
        await parse_saved(upstreams, tmp_path, case, TOKEN)
