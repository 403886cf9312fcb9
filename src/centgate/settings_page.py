"""The settings as a page and as a `.env` to fill in, both made from the settings class and the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from pydantic.fields import FieldInfo

from centgate.catalog import all_providers, all_services
from centgate.provider import Provider
from centgate.settings import PREFIX, Settings

_INTRO = """# Settings

Everything is set by environment variables, or by the same lines in a file named `.env` where the server
starts. The environment wins over the file. `<NAME>_FILE` in place of `<NAME>` reads the value from a file,
for secrets.

This page is printed by `centgate settings`, the file `.env.example` by `centgate settings --env`.

| setting | default | meaning |
| --- | --- | --- |
"""
_PROVIDERS = """
## Providers

Each upstream has three settings: `CENTGATE_<NAME>_URL` replaces its address, `CENTGATE_<NAME>_KEY` is its
key, and `CENTGATE_<NAME>_ENABLED=false` switches it off. `rpc` has one address for each chain:
`CENTGATE_RPC_<CHAINID>_URL`, several separated by commas; the one of the payment network also settles what a
facilitator left open.

| name | who | key | address | terms of use |
| --- | --- | --- | --- | --- |
"""


def markdown() -> str:
    """The settings page."""
    rows = "".join(f"| `{name}` | {default or ''} | {text} |\n" for name, default, text in _settings())
    providers = "".join(
        f"| `{about.name}` | [{about.label}]({about.docs_url}) | {about.key} | {about.url or ''} | "
        f"{about.terms} |\n"
        for about in (provider.about for provider in _by_name())
    )
    return _INTRO + rows + _PROVIDERS + providers


def env_example() -> str:
    """A `.env` with every setting, its default, and what it means."""
    blocks = [f"# {text}\n# {name}={default}\n" for name, default, text in _settings()]
    for provider in _by_name():
        about, name = provider.about, PREFIX + provider.about.name.upper()
        key = f"# {name}_KEY=\n" if about.key != "none" else ""
        blocks.append(
            f"# {about.label}: {about.terms or about.docs_url}\n# {name}_ENABLED=true\n# "
            f"{name}_URL={about.url or ''}\n{key}"
        )
    return "\n".join(blocks)


def _settings() -> Iterator[tuple[str, str, str]]:
    for name, field in Settings.model_fields.items():
        if name != "providers":
            yield PREFIX + name.upper(), _default(field), field.description or ""


def _default(field: FieldInfo) -> str:
    value: object = field.default
    if isinstance(value, tuple):
        return ",".join(map(str, cast(tuple[object, ...], value)))
    return "" if value is None else str(value)


def _by_name() -> list[type[Provider]]:
    providers = all_providers(all_services())
    return [providers[name] for name in sorted(providers)]
