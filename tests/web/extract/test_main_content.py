"""Main content of a page: removed boilerplate, kept text, and hidden text."""

from __future__ import annotations

import pytest

from centgate.web.extract.extract import extract_page

URL = "https://example.org/2026/story"
SENTENCES = (
    "The old bridge over the river had been closed to lorries since the spring floods, and the "
    "town had learned to "
    "live with the detour through the valley.",
    "On Tuesday evening the council voted, by eleven votes to four, to replace it with a new one, "
    "although nobody "
    "could say yet who was going to pay for the ramps.",
    "Engineers had found cracks in two of its five pillars, which were built when carts and "
    "horses were the heaviest "
    "things that crossed the water there.",
    "The new bridge is to be open in three years at the earliest, the mayor said after the vote, "
    "and it will carry a "
    "path for bicycles on either side.",
    "Shops on the far bank fear for their customers in the meantime, and have asked for a ferry, "
    "which the council "
    "wants to discuss in the autumn.",
)
STORY = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES)
LINKS = "".join(
    f'<li><a href="/s/{n}">{word}</a></li>'
    for n, word in enumerate(("Home", "News", "Sports", "Travel", "About"))
)
CONSENT = (
    "<div><p>We use cookies to measure how our pages are read. You can withdraw your consent at any time.</p>"
    "<button>Accept all</button><button>Reject</button></div>"
)
CARDS = "".join(
    f'<div><a href="/n/{n}"><img src="/t{n}.jpg"><h3>{title}</h3></a><p>{title} and more of it on '
    f"this page.</p></div>"
    for n, title in enumerate(
        ("Ten ways to store tomatoes", "Markets end the week higher", "What the glacier tells us")
    )
)
PROMOTION = "<a href=/tomatoes>Ten ways to store tomatoes</a> and <a href=/more>more stories</a>"
BOX = f"</p><div class=x7><div><p>{PROMOTION}</p></div></div>"
FOOTER = "<footer><p>Copyright 2026 The Paper. All rights reserved.</p></footer>"
NOISE = ("cookies", "Sports", "tomatoes", "Copyright", "newsletter", "Share on")


def extract_main(body: str) -> str:
    """Return the main content of a page."""
    return extract_page(
        f"<!doctype html><html><body>{body}</body></html>".encode(), "text/html", URL, only_main_content=True
    ).markdown


LAYOUTS = {
    "landmarks": f"<header><nav><ul>{LINKS}</ul></nav></header>{CONSENT}<main><article><h1>A new "
    f"bridge</h1>{STORY}</article>"
    f"<section class=related><h2>Related</h2>{CARDS}</section></main>{FOOTER}",
    "names": f"<div id=top-nav><ul>{LINKS}</ul></div><div class=cookie-banner>{CONSENT}</div><div id=content>"
    f"<h1>A new bridge</h1><div class=share-buttons><a href=/f>Share on one</a></div>{STORY}"
    f"<div class=newsletter-signup>Our newsletter, every Friday.</div></div><div "
    f"class=sidebar>{CARDS}</div>{FOOTER}",
    "no names": f"<div class=a1><a href=/>Home</a> <a href=/s>Sports</a> <a "
    f"href=/t>Travel</a></div><div class=a2><div class=a3>"
    f"<h1>A new bridge</h1>{STORY}</div><div class=a4>{CARDS}</div></div><div class=a5>{CONSENT}</div>"
    "<div class=a6>Copyright 2026</div>",
    "tables": f"<table><tr><td><ul>{LINKS}</ul></td><td><h1>A new "
    f"bridge</h1>{STORY}</td><td>{CARDS}</td></tr></table>"
    "<center><font size=1>Copyright 2004</font></center>",
    "form around it all": f"<form action=/><div class=nav><ul>{LINKS}</ul></div><div id=main><h1>A "
    f"new bridge</h1>{STORY}</div></form>",
    "boxes without names": f"<article><h1>A new bridge</h1>{STORY.replace('</p>', BOX, 3)}</article>{FOOTER}",
    "boxes in the text": f"<article><h1>A new "
    f"bridge</h1>{STORY.replace('</p>', '</p><div class=related-box>' + CARDS + '</div>', 2)}"
    f"</article>{FOOTER}",
}


TOPICS = (
    "Installation",
    "Cookies",
    "Pagination",
    "Login",
    "Tags",
    "Feedback",
    "Comments",
    "Share",
    "Set-Cookie options",
    "Login required decorator",
    "Social security",
    "Timeouts",
)


@pytest.mark.parametrize("code", ["<pre>call()</pre>", ""])
def test_sections_named_like_boilerplate_stay(code: str) -> None:
    sections = "".join(
        f'<section id="{topic.lower().replace(" ", "-")}"><span></span><h2>{topic}'
        f"<a class=headerlink href=#x>\xb6</a></h2>"
        f"<p>{SENTENCES[number % 5].replace('town', f'town {number}')}</p>{code}</section>"
        for number, topic in enumerate(TOPICS)
    )

    text = extract_main(
        f"<nav><ul>{LINKS}</ul></nav><div role=main><h1>Guide</h1>{STORY}{sections}</div>{FOOTER}"
    )

    assert [topic for topic in TOPICS if f"## {topic}" not in text] == []
    assert [number for number in range(len(TOPICS)) if number % 5 < 1 and f"town {number} " not in text] == []
    assert "Sports" not in text


DISHES = "".join(f"<div><h3>Dish {n}</h3><p>with herbs and sauce, {n}.50</p></div>" for n in range(9))


@pytest.mark.parametrize(
    "part",
    [
        f"<section id=menu><h2>Our menu</h2>{DISHES}<p>KEPT</p></section>",
        "<div class=plan><h2>Pro</h2><p>$29</p></div><div class='plan popular'><h2>All</h2><p>KEPT</p>",
        "<div class='plan promo-plan'><h2>Pro</h2><p>KEPT</p></div><div class=plan><h2>All</h2><p>$9</p>",
        "<div class='notification notification--warning'><p>The deadline is KEPT.</p></div>",
        f"<div class=widget-text>{STORY}<p>KEPT</p></div>",
        f"<div class=cookie-recipes><h2>Baking</h2>{STORY}<p>KEPT</p></div>",
        "<div><h2>Setting a cookie</h2><p>A server sets a cookie with <a href=/a>Accept</a> and "
        f"<a href=/b>Access-Control-Allow-Origin</a>. {SENTENCES[0]}</p><p>KEPT</p></div>",
        f"<div><h2>Consent</h2><p>A cookie banner needs <button>Accept</button>.</p>{STORY}<p>KEPT</p></div>",
    ],
)
def test_content_like_boilerplate_stays(part: str) -> None:
    page = (
        f"<nav><ul>{LINKS}</ul></nav><main><h1>The town</h1>{STORY}{STORY}{STORY}{part}{STORY}</main>{FOOTER}"
    )

    assert "KEPT" in extract_main(page)


