"""From a page to its Markdown, and from its Markdown to HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from centgate.faces.site.deployment import Deployment, moment
from centgate.faces.site.page import Page
from centgate.faces.site.policy import offline_policy, policy_in_page
from centgate.faces.site.prose import document
from centgate.faces.site.structured import structured
from centgate.faces.site.wording import cell, code, fenced, outside


def markdown(page: Page, deployment: Deployment) -> str:
    """The page as agents read it: under its title stands where its other form and the index are."""
    title, _, rest = written(page, deployment).partition("\n")
    site = deployment.site
    pointer = f"This page for people: <{site}{page.path}>. All pages for agents: [llms.txt]({site}/llms.txt)."
    return f"{title}\n\n{pointer}\n{rest}"


def written(page: Page, deployment: Deployment) -> str:
    """What the page says; `link(path)` in its template is where the Markdown of a page is."""
    template = _environment(escaped=False).get_template(f"{page.template}.md.j2")
    link = partial(_twin, deployment.site)
    return _tidy(template.render(page=page, deployment=deployment, link=link, **page.facts))


def html(page: Page, deployment: Deployment, pages: tuple[Page, ...]) -> str:
    """The page as people see it, `pages` being all that its head and foot lead to."""
    template = _environment(escaped=True).get_template(page.layout)
    content = document(written(page, deployment), leading(deployment, pages))
    return template.render(
        page=page,
        deployment=deployment,
        content=content,
        pages=pages,
        policy=offline_policy() if page.offline else policy_in_page(deployment),
        structured=structured,
        **page.facts,
    )


def leading(deployment: Deployment, pages: tuple[Page, ...]) -> Callable[[str], str]:
    """Where a link of the Markdown leads in HTML: to the HTML of a page, inside whatever host serves it."""
    twins = {deployment.site + page.twin: page.path for page in pages}

    def href(target: str) -> str:
        address, mark, fragment = target.partition("#")
        if address in twins:
            return twins[address] + mark + fragment
        if deployment.site != deployment.api and target.startswith(deployment.site + "/"):
            return target.removeprefix(deployment.site)
        return target

    return href


@cache
def _environment(*, escaped: bool) -> Environment:
    environment = Environment(
        loader=PackageLoader("centgate.faces.site"),
        autoescape=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = {
        "cell": cell,
        "code": code,
        "fenced": fenced,
        "json": pretty,
        "moment": moment,
        "outside": outside,
    }
    environment.filters.update(filters)
    return environment


def pretty(value: Any) -> str:
    """A value as JSON over several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _twin(site: str, path: str) -> str:
    path, mark, fragment = path.partition("#")
    return f"{site}{'/index' if path == '/' else path}.md{mark}{fragment}"


def _tidy(text: str) -> str:
    """No more than one empty line at a time, and one line's end at the end."""
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
