"""Take the pictures of src/centgate/website/social: title and description of each page of the website.

.venv/bin/python tools/social_pictures.py

Needs Chromium. Pictures whose texts are unchanged are kept, so that only new ones appear in a commit.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from centgate.client.catalog import ServiceDetail
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.log import configure_logging
from centgate.server import run_in_thread
from centgate.settings import Settings
from centgate.web.browser.executable import find_executable
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.page import SitePage
from centgate.website.pages import build_pages
from centgate.website.social_pictures import HEIGHT, LIST_FILE, WIDTH, picture_name

WEBSITE: Final = Path(__file__).parent.parent / "src" / "centgate" / "website"
FOLDER: Final = WEBSITE / "social"
COLOURS: Final = 48
"""Colours of a picture: it has five and their shades at the edges of letters."""

_TEMPLATE: Final = """<!doctype html><meta charset="utf-8"><style>
@font-face {{ font-family: "Heading"; src: url("data:font/woff2;base64,{font}"); font-weight: 700; }}
* {{ box-sizing: border-box; margin: 0; }}
body {{ width: {width}px; height: {height}px; padding: 64px 80px; background: #faf8f4; color: #1d1f22;
  border-bottom: 22px solid #8f4415; display: flex; flex-direction: column;
  font-family: "Liberation Sans", "DejaVu Sans", sans-serif; }}
header {{ display: flex; align-items: center; gap: 22px; font: 700 40px Heading; }}
header svg {{ width: 68px; height: 68px; }}
main {{ flex: 1; display: flex; flex-direction: column; justify-content: center; gap: 26px; }}
h1 {{ font: 700 78px/1.1 Heading; letter-spacing: -0.02em; text-wrap: balance; }}
p {{ font-size: 35px; line-height: 1.4; color: #575c63; text-wrap: balance; }}
footer {{ font-size: 27px; color: #8f4415; }}
</style><header>{logo}Centgate</header><main><h1>{title}</h1><p>{description}</p></main>
<footer>{footer}</footer>"""


def main() -> None:
    configure_logging("error")
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'journal.db'}"
        settings = Settings(pay_to=DEFAULT_PAYEE, port=0, database_url=database)
        with run_in_thread(settings) as api:
            deployment = read_snapshot(api, "https://www.shop.example")
    pages = build_pages(deployment)
    listed = json.loads((FOLDER / LIST_FILE).read_bytes())
    texts = {page.path: [page.title, page.description] for page in pages}
    for path in listed.keys() - texts.keys():
        (FOLDER / picture_name(path)).unlink(missing_ok=True)
    take_pictures([page for page in pages if listed.get(page.path) != texts[page.path]], deployment)
    (FOLDER / LIST_FILE).write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n")


def take_pictures(pages: list[SitePage], deployment: ApiSnapshot) -> None:
    """Take a picture of each page, and save it with few colours, which takes a fifth of the bytes."""
    services = {f"/services/{service.slug}": service for service in deployment.services}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_executable(None), args=["--no-sandbox", "--disable-gpu"]
        )
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for page in pages:
            picture = take_picture(view, page, services.get(page.path))
            picture.quantize(COLOURS, dither=Image.Dither.NONE).save(
                FOLDER / picture_name(page.path), optimize=True
            )
        browser.close()


def take_picture(view: Page, page: SitePage, service: ServiceDetail | None) -> Image.Image:
    """Return the picture of a page. Raises ValueError if its texts need more room than there is."""
    title = service.title if service else page.title
    footer = f"POST {service.path}" if service else "No account, no key."
    view.set_content(
        _TEMPLATE.format(
            font=_read_font(),
            logo=(WEBSITE / "assets" / "favicon.svg").read_text(),
            width=WIDTH,
            height=HEIGHT,
            title=escape(title),
            description=escape(page.description),
            footer=escape(footer),
        )
    )
    view.evaluate("() => document.fonts.ready")
    if view.evaluate("() => document.documentElement.scrollHeight") > HEIGHT:
        raise ValueError(f"{page.path}: title and description are too long for a picture")
    return Image.open(io.BytesIO(view.screenshot())).convert("RGB")


def _read_font() -> str:
    return b64encode((WEBSITE / "assets" / "heading.woff2").read_bytes()).decode()


if __name__ == "__main__":
    sys.exit(main())