GONE = {
    "a login form": "<div id=login><h2>Login</h2><p>GONE for those who read this often enough to have a "
    "name here and a word that nobody else knows of.</p><form><input name=user></form></div>",
    "a cookie banner": "<div id=cookies><h2>Cookies</h2><p>GONE, cookies help us to see how many of you read "
    "this page to its end, and who does not.</p><button>Accept</button></div>",
    "a notice about cookies": "<div class=cookie-notice>GONE, we use cookies. <a href=/p>More</a></div>",
    "a banner with a heading": "<div><h2>Your privacy</h2><p>GONE, cookies let us and our many partners see "
    "what you read here, for how long, and what you buy.</p><a href=#>Accept all</a></div>",
    "a share bar": "<div class=share><h3>Share</h3><a href=/f>GONE</a> <a href=/g>there</a></div>",
    "a share bar with an id": "<div id=share><h3>Share</h3><a href=/f>GONE</a> <a href=/g>there</a></div>",
    "teasers of comments": "<div class=comments><h3>Comments</h3><p>GONE, said Ann.</p></div>",
    "related texts": "<div id=related><h2>Related</h2>"
    + "".join(f"<h3><a href=/{n}>GONE {n}</a></h3><p>{SENTENCES[n][:90]}</p>" for n in range(4))
    + "</div>",
    "a cloud of tags": "<div id=tags><h3>Tags</h3><a href=/a>GONE</a> <a href=/b>bridge</a></div>",
    "pagination": "<div id=pagination><h3>Pagination</h3><a href=/1>GONE</a> <a href=/2>2</a></div>",
    "links to the chapters beside it": "<div class=navfooter><table><tr><td><a href=/p>Prev</a><td><a "
    "href=/n>Next</a><tr><td>Chapter GONE<td>Chapter 3</table></div>",
    "a promotion": "<div class=promo><h3>GONE</h3><p>Half the price until Sunday</p></div>",
}


@pytest.mark.parametrize("name", GONE)
def test_boilerplate_with_heading_is_removed(name: str) -> None:
    text = extract_main(
        f"<nav><ul>{LINKS}</ul></nav><main><h1>The town</h1>{STORY}{GONE[name]}{STORY}{STORY}</main>{FOOTER}"
    )

    assert "GONE" not in text
    assert SENTENCES[4] in text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_article_is_only_remaining_content(layout: str) -> None:
    text = extract_main(LAYOUTS[layout])

    assert text.startswith("# A new bridge\n\nThe old bridge")
    assert all(sentence in text for sentence in SENTENCES)
    assert not [noise for noise in NOISE if noise in text]


def test_whole_page_is_returned_on_request() -> None:
    page = f"<html><body>{LAYOUTS['landmarks']}</body></html>".encode()

    text = extract_page(page, "text/html", URL, only_main_content=False).markdown

    assert all(noise in text for noise in ("cookies", "Sports", "tomatoes", "Copyright", *SENTENCES))


def test_elements_between_paragraphs_stay() -> None:
    between = (
        "<h2>The figures</h2><table><tr><th>Year<th>Lorries<tr><td>2024<td>12<tr><td>2025<td>7</table>"
        "<figure><img src=/bridge.jpg alt='The bridge'><figcaption>Seen from the south</figcaption></figure>"
        "<pre><code class=language-sh>make bridge</code></pre><ul><li>short</li><li>items</li></ul>"
        "<blockquote>It will hold.</blockquote>"
    )

    text = extract_main(
        f"<nav><ul>{LINKS}</ul></nav><article><h1>T</h1>{STORY}{between}{STORY}</article>{FOOTER}"
    )

    for part in (
        "## The figures",
        "| 2024 | 12 |",
        "![The bridge](",
        "Seen from the south",
        "```sh\nmake bridge",
        "- items",
        "> It will",
    ):
        assert part in text


@pytest.mark.parametrize(
    "image", ["<img src=/plan.png alt=Plan>", "<a href=/big.png><img src=/plan.png alt=Plan></a>"]
)
@pytest.mark.parametrize("end", [STORY, ""], ids=["in the text", "last"])
def test_paragraph_of_image_stays(image: str, end: str) -> None:
    text = extract_main(f"<nav>{LINKS}</nav><article><h1>T</h1>{STORY}<p>{image}</p>{end}</article>{FOOTER}")

    assert "![Plan](https://example.org/plan.png)" in text


def test_repeated_paragraphs_stay() -> None:
    text = extract_main(f"<article><h1>T</h1>{STORY}{STORY}</article>")

    assert text.count(SENTENCES[0]) == 2


def test_reference_page_keeps_code_tables_and_terms() -> None:
    page = (
        f"<div class=sphinxsidebar><ul>{LINKS}</ul></div><div role=main><h1>json</h1><p>Encodes.</p>"
        "<div class=highlight-python3><pre>import json</pre></div><div class='admonition "
        "note'><p>Careful.</p></div>"
        "<aside class='admonition tip'>A tip.</aside><dl class=py><dt class=sig>json.<b>dump</b>(obj, **kw)"
        "<a class=headerlink href=#d>\xb6</a></dt><dd><p>Writes <em>obj</em>.</p></dd></dl>"
        "<table><tr><th>Python<th>JSON<tr><td>dict<td>object</table><pre>$ ls</pre></div>"
        f"<div class=footer>Created using a generator.</div>{FOOTER}"
    )

    text = extract_main(page)

    assert text == (
        "# json\n\nEncodes.\n\n```python3\nimport json\n```\n\nCareful.\n\nA tip.\n\n`json.dump(obj, **kw)`\n"
        ": Writes *obj*.\n\n| Python | JSON |\n| --- | --- |\n| dict | object |\n\n```\n$ ls\n```"
    )


def test_index_page_keeps_its_links() -> None:
    items = "".join(f"<li><a href='/c/{n}'>Chapter {n} of the handbook</a></li>" for n in range(30))

    text = extract_main(f"<nav><ul>{LINKS}</ul></nav><main><h1>Handbook</h1><ul>{items}</ul></main>{FOOTER}")

    assert text.count("](https://example.org/c/") == 30
    assert "Sports" not in text


