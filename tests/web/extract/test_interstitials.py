"""Bot checks, and application shells that scripts fill."""

from __future__ import annotations

import time

import pytest
from short_pages import FRAMES, HONEST

from centgate.web.extract.extract import ExtractedPage, extract_page

WORDS = "<p>" + "There is much to say about this and it goes on for long. " * 40 + "</p>"


def extract_html(html: str) -> ExtractedPage:
    return extract_page(html.encode(), "text/html", "https://example.org/", only_main_content=True)


@pytest.mark.parametrize(
    "html",
    [
        "<title>Just a moment...</title><body><noscript>Enable JavaScript and cookies to continue</noscript>"
        "<script>window._cf_chl_opt={cvId:'3'}</script>",
        "<title>Attention Required! | Cloudflare</title><body><div id=cf-error-details><h1>Sorry, "
        "you have been blocked</h1></div>",
        "<title>Access Denied</title><body><h1>Access Denied</h1>You don't have permission to "
        "access this page on this "
        "server.<p>Reference #18.2f https://errors.edgesuite.net/18.2f",
        "<title>example.org</title><body><p id=cmsg>Please enable JS and disable any ad blocker</p>"
        "<script src='https://ct.captcha-delivery.com/c.js'></script>",
        "<title>Access to this page has been denied</title><body><div "
        "id=px-captcha></div><script>window._pxAppId='PX'</script>",
        "<title></title><body><iframe src='/_Incapsula_Resource?x'>Request unsuccessful. "
        "Incapsula incident ID: 1</iframe>",
        "<title>Human Verification</title><body><script>window.gokuProps={}; AwsWafIntegration.x()</script>",
        "<title>Robot Check</title><body>Enter the characters you see below: we need to make sure "
        "you're not a robot.",
        "<title>Pardon Our Interruption</title><body>Something about your browser made us think "
        "you were a bot.",
        "<title>Are you a robot?</title><body>Please confirm. <div class=g-recaptcha></div>",
    ],
)
def test_bot_check_is_detected(html: str) -> None:
    assert extract_html(html).blocked


@pytest.mark.parametrize(
    "html",
    [
        f"<title>Just a moment: a history of haste</title><body>{WORDS}",
        f"<title>How captcha works</title><body>{WORDS}<div class=g-recaptcha></div>",
        "<title>Contact us</title><body><h1>Contact us</h1><p>Write to us whenever you like, we "
        "answer within two days, "
        "and on weekends within three. Our office is open from nine to five on every day of the "
        "week but Sunday, and "
        "you find us behind the old bridge.</p><form><input><div class=g-recaptcha></div></form>",
        "<title>Example</title><body><p>A short page.</p>",
    ],
)
def test_ordinary_page_is_no_bot_check(html: str) -> None:
    assert not extract_html(html).blocked


@pytest.mark.parametrize(
    "html",
    [
        "<title>App</title><body><noscript>You need to enable JavaScript to run this "
        "app.</noscript><div id=root></div><script src=a.js></script>",
        "<body><div id=__next></div><script src=a.js></script>",
        "<body><div id=app>Loading...</div><script type=module src=a.js></script>",
        "<body><app-root></app-root><script src=a.js></script>",
        "<body><p>Loading</p><script src=a.js></script><script src=b.js></script>",
        "<body><p>Please enable JavaScript to view this site.</p><script src=a.js></script>",
        "<body><script src=a.js></script>",
        "<title>App</title><script type=module src=a.js></script><body>",
        "<body><p>This page has moved.</p><script>window.location.href = '/new'</script>",
        "<body><p>You are led on.</p><script>if(old)window.location='/new'</script>",
        "<body><p>You are led on.</p><script>setTimeout(() => location.replace('/new'), 9)</script>",
    ],
)
def test_application_shell_is_reported(html: str) -> None:
    page = extract_html(html)

    assert page.needs_scripts
    assert "the page is built by its scripts, and its HTML contains only" in page.warnings[0]


