"""Short pages with a notice in place of content."""

from __future__ import annotations

import pytest

from centgate.web.extract.extract import ExtractedPage, extract_page

WORDS = "<p>" + "There is much to say about this and it goes on for long. " * 40 + "</p>"


def extract_html(html: str) -> ExtractedPage:
    return extract_page(html.encode(), "text/html", "https://example.org/", only_main_content=True)


@pytest.mark.parametrize(
    "title",
    [
        *("404 Not Found", "Page not found - Shop", "Seite nicht gefunden", "Error 404"),
        "\u30da\u30fc\u30b8\u304c\u898b\u3064\u304b\u308a\u307e\u305b\u3093 | Shop",
        "\u9875\u9762\u4e0d\u5b58\u5728 - Shop",
        "\u0421\u0442\u0440\u0430\u043d\u0438\u0446\u0430 \u043d\u0435 "
        "\u043d\u0430\u0439\u0434\u0435\u043d\u0430",
        "\ud398\uc774\uc9c0\ub97c \ucc3e\uc744 \uc218 \uc5c6\uc2b5\ub2c8\ub2e4",
        "P\u00e1gina n\u00e3o encontrada",
        "Pagina non trovata",
        "Pagina niet gevonden",
        "Sidan kunde inte hittas",
        "Strona nie istnieje",
        "\u0627\u0644\u0635\u0641\u062d\u0629 \u063a\u064a\u0631 \u0645\u0648\u062c\u0648\u062f\u0629",
    ],
)
def test_soft_404_is_detected(title: str) -> None:
    warning = "the page says that this address does not exist"

    assert warning in extract_html(f"<title>{title}</title><body><h1>Sorry</h1><p>Go home.").warnings
    assert warning not in extract_html(f"<title>{title}</title><body>{WORDS}").warnings


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("Before you continue to YouTube", "asks for consent"),
        ("Bevor Sie zu Google weitergehen", "asks for consent"),
        ("Yahoo is part of the Yahoo family of brands", "asks for consent"),
        ("Maintenance mode", "closed for maintenance"),
        ("503 - Under maintenance", "closed for maintenance"),
        ("Our shop is down for maintenance", "closed for maintenance"),
        ("Wartungsarbeiten", "closed for maintenance"),
        ("Account Suspended", "suspended or has expired"),
        ("This domain has expired", "suspended or has expired"),
        ("Example.com is for sale | HugeDomains", "for sale or parked"),
        ("This domain may be for sale", "for sale or parked"),
    ],
)
def test_notice_is_reported_beside_short_text(title: str, reason: str) -> None:
    warnings = extract_html(f"<title>{title}</title><body><h1>Sorry</h1><p>Nothing else.").warnings

    assert [reason in each for each in warnings] == [True]
    assert not any(reason in each for each in extract_html(f"<title>{title}</title><body>{WORDS}").warnings)


@pytest.mark.parametrize(
    "title",
    [
        "Bicycle maintenance for beginners",
        "Maintenance of ships | Shop",
        "House for sale in Vienna",
        "What to do before you continue",
        "Why is my account suspended?",
        *("Domain name system", "Public domain books for sale", "What is a parked domain?", "Maintenance"),
        *("Antes de ir a la playa", "Before you continue to the next chapter", "Prima di passare a Linux"),
        *("How to put your website in maintenance mode", "Wartungsarbeiten an der Autobahn"),
        *("Node.js book is for sale", "Site: hunting season suspended", "Domain parking - Wikipedia"),
        "Bandwidth limit exceeded, explained",
    ],
)
def test_subject_of_page_is_no_notice(title: str) -> None:
    assert extract_html(f"<title>{title}</title><body><h1>Text</h1><p>A short note.").warnings == ()


def test_form_to_sign_in_is_reported() -> None:
    form = "<form><p>Name and password<input name=user><input type=password><button>Go</button></form>"
    warning = "the page asks to sign in; what it shows after that was not read"

    assert warning in extract_html(f"<title>Log in | Shop</title><body>{form}").warnings
    assert warning not in extract_html("<title>Log in | Shop</title><body><p>How to log in.").warnings
    assert warning not in extract_html(f"<title>Shop</title><body>{form}<p>Tea.").warnings
