"""Pages built by their scripts, in a real browser, with a private server that must not be reached."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path

import pytest
from render_marks import needs_renderer
from scripted import (
    ATTACKS,
    NEVER_REACHED,
    ScriptedSite,
    create_self_signed_tls,
    render_attack_page,
    serve_site,
)

from centgate.web.browser import chromium
from centgate.web.browser.executable import RenderFailed, find_executable
from centgate.web.browser.renderer import MAX_QUEUE, RenderedPage, Renderer
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.policy import FetchPolicy

pytestmark = needs_renderer
SECONDS = 20.0
AGENT = "Centgate/1 (+https://operator.example)"
NAMES_OF = {"inside.example": ["127.0.0.2"], "mixed.example": ["127.0.0.1", "127.0.0.2"]}
OURS = "site.example"


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Share one event loop, of the server's kind, and so one browser, between all tests."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(scope="module")
def site() -> Generator[ScriptedSite]:
    """The site whose pages are read."""
    with serve_site("127.0.0.1") as site:
        yield site


@pytest.fixture(scope="module")
def inside(site: ScriptedSite) -> Generator[ScriptedSite]:
    """A private server on the same port."""
    with serve_site("127.0.0.2", site.port) as inside:
        yield inside


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Parent of the browsers' folders, accessible to the user `nobody`."""
    tmp_path_factory.getbasetemp()  # created before the temporary folder is changed
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield folder
    tempfile.tempdir = before
    shutil.rmtree(folder)


async def resolve_host(host: str) -> Sequence[str]:
    """Resolve the names used in the tests."""
    return NAMES_OF.get(host, ["127.0.0.1"])


def create_renderer(*sites: ScriptedSite) -> Renderer:
    """Create a renderer that may fetch from these sites only."""
    allowed = tuple(f"{site.host}:{site.port}" for site in sites)
    return Renderer(FetchPolicy(allowed_networks=allowed), AGENT, chromium=None, resolve=resolve_host)


@asynccontextmanager
async def open_renderer(*sites: ScriptedSite) -> AsyncGenerator[Renderer]:
    """Create a renderer and close it, also if the test fails: uvloop waits for ever for processes."""
    renderer = create_renderer(*sites)
    try:
        yield renderer
    finally:
        await renderer.close()


@pytest.fixture(scope="module")
async def renderer(site: ScriptedSite, inside: ScriptedSite, temporary: Path) -> AsyncGenerator[Renderer]:
    """The renderer shared by most tests."""
    async with open_renderer(site) as renderer:
        yield renderer


def take_private_requests(inside: ScriptedSite) -> tuple[list[str], list[bytes]]:
    """Return and clear what the private server received."""
    seen = inside.connections[:], inside.packets[:]
    inside.connections.clear()
    inside.packets.clear()
    return seen


def read_process_group(folder: Path) -> int:
    """Return the process group of the browser in a folder; its processes do not all name the folder."""
    return int((folder / "pid").read_text())


def find_processes(folder: Path, group: int) -> list[int]:
    """Return the running processes whose command line contains a folder, and those of a process group."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if str(folder).encode() in said or os.getpgid(int(process.name)) == group:
                found.append(int(process.name))
    return found


def find_process(folder: Path, group: int, word: str) -> int:
    """Return the process of a browser whose command line has a word."""
    found = find_processes(folder, group)
    (process,) = (each for each in found if word in read_command(each))
    return process


def read_command(process: int) -> str:
    """Return the command line of a process; empty if it has ended meanwhile."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""


def find_folders(temporary: Path) -> set[Path]:
    """Return the folders of browsers."""
    return {*temporary.iterdir()}


def find_files(temporary: Path, name: str) -> list[Path]:
    """Return the files of a name in any of them."""
    return [*temporary.rglob(name)]


async def wait_until(condition: Callable[[], bool]) -> bool:
    """Wait for a condition; True if it became true."""
    for _ in range(2000):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


