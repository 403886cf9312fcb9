"""The variables that set a server's settings, and the source that reads them for `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from pydantic_settings import PydanticBaseSettingsSource

from centgate.client.settings import BuyerSettings
from centgate.environment import PREFIX, read_variables
from centgate.prices import parse_price
from centgate.provider_settings import parse_providers

GROUPED_FIELDS = frozenset({"providers", "service_prices"})
"""Fields that are read from many variables, not from one of their own name."""
PRICE_PREFIX = "PRICE_"
_BUYER_VARIABLES = tuple(PREFIX + name.upper() for name in BuyerSettings.model_fields)


class EnvironmentSource(PydanticBaseSettingsSource):
    """Source of `CENTGATE_*`: the environment over `.env`, with `_FILE` and the providers' settings."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        names = field_variables(self.settings_cls)
        variables = read_server_variables(names)
        values: dict[str, Any] = {name.lower(): variables.pop(name) for name in names & variables.keys()}
        prices = _parse_service_prices(variables)
        providers = parse_providers(
            {name: value for name, value in variables.items() if not name.startswith(PRICE_PREFIX)}
        )
        groups = {"service_prices": prices, "providers": providers}
        return values | {name: group for name, group in groups.items() if group}


def field_variables(settings: type[BaseModel]) -> frozenset[str]:
    """Return the variables, without prefix, that set one field each."""
    return frozenset(name.upper() for name in settings.model_fields if name not in GROUPED_FIELDS)


def read_server_variables(names: frozenset[str]) -> dict[str, str]:
    """Return the variables of a server without prefix; `names` are those of `field_variables`.

    Raises ValueError if a file that one of them names cannot be read.
    """
    return read_variables(_BUYER_VARIABLES, names)


def price_variable(service: str) -> str:
    """Return the name of the variable that sets the price of a service, by its slug."""
    return PREFIX + PRICE_PREFIX + service.upper().replace("-", "_")


def _parse_service_prices(variables: Mapping[str, str]) -> dict[str, Decimal]:
    """Parse `PRICE_<SERVICE>`, by slug. Raises ValueError."""
    prices: dict[str, Decimal] = {}
    for name, value in variables.items():
        if name.startswith(PRICE_PREFIX):
            try:
                slug = name.removeprefix(PRICE_PREFIX).lower().replace("_", "-")
                prices[slug] = parse_price(value)
            except ValueError as error:
                raise ValueError(f"{PREFIX}{name}: {error}") from None
    return prices
