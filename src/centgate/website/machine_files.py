"""The files for machines: indexes, files under `/.well-known/`, the agent skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from centgate.website import skill
from centgate.website.api_snapshot import ApiSnapshot
from centgate.website.discovery import (
    API_CATALOG,
    LINKSET_TYPE,
    SECURITY_TXT,
    api_catalog,
    has_security_contact,
    security_txt,
)
from centgate.website.file import MARKDOWN, PLAIN_TEXT, SiteFile, make_text_file
from centgate.website.llms_txt import render_llms_full, render_llms_txt, render_robots_txt, render_sitemap
from centgate.website.page import SitePage


def build_machine_files(deployment: ApiSnapshot, pages: Sequence[SitePage]) -> Iterator[SiteFile]:
    """Yield all files for machines."""
    yield make_text_file("/llms.txt", PLAIN_TEXT, render_llms_txt(deployment, pages))
    yield make_text_file("/llms-full.txt", PLAIN_TEXT, render_llms_full(deployment, pages))
    yield make_text_file("/robots.txt", PLAIN_TEXT, render_robots_txt(deployment))
    yield make_text_file("/sitemap.xml", "application/xml", render_sitemap(deployment, pages))
    yield _json_file(API_CATALOG, api_catalog(deployment), LINKSET_TYPE)
    yield _json_file("/.well-known/x402", deployment.x402)
    if has_security_contact(deployment):
        yield make_text_file(SECURITY_TXT, PLAIN_TEXT, security_txt(deployment))
    content = skill.render_skill(deployment)
    yield make_text_file(skill.SKILL_PATH, MARKDOWN, content)
    yield _json_file(skill.INDEX_PATH, skill.skill_index(deployment, content))


def _json_file(path: str, content: Any, media_type: str = "application/json") -> SiteFile:
    return SiteFile(path, media_type, orjson.dumps(content), path[1:])
