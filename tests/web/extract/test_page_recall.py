"""Pages whose text is easily lost: broken markup, streamed parts, misleading class names, unwrapped text."""

from __future__ import annotations

import pytest

from centgate.web.extract.extract import ExtractedPage, extract_page

URL = "https://example.org/page"
PARAGRAPHS = tuple(
    f"The {name} was rebuilt by the town in {1950 + number}, because the floods of the spring had taken its "
    f"pillars, and the council asked {number + 3} masons for their advice before the work began."
    for number, name in enumerate(
        ("mill", "harbour", "granary", "lock", "ferry", "market", "tower", "school", "bakery", "forge")
    )
)
MENU = "<nav><ul>" + "".join(f"<li><a href=/m/{n}>Menu {n}</a></li>" for n in range(8)) + "</ul></nav>"


def extract_text(body: str, *, head: str = "", only_main_content: bool = True) -> ExtractedPage:
    page = f"<!doctype html><html><head><title>The town</title>{head}</head><body>{body}</body></html>"
    return extract_page(page.encode(), "text/html", URL, only_main_content=only_main_content)


def wrap_paragraphs(start: str = "<p>", end: str = "</p>") -> str:
    return "".join(f"{start}{each}{end}" for each in PARAGRAPHS)


STORY = wrap_paragraphs()
CARDS = "".join(f"<p><a href=/c/{n}>Card {n} of another story</a></p>" for n in range(4))
LOSSES = {
    "an unclosed division in a button": f"<header><button><div>Open</button></header><main>{STORY}</main>",
    "an unclosed division in a label": f"<div><button><div><span>x</button></div><div>{STORY}</div>",
    "each paragraph behind a payment wall": wrap_paragraphs("<p class=paywall>"),
    "half of the text behind a payment wall": wrap_paragraphs("<p>", "</p>").replace(
        f"<p>{PARAGRAPHS[5]}", f"<div class=paywall><p>{PARAGRAPHS[5]}"
    ),
    "text in a part named after social media": f"<h1>T</h1><p>{PARAGRAPHS[0]}</p><div class=social-story>"
    + "".join(f"<p>{each}</p>" for each in PARAGRAPHS[1:5])
    + f"</div>{wrap_paragraphs()}",
    "a wrapper that has ads": f"<div class='has-ads no-sidebar with-newsletter'>{STORY}</div>{CARDS * 3}",
    "text between images in a division": "<div id=content><h1>T</h1>"
    + "".join(f"{each}<img src=/{n}.jpg alt=picture>" for n, each in enumerate(PARAGRAPHS))
    + "</div>",
    "text between boxes in a division": "<article><h1>T</h1>"
    + "".join(f"{each}<div class=ad-slot>Advertisement</div>" for each in PARAGRAPHS)
    + "</article>",
    "loose text beside an image, between paragraphs": "<article><h1>T</h1>"
    + "".join(f"<p>{each}</p>" for each in PARAGRAPHS[:5])
    + f"<div>{PARAGRAPHS[5]}<img src=/a.jpg></div><div>{PARAGRAPHS[6]}<hr></div>"
    + "".join(f"<p>{each}</p>" for each in PARAGRAPHS[7:])
    + "</article>",
    "text beside a heading in an inline element": "<div id=content><span><b><h2>T</h2></b>"
    + "<br><br>".join(PARAGRAPHS)
    + "</span></div>",
    "emphasis at the start of loose text": "<article><h1>T</h1>"
    + "".join(f"<b>The</b>{each[3:]}<figure><img src=/a.png></figure>" for each in PARAGRAPHS)
    + "</article>",
    "a read-more box around the text": f"<h1>T</h1><div class=read-more-content>{STORY}</div>",
    "the text in a part marked as side": f"<div class=x><a href=/a>A</a></div><aside>{STORY}</aside>",
    "a page behind an open dialog": f"<div id=page aria-hidden=true><main>{STORY}</main></div><i>Hi</i>",
    "a frame with a document of its own": f"<h1>T</h1><iframe srcdoc='<div>{STORY}</div>'></iframe>",
    "a dialog that is open": f"<dialog open><h1>T</h1>{STORY}</dialog>",
    "cards that are buttons": "<main>"
    + "".join(f"<button><h3>Card {n}</h3><p>{each}</p></button>" for n, each in enumerate(PARAGRAPHS))
    + "</main>",
    "answers that titles open": "<main><h1>Questions</h1>"
    + "".join(
        f"<h3><button aria-expanded=false aria-controls=a{n}>Question {n}</button></h3>"
        f"<div id=a{n} hidden><p>{each}</div>"
        for n, each in enumerate(PARAGRAPHS)
    )
    + "</main>",
    "panels that tabs open": "<main><h1>T</h1><div><ul role=tablist><li role=tab>A</li></ul><div>"
    f"<div role=tabpanel>{PARAGRAPHS[0]}</div><div role=tabpanel hidden>{STORY}</div></div></div></main>",
    "panels within panels": "<main><h1>T</h1><div role=tablist><i role=tab aria-controls=x>X</i></div>"
    "<div id=x role=tabpanel style='display:none'><h2><button aria-controls=y>Y</button></h2>"
    f"<section id=y class=hidden>{STORY}</section></div></main>",
    "a note between paragraphs": f"<article><h1>T</h1><p>{PARAGRAPHS[0]}</p><p>{PARAGRAPHS[1]}</p>"
    f"<aside class=note><p>{PARAGRAPHS[2]}</p></aside>"
    + "".join(f"<p>{each}</p>" for each in PARAGRAPHS[3:])
    + "</article>",
    "a caption under the last picture": "<article><h1>T</h1>"
    + "".join(f"<p>{each}</p>" for each in PARAGRAPHS[:9])
    + f"<figure><img src=/a.png><figcaption>{PARAGRAPHS[9]}</figcaption></figure></article>",
    "a declarative shadow root": f"<doc-page><template shadowrootmode=open>{STORY}</template></doc-page>",
}


