"""Names of what figures can be grouped by; a module of its own, so that the help of commands loads fast."""

from __future__ import annotations

from typing import Literal, get_args

TotalsGroup = Literal["payer", "service", "day", "network"]
TOTALS_GROUPS: tuple[TotalsGroup, ...] = get_args(TotalsGroup)
