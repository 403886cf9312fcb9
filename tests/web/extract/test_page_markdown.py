"""Conversion of a page's elements to Markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.extract.extract import extract_page
from centgate.web.extract.markdown import MAX_COLUMNS

URL = "https://example.org/docs/page"


def convert_body(body: str) -> str:
    """Convert a whole body to Markdown."""
    return extract_page(
        f"<!doctype html><body>{body}".encode(), "text/html; charset=utf-8", URL, only_main_content=False
    ).markdown


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<h1>One</h1><h3>Three <em>x</em></h3>", "# One\n\n### Three *x*"),
        ("<h2></h2><p></p><p>text", "text"),
        ("<p>a <b>b</b><i> c </i>d</p>", "a **b** *c* d"),
        ("<p>a<br>b<br/><br>c", "a\nb\nc"),
        ("<p>x <code>a|b</code> <kbd>Ctrl</kbd>", "x `a|b` `Ctrl`"),
        ("<p><code>a`b</code>", "``a`b``"),
        ("<p>10<sup>6</sup> m<sup>2</sup>, H<sub>2</sub>O, 1<sup>st</sup>", "10^6 m^2, H2O, 1st"),
        ("<p><q>said</q> <del>gone</del>", "\u201csaid\u201d ~~gone~~"),
        ("<p><label>npm</label><label>yarn</label>", "npm yarn"),
        ("<p><a href='#'>Reply</a> <a href='https://me:pw@e.com/'>in</a>", "Reply in"),
        (
            "<p><a href=/a><img src=/b.png alt='b [c]'></a>",
            "[![b \\[c\\]](https://example.org/b.png)](https://example.org/a)",
        ),
        (
            "<table><tr><th rowspan=2>a<th colspan=2>b<tr><th>c<th>d"
            "<tr><td rowspan=2>e<td>1<td>2<tr><td>3<td>4</table>",
            "| a | b |  |\n| --- | --- | --- |\n|  | c | d |\n| e | 1 | 2 |\n|  | 3 | 4 |",
        ),
        (
            "<table><tr><th>a<th>b<tr><td>c<td><table><tr><td>1<td>2<tr><td>3<td>4</table></table>",
            "| a | b |\n| --- | --- |\n| c | 1, 2; 3, 4 |",
        ),
        ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", "- a\n  - b\n  - c\n- d"),
        ("<ol start=3><li>a<li>b<ol><li>c</ol></ol>", "3. a\n4. b\n   1. c"),
        ("<ol><li>a<li value=10>b<li>c</ol>", "1. a\n10. b\n11. c"),
        ("<ol reversed><li>a<li>b<li>c</ol>", "3. a\n2. b\n1. c"),
        ("<ol reversed start=10><li>a<li>b<li value=4>c<li>d</ol>", "10. a\n9. b\n4. c\n3. d"),
        ("<ul><li><p>a</p><p>b</p></li><li></li></ul>", "- a\n\n  b"),
        ("<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"),
        (
            "<ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>",
            "- [x] done\n- [ ] open",
        ),
        ("<ul><li>run <pre>make</pre></ul>", "- run\n\n  ```\n  make\n  ```"),
        ("<ul><turbo-frame><li>a</li><li>b</li></turbo-frame><li>c</li></ul>", "- a\n- b\n- c"),
        ("<ol><ins><li>a</li></ins><li>b</li></ol>", "1. a\n2. b"),
        ("<ul><my-result><li><p>a</p></li></my-result><my-result><li>b</li></my-result></ul>", "- a\n- b"),
        (
            "<ul><a href=/x><li><h3>Head</h3><p>text</p></li></a><a href=/y><li>b</li></a></ul>",
            "- ### [Head](https://example.org/x)\n\n  text\n\n- [b](https://example.org/y)",
        ),
        ("<ol><my-step><b>Step</b> one</my-step><li>two</li></ol>", "- **Step** one\n1. two"),
        (
            "<ul>Intro<li>a</li>between <em>them</em><li>b</li>end</ul>",
            "- Intro\n- a\n- between *them*\n- b\n- end",
        ),
        ("<ul><strong>Head</strong><li>a</li><script>x</script></ul>", "- **Head**\n- a"),
        ("<ul><li>a</li><div><p>b</p><p>c</p></div><li>d</li></ul>", "- a\n\nb\n\nc\n\n- d"),
        ("<ul><my-card><p>a</p></my-card></ul>", "a"),
        ("<ul><li>a<ul><my-leaf><li>b</li></my-leaf></ul></li></ul>", "- a\n  - b"),
        ("<blockquote><p>a</p><blockquote>b</blockquote></blockquote>", "> a\n>\n> > b"),
        ("<dl><dt>a<dd>one<dt>b<dd><p>x</p><p>y</p></dl>", "**a**\n: one\n\n**b**\n\nx\n\ny"),
        ("<dl><div><dt>a</dt><dd>one</dd></div></dl>", "**a**\n: one"),
        ("<dl><script>a</script><style>b</style><dt>c<dd>one</dl>", "**c**\n: one"),
        (
            "<dl>Intro <b>x</b><dt>a</dt><dd>one</dd>between<dt>b</dt></dl>",
            "Intro **x**\n\n**a**\n: one\n\nbetween\n\n**b**",
        ),
        ("<p>a<hr><hr><p>b<hr>", "a\n\n---\n\nb"),
        ("<details><summary>More</summary><p>inside</p></details>", "**More**\n\ninside"),
        ("<p><ruby>\u6f22<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>", "\u6f22(kan)"),
        (
            '<math alttext="x"><semantics><mi>x</mi><annotation encoding="application/x-tex">x^2</annotation>'
            "</semantics></math>",
            "$x^2$",
        ),
        (
            "<p># no heading<p>- no item<p>1. no number<p>&gt; no quote",
            "\\# no heading\n\n\\- no item\n\n1\\. no number\n\n\\> no quote",
        ),
        ("<p>&lt;script&gt;alert(1)&lt;/script&gt; 1 &lt; 2", "\\<script>alert(1)\\</script> 1 < 2"),
        ("<p>&lt;<span>b</span>&gt; &lt;&#8203;i&gt;", "\\<b> \\<i>"),
        ("<custom-box><p>in</p></custom-box>", "in"),
        ("<div>loose <div>block</div> tail</div>", "loose\n\nblock\n\ntail"),
        ("<noscript>no</noscript><template>no</template><svg><title>no</title></svg><p>yes", "yes"),
        ("<h2><a href='#s'>Section</a><a class=headerlink href='#s'>\xb6</a></h2>", "## Section"),
    ],
)
def test_elements_become_markdown(body: str, expected: str) -> None:
    assert convert_body(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("2<sup>0.5</sup>", "2^0.5"),
        ("10<sup>n+1</sup>", "10^(n+1)"),
        ("2<sup>10 000</sup> x", "2^(10 000) x"),
        ("<i>x</i><sup>2<i>k</i></sup>", "*x*^(2k)"),
        ("e<sup>x</sup> 2<sup>k</sup> 2<sup>2<sup>n</sup></sup>", "e^x 2^k 2^(2^n)"),
        ("10<sup>6</sup>5 a<sup>b</sup>c x<sup>2</sup>y", "10^6 5 a^b c x^2y"),
        ("SO<sub>4</sub><sup>2-</sup>", "SO4^2-"),
        ("3<sup>1</sup>/<sub>4</sub> cup", "3 1/4 cup"),
        ("log<sub>10</sub>5 log<sub>2</sub><i>n</i>", "log_10 5 log_2 *n*"),
        ("x<sub>1</sub>2 x<sub>i+1</sub> x<sub>max</sub>", "x_1 2 x_(i+1) x_max"),
        ("1010<sub>2</sub> (10)<sub>10</sub>", "1010_2 (10)_10"),
    ],
)
def test_raised_and_lowered_text_is_marked(body: str, expected: str) -> None:
    assert convert_body(f"<p>{body}") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("1<sup>st</sup> 1<sup>er</sup> n<sup>o</sup> 2<sup>a</sup>", "1st 1er no 2a"),
        ("X<sup>TM</sup> Y<sup>\xae</sup> Z<sup>*</sup>", "XTM Y\xae Z*"),
        ("word<sup>[1]</sup> word<sup>b</sup> Tool<sup>beta</sup>", "word[1] wordb Toolbeta"),
        ("word<sup><a href=/n>1a</a></sup>", "word[1a](https://example.org/n)"),
        ("word<a href=/n><sup>1a</sup></a>", "word[1a](https://example.org/n)"),
        ("$19<sup>.99</sup> 20<sup>\xb0C</sup> 25<sup>mm</sup>", "$19.99 20\xb0C 25mm"),
        ("Ca<sup>2+</sup> NO<sub>3</sub><sup>-</sup>", "Ca2+ NO3-"),
        ("CO<sub>2</sub> C<sub>6</sub>H<sub>12</sub>O<sub>6</sub>", "CO2 C6H12O6"),
        ("Al<sub>2</sub>(SO<sub>4</sub>)<sub>3</sub> NaCl<sub>(aq)</sub>", "Al2(SO4)3 NaCl(aq)"),
        ("PM<sub>2.5</sub> CO<sub>2</sub>e x<sub>i</sub>", "PM2.5 CO2e xi"),
        ("text <sub>small print</sub>", "text small print"),
    ],
)
def test_raised_and_lowered_text_that_reads_well_is_kept(body: str, expected: str) -> None:
    assert convert_body(f"<p>{body}") == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", "1/2"),
        ("<mn>3</mn><mfrac><mn>1</mn><mn>4</mn></mfrac>", "3 1/4"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac>", "(a+b)/c"),
        ("<mfrac linethickness=0><mi>n</mi><mi>k</mi></mfrac>", "(n choose k)"),
        ("<msup><mi>x</mi><mn>10</mn></msup>", "x^10"),
        ("<msup><mi>x</mi><mrow><mn>2</mn><mi>k</mi></mrow></msup>", "x^(2k)"),
        ("<msup><mrow><mo>-</mo><mn>1</mn></mrow><mi>n</mi></msup>", "(-1)^n"),
        ("<msup><mi>a</mi><mn>2</mn></msup><mi>b</mi>", "a^2 b"),
        ("<msup><mi>f</mi><mo>\u2032</mo></msup><mo>(</mo><mi>x</mi><mo>)</mo>", "f\u2032(x)"),
        ("<msub><mi>x</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub>", "x_(i+1)"),
        ("<msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup>", "x_1^2"),
        ("<munderover><mo>\u2211</mo><mi>k</mi><mi>n</mi></munderover><mi>k</mi>", "\u2211_k^n k"),
        ("<msqrt><mn>16</mn></msqrt>", "sqrt(16)"),
        ("<mroot><mn>8</mn><mn>3</mn></mroot>", "root(3)(8)"),
        ("<semantics><mi>x</mi><annotation encoding=StarMath>x</annotation></semantics>", "x"),
        ("<semantics><mi>a</mi><annotation encoding=TeX>a&lt;b</annotation></semantics>", "$a< b$"),
    ],
)
def test_formula_keeps_its_structure(formula: str, expected: str) -> None:
    assert convert_body(f"<p>so <math>{formula}</math> is") == f"so {expected} is"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>So <script type='math/tex'>E = m c^2</script> holds", "So $E = m c^2$ holds"),
        ("<p>So <script type='math/tex'>a&lt;b <c</script>", "So $a&lt;b < c$"),
        (
            "<p>So<script type='math/tex; mode=display'>E =\nm c^2</script>holds",
            "So\n\n$$E = m c^2$$\n\nholds",
        ),
        (
            "<p>a <span class=MathJax_Preview>x2</span><span class=MathJax><b>x</b>2</span>"
            "<script type='math/tex'>x^2</script>",
            "a $x^2$",
        ),
        ("<p>yes<script type='text/javascript'>x^2</script>", "yes"),
    ],
)
def test_tex_in_scripts_is_kept(body: str, expected: str) -> None:
    assert convert_body(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p style='white-space: pre-wrap'>a\n  b\n\nc", "a\nb\nc"),
        ("<div style='white-space:pre-line'>a <b>b</b>\nc <i>d\ne</i>", "a **b**\nc d\ne"),
        ("<p style='white-space: pre-line'>a <code>b\nc</code>", "a `b c`"),
        ("<div style='white-space: pre-wrap'>\n<p>a\nb</p>\n<ul>\n<li>c</li>\n</ul></div>", "a\nb\n\n- c"),
        ("<div style='white-space: pre-wrap'>a<p style='white-space: normal'>b\nc", "a\n\nb c"),
        ("<p style='white-space: nowrap'>a\nb", "a b"),
    ],
)
def test_preserved_line_feeds_are_kept(body: str, expected: str) -> None:
    assert convert_body(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<a href='/a b'>x</a>", "[x](https://example.org/a%20b)"),
        ("<a href='sub?q=1#f'>x</a>", "[x](https://example.org/docs/sub?q=1#f)"),
        ("<a href='//cdn.example/x'>x</a>", "[x](https://cdn.example/x)"),
        ("<a href='#part'>x</a>", "[x](https://example.org/docs/page#part)"),
        ("<a href='/w/(x)'>x</a>", "[x](https://example.org/w/%28x%29)"),
        ("<a href='mailto:a@b.example'>mail</a>", "[mail](mailto:a@b.example)"),
        ("<a href=' JavaScript:alert(1)'>x</a>", "x"),
        ("<a href='java\nscript:alert(1)'>x</a>", "x"),
        ("<a href='data:text/html,x'>x</a>", "x"),
        ("<a href='http://[bad'>x</a>", "x"),
        ("<a href='/a'></a><a href='/b'> </a>y", "y"),
        ("<a href='/a'>[\u202e]</a>", "[\\[\\]](https://example.org/a)"),
        ("<a href='/a'><p>\u200b</p></a>y", "y"),
        ("<a href='/a'>\u202e</a><a href='/b'>\u200b\uf0c1</a>y", "y"),
        ("<a>plain</a>", "plain"),
        (
            "<a href=/a>[1]</a> <a href=/b>a [b] c</a>",
            "[1](https://example.org/a) [a \\[b\\] c](https://example.org/b)",
        ),
        ("see<a href=/a> this </a>now", "see [this](https://example.org/a) now"),
        ("<a href=/a><h3>Title</h3><p>Text</p></a>", "### [Title](https://example.org/a)\n\nText"),
        ("<img src=i.png alt='An image'>", "![An image](https://example.org/docs/i.png)"),
        ("Sales<img src=/p/chart.png>", "Sales![chart.png](https://example.org/p/chart.png)"),
        (
            "<img src='data:image/png;base64,xx' data-src='/lazy.png' alt=l>",
            "![l](https://example.org/lazy.png)",
        ),
        ("<img src='data:image/png;base64,xx' alt=l>text", "text"),
        ("<img src=/pixel.gif width=1 height=1>text", "text"),
        ("<img srcset='/a.webp 2x, /b.webp' alt=p>", "![p](https://example.org/a.webp)"),
        (
            "<picture><source srcset='/a.webp'><img src=/a.png alt=p></picture>lon<wbr>ger",
            "![p](https://example.org/a.png)longer",
        ),
        ("<a href=/a><img src=/i.png alt=i></a>", "[![i](https://example.org/i.png)](https://example.org/a)"),
    ],
)
def test_links_are_absolute_and_not_empty(body: str, expected: str) -> None:
    assert convert_body(body) == expected


def test_base_element_resolves_links() -> None:
    page = b"<head><base href='/other/'></head><body><a href='x'>x</a>"

    assert (
        extract_page(page, "text/html", URL, only_main_content=False).markdown
        == "[x](https://example.org/other/x)"
    )


@pytest.mark.parametrize(
    ("block", "language"),
    [
        ("<pre><code class='language-python'>x</code></pre>", "python"),
        ("<pre><code class='hljs lang-js'>x</code></pre>", "js"),
        ("<pre class='brush: sql; toolbar: no'>x</pre>", "sql"),
        ("<pre data-lang='go'>x</pre>", "go"),
        ("<pre><code data-language='Rust'>x</code></pre>", "rust"),
        ("<div class='highlight-bash notranslate'><div class='highlight'><pre>x</pre></div></div>", "bash"),
        ("<div class='highlight highlight-source-shell'><pre>x</pre></div>", "shell"),
        ("<pre class='sourceCode haskell'><code class='sourceCode haskell'>x</code></pre>", "haskell"),
        ("<figure data-language=ts><pre>x</pre></figure>", "ts"),
        ("<pre class='language-none'>x</pre>", ""),
        ("<pre class='code literal-block'>x</pre>", ""),
        ("<pre class='language-a`b'>x</pre>", "a"),
        ("<pre class='code-snippet'>x</pre>", ""),
        ("<div class='highlight-wrapper'><div class='code-wrapper'><pre>x</pre></div></div>", ""),
        ("<pre class='code-toolbar language-go'>x</pre>", "go"),
        ("<pre class='lang-js language-typescript'>x</pre>", "typescript"),
        ("<pre class='syntax-highlight'>x</pre>", ""),
        ("<div class='lang-en'><div class='lang-pt-BR'><pre>x</pre></div></div>", ""),
        ("<pre class='lang-brainfuck'>x</pre>", "brainfuck"),
        ("<div class='highlight-c++ notranslate'><pre>x</pre></div>", "c++"),
    ],
)
def test_code_block_has_language(block: str, language: str) -> None:
    assert convert_body(block) == f"```{language}\nx\n```"


def test_code_keeps_its_lines_only() -> None:
    block = (
        "<pre><span class=linenos>1</span>def f():\n<span class=linenos>2</span>\treturn  1\n\n\n"
        "f()<button>Copy</button>\n</pre>"
    )

    assert convert_body(block) == "```\ndef f():\n\treturn  1\n\n\nf()\n```"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("<code>npm install acme<br>npm run build</code>", ["npm install acme", "npm run build"]),
        ("<code>a\n  b<br>\n&nbsp; c</code>", ["a b", "  c"]),
        ("<code style='white-space: pre'>def f():\n    return 1</code>", ["def f():", "    return 1"]),
        ("<p>Run</p><div><code>a<br>b</code></div>", ["a", "b"]),
        ("<div class=code><code>if a:\n    b\n</code></div>", ["if a:", "    b"]),
    ],
)
def test_multi_line_code_becomes_block(code: str, lines: list[str]) -> None:
    assert convert_body(code).removeprefix("Run\n\n") == "\n".join(("```", *lines, "```"))


def test_inline_code_stays_inline() -> None:
    assert convert_body("<p>Call <code>a\nb</code> now") == "Call `a b` now"


def test_line_elements_stay_lines() -> None:
    block = "<pre><code><div class=line>a</div><div class=line>b</div></code></pre>"

    assert convert_body(block) == "```\na\nb\n```"


def test_listing_of_divisions_is_code_block() -> None:
    tip = "<div class=ttc id=n><div class=ttname>get</div></div>"
    lines = (
        "<span class=comment>// Reads.</span>",
        "<a href=/get>get</a>() {",
        "  <span class=keywordflow>return</span> a_b;",
        "}",
    )
    listing = "\n".join(
        f"<div class=line><span class=lineno>    {number}</span>{line}</div>"
        for number, line in enumerate(lines)
    )

    for only_main in (True, False):
        page = f"<!doctype html><body><h1>T</h1><div class=fragment>{listing}{tip}</div>".encode()
        markdown = extract_page(page, "text/html", URL, only_main_content=only_main).markdown
        assert markdown == "# T\n\n```\n// Reads.\nget() {\n  return a_b;\n}\n```"


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("<span style='display:block'>a</span><span style='display: block'>b</span>", ["a", "b"]),
        ("<span style='display:block'>a</span>\n<span style='display:block'>b</span>", ["a", "b"]),
        ("<span style='display:block'>a\n</span><span style='display:flex'>b</span>", ["a", "b"]),
        ("<span style='display:inline-block'>a</span><span style='display:inline'>b</span>", ["ab"]),
        ("<ol><li>a</li><li></li><li>b</li></ol>", ["a", "", "b"]),
    ],
)
def test_code_lines_are_those_shown(code: str, lines: list[str]) -> None:
    assert convert_body(f"<pre><code>{code}</code></pre>") == "\n".join(("```", *lines, "```"))


@pytest.mark.parametrize(
    "cell",
    [
        "<td class=linenos><div class=linenodiv><pre><span>1</span>\n<span>2</span></pre></div>",
        "<td class=gutter><pre><span class=line>1</span><br><span class=line>2</span><br></pre>",
    ],
)
def test_column_of_line_numbers_is_no_code(cell: str) -> None:
    table = f"<table><tr>{cell}<td class=code><pre>a\nb</pre></table>"

    assert convert_body(table) == "```\na\nb\n```"


def test_fence_is_longer_than_fences_in_code() -> None:
    assert convert_body("<pre>```\nx\n```</pre>") == "````\n```\nx\n```\n````"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("<tr><th>a<th>b<tr><td>1|2<td><code>x</code>", "| a | b |\n| --- | --- |\n| 1\\|2 | `x` |"),
        ("<thead><tr><th>a<th>b</thead><tbody><tr><td>1</tbody>", "| a | b |\n| --- | --- |\n| 1 |  |"),
        (
            "<tr><th>Height<td>63 m<tr><th>Built<td>1830",
            "|  |  |\n| --- | --- |\n| Height | 63 m |\n| Built | 1830 |",
        ),
        (
            "<tr><th colspan=2>both<th>c<tr><td>1<td>2<td>3",
            "| both |  | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
        ),
        (
            "<tr><th>a<th>b<tr><td>x<br>y<td><ul><li>1<li>2</ul>",
            "| a | b |\n| --- | --- |\n| x y | \u2022 1 \u2022 2 |",
        ),
        (
            "<caption>Sizes</caption><tr><th>a<th>b<tr><td>1<td>2",
            "**Sizes**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("<tr><th>a<th>b<tr><td>1<td><code>x<br>y</code>", "| a | b |\n| --- | --- |\n| 1 | `x y` |"),
        (
            "<thead><tr><th rowspan=3>a<th>b</thead><tbody><tr><td>1<td>2<tr><td>3<td>4</tbody>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |",
        ),
        (
            "<tbody><tr><td rowspan=0>a<td>1<tr><td>2<tr><td>3</tbody><tbody><tr><td>b<td>4</tbody>",
            "| a | 1 |\n| --- | --- |\n|  | 2 |\n|  | 3 |\n| b | 4 |",
        ),
        (
            "<thead><tr><th>a<th>b</thead><tfoot><tr><td>all<td>9</tfoot><tbody><tr><td>c<td>9</tbody>",
            "| a | b |\n| --- | --- |\n| c | 9 |\n| all | 9 |",
        ),
        (
            "<tfoot><tr><td>all<td>9</tfoot><tbody><tr><td>c<td>9</tbody>",
            "| c | 9 |\n| --- | --- |\n| all | 9 |",
        ),
    ],
)
def test_tables_stay_tables(table: str, expected: str) -> None:
    assert convert_body(f"<table>{table}</table>") == expected


def test_wide_table_keeps_all_cells() -> None:
    rows = ["".join(f"<td>{row}.{column}" for column in range(MAX_COLUMNS + 20)) for row in range(3)]

    lines = convert_body(f"<table><tr>{'<tr>'.join(rows)}<tr><td>alone<td colspan=9>short</table>").split(
        "\n"
    )

    assert [line.count("|") for line in lines[:4]] == [MAX_COLUMNS + 21] * 4
    assert lines[3].endswith(f"| 2.{MAX_COLUMNS + 19} |")


def test_spanned_columns_are_limited() -> None:
    table = "<table>" + "<tr><td colspan=9999 rowspan=9999>x<td>y" * 30 + "</table>"

    assert len(convert_body(table)) < 30 * MAX_COLUMNS * 8


def test_layout_table_is_written_as_its_parts() -> None:
    page = "<table><tr><td><h2>Left</h2><p>text</td><td><pre>code</pre></td></tr></table>"

    assert convert_body(page) == "## Left\n\ntext\n\n```\ncode\n```"


def test_single_row_with_blocks_is_layout() -> None:
    post = (
        "<table><tr><td><a href=/up>up</a></td><td><div>A post<p>and its second paragraph</p></div></table>"
    )

    assert convert_body(post).endswith("A post\n\nand its second paragraph")
    assert convert_body("<table><tr><td>Status</td><td>open</td></tr></table>").startswith(
        "| Status | open |"
    )


def test_invisible_characters_are_removed() -> None:
    page = "<p>a\u202eb\u200bc&#x202e;d\U000e0041e&#8203;f</p><pre>x\u2066y</pre><a href='/\u202e'>l</a>"

    text = convert_body(page)

    assert text.startswith("abcdef\n\n```\nxy\n```")
    assert not re.search("[\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]", text)


TAGS = st.sampled_from(
    [
        "p",
        "div",
        "span",
        "b",
        "i",
        "em",
        "code",
        "pre",
        "a",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "tr",
        "td",
        "th",
        "blockquote",
        "h1",
        "h2",
        "br",
        "hr",
        "img",
        "sup",
        "q",
        "x-y",
    ]
)
TEXT = st.text(alphabet="ab \n\t#-*_`[]()<>&|1.\u202e\u200b\xa0\u6f22", max_size=12)


@st.composite
def generate_html(draw: st.DrawFn, depth: int = 4) -> str:
    """Generate HTML of any shape, not always well formed."""
    parts = [draw(TEXT).replace("<", "&lt;")]
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        tag = draw(TAGS)
        attributes = draw(st.sampled_from(["", " href=/x", " src=/y", " class='language-py'", " colspan=3"]))
        close = draw(st.sampled_from([f"</{tag}>", f"</{tag}>", ""]))
        parts.append(f"<{tag}{attributes}>{draw(generate_html(depth - 1))}{close}")
        parts.append(draw(TEXT).replace("<", "&lt;"))
    return "".join(parts)


def test_backtick_is_kept_from_marks_of_code() -> None:
    text = convert_body("<p>Write <code>x` </code>, <code> `y</code> or <code>z`&#x200b;</code>.")

    assert text == "Write `` x` ``, `` `y `` or `` z` ``."


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>Press <kbd>Ctrl</kbd><kbd>C</kbd>.", "Press `Ctrl` `C`."),
        ("<div><code>a`</code>&#x200b;<span><code>b</code></span></div>", "`` a` `` `b`"),
        ("<p><code>a``b</code> or <code>```</code>", "`a``b` or ` ``` `"),
        ("<p>It is in C:\\<code>temp</code>.", "It is in C:\\\\`temp`."),
        ("<p>It is <code>a&#x2028;&#x2028;b</code>.", "It is `a b`."),
    ],
)
def test_code_stays_code_beside_anything(html: str, markdown: str) -> None:
    assert convert_body(html) == markdown


def test_raised_text_begins_no_tag_in_text_after_it() -> None:
    assert convert_body("<p>It is <sup><i></i>&lt; </sup>a.") == "It is \\<a."


@pytest.mark.extended
@given(generate_html())
def test_any_page_gives_valid_markdown(body: str) -> None:
    text = convert_body(body)

    outside = re.sub(
        r"^[ >]*(?:[-\d.]+ )*(`{3,}).*?(?:^[ >]*\1$|\Z)", "code", text, flags=re.DOTALL | re.MULTILINE
    )
    assert "\n\n\n" not in outside
    unescaped = re.sub(r"\\[`<]", " ", outside)
    assert not re.search(r"<(?=[a-zA-Z/!])", re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", " ", unescaped))
    assert not re.search(r"(?<![\\\]])\[\s*\]\(http", text)
    assert not re.search("[\u202e\u200b]", text)
    assert all(line == line.rstrip() for line in text.split("\n"))
