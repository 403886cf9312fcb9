"""Pages with a heading and little else: those whose text scripts would add, and honest short ones."""

from __future__ import annotations

MENU = (
    "<header><a href=/>Alder Supplies</a><nav><ul><li><a href=/shop>Shop</a><li><a href=/about>About us</a>"
    "<li><a href=/contact>Contact</a></ul></nav></header>"
)
FOOTER = (
    "<footer><h3>Opening hours</h3><p>Monday to Friday from nine to five. We are closed on public holidays, "
    "and in the first week of August, when everybody is at the lake. Deliveries go on during that week.</p>"
    "<p>Alder Supplies Ltd, 4 Mill Lane, Oxbridge. Registered in England under "
    "number 0042. All prices include "
    "value added tax at the rate of the day. © 2026 Alder Supplies Ltd.</p><a href=/terms>Terms</a></footer>"
)
LIBRARY = "<script src=https://code.jquery.com/jquery-3.7.1.min.js></script>"
ANALYTICS = (
    "<script async src='https://www.googletagmanager.com/gtag/js?id=G-1'></script><script>window.dataLayer="
    "window.dataLayer||[];function gtag(){dataLayer.push(arguments)}gtag('js',new "
    "Date());gtag('config','G-1');"
    "</script>"
)
TAG_MANAGER = (
    "<script>(function(w,d,s,l,i){w[l]=w[l]||[];w[l].push({'gtm.start':new Date().getTime(),event:'gtm.js'});"
    "var "
    "f=d.getElementsByTagName(s)[0],j=d.createElement(s);j.async=true;j.src='https://www.googletagmanager.com"
    "/gtm.js?id='+i;f.parentNode.insertBefore(j,f);})(window,document,'script','dataLayer','GTM-1');</script>"
)
MONITORING = "<script>" + "window.NREUM||(NREUM={});e.appendChild(t.createElement('p'));" * 400 + "</script>"
BUNDLE = "<script type=module src=/assets/index-B7c9Xk2p.js></script>"
CODE = "var rows=[];" + "function pick(a,b){return a.filter(function(x){return x.id===b})}" * 120


def _page(content: str, scripts: str) -> str:
    return f"<!doctype html><title>Alder Supplies</title><body>{MENU}{content}{FOOTER}{scripts}</body>"


FRAMES = {
    "list by id": _page(
        "<main><h1>Our products</h1><div id=list></div></main>",
        f"<script>{CODE}document.getElementById('list').innerHTML=rows.join('')</script>",
    ),
    "list by class": _page(
        "<main><h1>Our products</h1><ul class=product-list></ul></main>",
        f"<script>{CODE}document.querySelector('.product-list').append(rows)</script>",
    ),
    "main by tag": _page(
        "<main><h1>Our products</h1></main>",
        f"<script>{CODE}document.querySelector('main').insertAdjacentHTML('beforeend',rows)</script>",
    ),
    "jQuery": _page(
        "<div class=page><h1>News</h1><section id=news></section></div>",
        f"{LIBRARY}<script>{CODE}$('#news').html(rows)</script>",
    ),
    "bundle": _page("<main><h1>Our products</h1><div id=product-grid></div></main>", BUNDLE),
    "webpack": _page(
        "<div class=wrap><h1>Our products</h1><div data-component=ProductGrid data-page=1></div></div>",
        "<script src=/static/js/runtime~main.3f9a1c.js></script>"
        "<script src=/static/js/main.77ab12cd.js></script>",
    ),
    "custom element": _page("<main><h1>Stock</h1><stock-table market=lme></stock-table></main>", BUNDLE),
    "loading": _page(
        "<main><h1>Our products</h1><div id=list><img src=/spinner.gif><p>Loading products…</p></div></main>",
        f"<script>{CODE}document.getElementById('list').innerHTML=rows.join('')</script>",
    ),
    "lead": _page(
        "<main><h1>Careers</h1><p>Find your next role with us</p><div id=jobs></div></main>",
        f"<script>{CODE}render(document.getElementById('jobs'))</script>",
    ),
    "table body": _page(
        "<main><h1>Prices</h1><table><tbody id=rows></tbody></table></main>",
        f"<script>{CODE}document.getElementById('rows').innerHTML=rows</script>",
    ),
    "footer by class": (
        "<title>Alder</title><body><div class=navbar><a href=/>Home</a> <a href=/shop>Shop</a></div>"
        "<h1>Events</h1><div id=events></div><div class=site-footer>"
        f"{FOOTER.replace('footer', 'section')}</div><script>{CODE}"
        "document.getElementById('events').innerHTML=rows</script>"
    ),
    "framework": _page("<main id=content></main>", "<script src=/_next/static/chunks/main-app.js></script>"),
}
"""Pages whose text is made by scripts."""