@pytest.mark.parametrize("name", LOSSES)
def test_text_of_difficult_pages_is_kept(name: str) -> None:
    text = extract_text(MENU + LOSSES[name]).markdown.replace("**The**", "The")

    assert [each for each in PARAGRAPHS if each not in text] == []
    assert "Menu 3" not in text


SHORT_SECTIONS = {
    "a last section of few words": f"<div class=sect1><h2>Floods</h2>{STORY}</div>"
    "<div class=sect1><h2>Options</h2><div><p>KEPT and short</p></div></div>",
    "a last section of links": f"<h1>T</h1><div class=section><h2>Floods</h2>{STORY}</div><div class=section>"
    "<h2>See Also</h2><ul><li><p>the <a href=/f>ferry</a> KEPT</p></li></ul></div>",
    "a short section between others": f"<h1>T</h1><div class=section><h2>Use</h2><p>KEPT with the "
    f"<a href=/a>lock</a> and the <a href=/b>market</a></p></div>"
    f"<div class=section><h2>Floods</h2>{STORY}</div>",
    "a section after a closed target": f"<h1>T</h1>{STORY}<div class=part><h2><a id='lock'/>Lock</h2>"
    f"<p>{PARAGRAPHS[3]} KEPT <a href=/1>one</a><p><a href=/2>two</a><p><a href=/3>three</a></div>",
    "a declaration of links before its description": "<h1>fn mill</h1><p><a href=/s>source</a></p><div>"
    "<pre>KEPT(<a href=/t/wheel>wheel_of_the_mill</a>, <a href=/t/river>river_of_the_mill</a>, "
    f"<a href=/t/miller>miller_of_the_mill</a>)</pre></div><div>{STORY}</div>",
}


@pytest.mark.parametrize("name", SHORT_SECTIONS)
def test_short_section_of_text_is_kept(name: str) -> None:
    text = extract_text(MENU + SHORT_SECTIONS[name]).markdown

    assert "KEPT" in text
    assert [each for each in PARAGRAPHS if each not in text] == []
    assert "Menu 3" not in text