def test_list_of_articles_keeps_titles() -> None:
    posts = "".join(
        f"<article><header class=entry-header><h2><a href='/p/{n}'>Post {n}</a></h2></header>"
        f"<p>{sentence}</p></article>"
        for n, sentence in enumerate(SENTENCES)
    )

    text = extract_main(
        f"<header><h1>Blog</h1><nav><ul>{LINKS}</ul></nav></header><main>{posts}</main>{FOOTER}"
    )

    assert text.startswith(f"# Blog\n\n## [Post 0](https://example.org/p/0)\n\n{SENTENCES[0]}\n\n## [Post 1]")
    assert "Sports" not in text


def test_discussion_is_main_content() -> None:
    comments = "".join(
        f"<div class=comment><b>user{n}</b><p>{said}</p></div>" for n, said in enumerate(SENTENCES)
    )

    text = extract_main(
        f"<div class=navbar>{LINKS}</div><h1>Bridge?</h1><div class=comments>{comments}</div>"
    )

    assert all(sentence in text for sentence in SENTENCES)


def test_short_post_at_end_of_discussion_stays() -> None:
    posts = "".join(
        f"<div class=post><div class=user><a href=/u/{name}>{name}</a><span>Member</span></div>"
        f"<div class=text><p>{text}</p></div></div>"
        for name, text in zip(("anna", "ben", "clara"), (*SENTENCES[:2], "Thanks."), strict=True)
    )

    text = extract_main(f"<nav><ul>{LINKS}</ul></nav><div id=thread><h1>A bridge</h1>{posts}</div>{FOOTER}")

    assert [part for part in ("anna", "ben", "clara", "Thanks.") if part not in text] == []
    assert [noise for noise in NOISE if noise in text] == []


def test_sources_below_article_stay() -> None:
    sources = "<h2>See also</h2><ul><li><a href=/a>The river</a></li><li><a href=/b>Ferries</a></li></ul>"

    assert extract_main(f"<article><h1>T</h1>{STORY}{sources}</article>").endswith(
        "## See also\n\n- [The river](https://example.org/a)\n- [Ferries](https://example.org/b)"
    )


@pytest.mark.extended
@pytest.mark.parametrize(
    "hidden",
    [
        "<div style='display:none'>IGNORE</div>",
        "<div style='color:red; DISPLAY : NONE'>IGNORE</div>",
        "<span style='visibility:hidden'>IGNORE</span>",
        "<p style='font-size:0'>IGNORE</p>",
        "<p style='font-size:0px;line-height:0'>IGNORE</p>",
        "<p style='position:absolute;left:-9999px'>IGNORE</p>",
        "<p style='position:absolute;left:-9999%'>IGNORE</p>",
        "<p style='position:fixed;width:100%;left:-100%'>IGNORE</p>",
        "<p style='position:fixed;bottom:-9999px'>IGNORE</p>",
        "<p style='text-indent:-9999px'>IGNORE</p>",
        "<p style='text-indent:-300%'>IGNORE</p>",
        "<p style='opacity:0'>IGNORE</p>",
        "<p style='height:0;overflow:hidden'>IGNORE</p>",
        "<p style='max-height:0%;overflow-y:hidden;padding:0 2px'>IGNORE</p>",
        "<p style='font-size:1px'>IGNORE</p>",
        "<p style='font-size:0.01px'>IGNORE</p>",
        "<p style='clip-path:inset(50%)'>IGNORE</p>",
        "<p style='margin-left:-9999px'>IGNORE</p>",
        "<p style='color:#FFF;background: white'>IGNORE</p>",
        "<p style='background-color:#ffffff; color:rgb(255, 255, 255)'>IGNORE</p>",
        "<p style='color: rgba(0, 0, 0, 0)'>IGNORE</p>",
        "<p style='clip:rect(0 0 0 0)'>IGNORE</p>",
        "<p style='color:transparent'>IGNORE</p>",
        "<p style='d\\69splay:none'>IGNORE</p>",
        "<p style='display:/* shown */none'>IGNORE</p>",
        "<p style='dis\\play:none'>IGNORE</p>",
        "<p style='clip-path:circle(0)'>IGNORE</p>",
        "<p style='transform:scale(0)'>IGNORE</p>",
        "<p style='transform:translate(-99999px)'>IGNORE</p>",
        "<p style='transform:translateX(-9999px)'>IGNORE</p>",
        "<p style='transform:translate(0,-1000em)'>IGNORE</p>",
        "<p style='filter:opacity(0%)'>IGNORE</p>",
        "<p style='content-visibility:hidden'>IGNORE</p>",
        "<p style='color:#ffffff00'>IGNORE</p>",
        "<p style='color:rgb(0 0 0 / 0)'>IGNORE</p>",
        "<p style='color:rgba(0,0,0,0%)'>IGNORE</p>",
        "<p style='color:hsla(0,0%,0%,0)'>IGNORE</p>",
        "<p style='font:0/0 a'>IGNORE</p>",
        "<p style='font-size:1%'>IGNORE</p>",
        "<p style='font-size:.1em'>IGNORE</p>",
        "<p style='opacity:1%'>IGNORE</p>",
        "<p style='opacity:.01'>IGNORE</p>",
        "<p style='position:absolute;inset:0 auto auto -9999px'>IGNORE</p>",
        "<p style='position:absolute;inset-inline-start:-9999px'>IGNORE</p>",
        "<p style='position:absolute;top:calc(-9999px)'>IGNORE</p>",
        "<p style='position:absolute;left:-500px'>IGNORE</p>",
        "<p style='translate:-9999px'>IGNORE</p>",
        "<p style='clip-path:polygon(0 0,0 0,0 0)'>IGNORE</p>",
        "<p style='display:none;display:nothing'>IGNORE</p>",
        "<p style='display:none!important;display:block'>IGNORE</p>",
        '<p style=\'x:"/*";display:none;y:"*/"\'>IGNORE</p>',
        '<p style=\'x:"\\"";display:none;y:""\'>IGNORE</p>',
        "<div popover>IGNORE</div>",
        "<iframe width=0 height=0 srcdoc='IGNORE'></iframe>",
        "<iframe width=0px srcdoc='IGNORE'></iframe>",
        "<iframe width=00 srcdoc='IGNORE'></iframe>",
        "<iframe width=' 0' srcdoc='IGNORE'></iframe>",
        "<iframe height=1px srcdoc='IGNORE'></iframe>",
        "<iframe srcdoc='<p hidden>IGNORE</p>'></iframe>",
        "<p hidden>IGNORE</p>",
        "<div role=tabpanel hidden>IGNORE</div>",
        "<button aria-controls=menu>More</button><div id=menu hidden>IGNORE</div>",
        "<h2 hidden><button aria-controls=panel>More</button></h2><div id=panel hidden>IGNORE</div>",
        "<h2><button aria-controls=panel>More</button></h2><div id=panel role=dialog hidden>IGNORE</div>",
        "<h2><button aria-controls=panel>More</button></h2><div id=panel><p hidden>IGNORE</p></div>",
        "<p aria-hidden=true>IGNORE</p>",
        "<p class='sr-only'>IGNORE</p>",
        "<div style='font-size:0'><p>IGNORE</p><b style='font-size:1em'>IGNORE</b></div>",
        "<div style='visibility:hidden'><p>IGNORE</p></div>",
        "<div style='opacity:0'><p>IGNORE</p></div>",
        "<div style='opacity:0;position:fixed'><h2>IGNORE</h2></div>",
        "<div class='d-none'>IGNORE</div>",
        "<p>Go <span class='material-icons' aria-hidden=true>IGNORE</span></p>",
        "<pre>a<span aria-hidden=true>IGNORE</span></pre>",
        "<p class='visually-hidden'>IGNORE</p>",
        "<!-- IGNORE -->",
        "<template>IGNORE</template>",
        "<noscript>IGNORE</noscript>",
        "<script>IGNORE</script>",
        "<style>IGNORE</style>",
        "<input type=hidden value=IGNORE><input type=password value=IGNORE placeholder=IGNORE>",
        "<input hidden value=IGNORE><select hidden><option>IGNORE</select>",
        "<select><option hidden>IGNORE</option></select><datalist><option>IGNORE</datalist>",
        "<input type=checkbox value=IGNORE><textarea placeholder=IGNORE>a</textarea>",
        "<img src=/x.png alt=x data-prompt=IGNORE>",
    ],
)
@pytest.mark.parametrize("only_main", [True, False])
def test_hidden_text_is_removed(hidden: str, *, only_main: bool) -> None:
    page = f"<html><body><article><h1>T</h1>{STORY}{hidden}{STORY}</article></body></html>".encode()

    text = extract_page(page, "text/html", URL, only_main_content=only_main).markdown

    assert "IGNORE" not in text
    assert SENTENCES[-1] in text


