"""The base of the groups of settings, and types of fields that several of them use."""

from __future__ import annotations

from typing import Annotated, Any

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


def _strip_slash(value: Any) -> Any:
    return value.rstrip("/") if isinstance(value, str) else value


CommaList = Annotated[tuple[str, ...], BeforeValidator(split_list)]
"""Texts separated by commas."""
Origin = Annotated[str, Field(pattern=r"^https?://[^/?#]+$"), BeforeValidator(_strip_slash)]
"""A URL without a path; a slash at its end is removed."""