STREAMED = (
    f'{MENU}<main><h1>The town</h1><!--$?--><template id="B:0"></template><p>Loading the story</p><!--/$-->'
    f"<p>The end. {PARAGRAPHS[2]}</p></main>"
    f'<div hidden id="S:0"><p>Opening.</p>{STORY}<template id="P:1"></template></div>'
    f'<div hidden id="S:1"><p>Nested part. {PARAGRAPHS[1]}</p></div><script>$RC("B:0","S:0")</script>'
)


def test_streamed_react_parts_are_put_in_place() -> None:
    text = extract_text(STREAMED).markdown

    places = [
        text.index(each) for each in ("Opening.", PARAGRAPHS[0], PARAGRAPHS[-1], "Nested part", "The end.")
    ]
    assert places == sorted(places)
    assert "Loading" not in text


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("<table hidden><tbody id='S:0'>", "</tbody></table>"),
        ("<table hidden><tbody></tbody><tbody id='S:0'>", "</tbody></table>"),
    ],
)
def test_streamed_react_rows_are_put_in_their_table(start: str, end: str) -> None:
    rows = "".join(f"<tr><td>Coin {number}<td>{number}.5 USD</tr>" for number in range(9))
    page = (
        f"<main><p>{PARAGRAPHS[0]}</p><table><thead><tr><th>Coin<th>Price</tr></thead><tbody><!--$?-->"
        f'<template id="B:0"></template><tr><td>Loading</tr><!--/$--></table><p>{PARAGRAPHS[1]}</p></main>'
        f'{start}{rows}{end}<script>$RC("B:0","S:0")</script>'
    )

    text = extract_text(page).markdown

    assert "| Coin | Price |\n| --- | --- |\n| Coin 0 | 0.5 USD |\n| Coin 1 | 1.5 USD |" in text
    assert text.index("Coin 8") < text.index(PARAGRAPHS[1])
    assert "Loading" not in text


def test_hidden_parts_without_place_stay_hidden() -> None:
    assert "IGNORE" not in extract_text(f"<main>{STORY}</main><div hidden id='S:0'>IGNORE</div>").markdown


def test_unexplained_loss_is_restored_with_warning() -> None:
    page = f"<div class=sidebar-menu-widget role=complementary>{STORY}</div><main><p>Short.</p></main>"

    reading = extract_text(page)

    assert all(each in reading.markdown for each in PARAGRAPHS)


WOODS = ("Hazel", "Alder", "Rowan", "Maple", "Birch", "Linden", "Willow", "Poplar", "Cedar", "Elm")
STICKS = "".join(
    f"<div class=c><a href=/p/{n}><img src=/{n}.jpg></a><a href=/p/{n}>{wood} stick with a steel tip</a>"
    f"<div>{19 + n}.50 EUR, sent from the town in {n + 2} days</div></div>"
    for n, wood in enumerate(WOODS)
)
TOWNS = "".join(f"<li><a href=/t/{n}>Town {n}</a></li>" for n in range(90))
DISTRICTS = "".join(
    f"<div class=d><h4>District {n}</h4>{PARAGRAPHS[n][:60]}<ul>"
    + "".join(f"<li><a href=/t/{n}/{place}>Town {n}.{place}</a></li>" for place in range(5))
    + "</ul></div>"
    for n in range(6)
)


@pytest.mark.parametrize(
    "page",
    [
        f"<h1>Towns</h1><ul>{TOWNS}</ul>",
        f"<div>{CARDS * 3}</div><div><h1>Towns</h1><p>{PARAGRAPHS[0]}</p><ul>{TOWNS}</ul></div>",
        f"<div>{CARDS * 3}</div><main><h1>Towns</h1>{PARAGRAPHS[0]}<div><ul>{TOWNS}</ul></div></main>",
        f"<div>{CARDS * 3}</div><div><h1>Towns</h1>{DISTRICTS.replace('Town 2.4', 'Town 89')}</div>",
    ],
    ids=["nothing else", "under a title", "in the main part", "in parts that look alike"],
)
def test_directory_of_short_links_stays(page: str) -> None:
    assert "Town 89" in extract_text(page).markdown


