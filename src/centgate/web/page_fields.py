"""Types of the optional facts of a page, which each service's answer has in an order of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from centgate.web.extract.metadata import MAX_KEYWORDS
from centgate.web.extract.parts import MAX_LINKS
from centgate.web.fields import UNTRUSTED, ListedLink
from centgate.web.search_results import MAX_ENGINES

PublicationTime = Annotated[
    str | None,
    Field(
        description="Publication time of the page, ISO 8601, as precise as the source gives it, and in UTC "
        "if it gives a zone; null when unknown."
    ),
]

# of a search result
SiteName = Annotated[str | None, Field(description=f"Name of the site; null when unknown. {UNTRUSTED}")]
PictureUrl = Annotated[str | None, Field(description="Address of a picture of the page; null when unknown.")]
Language = Annotated[str | None, Field(description="Language of the page, BCP 47; null when unknown.")]
MatchScore = Annotated[
    float | None,
    Field(
        description="How well the page matches, higher is better; comparable only within one answer. "
        "Null when the source gives none."
    ),
]
EngineNames = Annotated[
    list[str] | None,
    Field(
        max_length=MAX_ENGINES,
        description="Search engines that found the page; null when the source names none.",
    ),
]
ReadTime = Annotated[
    str | None,
    Field(description="When the source read the page, ISO 8601; null when the source does not tell."),
]

# of a page that was read
DeclaredLanguage = Annotated[
    str | None,
    Field(description="The language that the page declares, such as `en`; null when it declares none."),
]
DeclaredAuthor = Annotated[
    str | None, Field(description=f"The author that the page names; null when it names none. {UNTRUSTED}")
]
DeclaredSiteName = Annotated[
    str | None,
    Field(description=f"The site's name as the page gives it; null when unknown. {UNTRUSTED}"),
]
DeclaredPicture = Annotated[
    str | None,
    Field(description="URL of the picture that the page gives for previews; null when it gives none."),
]
Keywords = Annotated[
    list[str],
    Field(
        max_length=MAX_KEYWORDS, description=f"The page's own keywords; empty when it has none. {UNTRUSTED}"
    ),
]
ListedLinks = Annotated[
    list[ListedLink],
    Field(
        max_length=MAX_LINKS,
        description="Links and images in this part of the page, each address once, in their order.",
    ),
]
ResponseStatus = Annotated[
    int | None, Field(description="HTTP status of the site's response; null when unknown.")
]
FinalUrl = Annotated[str | None, Field(description="The URL after redirects; null when unknown.")]
NextOffset = Annotated[
    int | None,
    Field(ge=0, description="The `offset` that continues the page; null when there is no more to read."),
]