_SCRIPTS = {"library": LIBRARY + ANALYTICS, "bundle": BUNDLE + TAG_MANAGER, "monitoring": MONITORING}
_CONTENTS = {
    "coming soon": "<main><h1>Coming soon</h1></main>",
    "countdown": "<main><h1>We open in May</h1><div id=countdown></div></main>",
    "thanks": "<main><h1>Thank you!</h1><p>Your message was sent.</p></main>",
    "closed": "<h1>Closed today</h1><div class=clear></div>",
    "sentence": "<main><h1>Lost property</h1>"
    "<p>Ask at the desk on the ground floor, or write to us.</p></main>",
    "address": "<main><h1>Visit us</h1><address>4 Mill Lane<br>Oxbridge OX4 2AB"
    "</address><div id=map></div></main>",
    "map": "<main><h1>Contact</h1><div id=map-canvas></div></main>",
    "form": "<main><h1>Write to us</h1><form><input name=mail><textarea></textarea>"
    "</form><div id=ok></div></main>",
    "search": "<main><h1>Search</h1><form action=/find><input name=q></form><div id=results></div></main>",
    "login": "<main><h1>Sign in</h1><form><input><input type=password></form><div id=error></div></main>",
    "picture": "<main><h1>The mill</h1><img src=/mill.jpg alt='The mill in spring'>"
    "<div id=caption></div></main>",
    "gallery": "<main><h1>Pictures</h1><div id=grid><img src=/1.jpg><img src=/2.jpg></div></main>",
    "video": "<main><h1>The film</h1><video src=/film.mp4></video><div id=chapters></div></main>",
    "frame": "<main><h1>Booking</h1><iframe src=https://booking.example/></iframe></main>",
    "links": "<main><h1>Downloads</h1><ul><li><a href=/a.pdf>Price list of the year 2026 (PDF, two pages)</a>"
    "<li><a href=/b.pdf>Terms of delivery</a></ul><div id=more></div></main>",
    "table": "<main><h1>Prices</h1><table><tr><td>Oak<td>12.00<tr><td>Ash<td>10.00"
    "<tr><td>Elm<td>11.00<tr><td>Pine"
    "<td>5.00<tr><td>Larch, seasoned outdoors<td>7.00</table></main>",
    "definition": "<article><h1>alder</h1>"
    "<p>noun: a tree of the birch family that grows beside water.</p></article>",
    "number": "<main><h1>Visitors today</h1><p>1,204</p></main>",
    "status": "<main><h1>All systems operational</h1></main>",
    "quote": "<main><h1>Motto</h1><blockquote>Measure twice, cut once.</blockquote></main>",
    "code": "<main><h1>Install</h1><pre>pip install alder</pre><div id=copied></div></main>",
    "article header": "<article><header><h1>Moved</h1>"
    "<p>This page has moved to the new site of the mill, where it "
    "is kept up to date.</p></header><div id=comments></div></article>",
    "comments": "<article><h1>Poem</h1><p>Water over stone.</p><div id=disqus_thread></div></article>",
    "portal": "<div id=__next><main><h1>Hello</h1><p>A page of mine.</p></main>"
    "<div id=modal-root></div></div>",
    "announcer": "<main><h1>Imprint</h1><p>See below.</p></main>"
    "<next-route-announcer></next-route-announcer>",
    "hero": "<section id=hero></section><main><h1>Alder Supplies</h1><p>Timber since 1904</p></main>",
    "anchors": "<main><a id=top></a><h1>Notice</h1><p>No trains on Sunday.</p>"
    "<div id=ad-slot-1></div></main>",
    "not found": "<main><h1>404</h1><p>There is no such page.</p></main>",
    "translated": "<main><h1>Öffnungszeiten</h1><p>Täglich von 9 bis 17 Uhr.</p></main>",
    "maintenance": "<main><h1>Back at noon</h1><p>We repair the roof.</p></main>",
    "vote": "<main><h1>Poll</h1><p>Thank you for your vote.</p><button>Close</button></main>",
    "only heading": "<h1>It works!</h1>",
    "subheadings": "<main><h1>Team</h1><h2>Ann Alder</h2><h2>Bo Birch</h2></main>",
    "schedule": "<main><h1>Talks of the day</h1><h3>Ten o'clock, how stars form, in the large hall</h3>"
    "<h3>Noon, the bees of the mill, in the garden</h3><div id=extra></div></main>",
    "short text": "<main><h1>Status</h1><p>All machines run. No faults today.</p><div id=extra></div></main>",
    "empty paragraphs": "<main><h1>Note</h1><p>&nbsp;</p><p></p><div></div></main>",
}
HONEST = {
    f"{name}, {scripts}": _page(content, code)
    for name, content in _CONTENTS.items()
    for scripts, code in _SCRIPTS.items()
}
"""Short pages that are complete, with the scripts that many sites have on each page."""