@pytest.mark.parametrize(
    "html",
    [
        f"<body><div id=root>{WORDS}</div><noscript>Enable JavaScript</noscript><script src=a.js></script>",
        "<body><p>A short page without scripts.</p>",
        "<body><p>A short page.</p><script type='application/ld+json'>{}</script>",
        "<body><p>A short page that counts its visitors.</p><script src=count.js></script>",
        "<body><p>A short page.</p><script>if (location.href == home) count()</script>",
        "<body><p>A short page.</p><script>const location = 'Paris'</script>",
        "<body><p>A short page.</p><script>places.map(location => show(location))</script>",
        "<body><p>A short page.</p><script>event.location = 'Paris'</script>",
        "<body><p>A short page.</p><script>frame.src = '/map?location=Paris'</script>",
        "<body><img src=a.png><script type='application/ld+json'>{}</script>",
    ],
)
def test_page_with_text_needs_no_scripts(html: str) -> None:
    assert not extract_html(html).needs_scripts


@pytest.mark.parametrize(
    ("content", "onward"),
    [
        ("0; url=/new", "https://example.org/new"),
        ("0;URL='new?a=1'", "https://example.org/new?a=1"),
        ("3, https://other.example/", "https://other.example/"),
        ("0; url=javascript:alert(1)", None),
        ("0; url=https://me:pw@other.example/", None),
        ("60; url=/new", None),
        ("30", None),
    ],
)
def test_meta_refresh_is_detected(content: str, onward: str | None) -> None:
    page = extract_html(
        f'<head><meta http-equiv=Refresh content="{content}"></head><body><a href=/new>Here</a>'
    )

    assert page.refresh_target == onward


def test_page_with_text_has_no_refresh() -> None:
    refresh = "<meta http-equiv=refresh content='0; url=/new'>"

    assert extract_html(f"<head>{refresh}</head><body>{WORDS}").refresh_target is None
    assert extract_html(f"<head><noscript>{refresh}</noscript></head><body><p>Text.").refresh_target is None


def test_empty_application_between_menus_needs_scripts() -> None:
    menu = "".join(f"<a href=/{n}>Entry number {n} of the menu</a>" for n in range(25))
    page = "<nav>{menu}</nav><div id=root>{app}</div><footer>Imprint</footer><script src=/a.js></script>"

    def needs(app: str) -> bool:
        html = page.format(menu=menu, app=app).encode()
        return extract_page(html, "text/html", "https://example.org/", only_main_content=True).needs_scripts

    assert needs("")
    assert not needs("<p>There is text in it.</p>")
    assert needs("<div class=spinner>Loading products\u2026</div>")
    assert needs("<noscript>You need to enable JavaScript to run this app.</noscript>")
    assert not needs("<p>Loading of lorries is <a href=/a>here</a>.</p>")


@pytest.mark.parametrize("html", FRAMES.values(), ids=FRAMES)
def test_page_whose_text_scripts_add_has_no_text(html: str) -> None:
    page = extract_html(html)

    assert page.needs_scripts
    assert page.markdown == ""


@pytest.mark.parametrize("content", ["<h3></h3>" * 4000, "<b></b>" * 4000 + "<button>y</button>"])
def test_deep_page_is_searched_for_places_in_time(content: str) -> None:
    deep = f"{'<div>' * 230}{content}x{'</div>' * 230}<div id=list></div>"
    started = time.process_time()

    extract_html(f"<body>{deep}<script>document.getElementById('list').innerHTML=rows</script>")

    assert time.process_time() - started < 4


@pytest.mark.parametrize("html", HONEST.values(), ids=HONEST)
def test_short_page_is_complete(html: str) -> None:
    page = extract_html(html)

    assert not page.needs_scripts
    assert page.markdown


@pytest.mark.parametrize(
    "body",
    [
        "<div id=root><div class=spinner>Loading...</div></div><script src=a.js></script>",
        "<app-root>Please wait while the application loads</app-root><script src=a.js></script>",
        "<p>You need to enable JavaScript to run this app.</p><script src=a.js></script>",
        "<div id=app>Loading\u2026</div><footer><a href=/i>Imprint</a></footer><script src=a.js></script>",
        "<p>Redirecting\u2026</p><script>location.assign('/new')</script>",
        "<div id=root>Loading</div><div hidden><p>We use cookies.</p></div><script src=a.js></script>",
    ],
)
def test_loading_shell_has_no_text(body: str) -> None:
    page = extract_html(f"<title>App</title><body>{body}")

    assert page.needs_scripts
    assert page.markdown == ""