def test_products_below_their_introduction_stay() -> None:
    page = f"<div><h1>Sticks</h1><p>{PARAGRAPHS[0]}</p><p>{PARAGRAPHS[1]}</p><div>{STICKS}</div></div>"

    text = extract_text(MENU + page).markdown

    assert "[Poplar stick with a steel tip]" in text
    assert "26.50 EUR" in text


def test_teasers_below_only_article_are_left_out() -> None:
    teasers = "".join(
        f"<div class=card><a href=/s/{n}><img src=/{n}.jpg><h3>Story {n}</h3></a><p>{each[:75]}</p></div>"
        for n, each in enumerate(PARAGRAPHS[3:])
    )
    story = f"<article><h1>T</h1><p>{PARAGRAPHS[0]}</p><p>{PARAGRAPHS[1]}</p></article>"

    text = extract_text(f"{MENU}<main>{story}<section><h2>Related stories</h2>{teasers}</section></main>")

    assert PARAGRAPHS[1] in text.markdown
    assert "Story 3" not in text.markdown


def test_end_of_book_length_page_is_kept() -> None:
    chapters = "".join(
        f"<section><h2>Chapter {n}</h2>{STORY.replace(' ', f' {n}x')}</section>" for n in range(120)
    )

    page = extract_text(f"{MENU}<main><h1>The town</h1>{chapters}</main>")

    assert len(page.markdown) > 300_000
    assert "Chapter 119" in page.markdown
    assert "Menu 3" not in page.markdown


def test_share_of_visible_text_is_stated_after_large_loss() -> None:
    comments = "".join(f"<div class=comment><p>{each[::-1]}</p></div>" for each in PARAGRAPHS[:5])

    reading = extract_text(
        f"<article><h1>T</h1>{STORY[: len(STORY) // 3]}</article><footer>{comments * 2}</footer>"
    )

    assert any("% of the page's visible text" in warning for warning in reading.warnings)


def test_share_is_stated_if_main_part_lost_text() -> None:
    notes = "".join(f"<li><a href=/n/{n}>N</a> {each[:70]}</li>" for n, each in enumerate(PARAGRAPHS))

    reading = extract_text(f"<main><h1>T</h1>{STORY}<aside><h2>Notes</h2><ul>{notes * 2}</ul></aside></main>")

    assert "% of the page's visible text" in reading.warnings[0]


ARTICLE_MARK = "<meta property=og:type content=article>"
COMMENTS = "".join(f"<li class=comment><p>{each[::-1]}</p></li>" for each in PARAGRAPHS * 3)


@pytest.mark.parametrize(
    ("head", "comments"),
    [
        (ARTICLE_MARK, f"<div id=comments><h2>30 comments</h2><ul>{COMMENTS}</ul></div>"),
        (ARTICLE_MARK, f"<section class='post-comments'><article>{COMMENTS}</article></section>"),
        ("", f"<ol class=commentlist>{COMMENTS}</ol>"),
        ("", f"<div id=comments>{COMMENTS}<form id=commentform><textarea></textarea></form></div>"),
        ("", f"<ol class=commentlist>{COMMENTS * 2}</ol>"),
    ],
)
def test_comments_below_article_are_left_out(head: str, comments: str) -> None:
    reading = extract_text(f"{MENU}<div><h1>The town</h1>{STORY}</div>{comments}", head=head)

    assert all(each in reading.markdown for each in PARAGRAPHS)
    assert PARAGRAPHS[0][::-1] not in reading.markdown


QUESTION = f"<p>What do you think of the mill? {PARAGRAPHS[0]}</p><p>{PARAGRAPHS[1]}</p>"


@pytest.mark.parametrize(
    ("head", "start"),
    [
        ("", STORY),
        ("", f"{QUESTION}<form id=comment-form><textarea></textarea></form>"),
        (ARTICLE_MARK, QUESTION),
        (ARTICLE_MARK, f"<footer>{STORY}</footer>"),
        (
            "",
            f"<p>{PARAGRAPHS[0]}</p><p>{PARAGRAPHS[1]}</p><form id=commentform><textarea></textarea></form>",
        ),
        (ARTICLE_MARK, f"<div itemscope itemtype='https://schema.org/DiscussionForumPosting'>{STORY}</div>"),
    ],
    ids=["no article", "a form", "a question", "a long footer", "a guestbook", "microdata"],
)
def test_discussion_stays(head: str, start: str) -> None:
    reading = extract_text(f"<h1>T</h1>{start}<div class=comments><ul>{COMMENTS}</ul></div>", head=head)

    assert all(each[::-1] in reading.markdown for each in PARAGRAPHS)


