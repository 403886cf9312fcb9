"""Typed methods: generated from the services, correct for the type checker, and paid like any call."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Generator
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from buyers_shell import private_key_of
from facilitators import StubFacilitator, build_settings, open_stub_facilitator
from generate_client import generate_modules

import centgate.client
from centgate.catalog import all_services
from centgate.client import Answer, AsyncCentgate, Centgate, Receipt, Wallet
from centgate.client._generated import methods, models
from centgate.client._generated.methods import AsyncServices, Services
from centgate.client._generated.models import TokenRiskData
from centgate.client.answer_data import AnswerData
from centgate.client.typed import AnswerDrift, TypedAnswer
from centgate.schema import to_camel_case, to_snake_case
from centgate.server import run_in_thread
from centgate.service import AnyService

pytestmark = pytest.mark.extended

FOLDER = Path(methods.__file__).parent
EVERY = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
SMALL_BUYER = """
from centgate.client import AsyncCentgate, Centgate
from centgate.client._generated.models import TokenRiskData


def verdict(client: Centgate) -> str:
    answer = client.token_risk(chain="base", token_address="0x" + "1" * 40)
    data: TokenRiskData = answer.data
    if data.risk_level in ("critical", "high"):
        return data.risk_flags[0].explanation
    print(answer.request_id, answer.cached, answer.receipt, answer.warnings, data.taxes.buy.percent)
    return data.risk_level


async def titles(client: AsyncCentgate) -> list[str | None]:
    answer = await client.neuralweb_search(query="cats", num_results=3, category="news")
    return [result.title for result in answer.data.results]
"""
WRONG = {
    "a wrong keyword": ('client.token_risk(chain="base", token="0x")', "reportCallIssue"),
    "a wrong type": ('client.token_risk(chain="base", token_address=5)', "reportArgumentType"),
    "a wrong word": ('client.token_risk(chain="bass", token_address="0x")', "reportArgumentType"),
    "a text for a list": ('client.neuralweb_contents(urls="https://a.org")', "reportArgumentType"),
    "too little": ("client.contract_explain(chain_id=1)", "reportCallIssue"),
    "no keyword": ('client.phishing_check("https://a.org")', "reportCallIssue"),
    "a field that is none": ('client.phishing_check(url="a.org").data.verdict', "reportAttributeAccessIssue"),
    "no service": ("client.token_price()", "reportAttributeAccessIssue"),
}


@pytest.fixture(scope="module")
def facilitator() -> Generator[StubFacilitator]:
    """The facilitator of the API."""
    with open_stub_facilitator() as stub:
        yield stub


@pytest.fixture(scope="module")
def url(facilitator: StubFacilitator, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """URL of an API."""
    with run_in_thread(build_settings(tmp_path_factory.mktemp("api"), facilitator.url)) as address:
        yield address


def build_sample(service: AnyService, **changes: Any) -> Answer:
    """Return an answer with the service's sample as its data."""
    data = service.output_example | changes
    receipt = Receipt("0x" + "1" * 64, "0x" + "2" * 40, "eip155:8453", Decimal("0.01"), replayed=False)
    envelope = {"service": service.slug, "requestId": "req_1", "data": data}
    return Answer(
        data,
        "req_1",
        cached=False,
        providers=(),
        warnings=(),
        receipt=receipt,
        envelope=envelope,
        money="moved",
    )


def get_model(service: AnyService) -> type[AnswerData]:
    """Return the generated model of a service's data."""
    return getattr(models, "".join(word.title() for word in service.slug.split("-")) + "Data")