@pytest.mark.extended
@pytest.mark.parametrize(
    "shown",
    [
        "<div style='opacity:0;transform:translateY(20px)'>{}</div>",
        "<div style='opacity:0.5;line-height:1'>{}</div>",
        "<div style='transform:scale(0.9) translate(-10px)'>{}</div>",
        "<div style='filter:opacity(0.9)'>{}</div>",
        "<div style='max-width:100px;font-size:0.9em'>{}</div>",
        "<div class='hidden md:block'>{}</div>",
        "<div class='hidden md:inline-flex'>{}</div>",
        "<div class='hidden lg:contents'>{}</div>",
        "<div class='d-none d-xl-inline-block'>{}</div>",
        "<div style='opacity:0'>{}</div>",
        "<div style='backface-visibility:hidden'>{}</div>",
        "<div style='visibility:hidden'><div style='visibility:visible'>{}</div></div>",
        "<div style='font-size:0'><div style='font-size:16px'>{}</div></div>",
        "<div style='font-size:0px'><table><td style='FONT:13px/1.5 Ubuntu, Arial'>{}</table></div>",
        "<div style='color:transparent;-webkit-background-clip:text'>{}</div>",
        "<div style='height:0;padding-bottom:56.25%;overflow:hidden'>{}</div>",
        "<div style='height:0;overflow:hidden;padding-top:calc(9 / 16 * 100%)'>{}</div>",
        "<div style='height:0'>{}</div>",
        "<div style='left:-300%'>{}</div>",
        "<div style='position:absolute;width:400%;left:-300%'>{}</div>",
        "<div style='color:red;/* display:none'>{}</div>",
        "<div hidden=until-found>{}</div>",
        "<div style='position:relative;top:-120px'>{}</div>",
        "<div style='position:relative;left:-100px'>{}</div>",
        "<div style='--my-display:none'>{}</div>",
        "<div style='background:url(x?left:-9999)'>{}</div>",
        "<div style='display:none;display:block'>{}</div>",
        "<div style='display:block!important;display:none'>{}</div>",
        "<div style='color:inherit;background:inherit'>{}</div>",
        "<div style='color:rgba(0,0,0)'>{}</div>",
        "<div style='font:400 16px/1.5 sans-serif'>{}</div>",
        "<div style='position:absolute;inset:0'>{}</div>",
        "<div style='quotes:\"; display:none;\"'>{}</div>",
        "<div style='background-color:transparent'>{}</div>",
        "<div style='border-color: transparent; margin-left: -150px'>{}</div>",
        "<div style='color:#fff;background:#000'>{}</div>",
        "<div style='font-size:11px;color:rgba(0,0,0,0.8)'>{}</div>",
        "<iframe width=100% height=10px srcdoc='{}'></iframe>",
        "<details><summary>More</summary>{}</details>",
        "<aside>{}</aside>",
    ],
)
def test_visible_text_is_not_considered_hidden(shown: str) -> None:
    page = f"<html><body><main>{shown.format(STORY)}</main></body></html>".encode()

    told = extract_page(page, "text/html", URL, only_main_content=True)

    assert SENTENCES[0] in told.markdown
    assert told.warnings == ()  # a page without visible text is extracted completely


NOTE = "The guide to the valley names a ford that carts have used since the old days."


@pytest.mark.parametrize(
    ("css", "part"),
    [
        (".a{display:none}", "<p class='b a'>{}</p>"),
        ("#c{visibility:hidden}", "<div id=c><p>{}</p></div>"),
        ("p.d{font-size:0}", "<p class=d>{}</p>"),
        (".a.b { color: red; DISPLAY: NONE }", "<p class='a b'>{}</p>"),
        ("x-note{display:none}", "<x-note>{}</x-note>"),
        (".a{position:absolute}.a{left:-9999px}", "<p class=a>{}</p>"),
        (".a{display:block}.a{display:none}", "<p class=a>{}</p>"),
        (".a{display:none!important}", "<p class=a style='display:block'>{}</p>"),
        ("#a{display:none}.a{display:block}", "<p class=a id=a>{}</p>"),
        ("@media screen{.a{display:none}}", "<p class=a>{}</p>"),
        (".a{display:none}@media print{.a{display:block}}", "<p class=a>{}</p>"),
        (".a{display:none;&:is(b){color:red}}", "<p class=a>{}</p>"),
        (".x{content:'}'}/*{*/.a{d\\69splay:none", "<p class=a>{}</p>"),
    ],
)
@pytest.mark.parametrize("only_main", [True, False])
def test_text_hidden_by_sheet_is_removed(css: str, part: str, *, only_main: bool) -> None:
    page = f"<head><style>{css}</style></head><main>{STORY}{part.format(NOTE)}{STORY}</main>".encode()

    text = extract_page(page, "text/html", URL, only_main_content=only_main).markdown

    assert NOTE not in text
    assert SENTENCES[-1] in text