async def test_text_created_by_script_is_read(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["made"] = "<p id=x></p><script>x.textContent = 'made ' + (40 + 2) + ' \u00e9'</script>"

    rendered = await renderer.render(f"{site.url}made", SECONDS)

    assert '<p id="x">made 42 \u00e9</p>' in rendered.html.decode()
    assert (rendered.url, rendered.status) == (f"{site.url}made", 200)


@pytest.mark.parametrize(
    "host",
    [
        "<template shadowrootmode=open><p>in the shadow</p><slot></slot></template>",
        "<script>document.currentScript.parentNode.attachShadow({mode: 'open'}).innerHTML = "
        "'<p>in the ' + 'shadow</p><slot></slot>'</script>",
    ],
    ids=["declared", "made"],
)
async def test_text_of_shadow_root_is_read(renderer: Renderer, site: ScriptedSite, host: str) -> None:
    site.pages["shadow"] = f"<html lang=en><body><x-host>{host}beside it</x-host></body>"

    rendered = (await renderer.render(f"{site.url}shadow", SECONDS)).html.decode()

    assert rendered.startswith('<html lang="en"><head>')
    assert '<template shadowrootmode="open"><p>in the shadow</p><slot></slot></template>' in rendered
    assert "beside it" in rendered


@pytest.mark.extended
async def test_text_fetched_after_load_is_read(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["more"] = "late words"
    site.pages["late"] = (
        "<script>onload = () => setTimeout(async () => "
        "document.body.append(await (await fetch('/more')).text()), 200)</script>"
    )

    rendered = await renderer.render(f"{site.url}late", SECONDS)

    assert b"late words" in rendered.html


@pytest.mark.extended
@pytest.mark.parametrize("wait", [700, 2000])
async def test_text_created_by_timer_is_awaited(renderer: Renderer, site: ScriptedSite, wait: int) -> None:
    script = f"setTimeout(() => document.body.append('late ' + 'words'), {wait})"
    site.pages["timer"] = f"<script>{script}</script>"

    rendered = await renderer.render(f"{site.url}timer", SECONDS)

    assert b"late words" in rendered.html


@pytest.mark.extended
async def test_text_beside_menus_is_awaited(renderer: Renderer, site: ScriptedSite) -> None:
    menu = "".join(f"<a href=/{n}>Entry {n} of the menu</a> " for n in range(30))
    site.pages["beside"] = (
        f"<nav>{menu}</nav><main id=x></main><footer>{'An imprint. ' * 30}</footer>"
        "<script>setTimeout(() => x.append('late ' + 'words'), 2000)</script>"
    )

    rendered = await renderer.render(f"{site.url}beside", SECONDS)

    assert b"late words" in rendered.html


@pytest.mark.extended
@pytest.mark.parametrize(
    "page",
    [
        f"<nav style='display:none'>{'An entry of the menu. ' * 90}</nav><main>{'A long text. ' * 30}</main>",
        f"<div hidden><footer>{'An imprint. ' * 90}</footer></div><main>{'A long text. ' * 30}</main>",
        "<article><header>A card with its own few words.</header></article>" * 30,
    ],
    ids=["hidden menu", "hidden footer", "headers of articles"],
)
async def test_text_beside_hidden_menus_is_not_awaited(
    renderer: Renderer, site: ScriptedSite, page: str
) -> None:
    late = "<script>setTimeout(() => document.body.append('late ' + 'words'), 2000)</script>"
    site.pages["complete"] = page + late

    rendered = await renderer.render(f"{site.url}complete", SECONDS)

    assert b"late words" not in rendered.html


@pytest.mark.extended
async def test_text_is_awaited_while_requests_last(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["lasting"] = (
        "<p>Loading...</p><script>fetch('/drip'); "
        "setTimeout(() => document.body.append('late ' + 'words'), 4000)</script>"
    )

    rendered = await renderer.render(f"{site.url}lasting", SECONDS)

    assert b"late words" in rendered.html


@pytest.mark.extended
async def test_user_agent_names_deployment(renderer: Renderer, site: ScriptedSite) -> None:
    site.user_agents.clear()

    await renderer.render(f"{site.url}made", SECONDS)

    assert set(site.user_agents) == {AGENT}


@pytest.mark.extended
async def test_redirect_ends_at_its_target_with_status(renderer: Renderer, site: ScriptedSite) -> None:
    rendered = await renderer.render(f"{site.url}to?/missing", SECONDS)

    assert (rendered.url, rendered.status) == (f"{site.url}missing", 404)


@pytest.mark.extended
async def test_page_is_read_by_host_name(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["made"] = "by name"

    rendered = await renderer.render(f"http://{OURS}:{site.port}/made", SECONDS)

    assert b"by name" in rendered.html


@pytest.mark.extended
async def test_page_cannot_reach_forbidden_targets(
    renderer: Renderer, site: ScriptedSite, inside: ScriptedSite
) -> None:
    spellings = ["127.0.0.2", "2130706434", "0x7f000002", "127.2", "0177.0.0.2", "[::ffff:127.0.0.2]"]
    hosts = [f"{host}:{site.port}" for host in (*spellings, *NAMES_OF)]
    site.pages["attack"] = render_attack_page(hosts)
    take_private_requests(inside)
    site.released.clear()

    rendered = await renderer.render(f"{site.url}attack", 6 * SECONDS)

    assert b"all tried" in rendered.html
    assert take_private_requests(inside) == ([], [])


@pytest.mark.extended
async def test_same_attacks_reach_allowed_targets(
    site: ScriptedSite, inside: ScriptedSite, temporary: Path
) -> None:
    site.pages["attack"] = render_attack_page([f"127.0.0.2:{site.port}"])
    take_private_requests(inside)
    async with open_renderer(site, inside) as renderer:
        site.released.clear()

        await renderer.render(f"{site.url}attack", 6 * SECONDS)

    reached, packets = take_private_requests(inside)
    assert {*ATTACKS} - {*reached} == NEVER_REACHED
    assert not packets


@pytest.mark.extended
@pytest.mark.parametrize("host", ["127.0.0.2", "127.2", "inside.example", "mixed.example"])
@pytest.mark.parametrize("way", ["script", "status", "refresh", "directly"])
async def test_redirect_to_forbidden_address_is_not_followed(
    renderer: Renderer, site: ScriptedSite, inside: ScriptedSite, way: str, host: str
) -> None:
    there = f"http://{host}:{site.port}/"
    site.pages["script"] = f"<script>location = '{there}'</script>"
    site.pages["refresh"] = f"<meta http-equiv=refresh content='0;url={there}'>"
    take_private_requests(inside)

    with pytest.raises(FetchFailed) as failed:
        await renderer.render(
            {"status": f"{site.url}to?{there}", "directly": there}.get(way, f"{site.url}{way}"), SECONDS
        )

    assert failed.value.reason == "blocked_address"
    assert take_private_requests(inside) == ([], [])


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "chrome://version", "about:blank", "data:text/html,x", "view-source:http://x/"],
)
async def test_url_without_http_is_refused(renderer: Renderer, url: str) -> None:
    with pytest.raises(FetchFailed) as failed:
        await renderer.render(url, SECONDS)

    assert failed.value.reason == "blocked_address"


@pytest.mark.extended
@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://version", "chrome://settings", "view-source:file:///etc/passwd"]
)
async def test_page_cannot_read_files_or_browser_pages(
    renderer: Renderer, site: ScriptedSite, url: str
) -> None:
    site.pages["file"] = "still here"
    site.pages["local"] = (
        f"<iframe src='{url}'></iframe><p>mine</p><script>fetch('{url}').then(r => r.text())"
        f".then(t => document.body.append(t)); setTimeout(() => location = '{url}', 100)</script>"
    )

    with suppress(FetchFailed):
        rendered = await renderer.render(f"{site.url}local", SECONDS)
        assert rendered.url == f"{site.url}local"
        assert b"root:" not in rendered.html


@pytest.mark.extended
@pytest.mark.parametrize(
    "elsewhere", ["about:blank", "URL.createObjectURL(new Blob(['x'], {type: 'text/html'}))"]
)
async def test_navigation_outside_of_http_is_refused(
    renderer: Renderer, site: ScriptedSite, elsewhere: str
) -> None:
    where = f"'{elsewhere}'" if elsewhere.startswith("about") else elsewhere
    site.pages["leaving"] = f"<script>location = {where}</script>"

    with pytest.raises(FetchFailed):
        await renderer.render(f"{site.url}leaving", SECONDS)


@pytest.mark.extended
@pytest.mark.parametrize(
    "script",
    [
        "location.href = 'mailto:a@b.example'",
        "location = 'tel:+123'",
        "location.replace('app://open')",
        "open('mailto:a@b.example', '_self')",
        "link.click()",
        "setInterval(() => location.href = 'mailto:a@b.example', 50)",
    ],
)
async def test_navigation_to_another_program_is_ignored(
    renderer: Renderer, site: ScriptedSite, script: str
) -> None:
    site.pages["writing"] = (
        "<a id=link href='mailto:a@b.example'>mail</a>"
        f"<script>{script}</script><p id=x></p><script>x.textContent = 'read ' + 'on'</script>"
    )

    rendered = await renderer.render(f"{site.url}writing", SECONDS)

    assert rendered.url == f"{site.url}writing"
    assert b"read on" in rendered.html


@pytest.mark.extended
@pytest.mark.parametrize(
    "page",
    [
        "<script>while (true) {}</script>",
        "<p>text</p><script>onload = () => { while (true) {} }</script>",
        "<script>location.reload()</script>",
        "<script>setInterval(() => { for (const p of Array(50)) document.body.append(new Blob(['x']).size, "
        "document.createElement('iframe')) }, 0)</script>",
        "<script>setInterval(() => { throw new Error('x'.repeat(20_000_000)) }, 0)</script>",
        "<script>const more = () => { console.log('x'.repeat(9_000_000)); queueMicrotask(more) }; more()"
        "</script>",
    ],
    ids=["endless", "endless after loading", "reloading", "frames", "errors", "console"],
)
async def test_endless_page_does_not_affect_next(renderer: Renderer, site: ScriptedSite, page: str) -> None:
    site.pages["endless"], site.pages["made"] = page, "next"

    with suppress(FetchFailed):
        await renderer.render(f"{site.url}endless", 3)
    rendered = await renderer.render(f"{site.url}made", SECONDS)

    assert b"next" in rendered.html


@pytest.mark.extended
async def test_page_that_leads_to_itself_without_end_is_given_up(
    renderer: Renderer, site: ScriptedSite
) -> None:
    site.pages["circle"] = "<script>location.reload()</script>"
    site.user_agents.clear()

    with pytest.raises(FetchFailed) as failed:
        await renderer.render(f"{site.url}circle", SECONDS)

    assert str(failed.value) == f"{site.host} leads from page to page without end"
    assert len(site.user_agents) < 60


@pytest.mark.extended
async def test_invalid_certificate_is_refused(temporary: Path, tmp_path: Path) -> None:
    with serve_site("127.0.0.1", tls=create_self_signed_tls("127.0.0.1", tmp_path)) as site:
        async with open_renderer(site) as renderer:
            with pytest.raises(FetchFailed) as failed:
                await renderer.render(f"{site.url}made", SECONDS)

            assert failed.value.reason == "tls"


@pytest.mark.extended
async def test_endless_script_is_timeout(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["endless"] = "<script>while (true) {}</script>"
    began = time.monotonic()

    with pytest.raises(FetchFailed) as failed:
        await renderer.render(f"{site.url}endless", 3)

    assert failed.value.reason == "timeout"
    assert time.monotonic() - began < SECONDS


@pytest.mark.extended
async def test_endless_document_is_timeout(renderer: Renderer, site: ScriptedSite) -> None:
    with pytest.raises(FetchFailed) as failed:
        await renderer.render(f"{site.url}drip", 3)

    assert failed.value.reason == "timeout"


@pytest.mark.extended
async def test_endless_resource_is_omitted(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["partly"] = "<p>the words</p><iframe src=/drip></iframe>"

    rendered = await renderer.render(f"{site.url}partly", 10)

    assert b"the words" in rendered.html


@pytest.mark.extended
async def test_endless_requests_end_page(renderer: Renderer, site: ScriptedSite) -> None:
    site.released.clear()
    site.pages["asking"] = (
        "<iframe src=/hold></iframe><script>const more = () => fetch('/x?' + Math.random()).then(more, more);"
        " for (let i = 0; i < 20; i++) more()</script>"
    )

    with pytest.raises(FetchFailed) as failed:
        await renderer.render(f"{site.url}asking", 6 * SECONDS)
    site.released.set()

    assert failed.value.reason == "too_large"


@pytest.mark.extended
@pytest.mark.parametrize("path", ["file", "text"])
async def test_other_content_types_are_not_rendered(
    renderer: Renderer, site: ScriptedSite, temporary: Path, path: str
) -> None:
    with pytest.raises(FetchFailed) as failed:
        await renderer.render(f"{site.url}{path}", SECONDS)

    assert failed.value.reason == "unsupported"
    assert not find_files(temporary, "*.zip")


@pytest.mark.extended
async def test_download_by_script_leaves_no_file(
    renderer: Renderer, site: ScriptedSite, temporary: Path
) -> None:
    site.pages["downloading"] = (
        "<p>text</p><a id=a download=mine.bin></a><script>a.href = URL.createObjectURL(new Blob(['x']));"
        " a.click(); document.body.append(Object.assign(document.createElement('iframe'), {src: '/file'}))"
        "</script>"
    )

    rendered = await renderer.render(f"{site.url}downloading", SECONDS)

    assert b"text" in rendered.html
    assert not find_files(temporary, "mine.bin") + find_files(temporary, "*.zip")


@pytest.mark.extended
async def test_dialogs_do_not_block_page(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["asking"] = (
        "<script>onbeforeunload = e => { e.preventDefault(); return 'stay' };"
        " alert(1); confirm(2); prompt(3); print(); document.write('said')</script>"
    )

    rendered = await renderer.render(f"{site.url}asking", SECONDS)

    assert b"said" in rendered.html


@pytest.mark.extended
async def test_endlessly_growing_page_is_truncated(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["large"] = "<body><p id=x hidden></p><script>x.append('\u20ac'.repeat(30_000_000))</script>"

    rendered = await renderer.render(f"{site.url}large", SECONDS)

    assert 1_900_000 < len(rendered.html) <= 2_000_000
    assert rendered.html.decode()


@pytest.mark.extended
async def test_text_with_lone_surrogates_is_read(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["broken"] = (
        "<body><script>document.body.append('a\\ud800b', String.fromCharCode(0), '\U0001f600')</script>"
    )

    rendered = await renderer.render(f"{site.url}broken", SECONDS)

    assert "\U0001f600" in rendered.html.decode()


@pytest.mark.extended
async def test_page_cannot_change_extraction(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["lying"] = (
        "<p>truth</p><script>String.prototype.slice = () => 'lie';"
        "Object.defineProperty(Document.prototype, 'documentElement', {get: () => ({outerHTML: 'lie'})})"
        "</script>"
    )

    rendered = await renderer.render(f"{site.url}lying", SECONDS)

    assert b"truth" in rendered.html


@pytest.mark.extended
async def test_pages_share_no_state(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["leaving"] = "<script>document.cookie = 'a=1'; localStorage.b = 'left'</script>"
    site.pages["finding"] = "<script>document.write(`found ${document.cookie}${localStorage.b}`)</script>"

    await renderer.render(f"{site.url}leaving", SECONDS)
    rendered = await renderer.render(f"{site.url}finding", SECONDS)

    assert b"found undefined" in rendered.html


@pytest.mark.extended
async def test_pages_wait_in_queue_up_to_a_limit(site: ScriptedSite, temporary: Path) -> None:
    site.pages["made"] = "next"
    async with open_renderer(site) as renderer:
        results = await asyncio.gather(
            *(renderer.render(f"{site.url}made", 6 * SECONDS) for _ in range(MAX_QUEUE + 5)),
            return_exceptions=True,
        )

    assert [type(each) for each in results if isinstance(each, Exception)] == [RenderFailed] * 3
    pages = [each for each in results if isinstance(each, RenderedPage)]
    assert [b"next" in page.html for page in pages] == [True] * (MAX_QUEUE + 2)


@pytest.mark.extended
async def test_cancelled_page_releases_its_slot(renderer: Renderer, site: ScriptedSite) -> None:
    site.pages["endless"], site.pages["made"] = "<script>while (true) {}</script>", "next"
    given_up = [asyncio.ensure_future(renderer.render(f"{site.url}endless", SECONDS)) for _ in range(4)]
    site.connections.clear()
    assert await wait_until(lambda: "endless" in site.connections)

    for each in given_up:
        each.cancel()

    assert b"next" in (await renderer.render(f"{site.url}made", SECONDS)).html


@pytest.mark.extended
async def test_killed_browser_is_restarted(renderer: Renderer, site: ScriptedSite, temporary: Path) -> None:
    site.pages["made"] = "next"
    await renderer.render(f"{site.url}made", SECONDS)

    for pid in find_files(temporary, "pid"):
        os.killpg(int(pid.read_text()), signal.SIGKILL)

    assert b"next" in (await renderer.render(f"{site.url}made", SECONDS)).html


@pytest.mark.extended
@pytest.mark.parametrize("word", ["browser_host", "run-driver"])
async def test_killed_host_or_driver_ends_its_browser(site: ScriptedSite, temporary: Path, word: str) -> None:
    site.pages["made"] = "next"
    async with open_renderer(site) as renderer:
        before = find_folders(temporary)
        await renderer.render(f"{site.url}made", SECONDS)
        (folder,) = find_folders(temporary) - before
        group = read_process_group(folder)

        os.kill(find_process(folder, group, word), signal.SIGKILL)

        assert b"next" in (await renderer.render(f"{site.url}made", SECONDS)).html
    assert not folder.exists()
    assert await wait_until(lambda: not find_processes(folder, group))


@pytest.mark.extended
async def test_page_beyond_memory_limit_is_ended(
    site: ScriptedSite, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "MEGABYTES", 600)
    site.pages["made"] = "next"
    site.pages["hungry"] = (
        "<script>const all = []; setInterval(() => "
        "{ if (all.length < 60) all.push(new Uint8Array(50_000_000).fill(1)) }, 20)</script>"
    )
    site.pages["hungry"] += "<img src=x><iframe src=/drip></iframe>"
    async with open_renderer(site) as renderer:
        with pytest.raises(FetchFailed) as failed:
            await renderer.render(f"{site.url}hungry", SECONDS)

        assert failed.value.reason == "too_large"
        assert b"next" in (await renderer.render(f"{site.url}made", SECONDS)).html


@pytest.mark.extended
@pytest.mark.parametrize("path", ["made", "endless"])
async def test_closed_renderer_leaves_nothing(site: ScriptedSite, temporary: Path, path: str) -> None:
    site.pages["made"], site.pages["endless"] = "next", "<script>while (true) {}</script>"
    before = find_folders(temporary)
    renderer = create_renderer(site)
    await renderer.render(f"{site.url}made", SECONDS)
    (folder,) = find_folders(temporary) - before
    group = read_process_group(folder)
    assert find_processes(folder, group)
    site.connections.clear()
    page = asyncio.ensure_future(renderer.render(f"{site.url}{path}", 6 * SECONDS))
    assert await wait_until(lambda: path in site.connections and (path == "endless" or page.done()))

    await renderer.close()

    assert not folder.exists()
    assert await wait_until(lambda: not find_processes(folder, group))
    with pytest.raises(RenderFailed) if path == "endless" else nullcontext():
        await page


@pytest.mark.extended
async def test_cancelled_stop_ends_all_processes(site: ScriptedSite, temporary: Path) -> None:
    before = find_folders(temporary)
    browser = await chromium.Browser.start(None, site.url, "Test/1")
    (folder,) = find_folders(temporary) - before
    group = read_process_group(folder)
    os.kill(find_process(folder, group, "browser_host"), signal.SIGSTOP)  # it does not end by itself

    stopping = browser.stop()
    await asyncio.sleep(0.2)
    stopping.cancel()

    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert await wait_until(lambda: not find_processes(folder, group))


@pytest.mark.extended
async def test_missing_browser_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    renderer = Renderer(FetchPolicy(), AGENT, chromium=None)

    with pytest.raises(RenderFailed, match="no browser was found"):
        await renderer.render("https://example.com/", SECONDS)

    await renderer.close()


def test_headless_shell_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("chromium", "google-chrome", "chromium-headless-shell"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_executable(None) == tmp_path / "chromium-headless-shell"


@pytest.mark.extended
@pytest.mark.parametrize("program", ["/etc/passwd", "/bin/false", "/nowhere/chromium"])
async def test_executable_that_is_no_browser_is_reported(program: str) -> None:
    renderer = Renderer(FetchPolicy(), AGENT, chromium=Path(program))

    with pytest.raises(RenderFailed):
        await renderer.render("https://example.com/", SECONDS)

    await renderer.close()


@pytest.mark.extended
async def test_browser_is_replaced_after_some_pages(
    site: ScriptedSite, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.browser.renderer.PAGES_PER_BROWSER", 1)
    site.pages["made"] = "next"
    async with open_renderer(site) as renderer:
        before = find_folders(temporary)

        await renderer.render(f"{site.url}made", SECONDS)
        (first,) = find_folders(temporary) - before
        await renderer.render(f"{site.url}made", SECONDS)

    assert not first.exists()
    assert find_folders(temporary) == before
