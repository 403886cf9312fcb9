"""The settings as a page and as a `.env` to fill in, both made from the settings class and the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from centgate.catalog import all_providers, all_services
from centgate.client.settings import BuyerSettings
from centgate.provider import About, Provider
from centgate.settings import PREFIX, Settings

_INTRO = """# Settings

Everything is set by environment variables, or by the same lines in a file named `.env` where the server
starts. The environment wins over the file. `<NAME>_FILE` in place of `<NAME>` reads the value from a file,
for secrets.

This page is printed by `centgate settings`, the file `.env.example` by `centgate settings --env`.

| setting | default | meaning |
| --- | --- | --- |
"""
_BUYERS = """
## The buyer's side

What `centgate call`, `centgate wallet`, `centgate mcp` and `centgate.client` read, from the environment
alone: a `.env` in some folder must not say whom a wallet pays.

| setting | default | meaning |
| --- | --- | --- |
"""
_PROVIDERS = """
## Providers

Each upstream has five settings. `CENTGATE_<NAME>_URL` replaces its address, so that a proxy, a paid plan's
host or a test can stand in; `CENTGATE_<NAME>_KEY` is its key; `CENTGATE_<NAME>_ENABLED=false` switches it
off. `CENTGATE_<NAME>_PER_MINUTE` replaces the rate it is asked at, which the processes share out among
themselves (for each host where there are several); `CENTGATE_<NAME>_TIMEOUT` the seconds that a question to
it may take.

`rpc` has one address for each chain: `CENTGATE_RPC_<CHAINID>_URL`, several separated by commas and asked in
turn until one answers. `CENTGATE_RPC_URL` with `{chain_id}` in it is a gateway for all the others; without
either, chains are read through public nodes. The address of the payment network
also decides what a facilitator left open: it is believed alone. Without it three public nodes of different
operators are asked, of which two must agree, on the networks with a known USDC; with
`CENTGATE_RPC_<CHAINID>_ENABLED=false` none is.
`blockscout` too can have one for a chain, `CENTGATE_BLOCKSCOUT_<CHAINID>_URL`, and both have a switch for
each, `…_<CHAINID>_ENABLED`.

`packagedocs` has an address for each registry, `CENTGATE_PACKAGEDOCS_PYPI_URL` and
`CENTGATE_PACKAGEDOCS_NPM_URL`: a mirror or a registry of your own that answers as they do. Archives are
fetched from the same host, or from where the public registry keeps them.

| name | who | key | address | rate | seconds | terms of use |
| --- | --- | --- | --- | --- | --- | --- |
"""


def markdown() -> str:
    """The settings page."""
    rows = "".join(_row(*each) for each in _settings(Settings))
    buyers = "".join(_row(*each) for each in _settings(BuyerSettings))
    providers = "".join(
        f"| `{about.name}` | [{about.label}]({about.docs_url}) | {about.key} | {_address(about)} | "
        f"{_rate(about)} | {about.timeout:g} | {about.terms} |\n"
        for about in (provider.about for provider in _by_name())
    )
    return _INTRO + rows + _BUYERS + buyers + _PROVIDERS + providers


def env_example() -> str:
    """A `.env` with every setting, its default, and what it means."""
    blocks = [f"# {text}\n# {name}={default}\n" for name, default, text in _settings(Settings)]
    for provider in _by_name():
        about = provider.about
        lines = "".join(
            f"# {PREFIX}{name.replace('*', '8453')}={_as_it_is(about, name)}\n" for name in about.settings
        )
        blocks.append(f"# {about.label}: {about.terms or about.docs_url}\n{lines}")
    return "\n".join(blocks)


def _rate(about: About) -> str:
    return f"{about.rate.calls} in {about.rate.seconds:g} s" if about.rate else ""


def _address(about: About) -> str:
    return about.url or ", ".join(address for _, address in about.addresses)


def _as_it_is(about: About, name: str) -> str:
    """What a provider's setting is where nothing is set."""
    if name.endswith("_ENABLED"):
        return "true"
    if name.endswith("_PER_MINUTE"):
        return f"{about.rate.calls * 60 / about.rate.seconds:.0f}" if about.rate else ""
    if name.endswith("_TIMEOUT"):
        return f"{about.timeout:g}"
    for part, address in about.addresses:
        if name.endswith(f"_{part.upper()}_URL"):
            return address
    return about.url or "" if name.endswith("_URL") and "*" not in name else ""


def _row(name: str, default: str, text: str) -> str:
    return f"| `{name}` | {default} | {text} |\n"


def _settings(kind: type[BaseSettings]) -> Iterator[tuple[str, str, str]]:
    for name, field in kind.model_fields.items():
        if name != "providers":
            yield PREFIX + name.upper(), _default(field), field.description or ""


def _default(field: FieldInfo) -> str:
    if field.default_factory:
        return "in your own folder"  # a path of the machine that prints this
    value: object = field.default
    if isinstance(value, tuple):
        return ",".join(map(str, cast(tuple[object, ...], value)))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _by_name() -> list[type[Provider]]:
    providers = all_providers(all_services())
    return [providers[name] for name in sorted(providers)]