@pytest.mark.parametrize(
    ("css", "part"),
    [
        (".a{display:none}.a{display:block}", "<p class=a>{}</p>"),
        (".a{display:none}.a.b{display:block}", "<p class='a b'>{}</p>"),
        (".a{display:none}", "<p class=a style='display:block'>{}</p>"),
        (".a{display:none}.open .a{display:block}", "<p class=a>{}</p>"),
        (".a{display:none}@media (min-width:900px){.a{display:block}}", "<p class=a>{}</p>"),
        ("@media print{.a{display:none}}", "<p class=a>{}</p>"),
        ("@media (max-width:600px){.a{display:none}}", "<p class=a>{}</p>"),
        ("#c :not(.a){display:none}", "<p class=a>{}</p>"),
        (".a{visibility:hidden;animation:show 1s forwards}", "<p class=a>{}</p>"),
        (".a{font-size:0}.a>p{font-size:16px}", "<div class=a><p>{}</p></div>"),
        (".a{visibility:hidden}.b{visibility:visible}", "<div class=a><p class=b>{}</p></div>"),
        (".a{display:none}", "<button>Read on</button><div class=a><p>{}</p></div>"),
        (
            ".a{display:none}",
            "<div role=tablist><b role=tab aria-controls=t>T</b></div><div id=t class=a><p>{}</p></div>",
        ),
        (".a{display:none}", "<p class=a>{}</p><script>show('.a')</script>"),
        (".a{display:none}", "<h2>A</h2><p class=a>{}</p><h2>B</h2><p class=a>b</p><script src=/x></script>"),
        ("@media print{</style><style media=print>.a{display:none}", "<p class=a>{}</p>"),
        ("</style><noscript><style>.a{display:none}</style></noscript><style>", "<p class=a>{}</p>"),
    ],
)
def test_text_that_page_may_show_is_not_hidden_by_sheet(css: str, part: str) -> None:
    page = f"<head><style>{css}</style></head><main>{STORY}{part.format(NOTE)}{STORY}</main>".encode()

    assert NOTE in extract_page(page, "text/html", URL, only_main_content=False).markdown


def test_sheet_that_hides_most_of_scripted_page_is_undone() -> None:
    page = f"<style>#app{{display:none}}</style><p>{NOTE}</p><div id=app>{STORY}</div><script>x</script>"

    assert SENTENCES[-1] in extract_main(page)


CHART = (
    "<svg class=chart><title>TIP</title><defs><text>TIP</text></defs><text>Lorries over the bridge</text>"
    "<text>Lorries over the bridge</text><text><tspan dy=1>in</tspan><tspan dy=1>thousands</tspan></text>"
    "<foreignObject><div>before</div><div>the floods</div></foreignObject><text hidden>TIP</text></svg>"
)


@pytest.mark.parametrize("only_main", [True, False])
def test_text_of_drawing_is_paragraph(*, only_main: bool) -> None:
    body = f"<article><h1>A new bridge</h1>{STORY}<figure>{CHART}</figure>{STORY}</article>"

    text = extract_page(body.encode(), "text/html", URL, only_main_content=only_main).markdown

    assert "\n\nLorries over the bridge, in thousands, before the floods\n\n" in text
    assert "TIP" not in text


@pytest.mark.parametrize(
    "symbol",
    [
        "<svg><title>A symbol of a long name</title><path d='M0 0'/></svg>",
        "<svg><text>new</text></svg>",
        "<a href=/><svg><text>The Paper of the Whole Valley</text></svg></a>",
        f"<svg>{''.join(f'<text>{letter}</text>' for letter in 'one letter at a time in a text')}</svg>",
    ],
    ids=["title", "short", "logo", "letters"],
)
def test_symbols_are_no_main_content(symbol: str) -> None:
    body = f"<p>{SENTENCES[0]}</p>{symbol}<p>{SENTENCES[1]}</p>".encode()

    text = extract_page(body, "text/html", URL, only_main_content=True).markdown

    assert text == f"{SENTENCES[0]}\n\n{SENTENCES[1]}"


def test_title_of_symbol_is_not_counted() -> None:
    body = b"<script src=/a.js></script><div id=root></div><svg><title>Please wait for it</title></svg>"

    (warning,) = extract_page(body, "text/html", URL, only_main_content=True).warnings

    assert "only 0 characters" in warning


ROWS = "".join(f"<tr><td>Pillar {n}</td><td>closed for repairs until spring</td></tr>" for n in range(1, 6))


@pytest.mark.parametrize(
    "part",
    [
        f"<form method=post><table>{ROWS}</table><input type=hidden name=__VIEWSTATE></form>",
        f"<form><p>Pillar 5: {SENTENCES[2]}</p><p>{SENTENCES[3]}</p><input name=comment></form>",
        f"<menu><li>Pillar 4 is closed for repairs.</li><li>Pillar 5: {SENTENCES[2]}</li></menu>",
    ],
    ids=["table", "text", "menu"],
)
def test_page_text_in_form_or_menu_stays(part: str) -> None:
    text = extract_main(f"<article><h1>A new bridge</h1>{STORY}{part}{STORY}</article>")

    assert "Pillar 5" in text
    assert "closed for repairs" in text or SENTENCES[3] in text


@pytest.mark.parametrize(
    "part",
    [
        "<form><label>Write to us<input name=mail></label><p>We answer every letter in a week.</p></form>",
        f"<form>{''.join(f'<p>{each}</p><input>' for each in SENTENCES[:4])}</form>",
        "<menu><li><a href=/m>Write to us</a></li><li><button>Print</button></li></menu>",
    ],
    ids=["letter", "fields", "menu"],
)
def test_forms_and_menus_beside_text_are_removed(part: str) -> None:
    text = extract_main(f"<div><h1>A new bridge</h1>{STORY}</div>{part}")

    assert "Write to us" not in text
    assert text.count(SENTENCES[0]) == 1