@pytest.mark.parametrize(
    "banner",
    [
        "<div class=cookie-banner><p>We use cookies to improve your experience on this site. By continuing, "
        "you agree to our use of them.</p><button>OK</button></div>",
        "<div id=onetrust-consent-sdk><h2>We value your privacy</h2><p>We and our 842 partners store and "
        "access personal data on your device.</p><button>Accept all</button><button>Reject</button></div>",
        "<div><div role=dialog><p>We and our partners store information on your device, such as cookies. "
        "Your choice counts for this site.</p><button>Agree</button></div></div>",
        "<div><p>To provide the best experiences, we use technologies like cookies to store data.</p>"
        "<div><button>Accept</button></div></div>",
    ],
)
def test_shell_with_consent_banner_has_no_text(banner: str) -> None:
    shell = extract_html(f"<title>News</title><body>{banner}<div id=app></div><script src=a.js></script>")
    filled = extract_html(f"<body>{banner}<div id=app><p>A short page.</p></div><script src=a.js></script>")

    assert shell.needs_scripts
    assert shell.markdown == ""
    assert "A short page." in filled.markdown


@pytest.mark.parametrize(
    "body",
    [
        "<div><p>{text}</p><div class=cookie-banner><p>We use cookies.</p><button>OK</button></div></div>",
        "<div class=page><p>{text}</p><p>We respect your privacy.</p><button>OK, call us</button></div>",
        "<section><h2>Cookies with butter</h2><p>{text}</p><button>Got it</button></section>",
    ],
    ids=["beside a banner", "with a promise", "about cookies"],
)
def test_short_text_beside_empty_application_is_kept(body: str) -> None:
    text = "The office is closed on Monday. It opens again on Tuesday at nine, and you can call before noon."

    page = extract_html(f"<body>{body.format(text=text)}<div id=app></div><script src=a.js></script>")

    assert text in page.markdown


def test_text_below_loading_message_is_preferred() -> None:
    page = extract_html(
        f"<body><p>Loading, please wait</p><div style='display:none'><h1>Doc</h1>{WORDS}</div>"
        "<script src=a.js></script><script src=b.js></script>"
    )

    assert "There is much to say" in page.markdown
    assert page.needs_scripts
    assert "hides its text until its scripts have run" in page.warnings[-1]


@pytest.mark.parametrize(
    "line",
    [
        "Loading reviews\u2026",
        "Wird geladen...",
        "Daten werden geladen\u2026",
        "Bezig met laden...",
        "\u52a0\u8f7d\u4e2d\u2026",
    ],
)
def test_part_that_is_not_loaded_is_named(line: str) -> None:
    page = extract_html(f"<main><h1>A pen</h1>{WORDS}<div>{line}</div></main><script src=/a.js></script>")

    assert page.warnings == (
        f'the page says "{line}", which may stand for a part that its scripts fetch and that was not read',
    )


@pytest.mark.parametrize(
    "html",
    [
        "<p>He went on loading the cart until the evening came and the sun had set\u2026</p>",
        "<pre>$ pen --start\nLoading ink...\n</pre>",
        "<ol><li>Start it:<pre>$ pen --start\nLoading ink...\n</pre></li></ol>",
        "<blockquote><pre>Loading ink...</pre></blockquote>",
        f"<h2>Loading\u2026</h2>{WORDS}",
        "<p>Der alte Laden\u2026</p>",
        "<p>Heavily laden...</p>",
        "<p>Loading docks</p>",
        f"<p>Loading {'-' * 1000}x...</p>",
    ],
)
def test_text_about_loading_is_no_unloaded_part(html: str) -> None:
    assert extract_html(f"<main><h1>A pen</h1>{WORDS}{html}</main><script src=/a.js></script>").warnings == ()


def test_page_without_scripts_has_no_unloaded_part() -> None:
    assert extract_html(f"<main><h1>A pen</h1>{WORDS}<p>One moment\u2026</p></main>").warnings == ()


def test_line_of_unloaded_part_cannot_end_its_quotation() -> None:
    page = extract_html(f'<main>{WORDS}<p>Loading" it. Trust"...</p></main><script src=/a.js></script>')

    assert page.warnings[0].startswith("the page says \"Loading' it. Trust'...\", which may stand for")
