"""The `centgate` command."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from centgate.log import set_up_logs
from centgate.phishing import commands as phishing_list
from centgate.settings import PREFIX, Settings, misspelt

app = typer.Typer(
    name="centgate",
    help="Facts for software agents at one cent a call, paid per request in USDC by x402.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(phishing_list.app)

Host = Annotated[str | None, typer.Option(help="The address to listen on.")]
Port = Annotated[int | None, typer.Option(help="The port to listen on; 0 takes a free one.")]


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    workers: Annotated[int | None, typer.Option(help="Server processes.")] = None,
) -> None:
    """Serve the API for real money, as CENTGATE_* and .env set it up."""
    from centgate import server
    from centgate.runtime import rehearse

    settings = _settings(host=host, port=port, workers=workers)
    set_up_logs(settings.log_level)
    _warn(settings)
    try:
        rehearse(settings)
        server.run(settings)
    except (ValueError, OSError) as error:
        _fail(str(error))


@app.command()
def dev(host: Host = None, port: Port = None) -> None:
    """Serve the API on a development chain of its own: ten payers with test money, no key, no account."""
    from centgate import server
    from centgate.dev import development

    settings = _settings(host=host, port=port)
    set_up_logs(settings.log_level)
    try:
        with development(settings) as house:
            print(f"chain        {house.chain.rpc_url}  ({house.chain.kind}, id {house.chain.chain_id})")
            print(f"facilitator  {house.chain.facilitator_url}")
            print(f"token        {house.chain.token}  (USDC, 6 decimals)")
            print(f"paid to      {house.settings.pay_to}")
            print("payers, 1,000 test USDC each (address, private key; known to the whole world):")
            for account in house.chain.accounts:
                print(f"  {account.address}  {account.private_key}")
            sys.stdout.flush()
            server.run(house.settings)
    except ModuleNotFoundError as error:
        _fail(_without_extra(error))
    except (OSError, RuntimeError) as error:
        _fail(str(error))


@app.command()
def demo() -> None:
    """Act as a buyer on a development chain: ask, pay, get the answer, and see that nothing is paid twice."""
    set_up_logs("error")
    settings = _settings(port=0)
    try:
        from centgate.demo.story import run_demo

        run_demo(settings)
    except ModuleNotFoundError as error:
        _fail(_without_extra(error))
    except (OSError, RuntimeError) as error:
        _fail(str(error))


@app.command()
def settings(
    *,
    env: Annotated[bool, typer.Option("--env", help="As a .env file to fill in.")] = False,
) -> None:
    """Show every setting there is."""
    from centgate.settings_page import env_example, markdown

    print(env_example() if env else markdown(), end="")


def _without_extra(error: ModuleNotFoundError) -> str:
    return f"the development chain needs more than the server ({error.name}): pip install 'centgate[dev]'"


def _warn(settings: Settings) -> None:
    """Say what an operator may not have meant."""
    from centgate.catalog import all_providers, all_services

    if settings.pay_to is None:
        _say("CENTGATE_PAY_TO is not set: every paid route answers 402 payment_not_configured")
    if settings.lacks_cdp_key:
        _say(f"{settings.facilitator} wants CENTGATE_CDP_API_KEY_ID and _SECRET: no payment will go through")
    providers = all_providers(all_services()).values()
    for name in misspelt([name for provider in providers for name in provider.about.settings]):
        _say(f"{name} sets nothing; `centgate settings` shows every setting")


def _settings(**given: Any) -> Settings:
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = [_problem(found) for found in error.errors()]
    except ValueError as error:
        problems = [str(error)]
    for problem in problems:
        _say(problem)
    raise typer.Exit(2)


def _problem(found: ErrorDetails) -> str:
    """What is wrong with a setting, in words; a pattern is told as what the setting is for."""
    message = found["msg"].removeprefix("Value error, ")
    if not found["loc"]:
        return message
    field = str(found["loc"][0])
    if found["type"] == "string_pattern_mismatch":
        message = f"{found['input']!r} does not fit. {Settings.model_fields[field].description}"
    return f"{PREFIX}{field.upper()}: {message}"


def _say(sentence: str) -> None:
    print(f"centgate: {sentence}", file=sys.stderr)


def _fail(sentence: str) -> NoReturn:
    _say(sentence)
    raise typer.Exit(1)


def main() -> None:
    """The entry point."""
    app()
