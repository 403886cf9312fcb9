"""The files for machines: indexes, files under `/.well-known/`, the agent skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from centgate.faces.site import skill
from centgate.faces.site.deployment import Deployment
from centgate.faces.site.discovery import (
    API_CATALOG,
    LINKSET,
    SECURITY_TXT,
    api_catalog,
    reportable,
    security_txt,
)
from centgate.faces.site.file import MARKDOWN, PLAIN, File, text_file
from centgate.faces.site.indexes import llms_full, llms_txt, robots_txt, sitemap_xml
from centgate.faces.site.page import Page


def machine_files(deployment: Deployment, pages: Sequence[Page]) -> Iterator[File]:
    """Yield all files for machines."""
    yield text_file("/llms.txt", PLAIN, llms_txt(deployment, pages))
    yield text_file("/llms-full.txt", PLAIN, llms_full(deployment, pages))
    yield text_file("/robots.txt", PLAIN, robots_txt(deployment))
    yield text_file("/sitemap.xml", "application/xml", sitemap_xml(deployment, pages))
    yield _json_file(API_CATALOG, api_catalog(deployment), LINKSET)
    yield _json_file("/.well-known/x402", deployment.x402)
    if reportable(deployment):
        yield text_file(SECURITY_TXT, PLAIN, security_txt(deployment))
    content = skill.skill(deployment)
    yield text_file(skill.SKILL, MARKDOWN, content)
    yield _json_file(skill.INDEX, skill.index(deployment, content))


def _json_file(path: str, content: Any, media_type: str = "application/json") -> File:
    return File(path, media_type, orjson.dumps(content), path[1:])