def run_type_checker(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run basedpyright on a program, as strictly as in this project."""
    (folder / "program.py").write_text(program)
    (folder / "pyproject.toml").write_text('[tool.basedpyright]\ntypeCheckingMode = "strict"\n')
    checker = Path(sys.executable).with_name("basedpyright")
    if not checker.exists():
        pytest.skip("basedpyright is not installed")
    command = [checker, "--pythonpath", sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("name", ["models.py", "methods.py"])
def test_generated_files_are_committed(name: str) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")

    formatted = subprocess.run(
        [ruff, "format", "--stdin-filename", FOLDER / name, "-"],
        input=generate_modules()[name],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout

    assert formatted == (FOLDER / name).read_text(encoding="utf-8"), "run `make client`"


@EVERY
def test_every_service_has_method_in_both_clients(service: AnyService) -> None:
    name = service.slug.replace("-", "_")

    sync, asynchronous = getattr(Services, name), getattr(AsyncServices, name)

    assert inspect.iscoroutinefunction(asynchronous)
    parameters = inspect.signature(sync).parameters
    assert parameters == inspect.signature(asynchronous).parameters
    assert {to_camel_case(each) for each in parameters if each != "self"} == set(
        service.request.model_json_schema()["properties"]
    )
    assert service.summary in " ".join(sync.__doc__.split())
    assert f"${service.price}" in sync.__doc__


@EVERY
def test_sample_of_every_service_fits_its_model(service: AnyService) -> None:
    data = TypedAnswer(build_sample(service), get_model(service)).data

    assert data.model_dump(mode="json", by_alias=True) == service.output_example


@EVERY
def test_method_sends_keywords_as_fields(service: AnyService) -> None:
    class Recorder(Services):
        def call(self, slug: str, body: Any) -> Answer:
            return build_sample(service, slug=slug, body=body)

    keywords = {to_snake_case(name): value for name, value in service.input_example.items()}

    answer = getattr(Recorder(), service.slug.replace("-", "_"))(**keywords)

    assert answer.answer.data["slug"] == service.slug
    assert answer.answer.data["body"] == service.input_example


@pytest.mark.parametrize("name", ["chainId", "volume24hUsd", "txns24h", "url"])
def test_python_name_maps_back_to_field(name: str) -> None:
    assert to_camel_case(to_snake_case(name)) == name


def test_ambiguous_name_is_refused() -> None:
    with pytest.raises(ValueError, match="no snake_case name"):
        to_snake_case("a_b")


def get_token_risk() -> AnyService:
    return next(service for service in all_services() if service.slug == "token-risk")


def test_values_and_fields_of_newer_server_are_read() -> None:
    answer = build_sample(get_token_risk(), riskLevel="abysmal", mood="grim")

    data = TypedAnswer(answer, TokenRiskData).data

    assert data.risk_level == "abysmal"


@pytest.mark.parametrize("change", [{"riskLevel": None}, {"riskFlags": {}}, {"taxes": {"buy": 1}}], ids=str)
def test_unexpected_answer_is_in_error(change: dict[str, Any]) -> None:
    answer = TypedAnswer(build_sample(get_token_risk(), **change), TokenRiskData)

    with pytest.raises(AnswerDrift) as error:
        _ = answer.data

    assert error.value.answer is answer.answer
    assert error.value.money == "moved"
    assert next(iter(change)) in str(error.value)
    assert answer.receipt
    assert answer.request_id == "req_1"


def test_typed_answer_has_all_but_data_and_envelope_of_raw_answer() -> None:
    raw = replace(build_sample(get_token_risk()), notes=("no receipt came",), body=b"{}")
    names = {each.name for each in fields(Answer)} - {"data", "envelope"}

    typed = TypedAnswer(raw, TokenRiskData)

    assert {name: getattr(typed, name, None) for name in names} == {
        name: getattr(raw, name) for name in names
    }


def test_typed_call_is_paid_and_answered(url: str, facilitator: StubFacilitator) -> None:
    facilitator.moved.clear()

    with Centgate(url, Wallet.from_key(private_key_of())) as client:
        answer = client.phishing_check(url="https://wallet-ethereum.net/unlock")

    assert answer.data.status == "blocked"
    assert answer.data.matched_list == "blocklist"
    assert answer.providers[0]["name"] == "phishinglist"
    assert not answer.cached
    assert answer.receipt
    assert sum(facilitator.moved.values()) == 1


async def test_typed_call_is_paid_and_awaited(url: str) -> None:
    async with AsyncCentgate(url, Wallet.from_key(private_key_of())) as client:
        answer = await client.phishing_check(url="https://metamask.io")

    assert answer.data.status == "allowed"
    assert answer.receipt


def test_small_buyer_passes_type_checker(tmp_path: Path) -> None:
    output = run_type_checker(SMALL_BUYER, tmp_path)

    assert output.returncode == 0, output.stdout


def test_wrong_use_fails_type_checker(tmp_path: Path) -> None:
    header = "from centgate.client import Centgate\n\n\ndef buy(client: Centgate) -> None:\n"
    lines = [f"    print({line})\n" for line, _ in WRONG.values()]

    output = run_type_checker(header + "".join(lines), tmp_path)

    for number, (case, (_, rule)) in enumerate(WRONG.items(), header.count("\n") + 1):
        found = [line for line in output.stdout.splitlines() if f"program.py:{number}:" in line]
        assert found, f"{case} is not found:\n{output.stdout}"
        assert rule in output.stdout


def test_every_public_name_is_importable() -> None:
    names = set(centgate.client.__all__) - {"Proxies", "__version__"}

    assert all(getattr(centgate.client, name).__name__ for name in names)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = centgate.client.Nothing  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_client_import_loads_only_its_own_needs() -> None:
    code = "import sys; from centgate.client import AsyncCentgate, Centgate, Wallet; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(result.stdout.split())
    assert "centgate.client.sync_client" in loaded
    late = {"anyio", "asyncio", "httpx2", "orjson", "pydantic", "rich", "sqlalchemy", "typer"}
    assert not late & loaded


def test_annotations_of_methods_resolve() -> None:
    hints = get_type_hints(Services.phishing_check)

    assert hints == {"url": str, "return": TypedAnswer}