@pytest.mark.parametrize(
    "start",
    [
        "<div class='post no-comments'>",
        "<article class='post allow-comments'>",
        "<section class='story with_comments'>",
        "<div id=forum>",
        "<div class='editors-comment'>",
        "<div id=reviews><div class=comments>",
        "<div class=comments><pre>run()</pre>",
        "<div class=comment>",
    ],
)
def test_part_that_mentions_comments_stays(start: str) -> None:
    page = f"<h1>The town</h1>{start}{STORY}</div><p>{PARAGRAPHS[0][::-1]}</p><p>{PARAGRAPHS[1][::-1]}</p>"

    reading = extract_text(page, head=ARTICLE_MARK)

    assert all(each in reading.markdown for each in PARAGRAPHS)


def test_list_of_links_in_declared_article_stays() -> None:
    links = "".join(
        f"<li><a href=/d/{n}>Download number {n} of the old town's plans</a></li>" for n in range(60)
    )
    page = f"{MENU}<main><h1>T</h1><div>{wrap_paragraphs()[:600]}</p><ul>{links}</ul></div></main>"

    assert "Download number 59" in extract_text(page, head=ARTICLE_MARK).markdown


@pytest.mark.parametrize("name", ["hljs-comment", "token comment", "comment"])
def test_comments_in_coloured_code_stay(name: str) -> None:
    code = f"<pre><code>rotate()\n<span class='{name}'># delete the old key before</span>\n</code></pre>"

    reading = extract_text(f"<article><h1>T</h1>{STORY}{code}</article>", head=ARTICLE_MARK)

    assert "rotate()\n# delete the old key before" in reading.markdown


def test_picture_in_emphasis_divides_no_sentence() -> None:
    sentence = (
        "<p>Press <strong>Save <img src=/i.png alt=disk> now</strong> and wait for the mill to start.</p>"
    )

    reading = extract_text(f"<article><h1>T</h1>{STORY}{sentence}</article>")

    assert "now** and wait for the mill to start." in reading.markdown
    assert "\n\nnow" not in reading.markdown


@pytest.mark.parametrize(
    ("head", "is_left_out"), [(ARTICLE_MARK, True), ("", False)], ids=["article", "any page"]
)
def test_boxes_around_declared_article_are_no_loss(head: str, *, is_left_out: bool) -> None:
    boxes = "".join(
        f"<div><a href=/b/{n}>Offer {n} of the new shop</a> from {n} June, in the town</div>"
        for n in range(90)
    )

    reading = extract_text(
        f"<article><h1>T</h1>{wrap_paragraphs()[:800]}</p></article><div>{boxes}</div>", head=head
    )

    assert PARAGRAPHS[0] in reading.markdown
    assert ("Offer 7" not in reading.markdown) is is_left_out


def test_ordinary_article_has_no_warning() -> None:
    assert extract_text(f"{MENU}<article><h1>T</h1>{STORY}</article><footer>Imprint</footer>").warnings == ()


WHOLE = (
    f"{MENU}<header>Top line</header><button>Press here</button><h2><button>Is it open?</button></h2>"
    f"<p>{PARAGRAPHS[0]}</p><div class=ads>Buy paint</div><dialog open>A question</dialog>"
    "<label>Your name</label><div class=cookie-banner>We use cookies <button>Accept</button></div>"
    "<details><summary>More</summary>Less</details><fieldset><legend>Size</legend></fieldset>"
    "<canvas>drawn</canvas><footer>Imprint</footer>Loose end"
)


