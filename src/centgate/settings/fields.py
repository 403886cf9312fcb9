"""The base of the groups of settings, and types of fields that several of them use."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class SettingsGroup(BaseSettings):
    """Settings of one subject: a base of `Settings`, never made by itself.

    Names of validators and methods are unique among all groups: one of the same name would replace another.
    """

    model_config = SettingsConfigDict(defer_build=True)  # a group needs no validator of its own


def split_list(value: Any) -> Any:
    """Split a comma-separated string into a tuple; return other values unchanged."""
    if isinstance(value, str):
        return tuple(item for item in (part.strip() for part in value.split(",")) if item)
    return value


_DEFAULT_PORTS = {"http": 80, "https": 443}


def normalize_origin(value: Any) -> Any:
    """Return an origin as browsers and clients write it: in lower case, without the scheme's own port.

    Raises ValueError for a user name, which no origin has, and for a port that is no number.
    """
    if not isinstance(value, str) or "://" not in value:
        return value
    parts = urlsplit(value.strip().rstrip("/"))
    if "@" in parts.netloc:
        raise ValueError("has a user name or password: give the scheme, the host and the port alone")
    host, port = parts.hostname or "", parts.port
    if not host or parts.netloc.endswith(":"):
        raise ValueError("has no host, or no number behind the colon")
    netloc = f"[{host}]" if ":" in host else host
    if port not in (None, _DEFAULT_PORTS.get(parts.scheme)):
        netloc += f":{port}"
    return parts._replace(netloc=netloc).geturl()


CommaList = Annotated[tuple[str, ...], BeforeValidator(split_list)]
"""Texts separated by commas."""
Origin = Annotated[str, Field(pattern=r"^https?://[^/?#]+$"), BeforeValidator(normalize_origin)]
"""A URL without a path, normalised; a slash at its end is removed."""