@pytest.mark.parametrize("names", ["style='overflow: hidden'", "id=not-hidden", "class='x hidden-print'"])
def test_box_between_paragraphs_is_not_considered_hidden(names: str) -> None:
    box = f"<div {names}><p>It was the third bridge at this place since the war, an archive says.</p></div>"

    assert "the third bridge" in extract_main(f"<article><h1>A new bridge</h1>{STORY}{box}{STORY}</article>")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("<span class=sr-only>Price 799</span><span aria-hidden=true>$799.00</span>", "$799.00"),
        ("<span>$12.99</span><span aria-hidden=true><i>$</i><i>12</i>.<i>99</i></span>", "$12.99"),
        ("<span aria-hidden=true>Step 3</span>", "Step 3"),
        (
            "<div style='font-size:0'>x <p style='font-size:13px'>One</p>y<b>z</b></div>tail",
            "One\n\ntail",
        ),
        (
            "<div style='visibility:hidden'>x<i style='visibility:visible'>One</i> <b>z</b></div>tail",
            "*One*\n\ntail",
        ),
        (
            "<table><tr><td>a<td class='hidden lg:table-cell'>b<tr><td>c<td class='d-none d-md-table-cell'>d",
            "| a | b |\n| --- | --- |\n| c | d |",
        ),
        (
            f"<div style='opacity:0'><h2>Head</h2><p>Text</p></div><p>{SENTENCES[0]}",
            f"## Head\n\nText\n\n{SENTENCES[0]}",
        ),
    ],
)
def test_visible_part_of_element_is_read(part: str, expected: str) -> None:
    page = f"<html><body>{part}</body></html>".encode()

    assert extract_page(page, "text/html", URL, only_main_content=False).markdown == expected


@pytest.mark.parametrize("move", ["translate3d(-1584px, 0px, 0px)", "translateX(-1200%)"])
def test_carousel_slides_are_not_considered_hidden(move: str) -> None:
    slides = f"<div style='transform: {move}'><p>The fourth slide shows a lime.</p></div>"
    page = f"<html><body><main>{STORY}{slides}{STORY}</main></body></html>".encode()

    assert "fourth slide" in extract_page(page, "text/html", URL, only_main_content=True).markdown


def test_page_without_main_content_is_returned_completely() -> None:
    page = f"<html><body><nav>{STORY}</nav><main><p>x</p></main></body></html>".encode()

    reading = extract_page(page, "text/html", URL, only_main_content=True)

    assert SENTENCES[0] in reading.markdown
    assert reading.warnings == (
        "the main content could not be separated without losing much of the page's text, so a fuller reading "
        "is returned, which may contain other parts of the page",
    )


def test_completely_hidden_page_is_returned_with_warning() -> None:
    page = f"<html><body><div style='display:none'>{STORY}</div></body></html>".encode()

    reading = extract_page(page, "text/html", URL, only_main_content=True)

    assert SENTENCES[0] in reading.markdown
    assert reading.warnings == ("the page hides its text; the hidden text is returned",)


def test_scripts_are_blamed_only_if_page_has_some() -> None:
    page = (
        f"<html><body><div style='display:none'>{STORY}</div><script>show()</script></body></html>".encode()
    )

    reading = extract_page(page, "text/html", URL, only_main_content=True)

    assert "hides its text until its scripts have run" in reading.warnings[-1]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<",
        "<html>",
        "\0",
        "<!-- -->",
        "<body></body>",
        "<p>",
        "</p></body></html>",
        "<frameset><frame src=x></frameset>",
    ],
)
def test_page_without_text_is_empty(body: str) -> None:
    assert extract_page(body.encode(), "text/html", URL, only_main_content=True).markdown in ("", "\\<")


@pytest.mark.parametrize("only_main", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        "<div><img src=/1.png alt=''><img src=/2.png></div>",
        "<a href=/x><img src=/1.png alt=''></a>",
        "<table><tr><td><img src=/1.png><td><img src=/2.png></table><hr>",
        "<ul><li><img src=/1.png alt=' '></ul><p>&nbsp;&#8203;</p>",
        "<img src=/1.png><canvas>drawn</canvas><img src=/2.png width=1 alt=counter>",
    ],
    ids=["pictures", "link", "table", "list", "pixel"],
)
def test_page_of_pictures_without_text_is_empty(body: str, *, only_main: bool) -> None:
    assert extract_page(body.encode(), "text/html", URL, only_main_content=only_main).markdown == ""


@pytest.mark.parametrize("only_main", [True, False])
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<img src=/1.png alt='A bridge'>", "![A bridge]"),
        ("<img src=/1.png title='A bridge'>", "![A bridge]"),
        ("<figure><img src=/1.png><figcaption>A bridge</figcaption></figure>", "A bridge"),
        ("<svg><path/></svg>A bridge<img src=/1.png>", "A bridge"),
        ("<table><tr><td>A<td><img src=/1.png></table>", "| A |"),
        ("<pre><code>x = 1</code></pre><img src=/1.png>", "x = 1"),
    ],
    ids=["alt", "title", "caption", "tail", "table", "code"],
)
def test_page_of_pictures_with_text_is_read(body: str, text: str, *, only_main: bool) -> None:
    markdown = extract_page(body.encode(), "text/html", URL, only_main_content=only_main).markdown

    assert text in markdown
    assert "/1.png)" in markdown


def test_page_without_body_element_is_read() -> None:
    assert (
        extract_page(b"just <b>text</b>", "text/html", URL, only_main_content=True).markdown
        == "just **text**"
    )


PLANS = "".join(
    f"<div class=card><h3>Plan {n}</h3><div class=price>${n}0/mo</div><ul><li>{n} users</li></ul>"
    f"<a class=btn href=/buy/{n}>Buy</a></div>"
    for n in range(1, 4)
)


@pytest.mark.parametrize(
    ("part", "facts"),
    [
        ("<div class=status>Status: OBSOLETED by RFC 10</div>", ["OBSOLETED by RFC 10"]),
        (
            "<div><p>Phone: 555-1234</p></div><div><p>Mail: a@b.example</p></div>",
            ["555-1234", "a@b.example"],
        ),
        ("<div class=specs><div>Weight 12 kg</div><div>Price $30</div></div>", ["12 kg", "$30"]),
        (f"<div class=grid>{PLANS}</div>", ["### Plan 1", "$10/mo", "1 users", "$20/mo", "$30/mo"]),
    ],
    ids=["status", "contact", "specs", "plans"],
)
@pytest.mark.parametrize("tag", ["main", "article"])
def test_facts_beside_text_stay(tag: str, part: str, facts: list[str]) -> None:
    page = f"<nav><ul>{LINKS}</ul></nav><{tag}><h1>T</h1>{part}<div class=body>{STORY}</div></{tag}>{FOOTER}"

    text = extract_main(page)

    assert [fact for fact in facts if fact not in text] == []
    assert SENTENCES[-1] in text