@pytest.mark.parametrize(
    "part",
    [
        "Menu 7",
        "Top line",
        "Press here",
        "Is it open?",
        "Buy paint",
        "A question",
        "Your name",
        "We use cookies",
        "Accept",
        "More",
        "Less",
        "Size",
        "Imprint",
        "Loose end",
        PARAGRAPHS[0],
    ],
)
def test_whole_page_has_all_visible_text(part: str) -> None:
    assert part in extract_text(WHOLE, only_main_content=False).markdown


OPTIONS = "".join(f"<option>Country {number}</option>" for number in range(60))


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("<label>Size<select><option>Small<option selected>Large</select></label>", "Size Small, Large"),
        ("<select><optgroup label=x><option label=Red>r<option value=''></optgroup></select>", "Red"),
        (f"<select>{OPTIONS}</select>", "Country 48, Country 49 and 10 more"),
        ("<textarea>A note</textarea>", "A note"),
        ("<textarea>One line\n  another &lt;b></textarea>", "```\nOne line\n  another <b>\n```"),
        ("<textarea placeholder='Your words'></textarea>", "Your words"),
        ("Find<input value=bridges>now", "Find bridges now"),
        ("<input type=email placeholder='you@a.example'>", "you@a.example"),
        ("<input type=unknown value='Some text' placeholder=no>", "Some text"),
        ("Go<input type=submit value=Send><input type=reset value=Clear>", "Go Send Clear"),
        ("<svg><text>new</text></svg>", "new"),
        ("<a href=/x><svg><text>The Paper</text></svg></a>", "[The Paper](https://example.org/x)"),
    ],
)
def test_whole_page_has_texts_of_fields_and_symbols(field: str, shown: str) -> None:
    body = f"<p>{PARAGRAPHS[0]}</p><div>{field}</div><p>{PARAGRAPHS[1]}</p>"

    whole = extract_text(body, only_main_content=False).markdown
    main = extract_text(f"<main>{body}</main>").markdown

    assert whole.split("\n\n")[1].endswith(shown)
    assert shown not in main


def test_questions_in_buttons_become_headings() -> None:
    questions = "".join(
        f"<h3><button>Question {n}?</button></h3><div><p>{each}</p></div>"
        for n, each in enumerate(PARAGRAPHS)
    )

    text = extract_text(f"<main><h1>T</h1>{questions}</main>").markdown

    assert "### Question 4?" in text
    assert PARAGRAPHS[4] in text


def test_question_in_button_above_its_answer_is_kept() -> None:
    questions = "".join(
        f"<div><button>Question {n}?</button><div><p>{each}</p></div></div>"
        for n, each in enumerate(PARAGRAPHS)
    )
    form = "<form><input name=user><button>Forgot it?</button><div>Send</div></form>"

    text = extract_text(f"<main><h1>T</h1>{questions}{form}</main>").markdown

    assert f"Question 4?\n\n{PARAGRAPHS[4]}" in text
    assert "Forgot it?" not in text


def test_question_in_box_of_its_own_is_kept() -> None:
    questions = "".join(
        f"<section><div><button>Question {n}?</button><div>{each}</div></div></section>"
        for n, each in enumerate(PARAGRAPHS)
    )

    text = extract_text(f"<main><h1>T</h1>{questions}</main>").markdown

    assert f"Question 4?\n\n{PARAGRAPHS[4]}" in text


@pytest.mark.parametrize("question", ["Was this page helpful?", "Need help?", "Already have an account?"])
def test_question_to_the_reader_is_no_text_of_the_page(question: str) -> None:
    box = f"<div><button>{question}</button><p>Tell us in a few words what we should know.</p></div>"

    text = extract_text(f"<main><h1>T</h1><p>{PARAGRAPHS[0]}</p>{box}<p>{PARAGRAPHS[1]}</p></main>").markdown

    assert question not in text
    assert PARAGRAPHS[1] in text


def test_end_of_longest_page_is_said_to_be_missing() -> None:
    pages = [extract_text(f"<main>{'<p>Words of a page.</p>' * count}</main>") for count in (20_000, 30_000)]

    assert [any("longer than 400,000 characters" in each for each in page.warnings) for page in pages] == [
        False,
        True,
    ]
