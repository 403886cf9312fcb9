"""Server settings: `CENTGATE_*` from the environment, `.env`, or files named by `<NAME>_FILE`.

Each setting is a field of the group of its subject; `model.py` makes `Settings` of the groups.
"""

from centgate.provider_settings import ProviderSettings
from centgate.settings.facilitators import CDP_FACILITATOR, TEST_FACILITATOR, FacilitatorAccount
from centgate.settings.model import Settings
from centgate.settings.operation import PASSWORD_HASH_PATTERN, is_loopback_host
from centgate.settings.provenance import (
    SettingSource,
    find_setting_source,
    find_unknown_variables,
    find_variables,
    get_raw_value,
)
from centgate.settings.variables import GROUPED_FIELDS, price_variable

__all__ = [
    "CDP_FACILITATOR",
    "GROUPED_FIELDS",
    "PASSWORD_HASH_PATTERN",
    "TEST_FACILITATOR",
    "FacilitatorAccount",
    "ProviderSettings",
    "SettingSource",
    "Settings",
    "find_setting_source",
    "find_unknown_variables",
    "find_variables",
    "get_raw_value",
    "is_loopback_host",
    "price_variable",
]