@pytest.mark.parametrize(
    "fields",
    [
        "<input><fieldset><legend>Cell size</legend></fieldset>",
        "<fieldset><fieldset><legend>Cell size</legend></fieldset></fieldset>",
        "<fieldset><legend>Cell size</legend><label>Small <input type=radio></label></fieldset>",
    ],
    ids=["legend", "nested", "fields"],
)
def test_table_after_fields_stays(fields: str) -> None:
    table = "<table><tr><th>Cell<th>Volts<tr><td>AA<td>1.5</table>"

    text = extract_main(f"<main><h1>T</h1>{STORY}{fields}{table}</main>")

    assert "Cell size" in text
    assert "| AA | 1.5 |" in text


def test_prices_before_one_sentence_stay() -> None:
    text = extract_main(f"<main><h1>Pricing</h1><div class=plans>{PLANS}</div><p>{SENTENCES[0]}</p></main>")

    assert [price for price in ("$10/mo", "$20/mo", "$30/mo") if price not in text] == []


@pytest.mark.parametrize(
    "data",
    [
        "<table><tr><th></th><th>Free</th><th>Pro</th></tr><tr><th>SSO</th><td>no</td><td>yes</td></tr></table>",
        "<pre><code>plan = free</code></pre>",
    ],
    ids=["table", "code"],
)
def test_short_data_below_text_stays(data: str) -> None:
    plans = "".join(
        f"<div><h3>{name}</h3><p>{price}</p><ul><li>{users} for the whole year</li></ul></div>"
        for name, price, users in (
            ("Free", "$0 a month", "One user"),
            ("Pro", "$29 a month", "Unlimited users"),
        )
    )

    text = extract_main(f"<main><h1>Pricing</h1><div>{plans}</div><div>{data}</div></main>{FOOTER}")

    assert "Unlimited users" in text
    assert "| SSO | no | yes |" in text or "plan = free" in text


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("<svg aria-label=yes><path d='M0 0'/></svg>", "yes"),
        ("<svg><title>yes</title><path d='M0 0'/></svg>", "yes"),
        ("<span class=sr-only>yes</span><svg><path d='M0 0'/></svg>", "yes"),
        ("<i class=check title=yes></i>", "yes"),
        ("<i title=yes></i> limited", "limited"),
        ("<span title='1 May 2026'>May</span>", "May"),
        ("<i></i>", ""),
        ("<i title=yes style='display:none'></i>", ""),
    ],
)
@pytest.mark.parametrize("only_main", [True, False])
def test_cell_of_symbol_has_its_name(cell: str, expected: str, *, only_main: bool) -> None:
    table = f"<table><tr><th>Plan</th><th>SSO</th></tr><tr><td>Pro</td><td>{cell}</td></tr></table>"
    page = f"<main><h1>Plans</h1><p>{SENTENCES[0]}</p>{table}</main>".encode()

    markdown = extract_page(page, "text/html", URL, only_main_content=only_main).markdown

    assert [each.strip() for each in markdown.split("\n")[-1].split("|")] == ["", "Pro", expected, ""]


def test_contact_beside_single_paragraph_stays() -> None:
    contact = (
        "<div><a href=mailto:eva@example.org>eva@example.org</a></div><div><a href=tel:+4930>+49 30</a></div>"
    )

    text = extract_main(f"<nav><ul>{LINKS}</ul></nav><div><div>{SENTENCES[0]}</div>{contact}</div>{FOOTER}")

    assert "eva@example.org" in text
    assert "+49 30" in text


def test_lines_beside_single_paragraph_stay() -> None:
    text = extract_main(
        f"<nav><ul>{LINKS}</ul></nav><div class=room><div>Double room Alder</div><div>{SENTENCES[0]}</div>"
        f"<div>120 euros a night</div><div>Free from 3 May</div><div>{PROMOTION}</div></div>{FOOTER}"
    )

    assert text == "\n\n".join(("Double room Alder", SENTENCES[0], "120 euros a night", "Free from 3 May"))


LONG_SECTION = (
    "<h2>Configuration</h2><div><pre>bridge --open\nbridge --close</pre><pre>bridge --list</pre>"
    f"{STORY * 2}</div><div>Since 2.4</div>"
)
SHORT_SECTIONS = (
    "<h2>Diagnostics</h2><div>Errors go to the <a href=/h>handler</a>.</div>",
    "<h2>See also</h2><div><a href=/open>bridge_open</a>, <a href=/close>bridge_close</a></div>",
)


def test_links_of_scripts_are_no_targets_of_links() -> None:
    """Both may have a name and no address, but a target does nothing."""
    links = "".join(
        f"<li><a id=s{number} onclick='show({number})'>{title} of the whole week</a></li>"
        for number, title in enumerate(("Sports", "Travel", "Opinions", "Markets"))
    )

    text = extract_main(f"<div id=c><h1>T</h1>{STORY}<h2>More stories</h2><ul>{links}</ul></div>{FOOTER}")

    assert "Sports" not in text
    assert SENTENCES[-1] in text


@pytest.mark.parametrize("tag", ["<div class=sect1>", "<section>", "<div class='refsect1 toggle'>"])
def test_short_sections_of_reference_page_stay(tag: str) -> None:
    end = f"</{tag[1:].split()[0].rstrip('>')}>"
    sections = "".join(f"{tag}{each}{end}" for each in (LONG_SECTION, *SHORT_SECTIONS))

    text = extract_main(f"<nav><ul>{LINKS}</ul></nav><div id=body><h1>bridge</h1>{sections}</div>{FOOTER}")

    assert "## Diagnostics\n\nErrors go to the" in text
    assert "## See also\n\n[bridge_open]" in text
    assert "Since 2.4" in text


def test_coloured_code_keeps_all_words() -> None:
    method = "".join(f"<span class=n>step_{n}</span><span class=p>()</span>\n    " for n in range(40))
    code = (
        "<span class=kn>import</span> <span class=nn>bridge</span>\n<div class=block>class Work:\n"
        f"  <div class=block>def run():\n    {method}</div></div>"
    )

    text = extract_main(f"<h1>Source</h1><div class=highlight><pre>{code}</pre></div>{FOOTER}")

    assert "import bridge\nclass Work:" in text


def test_promotion_alike_to_article_is_removed() -> None:
    box = f"<div class=block><h2>Related</h2><div><ul>{LINKS}</ul></div></div>"

    text = extract_main(f"<div id=body><div class=block>{LONG_SECTION}</div>{box}</div>{FOOTER}")

    assert "Sports" not in text


