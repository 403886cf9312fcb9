"""Generate docs/settings.md and .env.example from the settings classes and the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from centgate.catalog import all_providers, all_services
from centgate.client.settings import BuyerSettings
from centgate.environment import PREFIX
from centgate.provider import Provider, ProviderInfo
from centgate.provider_settings import PROVIDER_FIELDS
from centgate.settings import GROUPED_FIELDS, Settings

_INTRO = """# Settings

Settings are environment variables, or the same lines in a file named `.env` in the server's working
directory. The environment takes precedence over the file. `<NAME>_FILE` instead of `<NAME>` reads the value
from a file, for secrets.

This page is printed by `centgate settings`, the file `.env.example` by `centgate settings --env`.

| setting | default | meaning |
| --- | --- | --- |
"""
_BUYERS = """
## The buyer's side

Read by `centgate call`, `centgate wallet`, `centgate mcp` and `centgate.client`, only from the environment:
a `.env` in some folder must not decide whom a wallet pays.

| setting | default | meaning |
| --- | --- | --- |
"""
_PROVIDERS = """
## Providers

Each upstream has these settings, unless it has no address or needs no key.

| setting | meaning |
| --- | --- |
"""
_SPECIAL_PROVIDERS = """
`rpc` has one address per chain: `CENTGATE_RPC_<CHAINID>_URL`, or several separated by commas, tried in
order until one responds. `CENTGATE_RPC_URL` with `{chain_id}` in it is a gateway for all other chains;
without either, public nodes are used. The address of the payment network
also decides about payments whose outcome the facilitator does not report: it is trusted alone. Without it,
three public nodes of different operators are queried, of which two must agree, on the networks with a known
USDC; with `CENTGATE_RPC_<CHAINID>_ENABLED=false` none is queried.
`blockscout` can also have an address per chain, `CENTGATE_BLOCKSCOUT_<CHAINID>_URL`, and both can be disabled
per chain by `…_<CHAINID>_ENABLED`.

`packagedocs` has an address for each registry, `CENTGATE_PACKAGEDOCS_PYPI_URL`, `…_NPM_URL`, `…_CRATES_URL`
and `…_GO_URL`: a mirror or a private registry with the same API. Archives are downloaded from the same host,
or from the public registry's download host; those of Go modules are verified by the checksum database at
`CENTGATE_PACKAGEDOCS_GOSUMS_URL`. `CENTGATE_PACKAGEDOCS_GITHUB_URL=https://github.com` also reads the README,
the documentation folder and the examples of a package's repository, from the archive of the release's tag.
It is empty by default: repositories are not read.

`defillama` has an address for its directory, `CENTGATE_DEFILLAMA_API_URL`, and one for its prices,
`CENTGATE_DEFILLAMA_COINS_URL`: a paid plan has them at `https://pro-api.llama.fi/<key>/api` and
`https://pro-api.llama.fi/<key>/coins`. `CENTGATE_DEFILLAMA_URL` replaces both.

| name | who | key | address | rate | seconds | terms of use |
| --- | --- | --- | --- | --- | --- | --- |
"""


def render_markdown() -> str:
    """Return the settings page as Markdown."""
    rows = "".join(_format_row(*each) for each in _iterate_settings(Settings))
    buyers = "".join(_format_row(*each) for each in _iterate_settings(BuyerSettings))
    providers = "".join(
        f"| `{about.name}` | [{about.label}]({about.docs_url}) | {about.key} | {_format_address(about)} | "
        f"{_format_rate(about)} | {about.timeout:g} | {about.terms} |\n"
        for about in (provider.info for provider in _sorted_providers())
    )
    variables = "".join(
        f"| `{PREFIX}<NAME>_{name}` | {field.metadata['meaning']} |\n"
        for name, field in PROVIDER_FIELDS.items()
    )
    return _INTRO + rows + _BUYERS + buyers + _PROVIDERS + variables + _SPECIAL_PROVIDERS + providers


def render_env_example() -> str:
    """Return a `.env` with every setting, its default and its meaning, all commented out."""
    blocks = [f"# {text}\n# {name}={default}\n" for name, default, text in _iterate_settings(Settings)]
    for provider in _sorted_providers():
        about = provider.info
        lines = "".join(
            f"# {PREFIX}{name.replace('*', '8453')}={default}\n" for name, default in about.settings.items()
        )
        blocks.append(f"# {about.label}: {about.terms or about.docs_url}\n{lines}")
    return "\n".join(blocks)


def render_json() -> str:
    """Return every setting of the server and of buyers as a JSON list; `default` is a string."""
    sides: tuple[tuple[str, type[BaseSettings]], ...] = (("server", Settings), ("buyer", BuyerSettings))
    content = [
        {"name": name, "side": side, "default": default, "description": text}
        for side, kind in sides
        for name, default, text in _iterate_settings(kind)
    ]
    content += [
        {"name": f"{PREFIX}{name}", "side": "provider", "default": default, "description": about.label}
        for about in (provider.info for provider in _sorted_providers())
        for name, default in about.settings.items()
    ]
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def _format_rate(about: ProviderInfo) -> str:
    return f"{about.rate_limit.calls} in {about.rate_limit.seconds:g} s" if about.rate_limit else ""


def _format_address(about: ProviderInfo) -> str:
    return ", ".join(address for _, address in about.part_urls if address) or about.url or ""


def _format_row(name: str, default: str, text: str) -> str:
    return f"| `{name}` | {default} | {text} |\n"


def _iterate_settings(kind: type[BaseSettings]) -> Iterator[tuple[str, str, str]]:
    for name, field in kind.model_fields.items():
        if name not in GROUPED_FIELDS:
            yield PREFIX + name.upper(), _format_default(field), field.description or ""


def _format_default(field: FieldInfo) -> str:
    if field.default_factory:
        return "in your own folder"  # a path of the machine that prints this
    value: object = field.default
    if isinstance(value, tuple):
        return ",".join(map(str, cast(tuple[object, ...], value)))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _sorted_providers() -> list[type[Provider]]:
    providers = all_providers(all_services())
    return [providers[name] for name in sorted(providers)]
