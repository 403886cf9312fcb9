"""Render pages as Markdown, and their Markdown as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from centgate.website.api_snapshot import ApiSnapshot, format_time
from centgate.website.json_ld import build_json_ld
from centgate.website.markdown import render_document, render_inline
from centgate.website.markdown_escape import code_block, escape_cell, escape_name, external_link, inline_code
from centgate.website.page import SitePage
from centgate.website.security_headers import meta_policy, offline_meta_policy
from centgate.website.social_pictures import find_picture


def render_markdown(page: SitePage, deployment: ApiSnapshot) -> str:
    """Return the page as Markdown for agents, with links to its HTML and to llms.txt below the title."""
    title, _, rest = render_template(page, deployment).partition("\n")
    site = deployment.site
    pointer = f"This page for people: <{site}{page.path}>. All pages for agents: [llms.txt]({site}/llms.txt)."
    return f"{title}\n\n{pointer}\n{rest}"


def render_template(page: SitePage, deployment: ApiSnapshot) -> str:
    """Render the page's Markdown template; `link(path)` in it returns the URL of a page's Markdown."""
    template = _create_environment(escaped=False).get_template(f"{page.template}.md.j2")
    link = partial(_markdown_url, deployment.site)
    return _normalize_blank_lines(
        template.render(page=page, deployment=deployment, link=link, **page.context)
    )


def render_html(page: SitePage, deployment: ApiSnapshot, pages: tuple[SitePage, ...]) -> str:
    """Return the page as HTML; `pages` are those linked in its header and footer."""
    template = _create_environment(escaped=True).get_template(page.layout)
    paths = tuple((each.markdown_path, each.path) for each in pages)
    href = link_rewriter(deployment.site, deployment.api, paths)
    content = render_document(render_template(page, deployment), href)
    return template.render(
        page=page,
        deployment=deployment,
        content=content,
        pages=pages,
        policy=offline_meta_policy() if page.offline else meta_policy(deployment),
        structured=build_json_ld,
        picture=find_picture(page),
        **page.context,
    )


@lru_cache
def link_rewriter(site: str, api: str, paths: tuple[tuple[str, str], ...]) -> Callable[[str], str]:
    """Return a function that converts link targets of the Markdown to site-relative paths of HTML pages.

    `paths`: the path of each page's Markdown and of its HTML. Equal arguments give the same function.
    """
    html_paths = {site + markdown_path: path for markdown_path, path in paths}

    def href(target: str) -> str:
        address, mark, fragment = target.partition("#")
        if address in html_paths:
            return html_paths[address] + mark + fragment
        if site != api and target.startswith(site + "/"):
            return target.removeprefix(site)
        return target

    return href


@cache
def _create_environment(*, escaped: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("centgate.website"),
        autoescape=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = {
        "cell": escape_cell,
        "code": inline_code,
        "duration": format_duration,
        "fenced": code_block,
        "inline": render_inline,
        "json": format_json,
        "name": escape_name,
        "moment": format_time,
        "outside": external_link,
    }
    environment.filters.update(filters)
    return environment


def format_duration(milliseconds: int) -> str:
    """Format a time: `420 ms`, `1.2 s`."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def format_json(value: Any) -> str:
    """Format a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _markdown_url(site: str, path: str) -> str:
    path, mark, fragment = path.partition("#")
    return f"{site}{'/index' if path == '/' else path}.md{mark}{fragment}"


def _normalize_blank_lines(text: str) -> str:
    """Collapse repeated empty lines, and end the text with one line break."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