def test_comments_alike_to_article_are_removed() -> None:
    comments = "".join(
        f"<div class=c><b>user{n}</b><p>I do not agree, number {n}.</p></div>" for n in range(4)
    )
    box = f"<article><h2>Kommentare</h2>{comments}</article>"

    text = extract_main(f"<div id=w><h1>T</h1><article><h2>Bridge</h2>{STORY}</article>{box}</div>{FOOTER}")

    assert text.startswith("# T\n\n## Bridge")
    assert "agree" not in text


PARSERS = "".join(f"<li><a href='/p/{n}'>parser-{n}</a></li>" for n in range(6))


@pytest.mark.parametrize(
    ("part", "link"),
    [
        (f"<h2>Parsers</h2><ul class=simple>{PARSERS}</ul><h2>Lexers</h2><p>{SENTENCES[0]}</p>", "parser-5"),
        ("<h2>Files</h2><p><a href=/a.zip>a.zip</a></p><p><a href=/b.zip>b.zip</a></p><h2>X</h2>", "b.zip"),
        (f"<ul>{PARSERS}</ul>", "parser-0"),
    ],
    ids=["list", "paragraphs", "no heading"],
)
def test_links_that_are_content_stay(part: str, link: str) -> None:
    text = extract_main(f"<nav><ul>{LINKS}</ul></nav><main><h1>T</h1>{STORY}{part}{STORY}</main>{FOOTER}")

    assert f"[{link}](" in text
    assert "Sports" not in text


def test_links_under_promotion_heading_are_removed_with_it() -> None:
    promotion = f"<h3>Related stories</h3><ul class=x>{PARSERS}</ul><h3>Costs</h3>"

    text = extract_main(f"<main><h1>T</h1>{STORY}{promotion}{STORY}</main>{FOOTER}")

    assert "parser-" not in text
    assert "Related stories" not in text
    assert "### Costs" in text


def test_introduction_of_story_is_kept() -> None:
    lead = (
        "<p>By Ann Miller, 5 March</p><figure><img src=/town.jpg alt=Town>"
        "<figcaption>The town hall. Photo: A.</figcaption></figure>"
    )

    text = extract_main(
        f"<nav><ul>{LINKS}</ul></nav><main><article><h1>A new bridge</h1>{lead}{STORY}</article></main>"
    )

    assert "By Ann Miller, 5 March" in text
    assert "![Town](https://example.org/town.jpg)\n\nThe town hall. Photo: A." in text


@pytest.mark.parametrize(
    "drawing",
    [
        "<svg display=none><text>Unseen words</text></svg>",
        "<svg width=0 height=0><text>Unseen words</text></svg>",
        "<svg><clipPath><text>Unseen words</text></clipPath></svg>",
        "<svg><g visibility=hidden><text>Unseen words</text></g></svg>",
        "<svg><text><tspan fill=none>Unseen words</tspan></text></svg>",
    ],
)
def test_undrawn_words_of_symbol_are_not_shown(drawing: str) -> None:
    page = f"<p>Some text</p><a href=/x>{drawing}Home</a>".encode()

    assert "Unseen" not in extract_page(page, "text/html", URL, only_main_content=False).markdown


def test_page_of_formulas_has_text() -> None:
    page = b'<p><math alttext="E=mc^2"></math></p>'

    assert "E=mc^2" in extract_page(page, "text/html", URL, only_main_content=False).markdown


NEWS = (
    "<p>The council decided on Monday to close the old bridge for the winter, since ice had damaged it.</p>"
    "<p>Repairs will take until the spring, said the engineer, who had warned of cracks in the summer.</p>"
    "<p>Drivers are sent over the new bridge in the north, which is four miles away from the old one.</p>"
    "<p>The mayor called the closure a nuisance but a necessary one, and promised a ferry each hour.</p>"
)
SOURCE = "Source: <a href=https://council.example/minutes>Minutes of the council</a>"
SHARE = "<div class=share><a href=#>Tweet</a> <a href=#>Post</a></div>"


def read_news(content: str) -> str:
    """Return the main content of a page of a newspaper."""
    page = f"<header><nav><a href=/>Home</a></nav></header>{content}<footer>Imprint</footer>"
    html = f"<title>Bridge closes</title><body>{page}</body>".encode()
    return extract_page(html, "text/html", "https://paper.example/b", only_main_content=True).markdown


@pytest.mark.parametrize(
    "content",
    [
        f"<article><h1>Bridge closes</h1><div class=article-body>{NEWS}</div><p>{SOURCE}</p></article>",
        f"<div class=post><h1>Bridge closes</h1><div class=text>{NEWS}</div><div>{SOURCE}</div></div>",
        f"<article><h1>Bridge closes</h1>{NEWS}<footer><p>{SOURCE}</p></footer></article>",
        f"<main><article><h1>Bridge closes</h1>{NEWS}</article><p>{SOURCE}</p></main>",
        f"<article><h1>Bridge closes</h1>{NEWS}<p class=credits>{SOURCE}</p></article>",
        f"<article><h1>Bridge closes</h1>{NEWS}{SHARE}<p class=credits>{SOURCE}</p></article>",
        f"<article><h1>Bridge closes</h1>{NEWS}<p><b>{SOURCE.replace(':', ':</b>', 1)}</p></article>",
        f"<article><h1>Bridge closes</h1>{NEWS}<p>{SOURCE}</p></article>",
    ],
)
def test_source_of_article_is_kept(content: str) -> None:
    markdown = read_news(content)

    assert markdown.count("[Minutes of the council](https://council.example/minutes)") == 1
    assert markdown.splitlines()[-1].strip("*").startswith("Source:")


@pytest.mark.parametrize(
    "after",
    [
        f"<footer>{SOURCE}</footer>",
        f"<section id=comments><h2>2 comments</h2><p>Good that they do something at last, I say, and so does "
        f"everybody in our street, which is close to it.</p><p>{SOURCE}</p></section>",
        f"<div class=related><h2>Related</h2><ul><li>A ferry that is never on time, as all of us know <li>A "
        f"shop that closes after a hundred years</ul><p>{SOURCE}</p></div>",
        "<p class=credits>Resources: <a href=/r>Our school</a></p>",
        f"<div class=comment-list><div class=comment><p>{SOURCE}</p></div></div>",
        f"<div class=related-stories><p>{SOURCE}</p></div>",
        f"<div class=ad>{SOURCE}</div>",
    ],
    ids=["footer", "comments", "related", "another word", "comment", "other story", "advertisement"],
)
def test_source_beside_article_is_not_added(after: str) -> None:
    markdown = read_news(f"<article><h1>Bridge closes</h1>{NEWS}</article>{after}")

    assert "ource" not in markdown
